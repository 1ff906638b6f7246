// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/problem.h"

#include <algorithm>
#include <cmath>
#include <stdexcept>
#include <utility>

#include "kernels/common/rules.h"

namespace pointsman {

#define POINTSMAN_PROBLEM(Kind, name, numbers) extern const Problem k##Kind##Problem;
#include "kernels/common/problems.inc"
#undef POINTSMAN_PROBLEM
extern const Problem kOwnProblem;  // own.cpp

const Problem& problem_of(ProblemKind kind) {
  switch (kind) {
#define POINTSMAN_PROBLEM(Kind, name, numbers) \
  case ProblemKind::k##Kind:                   \
    return k##Kind##Problem;
#include "kernels/common/problems.inc"
#undef POINTSMAN_PROBLEM
    case ProblemKind::kOwn:
      return kOwnProblem;
    case ProblemKind::kStretch:
      return kTspProblem;
  }
  throw std::logic_error("problem_of: no such problem");
}

bool reads_pairs(const Problem& problem) { return matrix_count(problem.kind) > 0; }

bool is_better(ProblemKind kind, double a, double b) {
  return problem_of(kind).sense == Sense::kMinimise ? a < b : a > b;
}

bool is_better(ProblemKind kind, const Solution& a, const Solution& b) {
  return a.violation != b.violation ? a.violation < b.violation : is_better(kind, a.objective, b.objective);
}

double gap(ProblemKind kind, double objective, double reference) {
  constexpr double kLargestRatio = 1e100;  // what every reader of numbers takes
  if (objective == reference) return 0.0;  // also when both are 0
  const double ratio = objective / reference;
  if (!(ratio <= kLargestRatio)) return std::nan("");
  return problem_of(kind).sense == Sense::kMinimise ? ratio - 1.0 : 1.0 - ratio;
}

std::string validate_solution(const Instance& instance, Solution& solution) {
  solution.violation = 0;
  if (problem_of(instance).has_labels) return problem_of(instance).validate(instance, solution);
  const std::string what = problem_of(instance).item;
  std::vector<bool> seen(instance.n(), false);
  for (const int32_t item : solution.order) {
    if (item < 0 || item >= instance.n()) {
      return what + " " + std::to_string(item) + " does not exist: there are " +
             std::to_string(instance.n() - (problem_of(instance).has_depot ? 1 : 0));
    }
    if (seen[item]) return what + " " + std::to_string(item) + " occurs twice";
    seen[item] = item > 0 || !problem_of(instance).has_depot;
  }
  return problem_of(instance).validate(instance, solution);
}

std::string wrong_demand(const Instance& instance, size_t i) {
  const double demand = instance.values[static_cast<size_t>(instance.width()) * i + 2];
  if (i == 0) return demand == 0.0 ? "" : "0, the demand of the depot";
  return demand <= instance.capacity ? "" : "at most the capacity";
}

void require_valid(const Instance& instance, Solution& solution, const char* what) {
  const std::string wrong = validate_solution(instance, solution);
  if (!wrong.empty() && solution.violation == 0) throw std::logic_error(what + wrong);
}

InstanceRules::InstanceRules(const Instance& instance) : numbers_(rule_numbers(instance)) {
  inputs_ = {numbers_.weights.data(), numbers_.capacity, false, instance.n()};
  if (!instance.own) return;
  features_ = instance.own->features(instance.values);
  inputs_.declared = &instance.own->declared(instance.n());
  inputs_.items = instance.values.data();
  inputs_.features = features_.data();
}

int longest_order(const Instance& instance) {
  return problem_of(instance).has_labels ? instance.n() : max_steps(instance.problem, instance.n());
}

RuleNumbers rule_numbers(const Instance& instance) {
  const auto numbers = problem_of(instance).rule_numbers;
  return numbers ? numbers(instance) : RuleNumbers();
}

RuleNumbers trained_numbers(const Problem& problem, int n, const float* features, double trained_capacity) {
  RuleNumbers out;
  if (!problem.trained_numbers) return out;
  out.weights.resize(static_cast<size_t>(number_rows(problem.kind, n)) * n);
  problem.trained_numbers(n, features, trained_capacity, out.weights.data());
  out.capacity = problem.has_capacity ? trained_capacity : 1.0;
  return out;
}

bool is_reachable(const Instance& instance, Solution solution) {
  if (!validate_solution(instance, solution).empty()) return false;
  return is_reachable(instance.problem, InstanceRules(instance).inputs(),
                      problem_of(instance).choices_of(instance, std::move(solution.order)));
}

bool is_reachable(ProblemKind kind, const RuleInputs& inputs, const std::vector<int32_t>& order) {
  return with_rules(kind, [&]<typename Rules>() {
    const int n = inputs.n;
    Rules rules = Rules::make(inputs);
    std::vector<uint32_t> words(Rules::words(n));
    rules.use_words(words.data());
    std::vector<int32_t> remaining(n);
    int count = initial_remaining(rules, remaining.data(), n);
    for (const int32_t item : order) {
      const auto found = std::find(remaining.begin(), remaining.begin() + count, item);
      if (found == remaining.begin() + count) return false;
      rules.step(item);
      count = next_remaining(rules, remaining.data(), count, static_cast<int>(found - remaining.begin()), n);
    }
    return count == 0;
  });
}

}  // namespace pointsman
