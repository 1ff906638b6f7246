// SPDX-License-Identifier: Apache-2.0
// The open vehicle routing problem, as the table of problems knows it. Its instances are those of the CVRP.
#include "ovrp.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/metric.h"
#include "engine/problem/problem.h"

namespace pointsman {
namespace {

const Problem& closed() { return problem_of(ProblemKind::kCvrp); }

// The routes by their first customers; a route has one direction.
std::vector<int32_t> canonical_open(std::vector<int32_t> order) {
  std::vector<std::vector<int32_t>> routes = routes_of(order);
  std::sort(routes.begin(), routes.end());
  return order_of(routes);
}

// Under the instance's metric.
double one_way_length(const Instance& instance, const std::vector<int32_t>& order) {
  double length = 0.0;
  int32_t last = 0;
  for (const int32_t item : order) {
    if (item != 0) length += city_distance(instance, last, item);
    last = item;
  }
  return length;
}

// Who is served and what a vehicle carries is as the CVRP has it.
std::string validate_open(const Instance& instance, Solution& solution) {
  std::string wrong = closed().validate(instance, solution);
  if (!wrong.empty()) return wrong;
  const std::vector<int32_t> order = canonical_open(solution.order);
  const int steps = static_cast<int>(order.size());
  solution.objective = one_way_length(instance, order);
  solution.unrounded = open_length(instance.values.data(), OvrpRules::kFeatures, order.data(), steps);
  return "";
}

// Routes counter-clockwise around the depot, by the angles of their first customers.
void make_open_example(int n, const float* features, int32_t* order) {
  int32_t* const end = std::find(order, order + OvrpRules::max_steps(n), -1);
  std::vector<std::vector<int32_t>> routes = routes_of({order, end});
  const auto angle_of = [&](const std::vector<int32_t>& route) {
    const float* const first = features + OvrpRules::kFeatures * route[0];
    return std::pair(std::atan2(first[1] - features[1], first[0] - features[0]), route[0]);
  };
  std::sort(routes.begin(), routes.end(),
            [&](const auto& a, const auto& b) { return angle_of(a) < angle_of(b); });
  const std::vector<int32_t> example = order_of(routes);
  std::fill(std::copy(example.begin(), example.end(), order), end, -1);
}

}  // namespace

extern const Problem kOvrpProblem = {
    .kind = ProblemKind::kOvrp,
    .title = "OVRP",
    .model_prefix = "ovrp",
    .item = "customer",
    .items = "customers",
    .answer = "routes",
    .order_key = "routes",
    .objective_key = "cost",
    .measure = "length",
    .full_measure = "length of the open routes",
    .fields = ItemFields::kCoordinatesAndDemand,
    .sense = Sense::kMinimise,
    .has_capacity = OvrpRules::kHasCapacity,
    .has_packing = false,
    .has_exact = false,
    .has_depot = true,
    .has_symmetries = true,
    .has_all_items = true,
    .has_local_search = false,
    .has_two_opt = false,
    .features = [](const Instance& instance, double trained) { return closed().features(instance, trained); },
    .validate = validate_open,
    .objective = one_way_length,
    .canonical = canonical_open,
    .make_example = make_open_example,
    .default_capacity = [](int n) { return closed().default_capacity(n); },
    .rule_numbers = [](const Instance& instance) { return closed().rule_numbers(instance); },
    .trained_numbers = [](int n, const float* features, double trained,
                          double* numbers) { closed().trained_numbers(n, features, trained, numbers); },
    .drawn_number = [](int item, int field,
                       double uniform) { return closed().drawn_number(item, field, uniform); }};

}  // namespace pointsman
