// SPDX-License-Identifier: Apache-2.0
// What rollouts, gradients and the critic share on the CPU: tiles of a call, LSTM and attention encoder
// forward and backward, encoded sequences, the prior. Arrays are time-major: [step][row][..]. A stop ends any
// of it with CallStopped.
#pragma once

#include <algorithm>
#include <functional>
#include <span>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu/parameters.h"

namespace pointsman {

// Rollouts first .. first + count - 1 of sequence `sequence`; they write to results from `result` on.
struct RolloutPiece {
  int sequence;
  int first, count;
  int64_t result;
};

// Pieces of consecutive sequences with one parameter set; a sequence may be cut into pieces of several tiles.
struct RolloutTile {
  std::vector<RolloutPiece> pieces;
  int64_t rollouts = 0;
};

// A tile of a call, and what computes it.
struct TileCall {
  const CpuParameters& parameters;
  const SequenceBatch& batch;
  const RolloutTile& tile;
  const StopToken& stop;

  const float* features_of(size_t piece) const { return batch.features_of(tile.pieces[piece].sequence); }
};

// Cuts a request into tiles of at most max_sequences pieces and max_rollouts rollouts; a tile of a single
// piece may have max_piece >= max_rollouts. A sequence of at most max_piece rollouts stays in one piece.
std::vector<RolloutTile> cut_into_tiles(const SequenceBatch& sequences, const int32_t* counts,
                                        int max_sequences, int64_t max_rollouts, int64_t max_piece);

// Of a gradient, and of a rollout onto a tape: always the same, they decide the order of the sums.
inline constexpr int kGradientRows = 16;  // rollouts of a tile, at most
std::vector<RolloutTile> gradient_tiles(const SequenceBatch& sequences, const int32_t* counts = nullptr);

// At most so many segments of consecutive tiles, whose sums are added in order.
inline constexpr size_t kSegments = 16;
inline size_t segments_of(size_t tiles) { return tiles < kSegments ? tiles : kSegments; }
// The first tile of a segment; segment segments_of(tiles) begins at the end.
inline size_t segment_begin(size_t segment, size_t tiles) { return segment * tiles / segments_of(tiles); }

// Segments first .. last - 1 of a gradient of so many tiles: a rank's share.
struct SegmentWindow {
  size_t first = 0, last = 0, tiles = 0;

  size_t tile(size_t segment) const { return segment_begin(segment, tiles); }
};

// How a CPU backend that computes a rank's share of each gradient exchanges it with the other ranks.
struct RankShare {
  SegmentWindow window;  // of the gradient call that is being made
  // addends: this backend's segments, [..][sum.size()]. sum: all backends' segments, added in their order.
  std::function<void(std::span<const float* const> addends, std::span<float> sum)> add_segments;
  std::vector<PolicyStatistics> statistics;  // of the tiles of the last rollout onto a tape, in their order
};

// A growing buffer that never shrinks: the workspaces live as long as their worker.
class Buffer : AlignedFloats {
 public:
  // New memory is set to 0, which takes long where there is much of it: `stop` ends that with CallStopped.
  float* get(size_t count, const StopToken& stop = {}) {
    reserve(count);
    for (; size() < count; resize(std::min(count, size() + kFloatsPerCheck))) stop.check();
    return data();
  }
  using AlignedFloats::data, AlignedFloats::operator[];

 private:
  static constexpr size_t kFloatsPerCheck = size_t{1} << 20;
};

// The prior of the items a rollout may choose from: K numbers (Rules::priors) that a model's weights add to
// each logit.
class Prior {
 public:
  // weights: CpuParameters::prior_weights().
  void start(std::vector<float> weights, int n) {
    weights_ = std::move(weights);
    raw_.get(weights_.size() * cpu::padded(n));
    total_.get(cpu::padded(n));
  }

  // sum_k weights[k] raw[k][j] of candidate j, padded like logits; null without a prior. Valid until the next
  // call.
  template <typename Rules>
  const float* of(const Rules& rules, const Candidates& step) {
    if (weights_.empty()) return nullptr;
    const int stride = cpu::padded(step.count);
    float *raw = raw_.data(), *total = total_.data();
    const auto seen = rules.outlook(step);
    for (int j = 0; j < step.count; ++j) {
      float own[std::max(Rules::kPriors, 1)];
      rules.priors(step, seen, step.items[j], own);
      for (int k = 0; k < Rules::kPriors; ++k) raw[k * stride + j] = own[k];
    }
    for (int j = 0; j < step.count; ++j) {
      total[j] = weights_[0] * raw[j];
      for (int k = 1; k < Rules::kPriors; ++k) total[j] += weights_[k] * raw[k * stride + j];
    }
    for (int j = step.count; j < stride; ++j) total[j] = total[0];
    return total;
  }

  // sum[k] += scale sum_j dtotal[j] raw[k][j] for what of() was called last.
  void add_gradient(const float* dtotal, int count, float scale, float* sum) const {
    for (size_t k = 0; k < weights_.size(); ++k) {
      const float* raw = raw_.data() + k * cpu::padded(count);
      double total = 0.0;
      for (int j = 0; j < count; ++j) total += static_cast<double>(dtotal[j]) * static_cast<double>(raw[j]);
      sum[k] += static_cast<float>(total) * scale;
    }
  }

