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
  // it takes; and a look ahead: minus how much less the best packing with it is worth than the best of all,
  // at most kMostLess. These are packings of the kSeen that fit with most value per weight, the lowest ones
  // of equals; another candidate has kMostLess, or 0 while all of them fit together. Network units.
  static constexpr int kPriors = 3, kSeen = 8;
  static constexpr bool kLooksAhead = true;
  struct Outlook {
    int32_t items[kSeen] = {};  // -1 behind the last
    float less[kSeen] = {};
    float beyond = 0.0f;  // of a candidate that is not among them
  };
  POINTSMAN_HOST_DEVICE Outlook outlook(const Candidates& step) const {
    Outlook seen;
    best_ratios(step, seen.items);
    double weight[kSeen], sum = 0.0;
    int32_t value[kSeen];
    POINTSMAN_UNROLL
    for (int k = 0; k < kSeen; ++k) {
      const int32_t item = seen.items[k];
      weight[k] = item < 0 ? kTooHeavyToSee : weights[item];
      value[k] = item < 0 ? 0 : static_cast<int32_t>(step.features[2 * item + 1] * kValueUnits + 0.5f);
      sum += item < 0 ? 0.0 : weight[k];
    }
    if (seen.items[0] >= 0 && sum > capacity_left) {
      pack_each(weight, value, seen.less);
      seen.beyond = kMostLess;
    }
    return seen;
  }
  POINTSMAN_HOST_DEVICE void priors(const Candidates& step, const Outlook& seen, int item, float* out) const {
    const float ratio = ratio_of(step, item);
    out[0] = ratio < kLargestRatio ? log_f32(ratio) : kLargestLogRatio;
    out[1] = capacity_left > 0.0 ? static_cast<float>(weights[item] / capacity_left) : 0.0f;
    float less = fits(item) ? seen.beyond : kMostLess;
    POINTSMAN_UNROLL
    for (int k = 0; k < kSeen; ++k) less = seen.items[k] == item ? seen.less[k] : less;
    out[2] = -less;
  }
  static constexpr float kLargestLogRatio = 8.0f, kLargestRatio = 2980.958f;  // exp(8)
  static constexpr float kMostLess = 0.1f;
  // What training starts their weights from: a good rule without a network (docs/experiments.md).
  static float prior_start(int k, int) { return k == 0 ? 8.0f : k == 1 ? 1.0f : 100.0f; }

  // What the policy minimises. weight_value: [n][2]; order: [n], ended by -1 when shorter.
  POINTSMAN_HOST_DEVICE static double cost(const float* weight_value, const int32_t* order, int n) {
    return -packed_value(weight_value, order, n);
  }

 private:
  static constexpr double kTooHeavyToSee = 1e300;
  // Of 1, which no value exceeds: sums of kSeen do not overflow.
  static constexpr float kValueUnits = 1 << 27;
  static constexpr int kHalf = kSeen / 2, kPackings = 1 << kHalf;

  POINTSMAN_HOST_DEVICE static float ratio_of(const Candidates& step, int item) {
    return (step.features[2 * item + 1] + 1e-6f) / (step.features[2 * item] + 1e-6f);
  }

  // The kSeen that fit with most value per weight, the best first, of equals the lowest; -1 behind the last.
  // A gradient lists its candidates in another order than the rollout did.
  POINTSMAN_HOST_DEVICE void best_ratios(const Candidates& step, int32_t (&items)[kSeen]) const {
    float ratios[kSeen];
    POINTSMAN_UNROLL
    for (int k = 0; k < kSeen; ++k) {
      items[k] = -1;
      ratios[k] = -1.0f;
    }
    for (int j = 0; j < step.count; ++j) {
      int32_t item = step.items[j];
      float ratio = ratio_of(step, item);
      if (ratio < ratios[kSeen - 1] || !fits(item)) continue;
      POINTSMAN_UNROLL
      for (int k = 0; k < kSeen; ++k) {
        if (!(ratio > ratios[k] || (ratio == ratios[k] && item < items[k]))) continue;
        const float less = ratios[k];
        const int32_t later = items[k];
        ratios[k] = ratio;
        items[k] = item;
        ratio = less;
        item = later;
      }
    }
  }

  // Of each item k how much less the best packing with it is worth than the best of all, by all packings: a
  // choice of the first half of the items, bit kHalf - 1 - k for item k, and one of the second half. The
  // numbers behind one that is too heavy, up to its lowest bit, hold all its items and more: skipped.
  POINTSMAN_HOST_DEVICE void pack_each(const double (&weight)[kSeen], const int32_t (&value)[kSeen],
                                       float (&less)[kSeen]) const {
    int32_t most[kSeen] = {}, best = 0;
    for (int first = 0; first < kPackings; ++first) {
      const double taken = sum_of(first, weight);
      if (taken > capacity_left) {
        first += (first & -first) - 1;
        continue;
      }
      const int32_t worth = sum_of(first, value);
      int32_t most_beside = 0;
      for (int second = 0; second < kPackings; ++second) {
        if (taken + sum_of(second, weight + kHalf) > capacity_left) {
          second += (second & -second) - 1;
          continue;
        }
        const int32_t beside = sum_of(second, value + kHalf);
        most_beside = larger(most_beside, beside);
        raise(second, worth + beside, most + kHalf);
      }
      raise(first, worth + most_beside, most);
      best = larger(best, worth + most_beside);
    }
    POINTSMAN_UNROLL
    for (int k = 0; k < kSeen; ++k) {
      const float lost = static_cast<float>(best - most[k]) / kValueUnits;
      less[k] = lost < kMostLess ? lost : kMostLess;
    }
  }
  POINTSMAN_HOST_DEVICE static bool has(int choice, int k) { return (choice >> (kHalf - 1 - k) & 1) != 0; }
  POINTSMAN_HOST_DEVICE static int32_t larger(int32_t a, int32_t b) { return a < b ? b : a; }
  template <typename Number>
  POINTSMAN_HOST_DEVICE static Number sum_of(int choice, const Number* numbers) {
    Number sum = 0;
    POINTSMAN_UNROLL
    for (int k = 0; k < kHalf; ++k) sum += has(choice, k) ? numbers[k] : Number{0};
    return sum;
  }
  POINTSMAN_HOST_DEVICE static void raise(int choice, int32_t worth, int32_t* most) {
    POINTSMAN_UNROLL
    for (int k = 0; k < kHalf; ++k) most[k] = has(choice, k) ? larger(most[k], worth) : most[k];
  }
};

}  // namespace pointsman
