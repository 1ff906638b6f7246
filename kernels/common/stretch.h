// SPDX-License-Identifier: Apache-2.0
// The rules of a stretch of a tour: the next few cities from where a tour stands. A network that re-reads
// (ModelConfig::reread) makes a tour of such stretches (engine/backend/stretch.h).
#pragma once

#include <cmath>
#include <cstdint>

#include "kernels/common/remaining.h"
#include "kernels/common/tsp.h"

namespace pointsman {

// Item 0 is the city where the tour stands, item 1 the one where it will close; the others are not visited
// yet. An order begins 1, 0, so that the decoder has read both, and goes on with the stretch.
struct StretchRules {
  static constexpr bool kDropsItems = true;
  static constexpr bool kHasCapacity = false;
  static constexpr bool kMonotone = false;  // items 0 and 1 come first, and then never again
  // x, y; is item 0, is item 1; distances to these two; of those to the other items the two shortest.
  static constexpr int kFeatures = 8, kContext = 0;
  static constexpr int kEnds = 2;  // items 0 and 1
  static constexpr int max_steps(int n) { return n; }
  static constexpr int number_rows(int) { return 0; }
  static constexpr int words(int n) { return (n + 31) / 32; }  // a bit for each item that was chosen

  int last_step = 0;  // of the order: the two ends and as many cities as the stretch has
  float root = 0.0f;  // of the number of items
  int steps = 0;
  uint32_t* chosen = nullptr;

  // RuleInputs::capacity: how many cities a stretch has, at most.
  static StretchRules make(const RuleInputs& in) {
    return {kEnds + static_cast<int>(in.capacity), std::sqrt(static_cast<float>(in.n))};
  }
  void use_words(uint32_t* words) { chosen = words; }
  void context(float*) const {}

  bool feasible(int item) const {
    if (steps < kEnds) return item == 1 - steps;
    return item >= kEnds && steps < last_step && (chosen[item / 32] >> (item % 32) & 1) == 0;
  }
  bool ends(int) const { return false; }
  void step(int item) {
    ++steps;
    chosen[item / 32] |= uint32_t{1} << (item % 32);
  }
  // A given stretch may be shorter: its next city is none of the items.
  bool complete(int made, int) const { return made >= kEnds; }

  // The prior of a candidate: minus its distance from the present city, in units in which n random cities
  // of the unit square are equally far apart for every n.
  static constexpr int kPriors = 1;
  static constexpr bool kLooksAhead = false;
  struct Outlook {};
  static Outlook outlook(const Candidates&) { return {}; }
  void priors(const Candidates& step, const Outlook&, int item, float* out) const {
    out[0] = step.last < 0 ? 0.0f : -root * distance(step.features, step.last, item);
  }
  static float prior_start(int, int) { return 4.5f; }  // as TspRules'

  // Length from item 0 to the stretch's last city. features: [n][8]; order: [n], ended by -1 when shorter.
  static double cost(const float* features, const int32_t* order, int n) {
    double length = 0.0;
    for (int i = kEnds; i < n && order[i] >= 0; ++i) {
      const float* const from = features + kFeatures * order[i - 1];
      const float* const to = features + kFeatures * order[i];
      const double dx = static_cast<double>(to[0]) - static_cast<double>(from[0]);
      const double dy = static_cast<double>(to[1]) - static_cast<double>(from[1]);
      length += euclidean_length<float>(dx, dy);
    }
    return length;
  }

 private:
  static float distance(const float* features, int a, int b) {
    const float dx = features[kFeatures * a] - features[kFeatures * b];
    const float dy = features[kFeatures * a + 1] - features[kFeatures * b + 1];
    return std::sqrt(dx * dx + dy * dy);
  }
};

}  // namespace pointsman
