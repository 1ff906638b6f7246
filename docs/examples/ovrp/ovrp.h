// SPDX-License-Identifier: Apache-2.0
// The rules of the open vehicle routing problem: those of cvrp.h, but no vehicle comes back from its last
// customer (Sariklis and Powell 2000).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/cvrp.h"

namespace pointsman {

// Length of the routes, each from the depot to its last customer, in double arithmetic. places and order as
// in routes_length().
template <typename Number>
POINTSMAN_HOST_DEVICE inline double open_length(const Number* places, int width, const int32_t* order,
                                                int steps) {
  double length = 0.0;
  const Number* from = places;
  for (int i = 0; i < steps && order[i] >= 0; ++i) {
    const Number* to = places + int64_t{order[i]} * width;
    const double dx = static_cast<double>(to[0]) - static_cast<double>(from[0]);
    const double dy = static_cast<double>(to[1]) - static_cast<double>(from[1]);
    if (order[i] != 0) length += euclidean_length<Number>(dx, dy);
    from = to;
  }
  return length;
}

// The steps, what is feasible, the state and the context are the same.
struct OvrpRules : CvrpRules {
  POINTSMAN_HOST_DEVICE static OvrpRules make(const RuleInputs& in) { return {CvrpRules::make(in)}; }

  // As CvrpRules', but the way to the depot costs nothing, and so it is not saved either.
  POINTSMAN_HOST_DEVICE void priors(const Candidates& step, const Outlook& outlook, int item,
                                    float* out) const {
    float back[kPriors];
    CvrpRules::priors(step, outlook, 0, back);
    CvrpRules::priors(step, outlook, item, out);
    if (item == 0) {
      out[0] = 0.0f;
    } else {
      out[1] += back[0];
    }
  }

  // What training starts their weights from: a saving counts for more than the way to a customer, as nothing
  // is lost by a return.
  static float prior_start(int k, int n) {
    const float root = std::sqrt(static_cast<float>(n));
    return k == 0 ? root : k == 1 ? 3.0f * root : 1.0f;
  }

  // What the policy minimises. features: [n][3]; order: [steps], ended by -1 when shorter.
  POINTSMAN_HOST_DEVICE static double cost(const float* features, const int32_t* order, int steps) {
    return open_length(features, kFeatures, order, steps);
  }
};

}  // namespace pointsman
