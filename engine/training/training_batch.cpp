// SPDX-License-Identifier: Apache-2.0
#include "engine/training/training_batch.h"

#include "engine/problem/generate.h"
#include "engine/problem/network_input.h"

namespace pointsman {
namespace {

void fill_knapsack(const ModelConfig& config, TrainingBatch& batch) {
  if (batch.problem != ProblemKind::kKnapsack) return;
  batch.weights.resize(static_cast<size_t>(batch.count) * batch.n);
  for (size_t i = 0; i < batch.weights.size(); ++i) batch.weights[i] = batch.features[2 * i];
  batch.capacities.assign(batch.count, config.capacity);
}

// Copy number `rollout` of the instance at `from` [n][2], to `to` [n][2].
void copy_permuted(const TrainingBatch& plain, const float* from, uint64_t seed, uint64_t key, int rollout,
                   float* to) {
  const std::vector<int32_t> order = input_order(seed, key, static_cast<uint32_t>(rollout), plain.n);
  for (int i = 0; i < plain.n; ++i) {
    to[2 * i] = from[2 * order[i]];
    to[2 * i + 1] = from[2 * order[i] + 1];
    if (plain.problem == ProblemKind::kTsp) apply_dihedral(rollout % 8, to + 2 * i);
  }
}

TrainingBatch copies_of(const TrainingBatch& plain, const ModelConfig& config, uint64_t seed, int rollouts) {
  TrainingBatch batch;
  batch.problem = plain.problem;
  batch.n = plain.n;
  batch.count = plain.count * rollouts;
  const size_t stride = 2 * static_cast<size_t>(plain.n);
  batch.features.resize(batch.count * stride);
  for (int s = 0; s < batch.count; ++s) {
    const int instance = s / rollouts, rollout = s % rollouts;
    batch.keys.push_back(plain.keys[instance]);
    batch.first_samples.push_back(static_cast<uint32_t>(rollout));
    copy_permuted(plain, &plain.features[instance * stride], seed, plain.keys[instance], rollout,
                  &batch.features[s * stride]);
  }
  batch.parameter_sets.assign(batch.count, 0);
  fill_knapsack(config, batch);
  return batch;
}

}  // namespace

uint64_t training_seed(uint64_t seed) { return seed ^ 0x747261696E696E67ull; }
uint64_t validation_seed(uint64_t seed) { return seed ^ 0x76616C6964617465ull; }
uint64_t challenge_seed(uint64_t seed) { return seed ^ 0x6368616C6C656E67ull; }

SequenceBatch TrainingBatch::view() const {
  SequenceBatch sequences;
  sequences.problem = problem;
  sequences.n = n;
  sequences.count = count;
  sequences.features = features.data();
  if (problem == ProblemKind::kKnapsack) {
    sequences.weights = weights.data();
    sequences.capacities = capacities.data();
  }
  sequences.parameter_sets = parameter_sets.data();
  return sequences;
}

ProblemKind problem_kind(const ModelConfig& config) {
  return config.problem == "knapsack" ? ProblemKind::kKnapsack : ProblemKind::kTsp;
}

TrainingBatch plain_batch(const ModelConfig& config, uint64_t seed, uint64_t first, int count) {
  TrainingBatch batch;
  batch.problem = problem_kind(config);
  batch.n = config.n;
  batch.count = count;
  batch.features.resize(2 * static_cast<size_t>(count) * config.n);
  generate_features(config.n, seed, first, count, batch.features.data());
  for (int i = 0; i < count; ++i) batch.keys.push_back(first + static_cast<uint64_t>(i));
  batch.first_samples.assign(count, 0);
  batch.parameter_sets.assign(count, 0);
  fill_knapsack(config, batch);
  return batch;
}

TrainingBatch training_batch(const TrainOptions& options, int64_t step) {
  const uint64_t seed = training_seed(options.seed);
  const uint64_t first = static_cast<uint64_t>(step) * static_cast<uint64_t>(options.batch);
  const TrainingBatch plain = plain_batch(options.model, seed, first, options.batch);
  if (options.baseline != Baseline::kShared) return plain;
  return copies_of(plain, options.model, seed, options.rollouts);
}

}  // namespace pointsman
