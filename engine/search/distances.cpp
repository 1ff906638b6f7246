// SPDX-License-Identifier: Apache-2.0
#include "engine/search/distances.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>

namespace pointsman {
namespace {

// Up to 300 cities (720 KB) a matrix is faster than a square root; a great circle takes ten times as long.
constexpr int kMatrixCities = 300;
constexpr int kGeographicMatrixCities = 2000;

// Three distances less three others are five additions of at most three times the largest distance L, and
// each distance is wrong by half a unit in its last place: (5 x 3 + 6) 2^-53 L < 2^-48 L.
constexpr double kRounding = 0x1p-48;
constexpr double kMostExact = 0x1p49;  // integers: sixteen of them are added exactly
constexpr double kMostRange = 0x1p30;  // largest to shortest: rounding is below 2^-18 of the shortest

// A cell's place on the Hilbert curve through 2^32 x 2^32 cells. No branches: nobody could predict them.
uint64_t hilbert_place(uint32_t x, uint32_t y) {
  uint64_t place = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t right = (x >> bit) & 1, up = (y >> bit) & 1;
    place = 4 * place + ((3 * right) ^ up);
    const uint32_t turned = -(right & ~up), swapped = (x ^ y) & (up - 1);  // turned: the last quarter's cells
    x ^= swapped ^ turned;
    y ^= swapped ^ turned;
  }
  return place;
}

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
    is_planar_ = !is_on_sphere(instance.metric);
  }
  choose_lengths();
  if (n_ > (is_on_sphere(instance.metric) ? kGeographicMatrixCities : kMatrixCities)) return;
  std::vector<double> matrix(static_cast<size_t>(n_) * n_);
  StopMeter meter(&stop);
  for (int a = 0; a < n_; ++a) {
    meter.check(n_ - a);
    for (int b = a + 1; b < n_; ++b)
      matrix[static_cast<size_t>(a) * n_ + b] = matrix[static_cast<size_t>(b) * n_ + a] = (*this)(a, b);
  }
  matrix_ = std::move(matrix);
}

// Bounds of the distances above 0. In the plane neighbours along the curve stand for the shortest.
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
  Box box;
  for (int place = 0; place < n_; ++place) {
    box.add(x(place), y(place));
    const double distance = (*this)(place, place + 1 < n_ ? place + 1 : 0);
    if (distance > 0.0) least = std::min(least, distance);
  }
  // In the plane the way along both axes, rounded up, is the longest.
  largest = is_on_sphere(instance_.metric) ? longest_on_sphere(instance_.metric)
                                           : (box.high[0] - box.low[0]) + (box.high[1] - box.low[1]) + 1.0;
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

std::vector<int32_t> along_curve(const Instance& instance) {
  std::vector<int32_t> order(static_cast<size_t>(instance.n()));
  std::iota(order.begin(), order.end(), 0);
  if (!instance.has_coordinates()) return order;
  Box box;
  for (const int32_t city : order) box.add(instance.first(city), instance.second(city));
  // The bounding square is the curve's.
  const double extent = std::max(box.high[0] - box.low[0], box.high[1] - box.low[1]);
  const auto cell = [&](double x, int axis) {
    return extent > 0.0 ? static_cast<uint32_t>((x - box.low[axis]) / extent * 0xffffffffp0) : 0;
  };
  std::vector<std::pair<uint64_t, int32_t>> places;  // each city's place on the curve and its number
  places.reserve(order.size());
  for (const int32_t city : order)
    places.emplace_back(hilbert_place(cell(instance.first(city), 0), cell(instance.second(city), 1)), city);
  std::sort(places.begin(), places.end());
  std::transform(places.begin(), places.end(), order.begin(), [](const auto& place) { return place.second; });
  return order;
}

}  // namespace pointsman
