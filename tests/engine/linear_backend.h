// SPDX-License-Identifier: Apache-2.0
// A Backend small enough to check the trainer by hand: item i is chosen with probability softmax(p0 x_i + p1
// y_i) over the feasible items, with the exact gradient; the critic is linear in the mean feature. It learns
// KnapSack a little and records what it was asked.
#pragma once

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/requests.h"
#include "kernels/common/philox.h"
#include "models/parameter_layout.h"

namespace pointsman {

class LinearBackend : public Backend {
 public:
  // What each call of a training was given, in order.
  std::vector<std::vector<float>> sampled_features;  // of the sampling rollouts
  std::vector<std::vector<double>> sampled_costs, sampled_log_probs;
  std::vector<std::vector<float>> forced_features;  // of the rollouts of given orders
  std::vector<std::vector<int32_t>> forced_orders;
  std::vector<std::vector<double>> greedy_costs;
  std::vector<int> greedy_sets;
  std::vector<std::vector<float>> gradient_weights;
  std::vector<std::vector<float>> critic_targets;
  std::vector<std::vector<float>> critic_answers;
  std::vector<float> critic_weights;
  std::vector<UpdateRequest> updates;
  size_t poisoned_update = std::numeric_limits<size_t>::max();  // the update that answers with a norm of NaN

  DeviceInfo info() const override { return {"linear", "test", 1}; }

  void configure(const ModelConfig& config, int sets) override {
    layout_ = ParameterLayout(config);
    sets_.assign(sets, {});
    for (Set& set : sets_) set.reset(std::vector<float>(layout_.size));
  }
  void load_parameters(int set, std::span<const float> parameters) override {
    sets_.at(set).reset({parameters.begin(), parameters.end()});
  }
  void read_parameters(int set, std::span<float> parameters) const override {
    std::copy(sets_.at(set).parameters.begin(), sets_.at(set).parameters.end(), parameters.begin());
  }
  void load_optimiser(int set, const OptimiserState& state) override { sets_.at(set).adam = state; }
  OptimiserState read_optimiser(int set) const override { return sets_.at(set).adam; }
  void read_gradient(int set, std::span<float> gradient) const override {
    std::copy(sets_.at(set).gradient.begin(), sets_.at(set).gradient.end(), gradient.begin());
  }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    const SequenceBatch& batch = request.sequences;
    result = {};
    for (int s = 0; s < batch.count; ++s) decode(request, s, result);
    if (request.decode == Decode::kSample) {
      sampled_costs.push_back(result.costs);
      sampled_log_probs.push_back(result.log_probs);
      sampled_features.emplace_back(batch.features, batch.features + 2 * batch.count * batch.n);
    } else if (request.decode == Decode::kForced) {
      forced_features.emplace_back(batch.features, batch.features + 2 * batch.count * batch.n);
      forced_orders.push_back(result.orders);
    } else {
      greedy_costs.push_back(result.costs);
      greedy_sets.push_back(batch.parameter_sets[0]);
    }
    if (request.best_only) choose_best(request, result);
  }

  void gradient(const GradientRequest& request) override {
    const SequenceBatch& batch = request.sequences;
    for (int s = 0; s < batch.count; ++s) {
      Set& set = sets_.at(batch.parameter_sets[s]);
      Episode episode(batch, s);
      for (int t = 0; t < batch.n && request.orders[s * batch.n + t] >= 0; ++t) {
        const int chosen = request.orders[s * batch.n + t];
        const std::vector<double> probabilities = episode.probabilities(set.parameters);
        for (int d = 0; d < 2; ++d) {
          double slope = episode.feature(chosen, d);
          for (int i = 0; i < batch.n; ++i) slope -= probabilities[i] * episode.feature(i, d);
          set.gradient[d] += static_cast<float>(request.weights[s] * slope);
        }
        episode.take(chosen);
      }
    }
    gradient_weights.emplace_back(request.weights, request.weights + batch.count);
  }

  void critic_values(const SequenceBatch& batch, std::span<float> values) const {
    for (int s = 0; s < batch.count; ++s) {
      const std::vector<float>& p = sets_.at(batch.parameter_sets[s]).parameters;
      values[s] = p[layout_.critic.fc2_bias] + p[layout_.actor_size] * mean_feature(batch, s);
    }
  }
  void critic_gradient(const SequenceBatch& batch, std::span<const float> targets, float weight,
                       std::span<float> values, const StopToken&) override {
    critic_values(batch, values);
    for (int s = 0; s < batch.count; ++s) {
      const float slope = 2.0f * weight * (values[s] - targets[s]);
      std::vector<float>& gradient = sets_.at(batch.parameter_sets[s]).gradient;
      gradient[layout_.critic.fc2_bias] += slope;
      gradient[layout_.actor_size] += slope * mean_feature(batch, s);
    }
    critic_targets.emplace_back(targets.begin(), targets.end());
    critic_answers.emplace_back(values.begin(), values.end());
    critic_weights.push_back(weight);
  }

  std::vector<GradientNorms> update(int first_set, int count, const UpdateRequest& request) override {
    std::vector<GradientNorms> norms;
    for (int set = first_set; set < first_set + count; ++set) {
      Set& s = sets_.at(set);
      GradientNorms norm;
      norm.actor = adam(s, 0, layout_.actor_size, ++s.adam.actor_steps, request);
      if (request.critic)
        norm.critic = adam(s, layout_.actor_size, layout_.size, ++s.adam.critic_steps, request);
      std::fill(s.gradient.begin(), s.gradient.end(), 0.0f);
      if (updates.size() == poisoned_update) norm.actor = std::nan("");
      norms.push_back(norm);
    }
    updates.push_back(request);
    return norms;
  }

