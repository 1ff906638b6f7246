// SPDX-License-Identifier: Apache-2.0
// The rules of the 0-1 KnapSack problem (Bello et al. 2017, section 5.4).
#pragma once

#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"
#include "kernels/common/scalar_math.h"

namespace pointsman {

// Sum of the values taken, in order, in double. weight_value: [n][2]; order: [n], ended by -1 when shorter.
template <typename Number>
POINTSMAN_HOST_DEVICE inline double packed_value(const Number* weight_value, const int32_t* order, int n) {
  double value = 0.0;
  for (int i = 0; i < n && order[i] >= 0; ++i) {
    value += static_cast<double>(weight_value[2 * static_cast<int64_t>(order[i]) + 1]);
  }
  return value;
}

// By default items that no longer fit cannot be chosen, and the packing ends when none fits. With
// stop_at_first_misfit nothing is masked but repeats: every item stays feasible, and the first one chosen
// that does not fit ends the packing and is dropped.
struct KnapsackRules {
  static constexpr bool kDropsItems = true;   // what no longer fits leaves the remaining list too
  static constexpr bool kHasCapacity = true;  // it reads weights and a capacity

  const double* weights = nullptr;  // [n], in the capacity's units
  double capacity_left = 0.0;
  bool stop_at_first_misfit = false;

  POINTSMAN_HOST_DEVICE static KnapsackRules make(const RuleInputs& in) {
    return {in.weights, in.capacity, in.stop_at_first_misfit};
  }

  POINTSMAN_HOST_DEVICE bool fits(int item) const { return weights[item] <= capacity_left; }
  // May the item be chosen?
  POINTSMAN_HOST_DEVICE bool feasible(int item) const { return stop_at_first_misfit || fits(item); }
  // Does choosing it end the packing without it? Never true of an item that the mask let through.
  POINTSMAN_HOST_DEVICE bool ends(int item) const { return stop_at_first_misfit && !fits(item); }
  POINTSMAN_HOST_DEVICE void step(int item) { capacity_left -= weights[item]; }

  // The prior of a candidate, kPriors numbers: log(value / weight), bounded, and the share of the room left
  // that it takes. weight_value: [n][2].
  static constexpr int kPriors = 2;
  POINTSMAN_HOST_DEVICE void priors(const float* weight_value, int, int item, float* out) const {
    const float ratio = (weight_value[2 * item + 1] + 1e-6f) / (weight_value[2 * item] + 1e-6f);
    out[0] = ratio < kLargestRatio ? log_f32(ratio) : kLargestLogRatio;
    out[1] = capacity_left > 0.0 ? static_cast<float>(weights[item] / capacity_left) : 0.0f;
  }
  static constexpr float kLargestLogRatio = 8.0f, kLargestRatio = 2980.958f;  // exp(8)
  // What training starts their weights from.
  static float prior_start(int k, int) { return k == 0 ? 4.0f : 0.0f; }

  // What the policy minimises. weight_value: [n][2]; order: [n], ended by -1 when shorter.
  POINTSMAN_HOST_DEVICE static double cost(const float* weight_value, const int32_t* order, int n) {
    return -packed_value(weight_value, order, n);
  }
};

}  // namespace pointsman
