// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/validate.h"

#include <algorithm>
#include <stdexcept>
#include <vector>

#include "engine/problem/packing_units.h"
#include "engine/problem/problem.h"
#include "kernels/common/rules.h"

namespace pointsman {

std::string validate_solution(const Instance& instance, Solution& solution) {
  const std::string what = problem_of(instance).item;
  std::vector<bool> seen(instance.n(), false);
  for (const int32_t item : solution.order) {
    if (item < 0 || item >= instance.n()) {
      return what + " " + std::to_string(item) + " does not exist: there are " + std::to_string(instance.n());
    }
    if (seen[item]) return what + " " + std::to_string(item) + " occurs twice";
    seen[item] = true;
  }
  return problem_of(instance).validate(instance, solution);
}

void require_valid(const Instance& instance, Solution& solution, const char* what) {
  const std::string wrong = validate_solution(instance, solution);
  if (!wrong.empty()) throw std::logic_error(what + wrong);
}

bool is_reachable(const Instance& instance, Solution solution) {
  if (!validate_solution(instance, solution).empty()) return false;
  const RuleNumbers numbers = rule_numbers(instance);
  return with_rules(instance.problem, [&]<typename Rules>() {
    Rules rules = Rules::make({numbers.weights.data(), numbers.capacity});
    std::vector<int32_t> remaining(numbers.weights.size());
    int count = initial_remaining(rules, remaining.data(), instance.n());
    for (const int32_t item : solution.order) {
      const auto found = std::find(remaining.begin(), remaining.begin() + count, item);
      if (found == remaining.begin() + count) return false;
      rules.step(item);
      count = remove_and_filter(rules, remaining.data(), count, static_cast<int>(found - remaining.begin()));
    }
    return count == 0;
  });
}

}  // namespace pointsman