 private:
  struct Set {
    std::vector<float> parameters, gradient;
    OptimiserState adam;

    void reset(std::vector<float> values) {
      parameters = std::move(values);
      gradient.assign(parameters.size(), 0.0f);
      adam = {gradient, gradient, 0, 0};
    }
  };

  // One sequence while it is decoded.
  class Episode {
   public:
    Episode(const SequenceBatch& batch, int s)
        : batch_(batch), offset_(static_cast<size_t>(s) * batch.n), taken_(batch.n) {
      if (batch.problem == ProblemKind::kKnapsack) room_ = batch.capacities[s];
    }
    float feature(int i, int d) const { return batch_.features[2 * (offset_ + i) + d]; }
    bool feasible(int i) const {
      return !taken_[i] && (batch_.problem == ProblemKind::kTsp || batch_.weights[offset_ + i] <= room_);
    }
    bool finished() const {
      for (int i = 0; i < batch_.n; ++i) {
        if (feasible(i)) return false;
      }
      return true;
    }
    void take(int i) {
      taken_[i] = true;
      if (batch_.problem == ProblemKind::kKnapsack) room_ -= batch_.weights[offset_ + i];
    }
    std::vector<double> probabilities(const std::vector<float>& p) const {
      std::vector<double> result(batch_.n);
      double sum = 0.0;
      for (int i = 0; i < batch_.n; ++i) {
        if (feasible(i)) sum += result[i] = std::exp(p[0] * feature(i, 0) + p[1] * feature(i, 1));
      }
      for (double& probability : result) probability /= sum;
      return result;
    }
    double cost(const std::vector<int32_t>& order) const {
      double sum = 0.0;
      for (size_t i = 0; i < order.size(); ++i) {
        const int a = order[i], b = order[(i + 1) % order.size()];
        sum += batch_.problem == ProblemKind::kKnapsack
                   ? -static_cast<double>(feature(a, 1))
                   : std::hypot(feature(a, 0) - feature(b, 0), feature(a, 1) - feature(b, 1));
      }
      return sum;
    }

   private:
    const SequenceBatch& batch_;
    size_t offset_;
    std::vector<bool> taken_;
    double room_ = 0.0;
  };

  static int draw(const std::vector<double>& probabilities, double uniform) {
    int last = 0;
    for (size_t i = 0; i < probabilities.size(); ++i) {
      if (probabilities[i] == 0.0) continue;
      last = static_cast<int>(i);
      if ((uniform -= probabilities[i]) < 0.0) return last;
    }
    return last;
  }

  void decode(const RolloutRequest& request, int s, RolloutResult& result) {
    const SequenceBatch& batch = request.sequences;
    const std::vector<float>& parameters = sets_.at(batch.parameter_sets[s]).parameters;
    Episode episode(batch, s);
    std::vector<int32_t> order;
    double log_prob = 0.0;
    while (!episode.finished()) {
      const std::vector<double> p = episode.probabilities(parameters);
      const uint32_t step = static_cast<uint32_t>(order.size());
      const int chosen =
          request.decode == Decode::kForced ? request.forced[s * batch.n + static_cast<int>(step)]
          : request.decode == Decode::kSample
              ? draw(p,
                     sampling_uniform(request.seed, request.instance_keys[s], request.first_samples[s], step))
              : static_cast<int>(std::max_element(p.begin(), p.end()) - p.begin());
      log_prob += std::log(p[chosen]);
      result.statistics.entropy -= std::log(p[chosen]);
      result.statistics.mean_logit += parameters[0];
      result.statistics.saturated += p[chosen];
      result.statistics.steps += 1;
      order.push_back(chosen);
      episode.take(chosen);
    }
    result.costs.push_back(episode.cost(order));
    result.log_probs.push_back(log_prob);
    order.resize(batch.n, -1);
    result.orders.insert(result.orders.end(), order.begin(), order.end());
  }

  static float mean_feature(const SequenceBatch& batch, int s) {
    const float* first = batch.features + 2 * static_cast<size_t>(s) * batch.n;
    return std::accumulate(first, first + 2 * batch.n, 0.0f) / static_cast<float>(2 * batch.n);
  }

  static double adam(Set& set, size_t first, size_t last, int64_t step, const UpdateRequest& request) {
    double square = 0.0;
    for (size_t i = first; i < last; ++i) square += static_cast<double>(set.gradient[i]) * set.gradient[i];
    const double norm = std::sqrt(square);
    const float scale = norm > request.max_norm ? static_cast<float>(request.max_norm / norm) : 1.0f;
    const float correct1 = 1.0f - std::pow(request.beta1, static_cast<float>(step));
    const float correct2 = 1.0f - std::pow(request.beta2, static_cast<float>(step));
    for (size_t i = first; i < last; ++i) {
      const float g = scale * set.gradient[i];
      float& m = set.adam.first_moment[i];
      float& v = set.adam.second_moment[i];
      m = request.beta1 * m + (1.0f - request.beta1) * g;
      v = request.beta2 * v + (1.0f - request.beta2) * g * g;
      set.parameters[i] -=
          request.learning_rate * (m / correct1) / (std::sqrt(v / correct2) + request.epsilon);
    }
    return norm;
  }

  ParameterLayout layout_{ModelConfig{}};
  std::vector<Set> sets_;
};

}  // namespace pointsman
