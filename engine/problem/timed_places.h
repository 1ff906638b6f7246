// SPDX-License-Identifier: Apache-2.0
// The places of a TSP with time windows as the user gave them: what TimedPlaces (kernels/common/tsptw.h) is
// to the rules.
#pragma once

#include <cstdint>

#include "engine/problem/instance.h"
#include "kernels/common/remaining.h"
#include "kernels/common/tsptw.h"

namespace pointsman {

class InstancePlaces {
 public:
  // The numbers of an item.
  enum Field { kX, kY, kOpens, kCloses, kVisit };

  explicit InstancePlaces(const Instance& instance);

  const int n;
  double way(int from, int to) const;
  double opens(int place) const { return instance_.item(place)[kOpens]; }
  // With what rounding may add to a sum of times: 4 n units in the last place of the latest closing time, as
  // an arrival is a sum of at most 3 n numbers, and each of these may be rounded from a decimal.
  double closes(int place) const { return instance_.item(place)[kCloses] + tolerance_; }
  double visit(int place) const { return instance_.item(place)[kVisit]; }
  double leave(int place, double arrival) const {
    return (arrival > opens(place) ? arrival : opens(place)) + visit(place);
  }

 private:
  const Instance& instance_;
  double tolerance_ = 0.0;
};

// Most places that the exact search takes.
inline constexpr int kMostExactPlaces = 21;

// TsptwRules::lateness() of an order [n].
double lateness(const RuleInputs& inputs, const int32_t* order);

// What is wrong with the times of item i, as in "expected ..", or empty: it closes no sooner than it opens.
const char* wrong_times(const Instance& instance, size_t i);

}  // namespace pointsman
