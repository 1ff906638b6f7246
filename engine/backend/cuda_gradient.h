// SPDX-License-Identifier: Apache-2.0
// The manual backward pass of a call. Weight gradients are tall products over (row, step), added straight
// into the flat gradient; the inputs' folded halves are summed apart and unfolded once a call (algebra
// identity 1).
#pragma once

#include "engine/backend/cuda_rollout.h"

namespace pointsman::cuda {

// Device memory of a gradient of so many sequences and rows in one chunk, activations included.
size_t gradient_bytes(const CudaContext& context, const SequenceBatch& batch, int sequences, int rows);

void add_gradient(CudaContext& context, const GradientRequest& request);

// The last part of a backward pass through one LSTM: from dgates to W_hh, bias and the folded input half.
struct LstmGradientArgs {
  const CudaParameters::Lstm& lstm;
  const float* h;              // [rows][n + 1][H]
  const float* dgates;         // [rows][n + 1][4H]
  const int32_t* orders;       // decoder: what each step read; null: encoder
  const int32_t* sequence_of;  // decoder
  const std::vector<SetRange>& ranges;
  const SetRange* device_ranges;
  int rows;
};
void add_lstm_gradient(const CudaContext& context, const UploadedChunk& chunk, const LstmGradientArgs& args,
                       float* scratch);

}  // namespace pointsman::cuda
