// SPDX-License-Identifier: Apache-2.0
// The travelling salesman problem, symmetric and asymmetric, and the shortest Hamiltonian path, as the table
// of problems knows them.
#include "kernels/common/tsp.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/problem/atsp.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"

namespace pointsman {
namespace {

std::vector<float> tsp_features(const Instance& instance, double) {
  if (!instance.suits_networks()) {
    throw std::invalid_argument(std::string("an instance of ") + problem_of(instance).title +
                                " that is not just coordinates");
  }
  std::vector<float> features(instance.values.size());
  write_unit_square(instance, features.data());
  return features;
}

// The same round trip from city 0: a tour has one cost, to the last bit, wherever it starts.
std::vector<int32_t> canonical_circuit(std::vector<int32_t> order) {
  std::rotate(order.begin(), std::min_element(order.begin(), order.end()), order.end());
  return order;
}

// And towards its lower-numbered neighbour: whichever way it goes.
std::vector<int32_t> canonical_tour(std::vector<int32_t> order) {
  order = canonical_circuit(std::move(order));
  if (order.size() > 2 && order.back() < order[1]) std::reverse(order.begin() + 1, order.end());
  return order;
}

// What is wrong with a tour that lacks a forced edge.
std::string lost_edge(const Instance& instance, const std::vector<int32_t>& order) {
  if (instance.forced.empty()) return "";
  std::vector<size_t> position(order.size());
  for (size_t i = 0; i < order.size(); ++i) position[order[i]] = i;
  for (const auto& [a, b] : instance.forced) {
    const size_t apart = std::max(position[a], position[b]) - std::min(position[a], position[b]);
    if (apart != 1 && apart + 1 != order.size())
      return "the tour lacks the forced edge from " + std::to_string(a) + " to " + std::to_string(b);
  }
  return "";
}

// Counts the forbidden ways of an order, and says what is wrong with the first.
std::string count_forbidden(const Instance& instance, Solution& solution) {
  const std::vector<int32_t>& order = solution.order;
  std::string wrong;
  if (instance.forbidden.empty() && !instance.matrix) return wrong;
  for (size_t i = is_open(instance.problem) ? 1 : 0; i < order.size(); ++i) {
    const int32_t from = i > 0 ? order[i - 1] : order.back();
    if (!std::isinf(city_distance(instance, from, order[i]))) continue;
    if (solution.violation++ > 0) continue;
    wrong = std::string("the ") + problem_of(instance).answer + " takes the forbidden way from " +
            std::to_string(from) + " to " + std::to_string(order[i]);
  }
  if (solution.violation > 0)
    solution.objective = solution.unrounded = std::numeric_limits<double>::infinity();
  return wrong;
}

std::string validate_tour(const Instance& instance, Solution& solution) {
  std::vector<int32_t>& order = solution.order;
  const int n = instance.n();
  if (static_cast<int>(order.size()) != n) {
    return "the tour visits " + std::to_string(order.size()) + " of " + std::to_string(n) + " cities";
  }
  if (std::string lost = lost_edge(instance, order); !lost.empty()) return lost;
  if (instance.first_city >= 0) std::ranges::rotate(order, std::ranges::find(order, instance.first_city));
  const std::vector<int32_t> cycle = problem_of(instance).canonical(order);
  if (instance.has_coordinates())
    solution.objective = solution.unrounded = tour_length(instance.values.data(), cycle.data(), n);
  if (instance.metric != Metric::kEuclidean) {
    solution.objective = 0.0;
    for (int i = 0; i < n; ++i)
      solution.objective += city_distance(instance, cycle[i], cycle[i + 1 < n ? i + 1 : 0]);
  }
  if (!instance.has_coordinates()) solution.unrounded = solution.objective;
  return count_forbidden(instance, solution);
}

double cycle_length(const Instance& instance, const std::vector<int32_t>& order) {
  double length = city_distance(instance, order.back(), order.front());
  for (size_t i = 1; i < order.size(); ++i) length += city_distance(instance, order[i - 1], order[i]);
  return length;
}

double signed_area(int n, const float* features, const int32_t* tour) {
  double area = 0.0;
  for (int i = 0; i < n; ++i) {
    const float* a = features + 2 * tour[i];
    const float* b = features + 2 * tour[i + 1 < n ? i + 1 : 0];
    area += static_cast<double>(a[0]) * b[1] - static_cast<double>(b[0]) * a[1];
  }
  return area;
}

// The round trip begins at the city nearest to the corner (0, 0) and runs counterclockwise.
void make_tour_example(int n, const float* features, int32_t* tour) {
  const auto from_corner = [&](int32_t city) {
    const double x = features[2 * city], y = features[2 * city + 1];
    return x * x + y * y;
  };
  int32_t* const first =
      std::min_element(tour, tour + n, [&](int32_t a, int32_t b) { return from_corner(a) < from_corner(b); });
  std::rotate(tour, first, tour + n);
  if (signed_area(n, features, tour) < 0.0) std::reverse(tour + 1, tour + n);
}

// From the end with the lower number, where the way back is as long: then a path has one cost, to the last
// bit, whichever way it goes.
std::vector<int32_t> canonical_path(std::vector<int32_t> order) {
  if (!order.empty() && order.back() < order.front()) std::reverse(order.begin(), order.end());
  return order;
}

double path_length(const Instance& instance, const std::vector<int32_t>& order) {
  double length = 0.0;
  for (size_t i = 1; i < order.size(); ++i) length += city_distance(instance, order[i - 1], order[i]);
  return length;
}

std::string validate_path(const Instance& instance, Solution& solution) {
  std::vector<int32_t>& order = solution.order;
  const int n = instance.n();
  if (static_cast<int>(order.size()) != n) {
    return "the path visits " + std::to_string(order.size()) + " of " + std::to_string(n) + " cities";
  }
  const auto is_at = [](int32_t wanted, int32_t found) { return wanted < 0 || wanted == found; };
  const auto fits = [&] { return is_at(instance.start, order.front()) && is_at(instance.end, order.back()); };
  if (!fits()) std::reverse(order.begin(), order.end());
  if (!fits()) return "the path does not run from the given start to the given end";
  const bool is_one_way = instance.matrix && !instance.matrix->is_symmetric();
  const std::vector<int32_t> path = is_one_way ? order : canonical_path(order);
  solution.objective = path_length(instance, path);
  solution.unrounded = instance.has_coordinates() ? tour_length(instance.values.data(), path.data(), n, true)
                                                  : solution.objective;
  return count_forbidden(instance, solution);
}

// From the end nearer to the corner (0, 0).
void make_path_example(int n, const float* features, int32_t* order) {
  const auto from_corner = [&](int32_t city) {
    return std::hypot(features[2 * city], features[2 * city + 1]);
  };
  if (from_corner(order[n - 1]) < from_corner(order[0])) std::reverse(order, order + n);
}

constexpr Problem kTsp = {.kind = ProblemKind::kTsp,
                          .title = "TSP",
                          .model_prefix = "tsp",
                          .item = "city",
                          .items = "cities",
                          .answer = "tour",
                          .order_key = "tour",
                          .objective_key = "cost",
                          .measure = "length",
                          .full_measure = "tour length",
                          .fields = ItemFields::kCoordinates,
                          .sense = Sense::kMinimise,
                          .has_capacity = TspRules::kHasCapacity,
                          .has_packing = false,
                          .has_exact = false,
                          .has_depot = false,
                          .has_symmetries = true,
                          .has_all_items = true,
                          .has_local_search = true,
                          .has_two_opt = true,
                          .features = tsp_features,
                          .validate = validate_tour,
                          .objective = cycle_length,
                          .canonical = canonical_tour,
                          .make_example = make_tour_example,
                          .default_capacity = [](int) { return 0.0; }};

}  // namespace

extern constinit const Problem kTspProblem = kTsp;

extern constinit const Problem kAtspProblem = [] {
  Problem atsp = kTsp;
  atsp.kind = ProblemKind::kAtsp;
  atsp.title = "ATSP";
  atsp.model_prefix = "atsp";
  atsp.fields = ItemFields::kDistances;
  atsp.has_symmetries = atsp.has_two_opt = false;
  atsp.features = matrix_features;
  atsp.canonical = canonical_circuit;
  atsp.make_example = make_circuit_example;
  atsp.rule_numbers = matrix_numbers;
  return atsp;
}();

extern constinit const Problem kPathProblem = [] {
  Problem path = kTsp;
  path.kind = ProblemKind::kPath;
  path.title = path.model_prefix = path.answer = path.order_key = "path";
  path.full_measure = "path length";
  path.has_two_opt = false;
  path.validate = validate_path;
  path.objective = path_length;
  path.canonical = canonical_path;
  path.make_example = make_path_example;
  return path;
}();

}  // namespace pointsman
