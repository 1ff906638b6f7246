// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/packing_units.h"

#include <algorithm>
#include <cmath>

#include "engine/problem/problem.h"

namespace pointsman {
namespace {

constexpr double kPowersOfTen[] = {1e0, 1e1, 1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
                                   1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15};
constexpr int kMostPlaces = 15;
constexpr double kMostUnits = 0x1p61;         // a sum of two weights stays below 2^63
constexpr double kExactInRules = 0x1p53;      // below it every integer is a double
constexpr double kDistinctDecimals = 0x1p52;  // up to here no two decimals are next to the same double

// Of an item: a packing's weight, a customer's demand.
double weight_of(const Instance& instance, int item) {
  const int field = problem_of(instance).fields == ItemFields::kCoordinatesAndDemand ? 2 : 0;
  return instance.values[static_cast<size_t>(instance.width()) * item + field];
}

bool is_integer(double number) { return number == std::floor(number); }

// Whether sum_of() adds it without rounding.
bool adds_exactly(double number) { return is_integer(number) && number < 0x1p90; }

// m where `number` is the double next to m / 10^places; -1: it is next to none.
double decimal_units(double number, int places) {
  const double ten = kPowersOfTen[places], near = std::nearbyint(number * ten);
  for (const double units : {near, near - 1.0, near + 1.0}) {  // the product may have rounded past an integer
    if (units / ten == number) return units;
  }
  return -1.0;
}

// The fewest decimal places that write all of the numbers; -1: none of up to 15.
int decimal_places(const std::vector<double>& numbers, double largest) {
  if (largest >= kExactInRules) return -1;
  int places = 0;
  for (const double number : numbers) {
    while (decimal_units(number, places) < 0.0) {
      if (++places > kMostPlaces || largest * kPowersOfTen[places] >= kDistinctDecimals) return -1;
    }
  }
  return places;
}

Unit unit_of(const std::vector<double>& numbers) {
  const double largest = *std::max_element(numbers.begin(), numbers.end());
  Unit unit;
  unit.places = decimal_places(numbers, largest);
  if (unit.places >= 0) return unit;
  if (largest < kMostUnits && std::all_of(numbers.begin(), numbers.end(), is_integer)) return unit;
  unit.exact = false;
  unit.exponent = 60 - std::ilogb(largest);
  return unit;
}

}  // namespace

double Unit::in_units(double number) const {
  return places >= 0 ? decimal_units(number, places) : std::ldexp(number, exponent);
}

WeightUnits weight_units(const Instance& instance) {
  // The rules subtract up to n weights, each time with half a unit in the last place of the capacity; numbers
  // that were decimals, or sums of others, have been rounded before.
  const double most = instance.capacity + instance.capacity * ((instance.n() + 2.0) * 0x1p-53);
  std::vector<double> numbers{instance.capacity};
  for (int item = 0; item < instance.n(); ++item) {
    if (weight_of(instance, item) <= most) numbers.push_back(weight_of(instance, item));
  }
  WeightUnits out{unit_of(numbers), {}, 0};
  out.weights.reserve(static_cast<size_t>(instance.n()));
  for (int item = 0; item < instance.n(); ++item) {
    const double weight = weight_of(instance, item);
    out.weights.push_back(weight <= most ? static_cast<int64_t>(out.unit.in_units(weight)) : kTooHeavy);
  }
  out.room = static_cast<int64_t>(out.unit.in_units(out.unit.exact ? instance.capacity : most));
  return out;
}

ValueUnits value_units(const Instance& instance, const WeightUnits& packing) {
  std::vector<double> numbers{0.0};
  for (int item = 0; item < instance.n(); ++item) {
    if (packing.weights[item] <= packing.room) numbers.push_back(instance.second(item));
  }
  ValueUnits out{unit_of(numbers), std::vector<int64_t>(packing.weights.size(), 0),
                 std::all_of(numbers.begin(), numbers.end(), adds_exactly)};
  for (int item = 0; item < instance.n(); ++item) {
    if (packing.weights[item] > packing.room) continue;
    out.values[item] = static_cast<int64_t>(std::ceil(out.unit.in_units(instance.second(item))));
  }
  return out;
}

double value_above(const ValueUnits& values, Int128 sum) {
  const Unit& unit = values.unit;
  auto above = static_cast<double>(sum);
  if (static_cast<Int128>(above) < sum) above = std::nextafter(above, HUGE_VAL);
  above = unit.places >= 0 ? above / kPowersOfTen[unit.places] : std::ldexp(above, -unit.exponent);
  if (values.add_exactly) return above;  // as sum_of() adds them: exactly, then rounded once
  // Each value may be 2^-53 of itself above its units, sum_of() may add as much with each of n - 1 additions,
  // and the division above may have lost as much: (1 + 2^-53)^(n + 1) in all. For n < 2^50 that is less than
  // 1 + (n + 1) 2^-52, and the product and its factor round by less than the other 3 times 2^-52.
  return above * (1.0 + (static_cast<double>(values.values.size()) + 4.0) * 0x1p-52);
}

RuleNumbers packing_numbers(const Instance& instance) {
  RuleNumbers out{std::vector<double>(static_cast<size_t>(instance.n()), 0.0), instance.capacity};
  const auto [unit, weights, room] = weight_units(instance);
  // Integers too large for exact differences in double are told in 2^shift: weights rounded up.
  const int shift = unit.exact && room >= static_cast<int64_t>(kExactInRules) ? std::ilogb(room) - 52 : 0;
  const double ten = unit.places >= 0 ? kPowersOfTen[unit.places] : 1.0;
  if (unit.exact) out.capacity = static_cast<double>(room >> shift);
  for (int item = 0; item < instance.n(); ++item) {
    double& weight = out.weights[item] = weight_of(instance, item);
    if (!unit.exact) continue;
    const bool is_near = weights[item] != kTooHeavy;
    weight = is_near ? std::ceil(std::ldexp(static_cast<double>(weights[item]), -shift))
                     : std::ldexp(weight * ten, -shift);
    if (!is_near && weight <= out.capacity) weight = out.capacity + 1.0;
  }
  return out;
}

double sum_of(const Instance& instance, const std::vector<int32_t>& items, int field) {
  double sum = 0.0;
  Int128 exact = 0;
  bool all_integers = true;
  for (const int32_t item : items) {
    const double number = instance.values[2 * static_cast<size_t>(item) + static_cast<size_t>(field)];
    sum += number;
    all_integers = all_integers && adds_exactly(number);
    if (all_integers) exact += static_cast<Int128>(number);
  }
  return all_integers ? static_cast<double>(exact) : sum;
}

}  // namespace pointsman
