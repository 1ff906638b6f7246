// SPDX-License-Identifier: Apache-2.0
// The rules of the travelling salesman problem: every city once, and the way back unless a path is wanted.
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"

namespace pointsman {

// Of numbers so small that their squares underflow too; single precision has none such.
template <typename Number>
POINTSMAN_HOST_DEVICE inline double euclidean_length(double dx, double dy) {
  const double squared = dx * dx + dy * dy;
  if constexpr (sizeof(Number) == sizeof(double)) {
    if (squared < 1e-280) return std::hypot(dx, dy);
  }
  return std::sqrt(squared);
}

// Length of the closed tour, equation (1): edges in order, the closing one last, which an open path has not.
// Always double arithmetic, on the kernels' float coordinates as on the validator's double ones. xy: [n][2];
// order: [n], a permutation of 0 .. n-1.
template <typename Number>
POINTSMAN_HOST_DEVICE inline double tour_length(const Number* xy, const int32_t* order, int n,
                                                bool is_open = false) {
  double length = 0.0;
  for (int i = 0; i < n - (is_open ? 1 : 0); ++i) {
    const Number* from = xy + 2 * int64_t{order[i]};
    const Number* to = xy + 2 * int64_t{order[i + 1 < n ? i + 1 : 0]};
    const double dx = static_cast<double>(to[0]) - static_cast<double>(from[0]);
    const double dy = static_cast<double>(to[1]) - static_cast<double>(from[1]);
    length += euclidean_length<Number>(dx, dy);
  }
  return length;
}

// Between cities a and b, in single precision. xy: [n][2].
POINTSMAN_HOST_DEVICE inline float tour_distance(const float* xy, int a, int b) {
  const float dx = xy[2 * a] - xy[2 * b], dy = xy[2 * a + 1] - xy[2 * b + 1];
  return std::sqrt(dx * dx + dy * dy);
}

struct TspRules {
  // Only the chosen city leaves the remaining list: an answer holds every city, and the last step has no
  // choice.
  static constexpr bool kDropsItems = false;
  static constexpr bool kHasCapacity = false;
  static constexpr bool kMonotone = true;
  static constexpr int kFeatures = 2, kContext = 0;  // x, y
  static constexpr int max_steps(int n) { return n; }
  static constexpr int number_rows(int) { return 0; }
  static constexpr int words(int) { return 0; }
  void use_words(uint32_t*) {}
  void context(float*) const {}

  bool is_open = false;

  POINTSMAN_HOST_DEVICE static TspRules make(const RuleInputs& in) { return {in.is_open}; }

  POINTSMAN_HOST_DEVICE bool feasible(int) const { return true; }
  POINTSMAN_HOST_DEVICE bool ends(int) const { return false; }
  POINTSMAN_HOST_DEVICE void step(int) {}
  bool complete(int steps, int n) const { return steps == n; }

  // The prior of a candidate, kPriors numbers: minus its distance from the present city; 0 at the first step.
  static constexpr int kPriors = 1;
  static constexpr bool kLooksAhead = false;
  struct Outlook {};
  POINTSMAN_HOST_DEVICE static Outlook outlook(const Candidates&) { return {}; }
  POINTSMAN_HOST_DEVICE void priors(const Candidates& step, const Outlook&, int item, float* out) const {
    if (step.last < 0) {
      out[0] = 0.0f;
      return;
    }
    out[0] = -tour_distance(step.features, step.last, item);
  }
  // What training starts their weights from.
  static float prior_start(int, int n) { return 4.5f * std::sqrt(static_cast<float>(n)); }

  // What the policy minimises. xy: [n][2]; order: [n].
  POINTSMAN_HOST_DEVICE double cost(const float* xy, const int32_t* order, int n) const {
    return tour_length(xy, order, n, is_open);
  }
};

using PathRules = TspRules;

}  // namespace pointsman
