// SPDX-License-Identifier: Apache-2.0
// Random sequences, networks and rollouts for the tests of a Backend.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"
#include "tests/reference/reference.h"

namespace pointsman {

// Sequences with the memory that a SequenceBatch points to.
struct RandomBatch {
  ProblemKind problem;
  int n, count;
  std::vector<float> features;
  std::vector<double> weights, capacities;
  std::vector<uint64_t> keys;  // of the instances: their row numbers, until they are permuted

  RandomBatch(ProblemKind problem_, int n_, int count_, uint32_t seed, double capacity = 0.0)
      : problem(problem_),
        n(n_),
        count(count_),
        features(static_cast<size_t>(feature_count(problem_)) * n_ * count_),
        keys(count_) {
    std::mt19937 random(seed);
    for (float& x : features) x = static_cast<float>(random() >> 8) * 0x1p-24f;
    std::iota(keys.begin(), keys.end(), 0);
    if (problem == ProblemKind::kTsptw) set_windows();
    if (is_graph(problem)) set_edges(random);
    if (problem == ProblemKind::kAtsp) set_ways(seed);
    if (!has_capacity(problem)) return;
    const bool is_given = capacity > (problem == ProblemKind::kCvrp ? 8.9 : 0.0);  // every demand must fit
    capacities.assign(count, is_given ? capacity : capacity_for(problem, n));
    const size_t weight = problem == ProblemKind::kCvrp ? 2 : 0;
    for (size_t i = weight; i < features.size(); i += width()) {
      if (problem == ProblemKind::kCvrp) {  // demands 1 .. 9, the depot's 0
        weights.push_back(i / width() % n == 0 ? 0.0 : 1.0 + std::floor(9.0 * features[i]));
        features[i] = static_cast<float>(weights.back() / capacities[0]);
      } else {
        weights.push_back(features[i]);
      }
    }
  }

  // Windows of half a tour's time, around any time, the depot's around them all: some tours are late.
  void set_windows() {
    const size_t row = static_cast<size_t>(n) * width();
    for (int s = 0; s < count; ++s) {
      float* const to = features.data() + s * row;
      for (int place = 0; place < n; ++place) {
        float* const times = to + place * width() + 2;
        times[1] = place == 0 ? 1.5f : times[0] + 0.5f;
        if (place == 0) times[0] = 0.0f;
      }
      const RuleNumbers numbers = trained_numbers(problem_of(problem), n, to, 0.0);
      weights.insert(weights.end(), numbers.weights.begin(), numbers.weights.end());
      capacities.push_back(numbers.capacity);
    }
  }

  // Every two items are joined with probability 1/2.
  void set_edges(std::mt19937& random) {
    weights.assign(static_cast<size_t>(count) * n * n, 0.0);
    capacities.assign(count, 0.0);
    for (int s = 0; s < count; ++s) {
      double* const edges = weights.data() + static_cast<size_t>(s) * n * n;
      for (int a = 0; a < n; ++a) {
        for (int b = 0; b < a; ++b) edges[a * n + b] = edges[b * n + a] = random() % 2;
      }
    }
  }

  // Of generated matrices.
  void set_ways(uint32_t seed) {
    features.clear();
    for (const Instance& instance : generate_instances(problem, n, seed, 0, count)) {
      const std::vector<float> read = problem_of(problem).features(instance, 0.0);
      features.insert(features.end(), read.begin(), read.end());
      const RuleNumbers numbers = rule_numbers(instance);
      weights.insert(weights.end(), numbers.weights.begin(), numbers.weights.end());
    }
    capacities.assign(count, 0.0);
  }

  static double capacity_for(ProblemKind problem, int n) {
    return !has_capacity(problem) ? 0.0 : problem == ProblemKind::kCvrp ? 16.0 : n / 6.0;
  }
  size_t width() const { return static_cast<size_t>(feature_count(problem)); }
  int steps() const { return max_steps(problem, n); }
  size_t numbers_each() const { return static_cast<size_t>(number_rows(problem, n)) * n; }

  SequenceBatch batch(int first = 0, int size = -1) const {
    SequenceBatch b;
    b.problem = problem;
    b.n = n;
    b.count = size < 0 ? count : size;
    b.features = features.data() + width() * static_cast<size_t>(n) * first;
    b.weights = weights.empty() ? nullptr : weights.data() + numbers_each() * first;
    b.capacities = capacities.empty() ? nullptr : capacities.data() + first;
    return b;
  }

