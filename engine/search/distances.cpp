// SPDX-License-Identifier: Apache-2.0
#include "engine/search/distances.h"

#include "engine/search/space_curve.h"

namespace pointsman {

namespace {

// Up to 300 cities (720 KB) a look into a matrix is faster than a square root; a great circle takes ten times
// as long.
constexpr int kMatrixCities = 300;
constexpr int kGeographicMatrixCities = 2000;

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

}  // namespace pointsman
