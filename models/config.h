// SPDX-License-Identifier: Apache-2.0
// What a network is: the hyper-parameters that travel in a model file's metadata.
#pragma once

#include <cstdint>
#include <string>

#include "kernels/common/network.h"
#include "kernels/common/own_problem.h"
#include "kernels/common/problem_kind.h"

namespace pointsman {

inline constexpr int kMostReread = 100;         // of ModelConfig::reread
inline constexpr uint64_t kDefaultSeed = 1234;  // of every random number, unless the user names one

// Metadata of a model file (docs/file-formats.md). Values are those of the paper unless noted.
struct ModelConfig {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 20;             // instance size it was trained on
  double capacity = 0.0;  // that it was trained on; 0 where the problem has none
  int hidden = kHidden;
  Encoder encoder = Encoder::kLstm;
  int layers = 3;                  // of the attention encoder; likewise the next two
  int heads = 8;                   // a divisor of hidden / 16
  int feed_forward = 4 * kHidden;  // a multiple of 16
  bool has_prior = false;          // the file holds actor.prior.weight
  int glimpses = 1;                // 0 .. 4; all glimpses share one set of weights
  double clip = 10.0;              // C of C tanh(u), equation (16)
  bool centre_logits = true;       // subtract the mean of u over the feasible cities before the clip
  bool has_critic = true;          // the file holds critic.* too
  // TSP: how many cities follow each pass of the encoder over what is left of the instance; 0: it reads the
  // instance once.
  int reread = 0;
  double learning_rate = 1e-3;  // that its training, the first of several, began with
  int64_t training_tours = 0;   // tours sampled during training
  uint64_t seed = kDefaultSeed;
  std::string version;  // of the program that wrote it
  OwnScaling own = {};  // of a user's own problem; empty of others

  // Whose rules the decoder follows.
  ProblemKind decoded() const { return reread > 0 ? ProblemKind::kStretch : problem; }

  bool operator==(const ModelConfig&) const = default;
};

// Whether ModelConfig::reread may be above 0.
constexpr bool can_reread(const ModelConfig& config) {
  return config.problem == ProblemKind::kTsp && config.encoder == Encoder::kAttention;
}

// Adam's rate where training or active search begins with fresh parameters. With the LSTM's the layers of
// attention settle on a poor policy early (docs/experiments.md, active search without a model).
constexpr double fresh_learning_rate(Encoder encoder) { return encoder == Encoder::kLstm ? 1e-3 : 3e-4; }

}  // namespace pointsman
