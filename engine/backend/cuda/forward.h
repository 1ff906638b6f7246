// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder of a chunk, and what they leave on the device for a backward pass.
#pragma once

#include "engine/backend/cuda/attention_encoder.h"
#include "engine/backend/cuda/chunk.h"

namespace pointsman::cuda {

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
