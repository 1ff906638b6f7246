// SPDX-License-Identifier: Apache-2.0
// The rules of the travelling salesman problem: every city once.
//
// A decode loop over any problem reads
//   count = initial_remaining(rules, remaining, n);
//   while (!rules.finished(count)) {
//     item = remaining[position = choose];
//     if (rules.ends(item)) break;  // the choice was made but is not part of the answer
//     order[step++] = item;
//     rules.step(item);
//     count = remove_and_filter(rules, remaining, count, position);
//   }
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"

namespace pointsman {

// Length of the closed tour, equation (1): edges in order, the closing one last. Always double arithmetic, on
// the kernels' float coordinates as on the validator's double ones. xy: [n][2]; order: [n], a permutation of
// 0 .. n-1.
template <typename Number>
POINTSMAN_HOST_DEVICE inline double tour_length(const Number* xy, const int32_t* order, int n) {
  double length = 0.0;
  for (int i = 0; i < n; ++i) {
    const Number* from = xy + 2 * static_cast<int64_t>(order[i]);
    const Number* to = xy + 2 * static_cast<int64_t>(order[i + 1 < n ? i + 1 : 0]);
    const double dx = static_cast<double>(to[0]) - static_cast<double>(from[0]);
    const double dy = static_cast<double>(to[1]) - static_cast<double>(from[1]);
    length += std::sqrt(dx * dx + dy * dy);
  }
  return length;
}

struct TspRules {
  static constexpr bool kDropsItems = false;  // only the chosen city leaves the remaining list

  POINTSMAN_HOST_DEVICE bool feasible(int) const { return true; }
  POINTSMAN_HOST_DEVICE bool ends(int) const { return false; }
  POINTSMAN_HOST_DEVICE void step(int) {}
  POINTSMAN_HOST_DEVICE bool finished(int count) const { return count == 0; }

  // What the policy minimises. xy: [n][2]; order: [n].
  POINTSMAN_HOST_DEVICE static double cost(const float* xy, const int32_t* order, int n) {
    return tour_length(xy, order, n);
  }
};

}  // namespace pointsman