  // Row i of the result is row order[i] of this one.
  RandomBatch permuted(const std::vector<int>& order) const {
    RandomBatch p = *this;
    for (int i = 0; i < count; ++i) {
      const auto size = static_cast<int64_t>(width()) * n;
      std::copy_n(features.begin() + order[i] * size, size, p.features.begin() + i * size);
      p.keys[i] = keys[order[i]];
      if (weights.empty()) continue;
      const auto numbers = static_cast<int64_t>(numbers_each());
      std::copy_n(weights.begin() + order[i] * numbers, numbers, p.weights.begin() + i * numbers);
      p.capacities[i] = capacities[order[i]];
    }
    return p;
  }

  reference::Sequence sequence(int s) const {
    reference::Sequence result;
    result.problem = problem;
    const auto size = static_cast<int64_t>(width()) * n;
    result.features.assign(features.begin() + s * size, features.begin() + (s + 1) * size);
    if (weights.empty()) return result;
    const auto numbers = static_cast<int64_t>(numbers_each());
    result.weights.assign(weights.begin() + s * numbers, weights.begin() + (s + 1) * numbers);
    result.capacity = capacities[s];
    return result;
  }
};

inline ModelConfig config_for(ProblemKind problem, int n, int glimpses = 1, bool centre = true) {
  ModelConfig config;
  config.problem = problem;
  config.n = n;
  config.capacity = RandomBatch::capacity_for(problem, n);
  config.glimpses = glimpses;
  config.centre_logits = centre;
  return config;
}

// With a small attention encoder, and a prior.
inline ModelConfig with_attention(ModelConfig config, int layers = 2, int heads = 8) {
  config.encoder = Encoder::kAttention;
  config.layers = layers;
  config.heads = heads;
  config.feed_forward = 64;
  config.has_prior = true;
  return config;
}

// The initialisation times `scale`: 1 is nearly uniform, 4 decides.
inline std::vector<float> scaled_parameters(const ModelConfig& config, float scale, uint64_t seed = 1) {
  std::vector<float> parameters = initial_parameters(config, seed);
  for (float& p : parameters) p *= scale;
  return parameters;
}

inline std::unique_ptr<Backend> cpu_with(const ModelConfig& config, const std::vector<float>& parameters,
                                         int threads = 1) {
  auto backend = make_backend({"cpu", threads});
  backend->configure(config, 1);
  backend->load_parameters(0, parameters);
  return backend;
}

inline RolloutResult roll_out(Backend& backend, const RolloutRequest& request) {
  RolloutResult result;
  backend.rollout(request, result);
  return result;
}

inline RolloutResult sample(Backend& backend, const RandomBatch& batch, const std::vector<int32_t>& counts,
                            Tape* tape = nullptr) {
  RolloutRequest request;
  request.sequences = batch.batch();
  request.decode = Decode::kSample;
  request.counts = counts.data();
  request.instance_keys = batch.keys.data();
  request.tape = tape;
  return roll_out(backend, request);
}

// Largest error of a tensor over the tensor's largest element; infinite where all should be zero and are not.
template <typename Expected>
inline double worst_of_tensors(const ParameterLayout& layout, const std::vector<float>& found,
                               const Expected& expected) {
  double worst = 0.0;
  for (const Tensor& tensor : layout.tensors) {
    double most = 0.0, off = 0.0;
    for (size_t k = tensor.offset; k < tensor.offset + tensor.size; ++k) {
      most = std::max(most, std::abs(static_cast<double>(expected[k])));
      const double difference = std::abs(static_cast<double>(found[k]) - static_cast<double>(expected[k]));
      off = worse(off, difference);
    }
    if (!(off <= 0.0))
      worst = worse(worst, most == 0.0 ? std::numeric_limits<double>::infinity() : off / most);
  }
  return worst;
}

template <typename T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

inline bool same_answers(const RolloutResult& a, const RolloutResult& b) {
  return a.orders == b.orders && same_bytes(a.log_probs, b.log_probs) && same_bytes(a.costs, b.costs);
}

// Appends rollouts first .. first + count - 1 of `from`, of so many steps each.
inline void append(const RolloutResult& from, int steps, size_t first, size_t count, RolloutResult& to) {
  to.orders.insert(to.orders.end(), from.orders.begin() + first * steps,
                   from.orders.begin() + (first + count) * steps);
  to.costs.insert(to.costs.end(), from.costs.begin() + first, from.costs.begin() + first + count);
  to.log_probs.insert(to.log_probs.end(), from.log_probs.begin() + first,
                      from.log_probs.begin() + first + count);
}

// The items of rollout r, without the -1 behind them.
inline std::vector<int> items_of(const RolloutResult& result, int steps, size_t r) {
  std::vector<int> items(result.orders.begin() + r * steps, result.orders.begin() + (r + 1) * steps);
  items.erase(std::find(items.begin(), items.end(), -1), items.end());
  return items;
}

}  // namespace pointsman
