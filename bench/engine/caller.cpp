// SPDX-License-Identifier: Apache-2.0
#include "bench/engine/caller.h"

#include <numeric>

#include "engine/problem/generate.h"
#include "engine/training/baseline.h"

namespace pointsman::bench {

Caller::Caller(const BackendOptions& options, const Model& model_, int n_, int count, uint64_t seed)
    : model(model_),
      n(n_),
      backend(make_backend(options)),
      features(size_t{2} * static_cast<size_t>(n) * static_cast<size_t>(count)),
      seed_(seed),
      keys_(count),
      counts_(count, rollouts()),
      nothing_(static_cast<size_t>(n) * static_cast<size_t>(count), -1) {
  backend->configure(model.config, 1);
  start_over();
  const ModelConfig& config = model.config;
  for (int i = 0; i < count; ++i) {
    generate_features(config.problem, n, config.capacity, seed, static_cast<uint64_t>(i),
                      &features[2 * static_cast<size_t>(n) * static_cast<size_t>(i)]);
  }
  std::iota(keys_.begin(), keys_.end(), uint64_t{0});
}

void Caller::encode(int count) {
  RolloutRequest request = request_of(count, Decode::kForced);
  request.forced = nothing_.data();
  backend->rollout(request, result);
}

void Caller::greedy(int count) { backend->rollout(request_of(count, Decode::kGreedy), result); }
void Caller::sample(int samples) { sample(samples, false); }
void Caller::sample_best(int samples) { sample(samples, true); }

void Caller::sample(int samples, bool best_only) {
  const int32_t counts = samples;
  RolloutRequest request = request_of(1, Decode::kSample);
  request.counts = &counts;
  request.best_only = best_only;
  backend->rollout(request, result);
}

RolloutRequest Caller::each_sampled(int count, Tape* tape) {
  RolloutRequest request = request_of(count / rollouts(), Decode::kSample);
  request.counts = counts_.data();
  request.tape = tape;
  return request;
}

std::vector<float> Caller::leave_one_out_weights(const RolloutResult& made, int count) const {
  const std::vector<double> baseline = leave_one_out_baseline(made.costs, rollouts());
  std::vector<float> of_rollouts(count);
  for (int r = 0; r < count; ++r)
    of_rollouts[r] = static_cast<float>(made.costs[r] - baseline[r]) / static_cast<float>(count);
  return of_rollouts;
}

void Caller::add_gradient(int count, Tape* tape) {
  const RolloutRequest sampled = each_sampled(count, tape);
  backend->rollout(sampled, result);
  const float share = 1.0f / static_cast<float>(count);
  targets.assign(result.costs.begin(), result.costs.end());
  weights.resize(count);
  if (model.config.has_critic) {
    values.resize(count);
    backend->critic_gradient(sampled.sequences, targets, share, values);
    for (int s = 0; s < count; ++s) weights[s] = (targets[s] - values[s]) / static_cast<float>(count);
  } else {
    weights = leave_one_out_weights(result, count);
  }
  GradientRequest request = gradient_of(sampled, result, weights);
  request.tape = tape;
  backend->gradient(request);
}

void Caller::train_step(int count) {
  if (model.config.has_critic) {
    add_gradient(count, tape_.get());
    backend->update(0, 1, {.critic = true});
  } else {  // as a training makes it: in one call
    LearnRequest request;
    request.rollouts = each_sampled(count, tape_.get());
    request.weigh = [&](const RolloutResult& made) { return leave_one_out_weights(made, count); };
    backend->learn(request, result);
  }
}

RolloutRequest Caller::request_of(int count, Decode decode) {
  RolloutRequest request;
  request.sequences.n = n;
  request.sequences.count = count;
  request.sequences.features = features.data();
  request.decode = decode;
  request.instance_keys = keys_.data();
  if (decode == Decode::kSample) request.seed = ++seed_;
  return request;
}

}  // namespace pointsman::bench
