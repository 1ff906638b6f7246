// SPDX-License-Identifier: Apache-2.0
// Encoder and decoder of a chunk, what they leave on the device for a backward pass, and the calls of the
// CUDA backend that cut their batch into chunks. Gradients are manual backward passes: weight gradients are
// tall products over (row, step), added straight into the flat gradient; the inputs' folded halves are summed
// apart and unfolded once a call (algebra identity 1).
#pragma once

#include <functional>
#include <memory>
#include <span>

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
  std::byte* tree = nullptr;  // DecodeArgs::tree, which whoever decodes places
};

// What a rollout answers, of all rows or (`best`) of the best row of each sequence. It is downloaded in one
// copy, so there are no gaps between the arrays, which nobody would write.
struct RolloutArrays : DecodeResults {
  RolloutArrays(Placement& placement, int steps, int rows, int tiles, bool best = false);
  int32_t* winners;  // [rows]; best: row inside the sequence
  std::byte* block;  // all of it
  size_t bytes;
};

// Tiles for a call. most_samples: of a sequence, that may share prefixes; 0: none may. Of problems that are
// not plain nothing is shared, and decoder and LSTM are fp32. Throws DeviceError when n is too large for the
// device.
TileShape tile_shape(const CudaDevice& device, int n, const DecodeLoad& load, Precision wanted,
                     int most_samples = 0);

AttentionWeights attention_weights(const CudaDevice& device, const Policy& policy);
PriorWeights prior_weights(const CudaDevice& device, const Policy& policy);

// An attention encoder in the device's precision, whether it is recorded or not; an LSTM in the plan's, which
// is fp32 where activations are recorded.
void encode(const DeviceStream& stream, const ChunkPlan& plan, const ChunkArrays& inputs,
            const Activations& to);
// The decoder from what encode() left. inputs hold the request's keys, samples and forced orders.
void decode(const DeviceStream& stream, const RolloutRequest& request, const ChunkPlan& plan,
            const ChunkArrays& inputs, const Activations& activations, const DecodeResults& to);

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
  const float* h;                       // [rows][n + 1][H]
  const float* features;                // [sequences][n][2]
  const int32_t* orders;                // decoder: what each step read; null: encoder
  const int32_t* sequence_of;           // decoder
  const std::vector<SetRange>& ranges;  // back's, in host memory
  float* scratch;                       // of input_gradient()
};
void add_lstm_gradient(const MainStream& main, const LstmBackwardArgs& back, const LstmGradientArgs& args);

// TwoOptDevice::two_opt().
void search_tours(MainStream& main, const TwoOptRequest& request, TwoOptResult& result);

// Backend::critic_gradient(). A stop ends it between two chunks, with CallStopped.
void run_critic(MainStream& main, const SequenceBatch& batch, std::span<const float> targets, float weight,
                std::span<float> values, const StopToken& stop);

}  // namespace pointsman::cuda
