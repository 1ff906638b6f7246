// SPDX-License-Identifier: Apache-2.0
// The shortest Hamiltonian path, as the table of problems knows it.
#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/problem/metric.h"
#include "engine/problem/problem.h"

namespace pointsman {
namespace {

using Order = std::vector<int32_t>;

std::vector<float> path_features(const Instance& instance, double) {
  if (!instance.suits_networks()) throw std::invalid_argument("a path that is not just coordinates");
  std::vector<float> features(instance.values.size());
  write_unit_square(instance, features.data());
  return features;
}

// From the end with the lower number, where the way back is as long: then a path has one cost, to the last
// bit, whichever way it goes.
Order canonical_path(Order order) {
  if (!order.empty() && order.back() < order.front()) std::reverse(order.begin(), order.end());
  return order;
}

double length_of(const Instance& instance, const Order& order) {
  double length = 0.0;
  for (size_t i = 1; i < order.size(); ++i) length += city_distance(instance, order[i - 1], order[i]);
  return length;
}

std::string validate_path(const Instance& instance, Solution& solution) {
  Order& order = solution.order;
  const int n = instance.n();
  if (static_cast<int>(order.size()) != n) {
    return "the path visits " + std::to_string(order.size()) + " of " + std::to_string(n) + " cities";
  }
  const auto is_at = [](int32_t wanted, int32_t found) { return wanted < 0 || wanted == found; };
  const auto fits = [&] { return is_at(instance.start, order.front()) && is_at(instance.end, order.back()); };
  if (!fits()) std::reverse(order.begin(), order.end());
  if (!fits()) return "the path does not run from the given start to the given end";
  const bool is_one_way = instance.matrix && !instance.matrix->is_symmetric();
  const Order path = is_one_way ? order : canonical_path(order);
  solution.objective = length_of(instance, path);
  solution.unrounded = instance.has_coordinates() ? tour_length(instance.values.data(), path.data(), n, true)
                                                  : solution.objective;
  return "";
}

// From the end nearer to the corner (0, 0).
void make_path_example(int n, const float* features, int32_t* order) {
  const auto from_corner = [&](int32_t city) {
    return std::hypot(features[2 * city], features[2 * city + 1]);
  };
  if (from_corner(order[n - 1]) < from_corner(order[0])) std::reverse(order, order + n);
}

}  // namespace

extern const Problem kPathProblem = {.kind = ProblemKind::kPath,
                                     .title = "path",
                                     .model_prefix = "path",
                                     .item = "city",
                                     .items = "cities",
                                     .answer = "path",
                                     .order_key = "path",
                                     .objective_key = "cost",
                                     .measure = "length",
                                     .full_measure = "path length",
                                     .fields = ItemFields::kCoordinates,
                                     .sense = Sense::kMinimise,
                                     .has_capacity = TspRules::kHasCapacity,
                                     .has_packing = false,
                                     .has_depot = false,
                                     .has_symmetries = true,
                                     .has_all_items = true,
                                     .has_local_search = true,
                                     .has_two_opt = false,
                                     .features = path_features,
                                     .validate = validate_path,
                                     .objective = length_of,
                                     .canonical = canonical_path,
                                     .make_example = make_path_example,
                                     .default_capacity = [](int) { return 0.0; }};

}  // namespace pointsman
