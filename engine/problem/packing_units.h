// SPDX-License-Identifier: Apache-2.0
// The weights and values of a KnapSack instance as integers, whose sums are exact in any order. The one place
// that says how much a packing may weigh: rules, searches and the validator ask here (docs/numbers.md).
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

__extension__ using Int128 = __int128;  // sums of values; products of a value and a weight

// How some numbers become integers below 2^61.
struct Unit {
  int places = -1;    // decimal: the unit is 10^-places, and each number is the double next to one of these
  int exponent = 0;   // where places < 0: the unit is 2^-exponent
  bool exact = true;  // no number has lost anything

  double in_units(double number) const;  // not yet rounded to an integer, unless of `places`
};

struct WeightUnits {
  Unit unit;
  std::vector<int64_t> weights;  // [n] rounded down, less than 2^61; kTooHeavy: far above the room
  int64_t room = 0;              // the capacity; with what rounding may add where the unit is not exact
};

inline constexpr int64_t kTooHeavy = int64_t{1} << 62;

WeightUnits weight_units(const Instance& instance);

struct ValueUnits {
  Unit unit;
  std::vector<int64_t> values;  // [n] rounded up; 0 of items that do not fit
  bool add_exactly = true;      // those of items that fit, in the user's own units
};

ValueUnits value_units(const Instance& instance, const WeightUnits& packing);
// A sum of values in the user's units, rounded up: no packing that is worth at most `sum` in units has a
// larger objective. Of integers it is `sum` itself where a double holds it, as one below 2^53 does.
double value_above(const ValueUnits& values, Int128 sum);

// What rules read: RuleInputs::weights and capacity.
struct RuleNumbers {
  std::vector<double> weights;  // [Rules::number_rows(n)][n]
  double capacity = 0.0;
};
// Those of problems with a capacity, who subtract weights in double: what they let through never weighs more
// than WeightUnits::room. Where the unit is exact, so are their differences.
RuleNumbers packing_numbers(const Instance& instance);

// Of the first (0: weights) or second (1: values) numbers of some items, added in their order; the double
// next to their sum where all are integers.
double sum_of(const Instance& instance, const std::vector<int32_t>& items, int field);

}  // namespace pointsman
