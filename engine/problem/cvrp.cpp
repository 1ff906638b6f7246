// SPDX-License-Identifier: Apache-2.0
// The capacitated vehicle routing problem, as the table of problems knows it.
#include "kernels/common/cvrp.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "engine/problem/metric.h"
#include "engine/problem/packing_units.h"
#include "engine/problem/problem.h"

namespace pointsman {

std::vector<std::vector<int32_t>> routes_of(const std::vector<int32_t>& order) {
  std::vector<std::vector<int32_t>> routes(1);
  for (const int32_t item : order) {
    if (item != 0) {
      routes.back().push_back(item);
    } else if (!routes.back().empty()) {
      routes.emplace_back();
    }
  }
  if (routes.back().empty()) routes.pop_back();
  return routes;
}

std::vector<int32_t> order_of(const std::vector<std::vector<int32_t>>& routes) {
  std::vector<int32_t> order;
  for (const std::vector<int32_t>& route : routes) {
    if (!order.empty()) order.push_back(0);
    order.insert(order.end(), route.begin(), route.end());
  }
  return order;
}

namespace {

using Order = std::vector<int32_t>;

constexpr int kNumbers = CvrpRules::kFeatures;

// Places as a TSP's; demands as shares of the capacity.
std::vector<float> cvrp_features(const Instance& instance, double) {
  std::vector<float> features(instance.values.size());
  write_unit_square(instance, features.data());
  for (size_t i = 2; i < features.size(); i += kNumbers)
    features[i] = instance.capacity > 0.0 ? static_cast<float>(instance.values[i] / instance.capacity) : 0.0f;
  return features;
}

// Rounded down, so that what fits in the user's numbers fits in these: the share, a float, may be too large
// by 2^-24 of itself.
void trained_demands(int n, const float* features, double trained_capacity, double* demands) {
  constexpr double kSteps = 65536.0;
  for (int item = 0; item < n; ++item) {
    const double share = features[kNumbers * item + 2];
    demands[item] = std::floor(share * (1.0 - 0x1p-22) * trained_capacity * kSteps) / kSteps;
  }
}

// Each route from its end with the lower number, and the routes by their first customers.
Order canonical_routes(Order order) {
  std::vector<Order> routes = routes_of(order);
  for (Order& route : routes) {
    if (route.back() < route.front()) std::reverse(route.begin(), route.end());
  }
  std::sort(routes.begin(), routes.end());
  return order_of(routes);
}

// Under the instance's metric.
double routed_length(const Instance& instance, const Order& order) {
  double length = 0.0;
  int32_t last = 0;
  for (const int32_t item : order) {
    length += city_distance(instance, last, item);
    last = item;
  }
  return length + city_distance(instance, last, 0);
}

std::string validate_routes(const Instance& instance, Solution& solution) {
  const std::vector<Order> routes = routes_of(solution.order);
  size_t served = 0;
  for (const Order& route : routes) served += route.size();
  if (served + 1 != static_cast<size_t>(instance.n())) {
    return "the routes serve " + std::to_string(served) + " of " + std::to_string(instance.n() - 1) +
           " customers";
  }
  solution.order = order_of(routes);
  const Order order = canonical_routes(solution.order);
  solution.objective = routed_length(instance, order);
  solution.unrounded =
      routes_length(instance.values.data(), kNumbers, order.data(), static_cast<int>(order.size()));
  const WeightUnits demands = weight_units(instance);
  for (size_t i = 0; i < routes.size(); ++i) {
    int64_t left = demands.room;
    for (const int32_t customer : routes[i]) {
      left -= demands.weights[customer];
      if (left < 0) return "route " + std::to_string(i + 1) + " carries more than the capacity";
    }
  }
  return "";
}

// Where a route lies: the angle of its customers' mean, seen from the depot; twice the area that it goes
// round.
struct RouteShape {
  double angle = 0.0, area = 0.0;
};

RouteShape shape_of(const float* features, const Order& route) {
  const auto x = [&](int32_t item) { return double{features[kNumbers * item]} - features[0]; };
  const auto y = [&](int32_t item) { return double{features[kNumbers * item + 1]} - features[1]; };
  double sum_x = 0.0, sum_y = 0.0, area = 0.0;
  for (size_t i = 0; i < route.size(); ++i) {
    sum_x += x(route[i]);
    sum_y += y(route[i]);
    if (i > 0) area += x(route[i - 1]) * y(route[i]) - x(route[i]) * y(route[i - 1]);
  }
  return {std::atan2(sum_y, sum_x), area};
}

// Routes counter-clockwise around the depot, each counter-clockwise.
void make_routes_example(int n, const float* features, int32_t* order) {
  int32_t* const end = std::find(order, order + CvrpRules::max_steps(n), -1);
  std::vector<std::pair<double, Order>> routes;
  for (Order& route : routes_of({order, end})) {
    const RouteShape shape = shape_of(features, route);
    if (shape.area < 0.0) std::reverse(route.begin(), route.end());
    routes.emplace_back(shape.angle, std::move(route));
  }
  std::sort(routes.begin(), routes.end());
  std::vector<Order> sorted;
  for (auto& [angle, route] : routes) sorted.push_back(std::move(route));
  const Order example = order_of(sorted);
  std::fill(std::copy(example.begin(), example.end(), order), end, -1);
}

// Demands 1 .. 9; the depot has none.
double drawn_number(int item, int field, double uniform) {
  return field < 2 ? uniform : item == 0 ? 0.0 : 1.0 + std::floor(9.0 * uniform);
}

}  // namespace

extern const Problem kCvrpProblem = {.kind = ProblemKind::kCvrp,
                                     .title = "CVRP",
                                     .model_prefix = "cvrp",
                                     .item = "customer",
                                     .items = "customers",
                                     .answer = "routes",
                                     .order_key = "routes",
                                     .objective_key = "cost",
                                     .measure = "length",
                                     .full_measure = "length of the routes",
                                     .fields = ItemFields::kCoordinatesAndDemand,
                                     .sense = Sense::kMinimise,
                                     .has_capacity = CvrpRules::kHasCapacity,
                                     .has_packing = false,
                                     .has_exact = false,
                                     .has_depot = true,
                                     .has_symmetries = true,
                                     .has_all_items = true,
                                     .has_local_search = true,
                                     .has_two_opt = false,
                                     .features = cvrp_features,
                                     .validate = validate_routes,
                                     .objective = routed_length,
                                     .canonical = canonical_routes,
                                     .make_example = make_routes_example,
                                     // Kool et al. 2019, appendix C.
                                     .default_capacity =
                                         [](int n) {
                                           return n <= 11 ? 20.0 : n <= 21 ? 30.0 : n <= 51 ? 40.0 : 50.0;
                                         },
                                     .rule_numbers = packing_numbers,
                                     .trained_numbers = trained_demands,
                                     .drawn_number = drawn_number};

}  // namespace pointsman
