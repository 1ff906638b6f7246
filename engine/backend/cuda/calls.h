// SPDX-License-Identifier: Apache-2.0
// The calls of the CUDA backend that cut their batch into chunks. Gradients are manual backward passes:
// weight gradients are tall products over (row, step), added straight into the flat gradient; the inputs'
// folded halves are summed apart and unfolded once a call (algebra identity 1).
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "engine/backend/cuda/forward.h"

namespace pointsman::cuda {

// A tape's activations are held in the main stream's memory. It stays empty where they and their gradient do
// not fit. Without a tape as many threads may call it at once as the pool has streams, beside no other call.
void roll_out(MainStream& main, StreamPool& pool, const RolloutRequest& request, RolloutResult& result);

// What follows the rollouts in the CUDA graph of a training step.
struct RestOfStep {
  size_t bytes;                   // of device memory, at most, beside those of the gradient's own work
  std::function<void()> prepare;  // allocates, when only the rollouts' inputs are enqueued
  std::function<void()> on_host;  // called on the host when the rollouts' result is there
  std::function<void()> enqueue;  // neither waits nor allocates
};

// Runs rollouts onto a tape and the rest of the step as one graph, and waits for it. Returns false, and does
// nothing, where they do not fit the device's memory at once.
bool run_step(MainStream& main, const RolloutRequest& request, RolloutResult& result, const RestOfStep& rest);

// Device memory of a gradient of so many sequences and rows in one chunk, activations included.
size_t gradient_bytes(const MainStream& main, const SequenceBatch& batch, int sequences, int rows);

void add_gradient(MainStream& main, const GradientRequest& request);

// The gradient of the rollouts whose activations the main stream's memory holds, for a CUDA graph.
class TapeGradient {
 public:
  virtual ~TapeGradient() = default;
  // Copies the request to page-locked memory, which no copy may be reading.
  virtual void stage() = 0;
  virtual void enqueue() const = 0;
};
// The request outlives it.
std::unique_ptr<TapeGradient> gradient_from_tape(MainStream& main, const GradientRequest& request);

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
void add_lstm_gradient(const MainStream& main, const LstmGradientArgs& args);

// TwoOptDevice::two_opt().
void search_tours(MainStream& main, const TwoOptRequest& request, TwoOptResult& result);

// b(s) of every sequence into values; with targets also adds the gradient of weight * sum (b(s) - target)^2.
// A stop ends it between two chunks, with CallStopped.
void run_critic(MainStream& main, const SequenceBatch& batch, const float* targets, float weight,
                std::span<float> values, const StopToken& stop);

}  // namespace pointsman::cuda
