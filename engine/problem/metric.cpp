// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/metric.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <numbers>

namespace pointsman {
namespace {

double nearest_integer(double x) { return std::floor(x + 0.5); }

// DDD.MM (degrees and minutes) to radians, with TSPLIB95's own pi. The degrees are cut off, not rounded: the
// published optima are only reached that way, whatever the text says.
double geographic_radians(double degrees_minutes) {
  constexpr double kPi = 3.141592;
  const double degrees = std::trunc(degrees_minutes);
  const double minutes = degrees_minutes - degrees;
  return kPi * (degrees + 5.0 * minutes / 3.0) / 180.0;
}

constexpr double kGeoRadius = 6378.388;       // TSPLIB95, in km
constexpr double kEarthRadius = 6'371'008.8;  // the mean radius (IUGG 1980), in metres

double geographic_distance(const Instance& instance, int a, int b) {
  const double latitude_a = geographic_radians(instance.first(a));
  const double latitude_b = geographic_radians(instance.first(b));
  const double longitude_a = geographic_radians(instance.second(a));
  const double longitude_b = geographic_radians(instance.second(b));
  const double q1 = std::cos(longitude_a - longitude_b);
  const double q2 = std::cos(latitude_a - latitude_b);
  const double q3 = std::cos(latitude_a + latitude_b);
  const double cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3);
  return std::floor(kGeoRadius * std::acos(std::clamp(cosine, -1.0, 1.0)) + 1.0);
}

// The angle between two places in decimal degrees; the haversine formula keeps its digits for close ones.
double central_angle(const Instance& instance, int a, int b) {
  constexpr double kRadians = std::numbers::pi / 180.0;
  const double latitude_a = kRadians * instance.first(a), latitude_b = kRadians * instance.first(b);
  const double north = std::sin((latitude_b - latitude_a) / 2.0);
  const double east = std::sin(kRadians * (instance.second(b) - instance.second(a)) / 2.0);
  const double haversine = north * north + std::cos(latitude_a) * std::cos(latitude_b) * (east * east);
  return 2.0 * std::asin(std::min(1.0, std::sqrt(haversine)));
}

double sphere_distance(const Instance& instance, int a, int b) {
  if (instance.metric == Metric::kGeo) return geographic_distance(instance, a, b);
  const double angle = central_angle(instance, std::min(a, b), std::max(a, b));  // the same bits both ways
  if (instance.metric == Metric::kGeom) return std::floor(1000.0 * kGeoRadius * angle + 1.0);
  return (instance.metric == Metric::kHaversine ? kEarthRadius : kEarthRadius / 1000.0) * angle;
}

}  // namespace

double city_distance(const Instance& instance, int a, int b) {
  if (a == b) return 0.0;
  if (!instance.forbidden.empty() && std::binary_search(instance.forbidden.begin(), instance.forbidden.end(),
                                                        std::array{std::min(a, b), std::max(a, b)}))
    return std::numeric_limits<double>::infinity();
  if (instance.metric == Metric::kExplicit) return instance.matrix->at(a, b);
  if (is_on_sphere(instance.metric)) return sphere_distance(instance, a, b);
  const double *const from = instance.item(a), *const to = instance.item(b);
  const double dx = to[0] - from[0], dy = to[1] - from[1];
  const double squared = dx * dx + dy * dy;
  switch (instance.metric) {
    case Metric::kEuc2d:
      return nearest_integer(std::sqrt(squared));
    case Metric::kFloor2d:
      return std::floor(std::sqrt(squared));
    case Metric::kCeil2d:
      return std::ceil(std::sqrt(squared));
    case Metric::kAtt: {
      const double length = std::sqrt(squared / 10.0);
      const double rounded = nearest_integer(length);
      return rounded < length ? rounded + 1.0 : rounded;
    }
    case Metric::kMan2d:
      return nearest_integer(std::abs(dx) + std::abs(dy));
    case Metric::kMax2d:
      return std::max(nearest_integer(std::abs(dx)), nearest_integer(std::abs(dy)));
    default:
      return plain_distance(dx, dy);
  }
}

double longest_on_sphere(Metric metric) {
  if (metric == Metric::kHaversine) return std::numbers::pi * kEarthRadius;
  if (metric == Metric::kHaversineKm) return std::numbers::pi * kEarthRadius / 1000.0;
  return std::ceil(std::numbers::pi * kGeoRadius * (metric == Metric::kGeom ? 1000.0 : 1.0)) + 1.0;
}

void write_unit_square(const Instance& instance, float* features) {
  Box box;
  for (int item = 0; item < instance.n(); ++item) box.add(instance.first(item), instance.second(item));
  const auto& [low, high] = box;
  const bool inside = low[0] >= 0.0 && low[1] >= 0.0 && high[0] <= 1.0 && high[1] <= 1.0;
  // The extent of coordinates near the largest double overflows: halve everything first, which is exact.
  const double shrink = std::isfinite(high[0] - low[0]) && std::isfinite(high[1] - low[1]) ? 1.0 : 0.5;
  const double side = std::max(high[0] * shrink - low[0] * shrink, high[1] * shrink - low[1] * shrink);
  const auto write = [&](double x, int axis, float& to) {
    if (inside) {
      to = static_cast<float>(x);
    } else {  // 0: all items in one place
      to = side > 0.0 ? static_cast<float>((x * shrink - low[axis] * shrink) / side) : 0.0f;
    }
  };
  for (int item = 0; item < instance.n(); ++item, features += instance.width()) {
    write(instance.first(item), 0, features[0]);
    write(instance.second(item), 1, features[1]);
  }
}

bool forbids_ways(const Instance& instance) {
  return instance.matrix ? instance.matrix->has_gaps() : !instance.forbidden.empty();
}

bool has_integer_distances(const Instance& instance) {
  if (instance.metric != Metric::kExplicit) {
    return instance.metric != Metric::kEuclidean && instance.metric != Metric::kHaversine &&
           instance.metric != Metric::kHaversineKm;
  }
  const auto are_integers = [](const std::vector<double>& distances) {
    return std::all_of(distances.begin(), distances.end(), [](double d) { return d == std::floor(d); });
  };
  return are_integers(instance.matrix->above) && are_integers(instance.matrix->back);
}

}  // namespace pointsman
