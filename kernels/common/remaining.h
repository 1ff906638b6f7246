// SPDX-License-Identifier: Apache-2.0
// The list of items a rollout may still choose. Its order decides the order of every sum over items, so each
// change to it is written down here once, for all devices.
#pragma once

#include <cstdint>

#include "kernels/common/host_device.h"

namespace pointsman {

struct OwnDeclared;  // kernels/common/own.h

// What the rules of one sequence are made from.
struct RuleInputs {
  // [Rules::number_rows(n)][n]: weights in the capacity's units, or what TsptwRules, ColouringRules and
  // AtspRules say; null: no rows
  const double* weights = nullptr;
  double capacity = 0.0;              // or the user's units of one network unit (TsptwRules)
  bool stop_at_first_misfit = false;  // Policy's
  int n = 0;
  bool is_open = false;  // the order is a path: no way back
  // Of a user's own problem: what is declared, and the items [n][F] in the user's and in network units.
  const OwnDeclared* declared = nullptr;
  const double* items = nullptr;
  const float* features = nullptr;
  // TSPTW: Policy's.
  bool masks = true;
  double penalty = 0.0;
};

// What the prior of a step's candidates is made from.
struct Candidates {
  const float* features;  // [n][Rules::kFeatures] of the sequence
  const int32_t* items;   // [count] the remaining ones
  int count;
  int last;  // item chosen last; -1: none
};

// Swaps the item with the last. Returns the new count: it stays behind it.
POINTSMAN_HOST_DEVICE inline int remove_item(int32_t* remaining, int count, int position) {
  --count;
  const int32_t item = remaining[position];
  remaining[position] = remaining[count];
  remaining[count] = item;
  return count;
}

// Drops what is no longer feasible: from position 0 on, a misfit is swapped with the last and the same
// position is looked at again. Returns the new count; dropped items stay behind it. remaining: [count].
template <typename Rules>
POINTSMAN_HOST_DEVICE inline int filter_remaining(const Rules& rules, int32_t* remaining, int count) {
  if constexpr (Rules::kDropsItems) {
    for (int position = 0; position < count;) {
      if (rules.feasible(remaining[position])) {
        ++position;
      } else {
        count = remove_item(remaining, count, position);
      }
    }
  }
  return count;
}

// After rules.step(remaining[position]): removes the chosen item, then filters. Returns the new count.
template <typename Rules>
POINTSMAN_HOST_DEVICE inline int remove_and_filter(const Rules& rules, int32_t* remaining, int count,
                                                   int position) {
  return filter_remaining(rules, remaining, remove_item(remaining, count, position));
}

// Whether the rules say what may be chosen where nothing is feasible.
template <typename Rules>
inline constexpr bool kHasLastResort = requires(const Rules& rules) {
  rules.last_resort(0);
};

// The feasible items of 0 .. n-1, upward, or the last resort. list: [n]. Returns the count.
template <typename Rules>
POINTSMAN_HOST_DEVICE inline int list_feasible(const Rules& rules, int32_t* list, int n) {
  int count = 0;
  for (int item = 0; item < n; ++item) {
    if (rules.feasible(item)) list[count++] = item;
  }
  if constexpr (kHasLastResort<Rules>) {
    if (count > 0) return count;
    for (int item = 0; item < n; ++item) {
      if (rules.last_resort(item)) list[count++] = item;
    }
  }
  return count;
}

// What may be chosen first. remaining: [n]. Returns the count.
template <typename Rules>
POINTSMAN_HOST_DEVICE inline int initial_remaining(const Rules& rules, int32_t* remaining, int n) {
  if constexpr (!Rules::kMonotone) return list_feasible(rules, remaining, n);
  for (int item = 0; item < n; ++item) remaining[item] = item;
  return filter_remaining(rules, remaining, n);
}

// After rules.step(remaining[position]): what may be chosen next. Where an infeasible item may become
// feasible again, the list is made anew. remaining: [n], of which `count` were feasible. Returns the new
// count.
template <typename Rules>
POINTSMAN_HOST_DEVICE inline int next_remaining(const Rules& rules, int32_t* remaining, int count,
                                                int position, int n) {
  if constexpr (!Rules::kMonotone) return list_feasible(rules, remaining, n);
  return remove_and_filter(rules, remaining, count, position);
}

}  // namespace pointsman
