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

  // The first `count` instances are encoded, and one step of the decoder is made, which ends there.
  void encode(int count);
  void greedy(int count);         // a tour of each of the first `count` instances
  void sample(int samples);       // tours of the first instance, new ones with each call
  void sample_best(int samples);  // only the best of them is downloaded

  // Samples `count` tours, rollouts() of an instance, and adds d/dparameters of mean((b - L)^2) + sum of
  // (L - b) / count x log p over them. Without a critic b is the mean of an instance's other tours, and there
  // is no first term. tape: to keep the rollouts' activations, or null.
  void add_gradient(int count, Tape* tape);

  // One step of `train` from `count` tours. With a critic Algorithm 1 of Bello et al.: sample, critic, both
  // gradients, clip, Adam. Without one the tours are sampled, rollouts() of an instance.
  void train_step(int count);
  // Tours of an instance in a training step. Those of one instance read the same encoding.
  int rollouts() const { return model.config.has_critic ? 1 : kShared; }

  // Forgets gradients and training.
  void start_over() { backend->load_parameters(0, model.parameters); }

  const Model& model;
  const int n;
  std::unique_ptr<Backend> backend;
  std::vector<float> features;                  // [count][n][2]
  RolloutResult result;                         // of the last call
  std::vector<float> targets, values, weights;  // of the last gradient: L, b (none without a critic),
                                                // (L - b) / count

 private:
  static constexpr int kShared = 8;  // train's default

  std::vector<float> leave_one_out_weights(const RolloutResult& made, int count) const;
  void sample(int samples, bool best_only);
  RolloutRequest request_of(int count, Decode decode);  // of the first instances; of new draws
  RolloutRequest each_sampled(int count, Tape* tape);   // rollouts() of an instance

  uint64_t seed_;                                          // of the last draw
  std::unique_ptr<Tape> tape_ = std::make_unique<Tape>();  // a Caller moves, a Tape does not
  std::vector<uint64_t> keys_;
  std::vector<int32_t> counts_;   // of rollouts(), for each instance
  std::vector<int32_t> nothing_;  // orders that end before their first item
};

}  // namespace pointsman::bench
