// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/network_input.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <utility>

#include "kernels/common/philox.h"

namespace pointsman {
namespace {

std::vector<float> tsp_features(const Instance& instance) {
  const std::vector<double>& values = instance.values;
  std::vector<float> features(values.begin(), values.end());
  if (std::all_of(values.begin(), values.end(), [](double x) { return x >= 0.0 && x <= 1.0; }))
    return features;
  double low[2] = {values[0], values[1]}, high[2] = {values[0], values[1]};
  for (size_t i = 0; i < values.size(); ++i) {
    low[i % 2] = std::min(low[i % 2], values[i]);
    high[i % 2] = std::max(high[i % 2], values[i]);
  }
  // The extent of coordinates near the largest double overflows: halve everything first, which is exact.
  const double shrink = std::isfinite(high[0] - low[0]) && std::isfinite(high[1] - low[1]) ? 1.0 : 0.5;
  const double side = std::max(high[0] * shrink - low[0] * shrink, high[1] * shrink - low[1] * shrink);
  for (size_t i = 0; i < values.size(); ++i) {
    const double moved = values[i] * shrink - low[i % 2] * shrink;
    features[i] = side > 0.0 ? static_cast<float>(moved / side) : 0.0f;  // 0: all cities in one place
  }
  return features;
}

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

}  // namespace

std::vector<float> network_features(const Instance& instance, double trained_capacity) {
  return instance.problem == ProblemKind::kTsp ? tsp_features(instance)
                                               : knapsack_features(instance, trained_capacity);
}

void apply_dihedral(int copy, float* point) {
  if (copy & 1) point[0] = 1.0f - point[0];
  if (copy & 2) point[1] = 1.0f - point[1];
  if (copy & 4) std::swap(point[0], point[1]);
}

std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  uint64_t counter = 0;
  for (int i = n - 1; i > 0; --i) {
    const uint32_t choices = static_cast<uint32_t>(i) + 1;
    // Multiply and shift, with the few words that would favour some choices drawn again: exactly uniform.
    const uint32_t refused_below = (0u - choices) % choices;
    uint64_t product;
    do {
      const PhiloxBlock block =
          philox4x32(seed ^ stream::kInputOrder, (instance_key << 32) | replica, counter++);
      product = static_cast<uint64_t>(block.word[0]) * choices;
    } while (static_cast<uint32_t>(product) < refused_below);
    std::swap(order[i], order[product >> 32]);
  }
  return order;
}

}  // namespace pointsman
