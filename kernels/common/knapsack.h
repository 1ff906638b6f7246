// SPDX-License-Identifier: Apache-2.0
// The rules of the 0-1 KnapSack problem (Bello et al. 2017, section 5.4).
#pragma once

#include <cmath>
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
    value += static_cast<double>(weight_value[2 * int64_t{order[i]} + 1]);
  }
  return value;
}

// By default items that no longer fit cannot be chosen, and the packing ends when none fits. With
// stop_at_first_misfit nothing is masked but repeats: every item stays feasible, and the first one chosen
// that does not fit ends the packing and is dropped.
struct KnapsackRules {
  static constexpr bool kDropsItems = true;   // what no longer fits leaves the remaining list too
  static constexpr bool kHasCapacity = true;  // it reads weights and a capacity
  static constexpr bool kMonotone = true;
  static constexpr int kFeatures = 2, kContext = 0;  // weight, value
  static constexpr int max_steps(int n) { return n; }
  static constexpr int number_rows(int) { return 1; }
  static constexpr int words(int) { return 0; }
  void use_words(uint32_t*) {}
  void context(float*) const {}

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
  bool complete(int, int) const { return true; }

  // The prior of a candidate, kPriors numbers: log(value / weight), bounded; the share of the room left that
  // it takes; and, once there are two candidates that do not fit together, a look ahead: how much less it is
  // worth with the best item that fits beside it than the best such pair, over the cube of the room left.
  // Network units. The last number of priors() is still the pair's value; relative() compares it with the
  // largest of all candidates.
  static constexpr int kPriors = 3;
  static constexpr bool kLooksAhead = true;
  struct Outlook {
    float sharpness = 0.0f;  // 1 / room^3; 0: any two fit
  };
  POINTSMAN_HOST_DEVICE Outlook outlook(const Candidates& step) const {
    double heaviest = 0.0;
    float weight = 0.0f;  // the same in network units
    for (int j = 0; j < step.count; ++j) {
      const int32_t item = step.items[j];
      if (weights[item] <= heaviest) continue;
      heaviest = weights[item];
      weight = step.features[2 * item];
    }
    if (2.0 * heaviest <= capacity_left) return {};
    const float room = static_cast<float>(static_cast<double>(weight) * (capacity_left / heaviest));
    const float bounded = room > kLeastRoom ? room : kLeastRoom;
    return {1.0f / (bounded * bounded * bounded)};
  }
  POINTSMAN_HOST_DEVICE void priors(const Candidates& step, const Outlook& seen, int item, float* out) const {
    const float weight = step.features[2 * item], value = step.features[2 * item + 1];
    const float ratio = (value + 1e-6f) / (weight + 1e-6f);
    out[0] = ratio < kLargestRatio ? log_f32(ratio) : kLargestLogRatio;
    out[1] = capacity_left > 0.0 ? static_cast<float>(weights[item] / capacity_left) : 0.0f;
    out[2] = seen.sharpness > 0.0f && fits(item) ? value + most_beside(step, item) : 0.0f;
  }
  POINTSMAN_HOST_DEVICE static float relative(const Outlook& seen, float pair, float best) {
    return (pair - best) * seen.sharpness;
  }
  static constexpr float kLargestLogRatio = 8.0f, kLargestRatio = 2980.958f;  // exp(8)
  static constexpr float kLeastRoom = 0.5f;
  // What training starts their weights from: a good rule without a network (docs/experiments.md). Three times
  // as large, greedy packings are a little better and samples much worse.
  static float prior_start(int k, int n) {
    return k == 0 ? 24.0f : k == 1 ? 2.0f : 400.0f / std::sqrt(static_cast<float>(n));
  }

  // What the policy minimises. weight_value: [n][2]; order: [n], ended by -1 when shorter.
  POINTSMAN_HOST_DEVICE static double cost(const float* weight_value, const int32_t* order, int n) {
    return -packed_value(weight_value, order, n);
  }

 private:
  // Value of the best candidate that fits beside `item`; 0: none does.
  POINTSMAN_HOST_DEVICE float most_beside(const Candidates& step, int item) const {
    const double left = capacity_left - weights[item];
    float most = 0.0f;
    for (int j = 0; j < step.count; ++j) {
      const int32_t other = step.items[j];
      const float value = step.features[2 * other + 1];
      if (other != item && value > most && weights[other] <= left) most = value;
    }
    return most;
  }
};

}  // namespace pointsman
