// SPDX-License-Identifier: Apache-2.0
// The attention encoder of a chunk, forward and in reverse, and what its forward pass leaves. Arrays have an
// item a row, [sequences][n][..], unless noted.
#pragma once

#include <vector>

#include "engine/backend/cuda/chunk.h"

namespace pointsman::cuda {

// Without `record` all layers share one set of arrays, and some of them their places.
struct AttentionStates {
  struct Layer {
    float *x, *residual;    // [H] the layer's input, and behind its self-attention
    float *qkv, *attended;  // [3H], [H]
    float* softmax;         // [heads][2] as SelfAttentionArgs writes it; null without `record`
    float* hidden;          // [feed_forward] after the ReLU
  };

  AttentionStates() = default;
  AttentionStates(Placement& placement, const ModelConfig& config, const ChunkShape& shape, bool record);

  std::vector<Layer> layers;
  float* normed = nullptr;                                        // [H] of the layer norm at hand
  float *mean = nullptr, *start_h = nullptr, *start_c = nullptr;  // [sequences][H]
};

// output: [sequences][n + 1][H], number i + 1: item i, number 0 zero.
void encode_by_attention(const DeviceStream& stream, const ChunkShape& shape, const ChunkArrays& inputs,
                         const AttentionStates& states, float* output);

// Arrays of the reverse, some of which share their places.
struct AttentionGradients {
  AttentionGradients() = default;
  AttentionGradients(Placement& placement, const ModelConfig& config, const ChunkShape& shape);

  float* dx = nullptr;                          // [H] of the layer's output, and so on down to its input
  float *normed = nullptr, *dnormed = nullptr;  // [H]
  float *dqkv = nullptr, *dhidden = nullptr;    // [3H], [feed_forward]
  float* dattended = nullptr;                   // [H]
  float* means = nullptr;                       // [heads]
  float* ones = nullptr;                        // [1]
  float *dmean = nullptr, *dstart_h = nullptr, *dstart_c = nullptr;  // [sequences][H]
};

// Adds the gradients of the encoder's tensors. dh: [sequences][n + 1][H] what reaches the references;
// arrays.dstart_h and dstart_c hold what reaches the start states.
void attention_encoder_gradient(const MainStream& main, const ChunkPlan& plan, const ChunkArrays& inputs,
                                const AttentionStates& states, const float* dh,
                                const AttentionGradients& arrays);

}  // namespace pointsman::cuda
