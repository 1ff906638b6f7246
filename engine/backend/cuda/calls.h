// SPDX-License-Identifier: Apache-2.0
// The calls of the CUDA backend that cut their batch into chunks. Gradients are manual backward passes:
// weight gradients are tall products over (row, step), added straight into the flat gradient; the inputs'
// folded halves are summed apart and unfolded once a call (algebra identity 1).
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/backend/cuda/forward.h"
#include "engine/backend/cuda/lanes.h"

namespace pointsman::cuda {

// A tape's activations are the start of the context's memory. It stays empty where they and their gradient do
// not fit.
// Without a tape it may be called by as many threads at once as there are lanes, beside no other call.
void roll_out(CudaContext& context, CudaLanes& lanes, const RolloutRequest& request, RolloutResult& result);

// What follows rollouts on the context's stream while their activations are held.
struct AfterRollouts {
  size_t bytes;                   // of device memory, at most, beside those of a gradient's own work
  std::function<void()> prepare;  // before the stream gets more than the inputs
  std::function<void()> on_host;  // on the host, when the result is there
  std::function<void()> enqueue;  // neither waits nor allocates
};

// Rollouts onto a tape and what follows as one graph, which is waited for. False, and nothing was done,
// where they do not fit the device's memory at once.
bool roll_out_and_go_on(CudaContext& context, const RolloutRequest& request, RolloutResult& result,
                        const AfterRollouts& after);

// Device memory of a gradient of so many sequences and rows in one chunk, activations included.
size_t gradient_bytes(const CudaContext& context, const SequenceBatch& batch, int sequences, int rows);

void add_gradient(CudaContext& context, const GradientRequest& request);

// The gradient of the rollouts whose activations the context's memory holds, in pieces.
class HeldGradient {
 public:
  virtual ~HeldGradient() = default;
  // Reads the request, while no copy from the context's page-locked memory is under way.
  virtual void stage() = 0;
  // Gives the context's stream the rest.
  virtual void enqueue() const = 0;
};
// The request outlives it.
std::unique_ptr<HeldGradient> gradient_of_held(CudaContext& context, const GradientRequest& request);

// Back through an LSTM, to its W_hh, bias and folded input half.
struct LstmGradientArgs {
  const CudaParameters::Lstm& lstm;
  LstmBackwardArgs back;
  const float* h;                       // [rows][n + 1][H]
  const float* features;                // [sequences][n][2]
  const int32_t* orders;                // decoder: what each step read; null: encoder
  const int32_t* sequence_of;           // decoder
  const std::vector<SetRange>& ranges;  // back's, in host memory
  float* scratch;                       // of input_gradient()
};
void add_lstm_gradient(const CudaContext& context, const LstmGradientArgs& args);

// Backend::two_opt().
void search_tours(CudaContext& context, const TwoOptRequest& request, TwoOptResult& result);

// b(s) of every sequence into values; with targets also adds the gradient of weight * sum (b(s) - target)^2.
// A stop ends it between two chunks, with CallStopped.
void run_critic(CudaContext& context, const SequenceBatch& batch, const float* targets, float weight,
                std::span<float> values, const StopToken& stop);

}  // namespace pointsman::cuda
