// SPDX-License-Identifier: Apache-2.0
// The rules of the shortest Hamiltonian path: every city once, and no way back.
#pragma once

#include <cstdint>

#include "kernels/common/tsp.h"

namespace pointsman {

// Sum of the edges in order, in double arithmetic. xy: [n][2]; order: [n], a permutation of 0 .. n-1.
template <typename Number>
POINTSMAN_HOST_DEVICE inline double path_length(const Number* xy, const int32_t* order, int n) {
  double length = 0.0;
  for (int i = 1; i < n; ++i) {
    const Number* from = xy + 2 * int64_t{order[i - 1]};
    const Number* to = xy + 2 * int64_t{order[i]};
    const double dx = static_cast<double>(to[0]) - static_cast<double>(from[0]);
    const double dy = static_cast<double>(to[1]) - static_cast<double>(from[1]);
    length += euclidean_length<Number>(dx, dy);
  }
  return length;
}

// As a tour's but for the cost: the steps, what is feasible and the prior are the same.
struct PathRules : TspRules {
  POINTSMAN_HOST_DEVICE static PathRules make(const RuleInputs&) { return {}; }

  // What the policy minimises. xy: [n][2]; order: [n].
  POINTSMAN_HOST_DEVICE static double cost(const float* xy, const int32_t* order, int n) {
    return path_length(xy, order, n);
  }
};

}  // namespace pointsman
