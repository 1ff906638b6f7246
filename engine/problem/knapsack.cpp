// SPDX-License-Identifier: Apache-2.0
// The 0-1 KnapSack problem, as the table of problems knows it.
#include "kernels/common/knapsack.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <string>
#include <vector>

#include "engine/problem/packing_units.h"
#include "engine/problem/problem.h"

namespace pointsman {
namespace {

// Weights times trained_capacity / W; values divided by the largest when that is > 1.
std::vector<float> knapsack_features(const Instance& instance, double trained_capacity) {
  const int n = instance.n();
  const double scale = trained_capacity / instance.capacity;
  double largest = 1.0;
  for (int i = 0; i < n; ++i) largest = std::max(largest, instance.second(i));
  std::vector<float> features(instance.values.size());
  for (int i = 0; i < n; ++i) {
    const double weight = instance.first(i);
    // An item heavier than the knapsack can never be taken, but the encoder still reads it: keep it finite.
    const double scaled = weight == 0.0 ? 0.0 : std::min(weight * scale, trained_capacity);
    features[2 * i] = static_cast<float>(scaled);
    features[2 * i + 1] = static_cast<float>(instance.second(i) / largest);
  }
  return features;
}

std::vector<int32_t> sorted_items(std::vector<int32_t> items) {
  std::sort(items.begin(), items.end());
  return items;
}

std::string shortest(double number) {
  char text[32];
  return {text, std::to_chars(text, text + sizeof text, number).ptr};
}

std::string validate_packing(const Instance& instance, Solution& solution) {
  const std::vector<int32_t> items = sorted_items(solution.order);
  solution.objective = solution.unrounded = sum_of(instance, items, 1);
  solution.weight = sum_of(instance, items, 0);
  const WeightUnits packing = weight_units(instance);
  int64_t left = packing.room;
  for (const int32_t item : items) {
    left -= packing.weights[item];
    if (left >= 0) continue;
    return "the items weigh " + shortest(solution.weight) + ", more than the capacity " +
           shortest(instance.capacity);
  }
  return "";
}

double value_of(const Instance& instance, const std::vector<int32_t>& items) {
  return packed_value(instance.values.data(), items.data(), static_cast<int>(items.size()));
}

void trained_weights(int n, const float* features, double, double* weights) {
  for (int item = 0; item < n; ++item) weights[item] = features[2 * item];
}

// Items by falling value per weight.
void make_packing_example(int n, const float* features, int32_t* order) {
  const auto ratio = [&](int32_t item) {
    const double weight = features[2 * item], value = features[2 * item + 1];
    return weight > 0.0 ? value / weight : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(order, std::find(order, order + n, -1),
                   [&](int32_t a, int32_t b) { return ratio(a) > ratio(b); });
}

}  // namespace

extern const Problem kKnapsackProblem = {.kind = ProblemKind::kKnapsack,
                                         .title = "KnapSack",
                                         .model_prefix = "knap",
                                         .item = "item",
                                         .items = "items",
                                         .answer = "packing",
                                         .order_key = "items",
                                         .objective_key = "value",
                                         .measure = "value",
                                         .full_measure = "packed value",
                                         .fields = ItemFields::kWeightAndValue,
                                         .sense = Sense::kMaximise,
                                         .has_capacity = KnapsackRules::kHasCapacity,
                                         .has_packing = true,
                                         .has_exact = true,
                                         .has_depot = false,
                                         .has_symmetries = false,
                                         .has_all_items = false,
                                         .has_local_search = false,
                                         .has_two_opt = false,
                                         .features = knapsack_features,
                                         .validate = validate_packing,
                                         .objective = value_of,
                                         .canonical = sorted_items,
                                         .make_example = make_packing_example,
                                         // Bello et al. 2017, section 5.4.
                                         .default_capacity = [](int n) { return n <= 50 ? 12.5 : 25.0; },
                                         .rule_numbers = packing_numbers,
                                         .trained_numbers = trained_weights};

}  // namespace pointsman
