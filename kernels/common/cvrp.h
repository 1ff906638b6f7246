// SPDX-License-Identifier: Apache-2.0
// The rules of the capacitated vehicle routing problem: routes from a depot, item 0, that serve every
// customer once; a vehicle carries at most the capacity. The network points at customers and, to end a route,
// at the depot (Kool et al. 2019, appendix C).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"
#include "kernels/common/tsp.h"

namespace pointsman {

// Length of the routes, from the depot to the depot: order holds customers, and 0 between two routes; it is
// ended by -1 when shorter than `steps`. places: x and y are the first two of `width` numbers of an item.
template <typename Number>
POINTSMAN_HOST_DEVICE inline double routes_length(const Number* places, int width, const int32_t* order,
                                                  int steps) {
  double length = 0.0;
  const Number* from = places;
  const auto go = [&](const Number* to) {
    const double dx = static_cast<double>(to[0]) - static_cast<double>(from[0]);
    const double dy = static_cast<double>(to[1]) - static_cast<double>(from[1]);
    length += euclidean_length<Number>(dx, dy);
    from = to;
  };
  for (int i = 0; i < steps && order[i] >= 0; ++i) go(places + int64_t{order[i]} * width);
  go(places);
  return length;
}

struct CvrpRules {
  static constexpr bool kDropsItems = true;
  static constexpr bool kHasCapacity = true;
  static constexpr bool kMonotone = false;
  static constexpr int kFeatures = 3;  // x, y, demand / capacity
  static constexpr int kContext = 1;   // what is left of the capacity
  static constexpr int max_steps(int n) { return 2 * n; }
  static constexpr int number_rows(int) { return 1; }
  static constexpr int words(int n) { return (n + 31) / 32; }  // a bit for each customer that was served

  const double* demands = nullptr;  // [n] demands[0] is 0
  double capacity = 0.0, left = 0.0;
  int unserved = 0;
  int last = 0;
  uint32_t* served = nullptr;

  POINTSMAN_HOST_DEVICE static CvrpRules make(const RuleInputs& in) {
    return {in.weights, in.capacity, in.capacity, in.n - 1};
  }
  POINTSMAN_HOST_DEVICE void use_words(uint32_t* words) { served = words; }
  POINTSMAN_HOST_DEVICE void context(float* out) const { out[0] = share_left(); }

  // A route that serves nobody is none, and after the last customer there is nothing to decide.
  POINTSMAN_HOST_DEVICE bool feasible(int item) const {
    if (item == 0) return last != 0 && unserved > 0;
    return (served[item / 32] >> (item % 32) & 1) == 0 && demands[item] <= left;
  }
  POINTSMAN_HOST_DEVICE bool ends(int) const { return false; }
  POINTSMAN_HOST_DEVICE void step(int item) {
    last = item;
    if (item == 0) {
      left = capacity;
      return;
    }
    left -= demands[item];
    served[item / 32] |= uint32_t{1} << (item % 32);
    --unserved;
  }
  POINTSMAN_HOST_DEVICE bool complete(int, int) const { return unserved == 0; }

  // The prior of a candidate, kPriors numbers: minus its distance from the present place; what is saved by
  // going there from here and not from the depot (Clarke and Wright 1964); and of the depot minus the share
  // of the capacity that is left.
  static constexpr int kPriors = 3;
  static constexpr bool kLooksAhead = false;
  struct Outlook {};
  POINTSMAN_HOST_DEVICE static Outlook outlook(const Candidates&) { return {}; }
  POINTSMAN_HOST_DEVICE void priors(const Candidates& step, const Outlook&, int item, float* out) const {
    const float there = distance(step.features, last, item);
    out[0] = -there;
    out[1] = distance(step.features, last, 0) + distance(step.features, 0, item) - there;
    out[2] = item == 0 ? -share_left() : 0.0f;
  }
  // What training starts their weights from: a rule that works without a network.
  static float prior_start(int k, int n) {
    return k == 0   ? 2.0f * std::sqrt(static_cast<float>(n))
           : k == 1 ? std::sqrt(static_cast<float>(n))
                    : 10.0f;
  }

  // What the policy minimises. features: [n][3]; order: [steps], ended by -1 when shorter.
  POINTSMAN_HOST_DEVICE static double cost(const float* features, const int32_t* order, int steps) {
    return routes_length(features, kFeatures, order, steps);
  }

 private:
  POINTSMAN_HOST_DEVICE float share_left() const {
    return capacity > 0.0 ? static_cast<float>(left / capacity) : 0.0f;  // 0: nobody wants anything
  }
  POINTSMAN_HOST_DEVICE static float distance(const float* features, int a, int b) {
    const float* const from = features + kFeatures * a;
    const float* const to = features + kFeatures * b;
    const float dx = from[0] - to[0], dy = from[1] - to[1];
    return std::sqrt(dx * dx + dy * dy);
  }
};

}  // namespace pointsman
