// SPDX-License-Identifier: Apache-2.0
// Where each tensor lies in a model's flat parameter vector. The actor comes first, the critic follows, so
// each network's parameters, gradient and Adam moments are one contiguous range. Row-major [out, in]; LSTM
// gate order i, f, g, o (as PyTorch and cuDNN).
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "models/config.h"

namespace pointsman {

struct Tensor {
  std::string name;        // as in the model file, for example "actor.encoder.weight_hh"
  std::vector<int> shape;  // [out, in] or [out]
  size_t offset = 0;       // in floats from the start of the parameter vector
  size_t size = 0;         // number of floats
};

struct AttentionOffsets {
  size_t w_ref;  // [H, H]
  size_t w_q;    // [H, H]
  size_t v;      // [H]
};

// A pre-norm layer of the attention encoder, PyTorch's nn.TransformerEncoderLayer. F: config.feed_forward.
struct EncoderLayerOffsets {
  size_t norm1_weight, norm1_bias;      // [H]
  size_t in_weight, in_bias;            // [3H, H], [3H]: queries, keys, values
  size_t out_weight, out_bias;          // [H, H], [H]
  size_t norm2_weight, norm2_bias;      // [H]
  size_t linear1_weight, linear1_bias;  // [F, H], [F]
  size_t linear2_weight, linear2_bias;  // [H, F], [H]
};

// The decoder's start state from the mean reference m: h = tanh(W_h m + b_h), c = W_c m + b_c.
struct StartOffsets {
  size_t h_weight, h_bias, c_weight, c_bias;  // [H, H], [H]
};

// Offsets (in floats) of every tensor. A pure function of the config.
struct ParameterLayout {
  explicit ParameterLayout(const ModelConfig& config);

  std::vector<Tensor> tensors;  // in file order
  size_t actor_size = 0;        // floats in [0, actor_size) are the actor
  size_t size = 0;              // floats in [actor_size, size) are the critic; equal when there is none

  size_t embedding = 0;                     // [H, F]
  LstmOffsets encoder{}, decoder{};         // of one embedding; encoder only of Encoder::kLstm
  std::vector<EncoderLayerOffsets> layers;  // these three only of Encoder::kAttention
  StartOffsets start{};
  size_t attention_begin = 0, attention_end = 0;  // all tensors of layers and start
  size_t prior = 0;                               // [priors] weights of the rules' priors
  int priors = 0;                                 // priors_of(config)
  AttentionOffsets glimpse{}, pointer{};          // glimpse is absent (all zero) when config.glimpses == 0
  size_t query = 0;  // [H, H] W_q of the decoder's states: the glimpse's, without glimpses the pointer's

  struct Critic {
    LstmOffsets encoder;
    AttentionOffsets process;
    size_t fc1_weight, fc1_bias;  // [H, H], [H]
    size_t fc2_weight, fc2_bias;  // [1, H], [1]
  } critic{};
};

// How many numbers the rules know of a candidate (Rules::kPriors); 0 without a prior.
int priors_of(const ModelConfig& config);

// Every parameter from U(-0.08, 0.08) (Bello et al., section 5), drawn from Philox on the initialisation
// stream: a function of (config, seed) only. The critic's output bias starts at 0. With Encoder::kAttention
// the embedding and the encoder's matrices are from U(-1, 1) / sqrt(inputs), its norms 1 and its biases 0;
// the prior starts from Rules::prior_start.
std::vector<float> initial_parameters(const ModelConfig& config, uint64_t seed);

// The prior's weights of a model `from`, which has as many priors, for config's size and rules: Adam's steps
// are too short for numbers of this size.
void rescale_prior(const ModelConfig& config, const ModelConfig& from, std::vector<float>& parameters);

}  // namespace pointsman
