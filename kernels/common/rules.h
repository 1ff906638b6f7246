// SPDX-License-Identifier: Apache-2.0
// From a problem's kind to its rules, for every device and for the host's own checks. A problem is a decision
// process: at each step the network points at an item that the rules let through. A decode loop over any
// problem reads
//   Rules rules = Rules::make(inputs);
//   rules.use_words(words);  // [Rules::words(n)], zero: what the state knows of each item
//   count = initial_remaining(rules, remaining, n);
//   while (count > 0) {
//     item = remaining[position = choose];
//     if (rules.ends(item)) break;  // the choice was made but is not part of the answer
//     order[step++] = item;
//     rules.step(item);
//     count = next_remaining(rules, remaining, count, position, n);
//   }
// Rules are plain data, copied where rollouts part; words are copied beside them, and named again by
// use_words() before the copy is used. They say
//   kFeatures       numbers of an item, in network units; 0: known at run time (own.h)
//   kContext        numbers of the state that the decoder reads at each step beside the last item; context()
//   kMonotone       what is infeasible stays so: the list shrinks in its written order, and its last item is
//                   chosen without the network; else an item may come back, and the list is made anew, upward
//   kDropsItems     of monotone rules: not only the chosen item leaves the list
//   max_steps(n)    items of the longest order
//   number_rows(n)  rows of n numbers that they read (RuleInputs::weights): 0, 1 with a number of each item,
//                   or more, of which the first kMatrices n have numbers of each pair (the first n where they
//                   have no kMatrices)
//   last_resort()   optional: whether an item may be chosen where nothing is feasible
//   complete()      whether an order may end after so many items
//   cost()          of an order, what the policy minimises
#pragma once

#include <stdexcept>
#include <type_traits>

#include "kernels/common/atsp.h"
#include "kernels/common/colouring.h"
#include "kernels/common/cvrp.h"
#include "kernels/common/knapsack.h"
#include "kernels/common/own.h"
#include "kernels/common/problem_kind.h"
#include "kernels/common/stretch.h"
#include "kernels/common/tsp.h"
#include "kernels/common/tsptw.h"
#ifdef POINTSMAN_ADDED_RULES
#include POINTSMAN_ADDED_RULES
#endif

namespace pointsman {

// f.template operator()<Rules>() with the rules of `kind`.
template <typename F>
decltype(auto) with_rules(ProblemKind kind, F&& f) {
  switch (kind) {
#define POINTSMAN_PROBLEM(Kind, name, numbers) \
  case ProblemKind::k##Kind:                   \
    return f.template operator()<Kind##Rules>();
#include "kernels/common/problems.inc"
#undef POINTSMAN_PROBLEM
    case ProblemKind::kOwn:
      return f.template operator()<OwnRules>();
    case ProblemKind::kStretch:
      return f.template operator()<StretchRules>();
  }
  throw std::logic_error("with_rules: no such problem");
}

// A user's own problem: as many features, and as many numbers of context, as it says.
template <typename Rules>
inline constexpr bool kIsOwn = Rules::kFeatures == 0;

// What CUDA has no kernels for.
template <typename Rules>
inline constexpr bool kIsOnHost = kIsOwn<Rules> || std::is_same_v<Rules, StretchRules>;

// Two features an item, no context, and no item that comes back: what CUDA's gradients and fast decode
// kernels are written for. It decodes other problems with one general kernel
// (kernels/cuda/decode_general.cu).
template <typename Rules>
inline constexpr bool kIsPlain = Rules::kFeatures == 2 && Rules::kContext == 0 && Rules::kMonotone;
inline bool is_plain(ProblemKind kind) {
  return with_rules(kind, [&]<typename Rules>() { return kIsPlain<Rules>; });
}

// with_rules() for them; std::logic_error for other problems.
template <typename F>
decltype(auto) with_plain_rules(ProblemKind kind, F&& f) {
  using Result = decltype(f.template operator()<TspRules>());
  return with_rules(kind, [&]<typename Rules>() -> Result {
    if constexpr (kIsPlain<Rules>) {
      return f.template operator()<Rules>();
    } else {
      throw std::logic_error("with_plain_rules: another problem");
    }
  });
}

// 0 of a user's own problem.
inline int feature_count(ProblemKind kind) {
  return with_rules(kind, [&]<typename Rules>() { return Rules::kFeatures; });
}
inline int context_count(ProblemKind kind) {
  return with_rules(kind, [&]<typename Rules>() { return Rules::kContext; });
}
// The length of an order of n items: the rest of a shorter one is -1.
inline int max_steps(ProblemKind kind, int n) {
  return with_rules(kind, [&]<typename Rules>() { return Rules::max_steps(n); });
}

// Rules::number_rows().
inline int number_rows(ProblemKind kind, int n) {
  return with_rules(kind, [&]<typename Rules>() { return Rules::number_rows(n); });
}

// How many matrices with a number of each pair these rows begin with.
template <typename Rules>
inline constexpr int kMatricesOf = Rules::number_rows(2) > 1 ? 1 : 0;
template <typename Rules>
requires(Rules::kMatrices > 0) inline constexpr int kMatricesOf<Rules> = Rules::kMatrices;
inline int matrix_count(ProblemKind kind) {
  return with_rules(kind, [&]<typename Rules>() { return kMatricesOf<Rules>; });
}

// Whether the rules read weights and a capacity.
inline bool has_capacity(ProblemKind kind) {
  return with_rules(kind, [&]<typename Rules>() { return Rules::kHasCapacity; });
}

}  // namespace pointsman
