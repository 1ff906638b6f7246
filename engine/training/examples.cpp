// SPDX-License-Identifier: Apache-2.0
#include "engine/training/examples.h"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <string_view>

#include "engine/problem/network_input.h"
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

double signed_area(int n, const float* features, const int32_t* tour) {
  double area = 0.0;
  for (int i = 0; i < n; ++i) {
    const float* a = features + 2 * tour[i];
    const float* b = features + 2 * tour[i + 1 < n ? i + 1 : 0];
    area += static_cast<double>(a[0]) * b[1] - static_cast<double>(b[0]) * a[1];
  }
  return area;
}

void make_canonical_tour(int n, const float* features, int32_t* tour) {
  const auto from_corner = [&](int32_t city) {
    const double x = features[2 * city], y = features[2 * city + 1];
    return x * x + y * y;
  };
  int32_t* const first =
      std::min_element(tour, tour + n, [&](int32_t a, int32_t b) { return from_corner(a) < from_corner(b); });
  std::rotate(tour, first, tour + n);
  if (signed_area(n, features, tour) < 0.0) std::reverse(tour + 1, tour + n);
}

}  // namespace

Examples make_examples(const ModelConfig& config, const InstanceBatch& instances,
                       const SolutionBatch& solutions) {
  if (instances.size() != solutions.size()) {
    throw std::invalid_argument("examples: " + std::to_string(instances.size()) + " instances, " +
                                std::to_string(solutions.size()) + " solutions");
  }
  Examples examples;
  examples.problem = problem_kind(config);
  examples.n = config.n;
  for (size_t row = 0; row < instances.size(); ++row) {
    const Instance& instance = instances[row];
    if (instance.problem != examples.problem) refuse(row, "expected " + config.problem);
    if (instance.n() != config.n) {
      refuse(row, "expected n = " + std::to_string(config.n) + ", found " + std::to_string(instance.n()));
    }
    Solution solution = solutions[row];
    const std::string wrong = validate_solution(instance, solution);
    if (!wrong.empty()) refuse(row, wrong);
    const std::vector<float> features = network_features(instance, config.capacity);
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

void make_canonical(ProblemKind problem, int n, const float* features, int32_t* order) {
  if (problem == ProblemKind::kTsp) return make_canonical_tour(n, features, order);
  const auto ratio = [&](int32_t item) {
    const double weight = features[2 * item], value = features[2 * item + 1];
    return weight > 0.0 ? value / weight : std::numeric_limits<double>::infinity();
  };
  std::stable_sort(order, std::find(order, order + n, -1),
                   [&](int32_t a, int32_t b) { return ratio(a) > ratio(b); });
}

}  // namespace pointsman
