// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/metric.h"

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

double geographic_distance(const Instance& instance, int a, int b) {
  constexpr double kRadius = 6378.388;
  const double latitude_a = geographic_radians(instance.first(a));
  const double latitude_b = geographic_radians(instance.first(b));
  const double longitude_a = geographic_radians(instance.second(a));
  const double longitude_b = geographic_radians(instance.second(b));
  const double q1 = std::cos(longitude_a - longitude_b);
  const double q2 = std::cos(latitude_a - latitude_b);
  const double q3 = std::cos(latitude_a + latitude_b);
  const double cosine = 0.5 * ((1.0 + q1) * q2 - (1.0 - q1) * q3);
  return std::floor(kRadius * std::acos(std::clamp(cosine, -1.0, 1.0)) + 1.0);
}

}  // namespace

double city_distance(const Instance& instance, int a, int b) {
  if (a == b) return 0.0;
  if (instance.metric == Metric::kExplicit) return instance.matrix->at(a, b);
  if (instance.metric == Metric::kGeo) return geographic_distance(instance, a, b);
  const double dx = instance.first(b) - instance.first(a);
  const double dy = instance.second(b) - instance.second(a);
  const double squared = dx * dx + dy * dy;
  switch (instance.metric) {
    case Metric::kEuc2d:
      return nearest_integer(std::sqrt(squared));
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

bool has_integer_distances(const Instance& instance) {
  if (instance.metric != Metric::kExplicit) return instance.metric != Metric::kEuclidean;
  const std::vector<double>& distances = instance.matrix->above;
  return std::all_of(distances.begin(), distances.end(), [](double d) { return d == std::floor(d); });
}

}  // namespace pointsman
