// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder of a chunk, and what they leave on the device for a backward pass.
#pragma once

#include "engine/backend/cuda_chunk.h"

namespace pointsman::cuda {

// What attention and the backward pass read of a chunk's forward pass. Without `keep` only the references and
// states.
struct Activations {
  Activations(Placement& placement, int slices, int n, int sequences, int rows, bool keep);
  float* references;    // [sequences][slices][n][H]
  float* bounds;        // [sequences][2]
  float* encoder_h;     // [sequences][n + 1][H]
  float* encoder_last;  // [sequences][H] last c
  float* encoder_c;     // [sequences][n + 1][H]
  float* encoder_tape;  // [sequences][n][5H]
  float *h, *c;         // [rows][n + 1][H]
  float* tape;          // [rows][n][5H]
  float* queries;       // [rows][n][H]
  int32_t* row_steps;   // [rows]
};

// What a rollout answers, of all rows or (`best`) of the best row of each sequence.
struct RolloutArrays {
  RolloutArrays(Placement& placement, int n, int rows, int tiles, bool best = false);
  int32_t* orders;               // [rows][n]
  double *costs, *log_probs;     // [rows]
  DecodeStatistics* statistics;  // [tiles]
  int32_t* winners;              // [rows]; best: row inside the sequence
};

// How a call decodes; the same for all its chunks.
struct DecodeSettings {
  DecodeMode mode = DecodeMode::kForced;
  ProblemKind problem = ProblemKind::kTsp;
  Policy policy;
  uint32_t sample_stride = 1;
  uint64_t seed = 0;
  Precision precision = Precision::kFp32;
};

// Rows of a decode tile for a chunk of so many rollouts. Throws DeviceError when n is too large for the
// device.
int tile_rows(const CudaContext& context, int n, int64_t rollouts);

AttentionParameters attention_parameters(const CudaContext& context, const Policy& policy);

// keep: only in fp32.
void encode(const CudaContext& context, const UploadedChunk& chunk, const Activations& to, bool keep,
            Precision precision);
// The decoder from what encode() left; keep as there.
void decode(const CudaContext& context, const DecodeSettings& settings, const UploadedChunk& chunk,
            const Activations& activations, bool keep, const RolloutArrays& to);

}  // namespace pointsman::cuda
