// SPDX-License-Identifier: Apache-2.0
#include "engine/search/distances.h"

#include <algorithm>
#include <cmath>
#include <limits>

namespace pointsman {
namespace {

// Up to 300 cities (720 KB) a look into a matrix is faster than a square root; a great circle takes ten times
// as long.
constexpr int kMatrixCities = 300;
constexpr int kGeographicMatrixCities = 2000;

// Three distances less three others are five additions of at most three times the largest distance L, and
// each distance is wrong by half a unit in its last place: (5 x 3 + 6) 2^-53 L < 2^-48 L.
constexpr double kRounding = 0x1p-48;
constexpr double kMostExact = 0x1p49;  // integers: sixteen of them are added exactly
constexpr double kMostRange =
    0x1p30;  // largest to shortest distance: rounding is below 2^-18 of the shortest

}  // namespace

Distances::Distances(const Instance& instance, const StopToken& stop)
    : instance_(instance),
      n_(instance.n()),
      is_plain_(instance.metric == Metric::kEuclidean),
      cities_(along_curve(instance)) {
  if (instance.has_coordinates()) {
    for (const int32_t city : cities_) {
      points_.push_back(instance.first(city));
      points_.push_back(instance.second(city));
    }
    is_planar_ = instance.metric != Metric::kGeo;
  }
  choose_lengths();
  if (n_ > (instance.metric == Metric::kGeo ? kGeographicMatrixCities : kMatrixCities)) return;
  std::vector<double> matrix(static_cast<size_t>(n_) * n_);
  StopMeter meter(&stop);
  for (int a = 0; a < n_; ++a) {
    meter.check(n_ - a);
    for (int b = a + 1; b < n_; ++b)
      matrix[static_cast<size_t>(a) * n_ + b] = matrix[static_cast<size_t>(b) * n_ + a] = (*this)(a, b);
  }
  matrix_ = std::move(matrix);
}

// Bounds of the distances that are not 0. In the plane those of neighbours along the curve stand for the
// shortest.
void Distances::find_range(double& least, double& largest) const {
  least = std::numeric_limits<double>::infinity();
  largest = 0.0;
  if (instance_.metric == Metric::kExplicit) {
    for (const double distance : instance_.matrix->above) {
      if (distance > 0.0) least = std::min(least, distance);
      largest = std::max(largest, distance);
    }
    return;
  }
  double low[2] = {least, least}, high[2] = {-least, -least};
  for (int place = 0; place < n_; ++place) {
    for (const int axis : {0, 1}) {
      low[axis] = std::min(low[axis], points_[2 * place + axis]);
      high[axis] = std::max(high[axis], points_[2 * place + axis]);
    }
    const double distance = (*this)(place, place + 1 < n_ ? place + 1 : 0);
    if (distance > 0.0) least = std::min(least, distance);
  }
  // No metric of the plane is longer than the way along both axes, rounded up. A great circle is 20,040 km at
  // most.
  largest = instance_.metric == Metric::kGeo ? 20'040.0 : (high[0] - low[0]) + (high[1] - low[1]) + 1.0;
}

void Distances::choose_lengths() {
  if (n_ < 2) return;
  double least = 0.0, largest = 0.0;
  find_range(least, largest);
  const bool are_integers = has_integer_distances(instance_);
  if (are_integers && largest <= kMostExact) return;
  rounding_ = kRounding * largest;
  is_wide_ = std::isfinite(largest) && (are_integers || largest > kMostRange * least);
  if (!is_wide_) return;
  rounding_ = 0.0;
  const int bits_of_n = std::ilogb(static_cast<double>(n_)) + 1;
  wide_unit_ = std::ldexp(1.0, std::min(125 - bits_of_n - std::ilogb(largest), 1000));
}

}  // namespace pointsman