 private:
  std::vector<float> weights_;
  Buffer raw_, total_;
};

// Of rows of so many.
inline size_t floats_of(int64_t rows, int width = kHidden) { return static_cast<size_t>(rows * width); }

// Products with a matrix [H][H]: y = x W^T (+ y when accumulate), sum += x^T y. All rows have H floats.
void multiply_square(const float* x, const AlignedFloats& packed, float* y, int rows,
                     bool accumulate = false);
void accumulate_square(const float* x, const float* y, float* sum, int rows);

// States of `rows` sequences through `steps` steps. Without cells, which the backward pass reads and writes
// over, c is the last step's only.
struct LstmStates {
  int rows = 0, steps = 0, width = 0;
  bool with_cells = false;
  Buffer h, c;      // [steps + 1][rows][H]: before the first step, after the first, ..
  Buffer cells;     // [steps][rows][5H]
  Buffer inputs;    // [steps][rows][width]
  Buffer products;  // [rows][4H]

  void resize(int new_rows, int new_steps, int new_width, bool new_with_cells);
  float* h_before(int step) { return h.data() + at(step) * kHidden; }
  float* h_after(int step) { return h_before(step + 1); }
  float* c_before(int step) { return c.data() + at(with_cells ? step : 0) * kHidden; }
  float* c_after(int step) { return c_before(step + 1); }
  float* cell(int step) { return with_cells ? cells.data() + at(step) * kLstmCell : nullptr; }
  float* input(int step) { return inputs.data() + at(step) * width; }

 private:
  size_t at(int step) const { return static_cast<size_t>(step) * rows; }
};

// Gradient sums of one LSTM, folded: pointers into a tile's buffer.
struct LstmGradient {
  float* recurrent;  // [4H][H]
  float* bias;       // [4H]
  float* fold;       // [inputs][4H]
  float* start;      // [4H] the first step's gate gradients (decoder); null: encoder
};

// Gradients of an LSTM's states.
struct LstmStateGradients {
  float* dh;        // [steps][rows][H] what reaches each step's output from outside; overwritten
  float* dc;        // [rows][H] of the last c; out: of the c before the first step
  float* dh_start;  // [rows][H] out, of the h before it; null: not wanted
};

// Back through all steps; overwrites the cells.
void lstm_backward(const PackedLstm& lstm, LstmStates& states, const LstmStateGradients& gradients,
                   const LstmGradient& sums, const StopToken& stop);

// Activations of the attention encoder for `sequences` sequences of n items; its rows are their items,
// sequence by sequence.
struct AttentionStates {
  struct Layer {
    Buffer x;                   // [rows][H] what the layer reads
    Buffer norm1, norm2;        // [rows][2] statistics
    Buffer qkv;                 // [rows][3H]
    Buffer attended, residual;  // [rows][H] self-attention's output; x + its projection
    Buffer hidden;              // [rows][F] after ReLU
  };
  int sequences = 0, n = 0;
  bool with_layers = false;   // for the backward pass: all layers, and all rows of them
  std::vector<Layer> layers;  // else one; of norms, qkv, attended and hidden a block of rows
  Buffer output;              // [rows][H] the encoded items
  Buffer mean;                // [sequences][H] of the encoded items
  Buffer start_h, start_c;    // [sequences][H] the decoder's start state
  Buffer normed, scratch;     // of a block of rows [..][H], of self-attention
};

// Encoded sequences of a tile.
struct EncodedTile {
  std::vector<cpu::References> references;  // [rows]
  Buffer storage;                           // [rows][projections][n][H]
  LstmStates states;                        // of Encoder::kLstm
  AttentionStates attention;                // of Encoder::kAttention
  const float *start_h, *start_c;           // [rows][H] the decoder's start state
};

// Runs an LSTM over the tile's sequences from the zero state.
void encode_states(const PackedLstm& encoder, const TileCall& call, bool with_cells, LstmStates& states);

// with_layers: all activations stay, for attention_encoder_backward().
void attention_encoder_forward(const TileCall& call, bool with_layers, AttentionStates& states);

// Gradient sums of the attention encoder.
struct AttentionGradient {
  float* tensors;    // of layout.attention_begin .. attention_end
  float* embedding;  // [F][H] of E transposed
};
struct AttentionBackwardBuffers {
  Buffer normed, dnormed, dhidden, dattended, dqkv, dmean;
};

// Back through the attention encoder.
struct AttentionBackwardArgs {
  const TileCall& call;
  AttentionStates& states;  // with all layers
  float* doutput;           // [rows][H] the gradient that reaches the encoded items from outside; overwritten
  float *dstart_h, *dstart_c;  // [sequences][H] of the start states; overwritten
  AttentionBackwardBuffers& buffers;
  const AttentionGradient& sums;
};
void attention_encoder_backward(const AttentionBackwardArgs& args);

void encode(const TileCall& call, bool with_cells, EncodedTile& encoded);

// What the backward pass of a tile needs of its forward pass.
struct TileActivations {
  EncodedTile encoded;
  LstmStates decoder;  // row: rollout of the tile
  Buffer queries;      // [steps][rows][H] W_q h
  Buffer attention;    // [steps][rows][cpu::attention_activations]
};

}  // namespace pointsman
