// SPDX-License-Identifier: Apache-2.0
// Instances for the tests of the search rooms.
#pragma once

#include <random>
#include <vector>

#include "engine/problem/problem.h"

namespace pointsman {

inline Instance random_tsp(int n, uint32_t seed, double side = 1.0, Metric metric = Metric::kEuclidean) {
  std::mt19937 random(seed);
  Instance instance;
  instance.metric = metric;
  for (int i = 0; i < 2 * n; ++i) instance.values.push_back(side * (random() / 4294967296.0));
  return instance;
}

inline Instance random_knapsack(int n, uint32_t seed, double capacity) {
  Instance instance = random_tsp(n, seed);
  instance.problem = ProblemKind::kKnapsack;
  instance.capacity = capacity;
  return instance;
}

inline std::vector<int32_t> random_order(int n, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> order(n);
  for (int i = 0; i < n; ++i) {
    order[i] = i;
    std::swap(order[i], order[random() % (i + 1)]);
  }
  return order;
}

// The instance as a network trained for this capacity reads it.
inline std::vector<float> network_features(const Instance& instance, double trained_capacity) {
  return problem_of(instance).features(instance, trained_capacity);
}

}  // namespace pointsman
