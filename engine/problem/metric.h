// SPDX-License-Identifier: Apache-2.0
// Distances between cities: those of TSPLIB95, section 2, and great circles between decimal degrees.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>

#include "engine/problem/instance.h"
#include "kernels/common/tsp.h"

namespace pointsman {

// Whether items are latitude and longitude, in degrees.
inline bool is_on_sphere(Metric metric) {
  return metric == Metric::kGeo || metric == Metric::kGeom || metric == Metric::kHaversine ||
         metric == Metric::kHaversineKm;
}
// What these metrics can measure: degrees, within +-90 and +-360.
inline bool is_geographic(double latitude, double longitude) {
  return std::abs(latitude) <= 90.0 && std::abs(longitude) <= 360.0;
}

// The bounding box of points.
struct Box {
  static constexpr double kFar = std::numeric_limits<double>::infinity();
  double low[2] = {kFar, kFar}, high[2] = {-kFar, -kFar};

  void add(double x, double y) {
    low[0] = std::min(low[0], x);
    low[1] = std::min(low[1], y);
    high[0] = std::max(high[0], x);
    high[1] = std::max(high[1], y);
  }
};

// That of Metric::kEuclidean.
inline double plain_distance(double dx, double dy) { return euclidean_length<double>(dx, dy); }

// Under the instance's metric: nint, ceil, pseudo-Euclidean, great circle, Manhattan, maximum, the matrix's
// own number, or the plain Euclidean length; infinite for a forbidden way.
double city_distance(const Instance& instance, int a, int b);

// No two places are farther apart under a metric on the sphere.
double longest_on_sphere(Metric metric);

// The places as a network reads them: inside [0,1]^2 unchanged; otherwise the bounding box's corner is moved
// to 0 and both axes are divided by its longer side. features: [n][instance.width()], of which the first two
// numbers are written.
void write_unit_square(const Instance& instance, float* features);

// Whether some way is infinite: forbidden, or none.
bool forbids_ways(const Instance& instance);

// Whether every distance is an integer or infinite, so that a tour's length is one too. Looks at all numbers
// of a matrix.
bool has_integer_distances(const Instance& instance);

}  // namespace pointsman
