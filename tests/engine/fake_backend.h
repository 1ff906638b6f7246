// SPDX-License-Identifier: Apache-2.0
// A backend without a network: every feasible item is equally likely, drawn with the contract's Philox
// uniforms. Greedy takes the first item that is left. It remembers every call, and its parameters move when
// they are updated.
#pragma once

#include <algorithm>
#include <chrono>
#include <cmath>
#include <map>
#include <thread>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/requests.h"
#include "kernels/common/philox.h"
#include "models/parameter_layout.h"

namespace pointsman {

class FakeBackend : public Backend {
 public:
  // What a rollout was asked for and did, by (instance key, sample).
  struct Drawn {
    std::vector<float> features;  // [n][2], as they came
    std::vector<float> path;      // the features in the order chosen
    double cost = 0.0;
    int times = 0;
  };
  struct Loaded {
    int set;
    float before;  // parameter 0 that the load replaced
  };

  int largest_call = 0;
  int rollout_calls = 0, gradient_calls = 0, update_calls = 0;
  std::map<std::pair<uint64_t, uint32_t>, Drawn> drawn;
  std::vector<Loaded> loads;
  std::vector<float> weights;            // of the last gradient request
  std::vector<double> costs, log_probs;  // of the last rollout
  std::vector<float> updated;            // parameter 0 of set 0 after each update
  std::vector<UpdateRequest> updates;
  std::chrono::microseconds time_per_rollout{0};
  int threads = 2;
  bool corrupt = false;  // answers visit the first item twice

  DeviceInfo info() const override { return {"fake", "uniform policy", threads}; }

  void configure(const ModelConfig& config, int sets) override {
    parameters_.assign(sets, std::vector<float>(ParameterLayout(config).size, 0.0f));
    gradients_.assign(sets, 0.0);
  }
  void load_parameters(int set, std::span<const float> parameters) override {
    loads.push_back({set, parameters_.at(set).at(0)});
    parameters_.at(set).assign(parameters.begin(), parameters.end());
    gradients_.at(set) = 0.0;
  }
  void read_parameters(int set, std::span<float> parameters) const override {
    std::copy(parameters_.at(set).begin(), parameters_.at(set).end(), parameters.begin());
  }
  void load_optimiser(int, const OptimiserState&) override {}
  OptimiserState read_optimiser(int) const override { return {}; }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    ++rollout_calls;
    result = {};
    const SequenceBatch& batch = request.sequences;
    const auto start = std::chrono::steady_clock::now();
    bool stopped = false;
    for (int s = 0; s < batch.count; ++s) {
      const int count = request.counts ? request.counts[s] : 1;
      for (int j = 0; j < count; ++j) {
        if (stopped || request.stop.stops()) {
          stopped = true;
          leave_out(batch.n, result);
          continue;
        }
        roll_one(request, s, j, result);
        std::this_thread::sleep_until(start + time_per_rollout * result.costs.size());
      }
    }
    if (stopped) count_finished(request, result);
    const int rollouts = static_cast<int>(result.costs.size());
    largest_call = std::max(largest_call, rollouts);
    result.statistics.steps = static_cast<int64_t>(rollouts) * batch.n;
    costs = result.costs;
    log_probs = result.log_probs;
    if (request.best_only) choose_best(request, result);
  }

  // Sums |weights| of each set.
  void gradient(const GradientRequest& request) override {
    request.stop.check();
    ++gradient_calls;
    weights.clear();
    size_t rollout = 0;
    for (int s = 0; s < request.sequences.count; ++s) {
      const int set = request.sequences.parameter_sets ? request.sequences.parameter_sets[s] : 0;
      const int count = request.counts ? request.counts[s] : 1;
      for (int j = 0; j < count; ++j) {
        weights.push_back(request.weights[rollout]);
        gradients_.at(set) += std::abs(request.weights[rollout++]);
      }
    }
  }
  void critic_gradient(const SequenceBatch&, std::span<const float>, float, std::span<float>,
                       const StopToken&) override {}
  void read_gradient(int, std::span<float>) const override {}

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    ++update_calls;
    updates.push_back(request);
    std::vector<GradientNorms> norms;
    for (int set = first_set; set < first_set + count; ++set) {
      parameters_.at(set).at(0) += request.learning_rate * (1.0f + static_cast<float>(gradients_.at(set)));
      norms.push_back({gradients_.at(set), 0.0});
      gradients_.at(set) = 0.0;
    }
    updated.push_back(parameters_.at(0).at(0));
    return norms;
  }

 private:
  static void leave_out(int n, RolloutResult& result) {
    result.orders.insert(result.orders.end(), n, -1);
    result.costs.push_back(std::nan(""));
    result.log_probs.push_back(std::nan(""));
  }

  void roll_one(const RolloutRequest& request, int s, int j, RolloutResult& result) {
    const SequenceBatch& batch = request.sequences;
    const int n = batch.n;
    const float* features = batch.features + static_cast<size_t>(s) * n * 2;
    const bool is_tsp = batch.problem == ProblemKind::kTsp;
    const uint64_t key = request.instance_keys ? request.instance_keys[s] : 0;
    const uint32_t sample =
        (request.first_samples ? request.first_samples[s] : 0) + j * request.sample_stride;
    double left = is_tsp ? 0.0 : batch.capacities[s];
    const auto fits = [&](int i) { return is_tsp || batch.weights[static_cast<size_t>(s) * n + i] <= left; };
    std::vector<int32_t> remaining, order;
    for (int i = 0; i < n; ++i) {
      if (fits(i)) remaining.push_back(i);
    }
    double log_prob = 0.0;
    while (!remaining.empty()) {
      const auto step = static_cast<uint32_t>(order.size());
      const auto m = static_cast<float>(remaining.size());
      size_t chosen = 0;
      if (request.decode == Decode::kSample) {
        chosen = static_cast<size_t>(sampling_uniform(request.seed, key, sample, step) * m);
        chosen = std::min(chosen, remaining.size() - 1);
      }
      log_prob -= std::log(m);
      const int32_t item = remaining[chosen];
      order.push_back(item);
      remaining.erase(remaining.begin() + static_cast<int64_t>(chosen));
      if (is_tsp) continue;
      left -= batch.weights[static_cast<size_t>(s) * n + item];
      std::erase_if(remaining, [&](int i) { return !fits(i); });
    }
    finish(order, features, key, sample, n, is_tsp, result);
    result.log_probs.push_back(log_prob);
  }

  void finish(std::vector<int32_t> order, const float* features, uint64_t key, uint32_t sample, int n,
              bool is_tsp, RolloutResult& result) {
    Drawn& record = drawn[{key, sample}];
    record.features.assign(features, features + 2 * n);
    record.path.clear();
    ++record.times;
    double cost = 0.0;
    for (size_t i = 0; i < order.size(); ++i) {
      const float* here = features + 2 * order[i];
      const float* there = features + 2 * order[(i + 1) % order.size()];
      record.path.insert(record.path.end(), here, here + 2);
      cost +=
          is_tsp
              ? std::sqrt(std::pow(double(there[0]) - here[0], 2) + std::pow(double(there[1]) - here[1], 2))
              : -double(here[1]);
    }
    record.cost = cost;
    if (corrupt && order.size() > 1) order[1] = order[0];
    order.resize(n, -1);
    result.orders.insert(result.orders.end(), order.begin(), order.end());
    result.costs.push_back(cost);
  }

  std::vector<std::vector<float>> parameters_;
  std::vector<double> gradients_;
};

}  // namespace pointsman
