// SPDX-License-Identifier: Apache-2.0
// From a problem's kind to its rules, for every device and for the host's own checks. A decode loop over any
// problem reads
//   Rules rules = Rules::make(limits);
//   count = initial_remaining(rules, remaining, n);
//   while (count > 0) {
//     item = remaining[position = choose];
//     if (rules.ends(item)) break;  // the choice was made but is not part of the answer
//     order[step++] = item;
//     rules.step(item);
//     count = remove_and_filter(rules, remaining, count, position);
//   }
#pragma once

#include <stdexcept>

#include "kernels/common/knapsack.h"
#include "kernels/common/problem_kind.h"
#include "kernels/common/tsp.h"

namespace pointsman {

// f.template operator()<Rules>() with the rules of `kind`.
template <typename F>
decltype(auto) with_rules(ProblemKind kind, F&& f) {
  switch (kind) {
    case ProblemKind::kTsp:
      return f.template operator()<TspRules>();
    case ProblemKind::kKnapsack:
      return f.template operator()<KnapsackRules>();
  }
  throw std::logic_error("with_rules: no such problem");
}

// Whether the rules read weights and a capacity.
inline bool has_capacity(ProblemKind kind) {
  return with_rules(kind, [&]<typename Rules>() { return Rules::kHasCapacity; });
}

}  // namespace pointsman
