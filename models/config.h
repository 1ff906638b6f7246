// SPDX-License-Identifier: Apache-2.0
// What a network is: the hyper-parameters that travel in a model file's metadata.
#pragma once

#include <cstdint>
#include <string>

namespace pointsman {

inline constexpr int kHiddenSize = 128;  // H of Bello et al. 2017, section 5

// Metadata of a model file (docs/file-formats.md). Values are those of the paper unless noted.
struct ModelConfig {
  std::string problem = "tsp";  // "tsp" or "knapsack"
  int n = 20;                   // instance size it was trained on
  double capacity = 0.0;        // KnapSack: the capacity it was trained on; TSP: 0
  int hidden = kHiddenSize;
  int glimpses = 1;             // 0 .. 4; all glimpses share one set of weights
  double clip = 10.0;           // C of C tanh(u), equation (16)
  bool centre_logits = true;    // subtract the mean of u over the feasible cities before the clip
  bool has_critic = true;       // the file holds critic.* too
  double learning_rate = 1e-3;  // that its training, the first of several, began with
  int64_t training_tours = 0;   // tours sampled during training
  uint64_t seed = 1234;
  std::string version;  // of the program that wrote it
};

}  // namespace pointsman
