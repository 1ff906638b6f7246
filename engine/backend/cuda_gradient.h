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

// Back through an encoder, the actor's or the critic's, to W_hh, bias and the folded input half.
struct EncoderGradientArgs {
  const CudaParameters::Lstm& lstm;
  const float *h, *c, *cells;  // as lstm_forward() wrote them
  const float* dh;             // [sequences][n + 1][H]
  const float* dc_last;        // [sequences][H]; null: zero
  float* dgates;               // [sequences][n + 1][4H] scratch
  float* scratch;              // of input_gradient()
};
void add_encoder_gradient(const CudaContext& context, const ChunkPlan& plan, const ChunkArrays& inputs,
                          const EncoderGradientArgs& args);

}  // namespace pointsman::cuda
