// SPDX-License-Identifier: Apache-2.0
// The places of a TSP with time windows as the user gave them: what TimedPlaces (kernels/common/tsptw.h) is
// to the rules.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "engine/problem/instance.h"
#include "kernels/common/remaining.h"
#include "kernels/common/tsptw.h"

namespace pointsman {

class InstancePlaces {
 public:
  // The numbers of an item.
  enum Field { kX, kY, kOpens, kCloses, kVisit };

  explicit InstancePlaces(const Instance& instance)
      : n(instance.n()), instance_(instance), rounding_(4.0 * n * 0x1p-53) {}

  const int n;
  double way(int from, int to) const;
  double opens(int place) const { return instance_.item(place)[kOpens]; }
  // With what rounding may add to a sum of times: 4 n units in the last place of the closing time, or of the
  // time at the start, as an arrival is a sum of at most 3 n numbers, and each of these may be rounded from a
  // decimal.
  double closes(int place) const {
    const double at = instance_.item(place)[kCloses];
    return at + rounding_ * std::max(std::abs(at), std::abs(opens(0)));
  }
  double visit(int place) const { return instance_.item(place)[kVisit]; }
  double leave(int place, double arrival) const {
    return (arrival > opens(place) ? arrival : opens(place)) + visit(place);
  }

 private:
  const Instance& instance_;
  const double rounding_;
};

// Most places that the exact search takes.
inline constexpr int kMostExactPlaces = 21;

// TsptwRules::lateness() of an order [n].
double lateness(const RuleInputs& inputs, const int32_t* order);

// Whether distances are Euclidean and visits take no time, as in the sequences of a training.
bool has_plain_times(const Instance& instance);

// What is wrong with the times of item i, as in "expected ..", or empty: it closes no sooner than it opens.
const char* wrong_times(const Instance& instance, size_t i);

}  // namespace pointsman
