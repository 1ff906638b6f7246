// SPDX-License-Identifier: Apache-2.0
// The rules of a user's own problem: an order of the items, all of them or, with a capacity, as many as fit.
// What is declared of the orders is masked; what an order costs only the user's function says
// (own_problem.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>

#include "kernels/common/host_device.h"
#include "kernels/common/remaining.h"

namespace pointsman {

inline constexpr int kMostOwnFeatures = 16;

// What is declared of the orders of n items. Pointers are OwnOrders' (own_problem.h).
struct OwnDeclared {
  int width = 0;                   // F, numbers of an item
  int first = -1, last = -1;       // items that every order begins and ends with; -1: any
  int weight = -1;                 // which of its numbers an item weighs; -1: there is no capacity
  double capacity = 0.0;           // of the weights of an order's items
  const int32_t* begin = nullptr;  // [n + 1] item j comes after before[begin[j]] .. before[begin[j + 1] - 1]
  const int32_t* before = nullptr;

  bool allows_all_orders() const { return first < 0 && last < 0 && weight < 0 && begin == nullptr; }
};

struct OwnRules {
  static constexpr bool kDropsItems = true;
  static constexpr bool kHasCapacity = false;  // of a declared one the rules know the weights themselves
  static constexpr bool kMonotone = false;     // an item that waits for another becomes feasible
  static constexpr int kFeatures = 0, kContext = 0;  // as many as the problem says, both
  static constexpr int max_steps(int n) { return n; }
  static constexpr int number_rows(int) { return 0; }
  // A bit for each item that was chosen, and the sum of each feature over them.
  static constexpr int words(int n) { return (n + 31) / 32 + kMostOwnFeatures; }

  const OwnDeclared* declared = nullptr;
  const double* items = nullptr;    // [n][F] in the user's units
  const float* features = nullptr;  // [n][F] in network units
  int n = 0;
  int steps = 0;  // that were made
  double left = 0.0;
  uint32_t* chosen = nullptr;

  static OwnRules make(const RuleInputs& in) {
    return {in.declared, in.items, in.features, in.n, 0, in.declared->capacity};
  }
  void use_words(uint32_t* words) { chosen = words; }

  // The mean of each feature over all items, where what was not chosen counts as 0.
  void context(float* out) const {
    std::memcpy(out, sums(), sizeof(float) * static_cast<size_t>(declared->width));
    for (int f = 0; f < declared->width; ++f) out[f] /= static_cast<float>(n);
  }

  bool feasible(int item) const {
    if (is_chosen(item)) return false;
    if (steps == 0 && declared->first >= 0 && item != declared->first) return false;
    if (item == declared->last && steps < n - 1) return false;
    if (declared->weight >= 0 && weight_of(item) > left) return false;
    if (declared->begin == nullptr) return true;
    for (int32_t i = declared->begin[item]; i < declared->begin[item + 1]; ++i) {
      if (!is_chosen(declared->before[i])) return false;
    }
    return true;
  }
  bool ends(int) const { return false; }
  void step(int item) {
    ++steps;
    chosen[item / 32] |= uint32_t{1} << (item % 32);
    if (declared->weight >= 0) left -= weight_of(item);
    float sum[kMostOwnFeatures];
    const size_t size = sizeof(float) * static_cast<size_t>(declared->width);
    std::memcpy(sum, sums(), size);
    for (int f = 0; f < declared->width; ++f) sum[f] += features[item * declared->width + f];
    std::memcpy(sums(), sum, size);
  }
  bool complete(int made, int count) const { return declared->weight >= 0 || made == count; }

  // No prior: nothing is known of the problem.
  static constexpr int kPriors = 0;
  static constexpr bool kLooksAhead = false;
  struct Outlook {};
  static Outlook outlook(const Candidates&) { return {}; }
  void priors(const Candidates&, const Outlook&, int, float*) const {}
  static float prior_start(int, int) { return 0.0f; }

  // Of a whole order, until the user's function is asked (OwnProblem::cost).
  static double cost(const float*, const int32_t*, int) { return 0.0; }

 private:
  bool is_chosen(int item) const { return (chosen[item / 32] >> (item % 32) & 1) != 0; }
  double weight_of(int item) const { return items[item * declared->width + declared->weight]; }
  uint32_t* sums() const { return chosen + (n + 31) / 32; }
};

}  // namespace pointsman
