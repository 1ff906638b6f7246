// SPDX-License-Identifier: Apache-2.0
#include "engine/search/heuristics.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <optional>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/fixed_edges.h"
#include "engine/problem/generate.h"
#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "engine/search/distances.h"
#include "kernels/common/rules.h"

namespace pointsman {
namespace {

constexpr int64_t kSamplesPerCheck = 64;  // random orders between two questions to the control

using Order = std::vector<int32_t>;

// Each time the first item of the order that is feasible, or else the first.
template <typename Rules>
Order by_turns(Rules rules, Order order) {
  Order taken;
  while (!order.empty()) {
    const auto feasible = std::ranges::find_if(order, [&](int32_t item) { return rules.feasible(item); });
    const auto next = feasible == order.end() ? order.begin() : feasible;
    rules.step(*next);
    taken.push_back(*next);
    order.erase(next);
  }
  return taken;
}

// The items of an order that are feasible when their turn comes; with a depot, where one is not, after a
// return.
Order feasible_part(ProblemKind problem, const RuleNumbers& numbers, const Order& order) {
  return with_rules(problem, [&]<typename Rules>() {
    const int n = static_cast<int>(order.size());
    Rules rules = Rules::make({numbers.weights.data(), numbers.capacity, false, n});
    std::vector<uint32_t> words(Rules::words(n));
    rules.use_words(words.data());
    if constexpr (kHasLastResort<Rules>) return by_turns(rules, order);
    Order taken;
    const auto take = [&](int32_t item) {
      if (!rules.feasible(item)) return false;
      rules.step(item);
      taken.push_back(item);
      return true;
    };
    for (const int32_t item : order) {
      if (Rules::kMonotone ? take(item) : item == 0 || take(item)) continue;
      if (!Rules::kMonotone && take(0)) take(item);
    }
    return taken;
  });
}

Order packing_by_ratio(const Instance& instance) {
  Order order;
  const WeightUnits packing = weight_units(instance);
  for (const RatioItem& item : items_by_ratio(packing, value_units(instance, packing)))
    order.push_back(item.number);
  return feasible_part(instance.problem, rule_numbers(instance), order);
}

// The order with given ends of a path at its ends, or with each path of forced edges whole, from the end that
// comes first.
Order with_what_is_given(const Instance& instance, Order order) {
  const auto place_of = [&](int32_t city) { return std::find(order.begin(), order.end(), city); };
  if (instance.start >= 0) std::rotate(order.begin(), place_of(instance.start), place_of(instance.start) + 1);
  if (instance.end >= 0) std::rotate(place_of(instance.end), place_of(instance.end) + 1, order.end());
  if (instance.forced.empty()) return order;
  const FixedEdges forced(instance.n(), instance.forced);
  Order whole;
  std::vector<bool> is_done(order.size(), false);
  const auto follow = [&](int32_t city) {
    for (int32_t next = city; next >= 0;) {
      city = next;
      whole.push_back(city);
      is_done[city] = true;
      next = -1;
      for (const int32_t other : forced.at(city)) {
        if (other >= 0 && !is_done[other]) next = other;
      }
    }
  };
  for (const int32_t city : order) {
    if (!is_done[city] && forced.at(city)[1] < 0) follow(city);  // else amid a path
  }
  if (whole.empty()) follow(order[0]);  // they are one tour
  return whole;
}

// The places of a TSPTW, behind the depot.
Order by_closing_times(const Instance& instance) {
  Order order(static_cast<size_t>(instance.n()));
  std::iota(order.begin(), order.end(), 0);
  const auto closes = [&](int32_t place) { return instance.item(place)[InstancePlaces::kCloses]; };
  std::stable_sort(order.begin() + 1, order.end(),
                   [&](int32_t a, int32_t b) { return closes(a) < closes(b); });
  return order;
}

Order quick_order(const Instance& instance) {
  if (instance.own) {
    Order upward(static_cast<size_t>(instance.n()));
    std::iota(upward.begin(), upward.end(), 0);
    return feasible_order(instance, upward);
  }
  const Problem& problem = problem_of(instance);
  if (problem.has_labels) return dsatur_colours(Graph(instance));
  Order order = problem.has_packing ? packing_by_ratio(instance)
                : problem.has_first ? by_closing_times(instance)
                                    : along_curve(instance);
  if (problem.has_first && instance.n() > kMostPairedItems) return order;
  if (problem.has_depot || problem.has_first)
    order = feasible_part(problem.kind, rule_numbers(instance), order);
  return with_what_is_given(instance, std::move(order));
}

}  // namespace

void require_problem(bool suits, const Instance& instance, const char* who) {
  if (suits) return;
  throw std::invalid_argument(std::string(who) + ": not for " + problem_of(instance).title);
}

Solution checked_solution(const Instance& instance, Order order) {
  Solution solution;
  solution.order = std::move(order);
  solution.log_prob = solution.network_objective = std::numeric_limits<double>::quiet_NaN();
  require_valid(instance, solution, "an invalid answer without a network: ");
  return solution;
}

std::vector<RatioItem> items_by_ratio(const WeightUnits& packing, const ValueUnits& values) {
  std::vector<RatioItem> items;
  items.reserve(values.values.size());
  for (const int64_t value : values.values) {
    const size_t item = items.size();
    items.push_back({packing.weights[item], value, static_cast<int32_t>(item)});
  }
  std::stable_sort(items.begin(), items.end(), [](const RatioItem& a, const RatioItem& b) {
    if (a.weight == 0 || b.weight == 0) return a.weight == 0 && b.weight != 0;
    return static_cast<Int128>(a.value) * b.weight > static_cast<Int128>(b.value) * a.weight;
  });
  return items;
}

Solution quick_answer(const Instance& instance, Status status) {
  Solution solution = checked_solution(instance, quick_order(instance));
  solution.status = status;
  return solution;
}

Solution random_search(const Instance& instance, uint64_t key, int64_t samples, uint64_t seed,
                       const SearchControl& control) {
  if (samples < 1 || samples > std::numeric_limits<uint32_t>::max()) {
    throw std::invalid_argument("random_search: cannot draw " + std::to_string(samples) + " samples");
  }
  const Problem& problem = problem_of(instance);
  const std::optional<Graph> graph = problem.has_labels ? std::make_optional<Graph>(instance) : std::nullopt;
  const bool takes_all = holds_tours(problem) && !problem.has_first && !instance.own;
  const RuleNumbers numbers = graph || takes_all ? RuleNumbers{} : rule_numbers(instance);
  Order best;
  double best_objective = 0.0, best_violation = 0.0;
  Status status = Status::kDone;
  for (int64_t sample = 0; sample < samples; ++sample) {
    if (sample > 0 && (sample % kSamplesPerCheck == 0 || problem.has_first || graph))
      status = control.check();
    if (status != Status::kDone) break;
    Order order = input_order(seed, key, static_cast<uint32_t>(sample), instance.n());
    if (graph) {
      order = first_fit_colours(*graph, order);
    } else {
      order = with_what_is_given(instance, takes_all ? order : feasible_part(problem.kind, numbers, order));
    }
    const double objective = problem.objective(instance, order);
    const double violation = std::isfinite(objective) ? 0.0 : checked_solution(instance, order).violation;
    const bool is_worse = violation != best_violation ? violation > best_violation
                                                      : !is_better(problem.kind, objective, best_objective);
    if (sample > 0 && is_worse) continue;
    best = std::move(order);
    best_objective = objective;
    best_violation = violation;
  }
  Solution solution = checked_solution(instance, std::move(best));
  solution.status = status;
  return solution;
}

Solution ratio_packing(const Instance& instance) {
  require_problem(problem_of(instance).has_packing, instance, "ratio_packing");
  return checked_solution(instance, packing_by_ratio(instance));
}

}  // namespace pointsman
