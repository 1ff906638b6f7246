// SPDX-License-Identifier: Apache-2.0
// A user's own problem, as the table of problems knows it. The instance's `own` says the rest.
#include "kernels/common/own.h"

#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/problem/problem.h"

namespace pointsman {
namespace {

using Order = std::vector<int32_t>;

// walk(rules) with the rules of the instance at the beginning of an order.
template <typename Walk>
auto with_own_rules(const Instance& instance, const Walk& walk) {
  const InstanceRules made(instance);
  std::vector<uint32_t> words(OwnRules::words(instance.n()));
  OwnRules rules = OwnRules::make(made.inputs());
  rules.use_words(words.data());
  return walk(rules);
}

double own_cost(const Instance& instance, const Order& order) {
  std::vector<int64_t> whole(order.begin(), order.end());
  whole.resize(static_cast<size_t>(instance.n()), -1);
  return instance.own->cost(instance.values, std::move(whole), 1, instance.n()).at(0);
}

// The first place of an item that is not feasible there; -1: none.
int wrong_place(const Instance& instance, const Order& order) {
  if (instance.own->declared(instance.n()).allows_all_orders()) return -1;
  return with_own_rules(instance, [&](OwnRules& rules) {
    for (const int32_t item : order) {
      if (!rules.feasible(item)) return rules.steps;
      rules.step(item);
    }
    return -1;
  });
}

std::string validate_own(const Instance& instance, Solution& solution) {
  if (const int place = wrong_place(instance, solution.order); place >= 0) {
    return "item " + std::to_string(solution.order[place]) + " may not come in place " +
           std::to_string(place) + " of the order";
  }
  const OwnDeclared& declared = instance.own->declared(instance.n());
  if (declared.weight < 0 && solution.order.size() != static_cast<size_t>(instance.n())) {
    return "expected an order of " + std::to_string(instance.n()) + " items, found " +
           std::to_string(solution.order.size());
  }
  solution.objective = solution.unrounded = own_cost(instance, solution.order);
  return "";
}

}  // namespace

Instance own_instance(std::shared_ptr<const OwnProblem> problem, std::vector<double> values) {
  Instance instance;
  instance.problem = ProblemKind::kOwn;
  instance.own = std::move(problem);
  instance.values = std::move(values);
  return instance;
}

bool is_allowed(const Instance& instance, const Order& order) { return wrong_place(instance, order) < 0; }

Order feasible_order(const Instance& instance, const Order& wanted) {
  return with_own_rules(instance, [&](OwnRules& rules) {
    Order order;
    const auto is_feasible = [&](int32_t item) { return rules.feasible(item); };
    for (auto next = wanted.begin();
         (next = std::find_if(wanted.begin(), wanted.end(), is_feasible)) != wanted.end();) {
      rules.step(*next);
      order.push_back(*next);
    }
    return order;
  });
}

extern const Problem kOwnProblem = {
    .kind = ProblemKind::kOwn,
    .title = "an own problem",
    .model_prefix = "own",
    .item = "item",
    .items = "items",
    .answer = "order",
    .order_key = "order",
    .objective_key = "cost",
    .measure = "cost",
    .full_measure = "cost of the order",
    .fields = ItemFields::kOwn,
    .sense = Sense::kMinimise,
    .has_capacity = OwnRules::kHasCapacity,
    .has_packing = false,
    .has_exact = false,
    .has_depot = false,
    .has_symmetries = false,
    .has_all_items = true,
    .has_local_search = false,
    .has_two_opt = false,
    .features = [](const Instance& instance, double) { return instance.own->features(instance.values); },
    .validate = validate_own,
    .objective = own_cost,
    .canonical = [](Order order) { return order; },
    .make_example = [](int, const float*, int32_t*) {},
    .default_capacity = [](int) { return 0.0; }};

}  // namespace pointsman
