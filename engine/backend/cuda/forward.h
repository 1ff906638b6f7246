// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder of a chunk, and what they leave on the device for a backward pass.
#pragma once

#include "engine/backend/cuda/chunk.h"

namespace pointsman::cuda {

// What the attention encoder leaves. Arrays have an item a row, [sequences][n][..], unless noted.
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

// What attention and the backward pass read of a chunk's forward pass. Without `record` only the references,
// the encoder's h and the decoder's start; the rest is null.
struct Activations {
  Activations(Placement& placement, const ModelConfig& config, const ChunkShape& shape, bool record);
  float* references;     // [sequences][projections][n][H], or packed (DecodeArgs::references)
  float* bounds;         // [sequences][2]
  float* encoder_h;      // [sequences][n + 1][H] of either encoder
  const float* start_h;  // [sequences][H] of the decoder, rows start_stride floats apart
  int64_t start_stride;
  float* start_c;                  // [sequences][H]
  float* encoder_c = nullptr;      // [sequences][n + 1][H] of the LSTM, as
  float* encoder_cells = nullptr;  // [sequences][n][5H]
  AttentionStates attention;       // of the attention encoder
  DecodeRecord decoder;
  std::byte* tree = nullptr;  // take_tree() of the chunk, where samples share prefixes
};

// What a rollout answers, of all rows or (`best`) of the best row of each sequence. It is downloaded in one
// copy, so there are no gaps between the arrays, which nobody would write.
struct RolloutArrays : DecodeResults {
  RolloutArrays(Placement& placement, int n, int rows, int tiles, bool best = false);
  int32_t* winners;  // [rows]; best: row inside the sequence
  std::byte* block;  // all of it
  size_t bytes;
};

// Tiles for a call. most_samples: of a sequence, that may share prefixes; 0: none may. Throws DeviceError
// when n is too large for the device.
TileShape tile_shape(const CudaDevice& device, int n, const DecodeLoad& load, Precision precision,
                     int most_samples = 0);

// Device memory for the prefixes of a chunk's samples; null where none are shared.
std::byte* take_tree(Placement& placement, const ChunkShape& chunk, const TileShape& tiles);

AttentionWeights attention_weights(const CudaDevice& device, const Policy& policy);
PriorWeights prior_weights(const CudaDevice& device, const Policy& policy);

// Activations are recorded in fp32 only.
void encode(const DeviceStream& stream, const ChunkShape& shape, const ChunkArrays& inputs,
            const Activations& to, Precision precision);
// The decoder from what encode() left. inputs hold the request's keys, samples and forced orders.
void decode(const DeviceStream& stream, const RolloutRequest& request, const ChunkPlan& plan,
            const ChunkArrays& inputs, const Activations& activations, Precision precision,
            const DecodeResults& to);

}  // namespace pointsman::cuda
