// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/validate.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/knapsack.h"
#include "kernels/common/tsp.h"

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

// Empty when every index is in range and none occurs twice.
std::string check_distinct(const Instance& instance, const std::vector<int32_t>& order,
                           const std::string& what) {
  std::vector<bool> seen(instance.n(), false);
  for (const int32_t item : order) {
    if (item < 0 || item >= instance.n()) {
      return what + " " + std::to_string(item) + " does not exist: there are " + std::to_string(instance.n());
    }
    if (seen[item]) return what + " " + std::to_string(item) + " occurs twice";
    seen[item] = true;
  }
  return "";
}

// The same round trip from city 0 towards its lower-numbered neighbour: a tour has one cost, to the last bit,
// wherever it starts and whichever way it goes.
std::vector<int32_t> canonical_cycle(std::vector<int32_t> order) {
  std::rotate(order.begin(), std::min_element(order.begin(), order.end()), order.end());
  if (order.size() > 2 && order.back() < order[1]) std::reverse(order.begin() + 1, order.end());
  return order;
}

std::string validate_tour(const Instance& instance, Solution& solution) {
  const std::vector<int32_t>& order = solution.order;
  const std::string problem = check_distinct(instance, order, "city");
  if (!problem.empty()) return problem;
  const int n = instance.n();
  if (static_cast<int>(order.size()) != n) {
    return "the tour visits " + std::to_string(order.size()) + " of " + std::to_string(n) + " cities";
  }
  const std::vector<int32_t> cycle = canonical_cycle(solution.order);
  solution.cost_euclidean = tour_length(instance.values.data(), cycle.data(), n);
  solution.cost = solution.cost_euclidean;
  if (instance.metric != Metric::kEuclidean) {
    solution.cost = 0.0;
    for (int i = 0; i < n; ++i)
      solution.cost += city_distance(instance, cycle[i], cycle[i + 1 < n ? i + 1 : 0]);
  }
  return "";
}

std::string validate_packing(const Instance& instance, Solution& solution) {
  const std::vector<int32_t>& order = solution.order;
  const std::string problem = check_distinct(instance, order, "item");
  if (!problem.empty()) return problem;
  const int taken = static_cast<int>(order.size());
  std::vector<int32_t> items = order;
  std::sort(items.begin(), items.end());
  solution.cost = packed_value(instance.values.data(), items.data(), taken);
  solution.weight = 0.0;
  for (const int32_t item : items) solution.weight += instance.first(item);
  // The rollout subtracted the weights from the capacity, this adds them up: each of the two sums may round
  // by half a unit in the last place per item. More than that is too much weight.
  const double rounding = taken * std::numeric_limits<double>::epsilon() * solution.weight;
  if (!(solution.weight - rounding <= instance.capacity)) {
    return "the items weigh " + std::to_string(solution.weight) + ", more than the capacity " +
           std::to_string(instance.capacity);
  }
  return "";
}

}  // namespace

double city_distance(const Instance& instance, int a, int b) {
  if (a == b) return 0.0;
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
    default:
      return std::sqrt(squared);
  }
}

std::string validate_solution(const Instance& instance, Solution& solution) {
  return instance.problem == ProblemKind::kTsp ? validate_tour(instance, solution)
                                               : validate_packing(instance, solution);
}

bool is_reachable(const Instance& instance, Solution solution) {
  if (!validate_solution(instance, solution).empty()) return false;
  if (instance.problem == ProblemKind::kTsp) return true;
  double capacity_left = instance.capacity;
  std::vector<char> taken(instance.n(), 0);
  for (const int32_t item : solution.order) {
    if (instance.first(item) > capacity_left) return false;
    capacity_left -= instance.first(item);
    taken[item] = 1;
  }
  for (int item = 0; item < instance.n(); ++item) {
    if (!taken[item] && instance.first(item) <= capacity_left) return false;
  }
  return true;
}

bool is_better(const Instance& instance, double cost_a, double cost_b) {
  return instance.problem == ProblemKind::kTsp ? cost_a < cost_b : cost_a > cost_b;
}

double gap(const Instance& instance, double cost, double reference) {
  if (cost == reference) return 0.0;  // also when both are 0
  return instance.problem == ProblemKind::kTsp ? cost / reference - 1.0 : 1.0 - cost / reference;
}

}  // namespace pointsman
