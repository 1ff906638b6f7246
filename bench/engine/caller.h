// SPDX-License-Identifier: Apache-2.0
// The engine on one device with a model and random instances of one size: the calls that the benches time.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"
#include "models/parameter_file.h"

namespace pointsman::bench {

class Caller {
 public:
  // With `count` instances of n cities. The model must outlive it.
  Caller(const BackendOptions& options, const Model& model, int n, int count, uint64_t seed);

  void greedy(int count);         // a tour of each of the first `count` instances
  void sample(int samples);       // tours of the first instance, new ones with each call
  void sample_best(int samples);  // only the best of them is downloaded

  // d/dparameters of mean((b - L)^2) + sum of (L - b) / count x log p over the last result, one tour an
  // instance. from: the tape of that rollout, or null.
  void add_gradient(int count, Tape* from);

  // Algorithm 1 of Bello et al., as `train` runs it: sample, critic, both gradients, clip, Adam.
  void train_step(int count);

  // Forgets gradients and training.
  void start_over() { backend->load_parameters(0, model.parameters); }

  const Model& model;
  const int n;
  std::unique_ptr<Backend> backend;
  std::vector<float> features;                  // [count][n][2]
  RolloutResult result;                         // of the last call
  std::vector<float> targets, values, weights;  // of the last gradient: L, b, (L - b) / count

 private:
  SequenceBatch batch(int count) const;
  void sample(int samples, bool best_only);
  RolloutRequest sampling(int count);  // of draws that were not made before

  uint64_t seed_;                                          // of the last draw
  std::unique_ptr<Tape> tape_ = std::make_unique<Tape>();  // a Caller moves, a Tape does not
  std::vector<uint64_t> keys_;
};

}  // namespace pointsman::bench
