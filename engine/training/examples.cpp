// SPDX-License-Identifier: Apache-2.0
#include "engine/training/examples.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/problem/network_input.h"
#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "engine/training/training_batch.h"
#include "kernels/common/fnv1a.h"

namespace pointsman {
namespace {

[[noreturn]] void refuse(size_t row, const std::string& what) {
  throw std::invalid_argument("example " + std::to_string(row) + ": " + what);
}

// The instance in the network's own numbers: a packing may fit in double and not in float.
Instance as_read(const Instance& instance, const std::vector<float>& features, double trained_capacity) {
  Instance scaled;
  scaled.problem = instance.problem;
  scaled.capacity = trained_capacity;
  scaled.values.assign(features.begin(), features.end());
  return scaled;
}

template <class T>
std::string_view bytes_of(const std::vector<T>& values) {
  return {reinterpret_cast<const char*>(values.data()), values.size() * sizeof(T)};
}

}  // namespace

Examples make_examples(const ModelConfig& config, const InstanceBatch& instances,
                       const SolutionBatch& solutions) {
  if (instances.size() != solutions.size()) {
    throw std::invalid_argument("examples: " + std::to_string(instances.size()) + " instances, " +
                                std::to_string(solutions.size()) + " solutions");
  }
  Examples examples;
  examples.problem = config.problem;
  examples.n = config.n;
  for (size_t row = 0; row < instances.size(); ++row) {
    const Instance& instance = instances[row];
    if (instance.problem != examples.problem) refuse(row, std::string("expected ") + name_of(config.problem));
    if (instance.n() != config.n) {
      refuse(row, "expected n = " + std::to_string(config.n) + ", found " + std::to_string(instance.n()));
    }
    Solution solution = solutions[row];
    const std::string wrong = validate_solution(instance, solution);
    if (!wrong.empty()) refuse(row, wrong);
    const std::vector<float> features = problem_of(instance).features(instance, config.capacity);
    if (!is_reachable(as_read(instance, features, config.capacity), solution)) {
      ++examples.unreachable;
      continue;
    }
    examples.features.insert(examples.features.end(), features.begin(), features.end());
    solution.order.resize(config.n, -1);
    examples.orders.insert(examples.orders.end(), solution.order.begin(), solution.order.end());
  }
  if (examples.orders.empty()) throw std::invalid_argument("examples: nothing to learn from");
  examples.fingerprint =
      std::max<uint64_t>(fnv1a(bytes_of(examples.orders), fnv1a(bytes_of(examples.features))), 1);
  return examples;
}

}  // namespace pointsman
