// SPDX-License-Identifier: Apache-2.0
// The pieces of the network that rollouts, gradients and the critic share on the CPU: a whole LSTM sequence
// forward and backward, and what attention reads of an encoded sequence. Arrays are time-major:
// [step][row][..].
#pragma once

#include <algorithm>
#include <vector>

#include "engine/backend/cpu_parameters.h"
#include "kernels/cpu/aligned_floats.h"
#include "kernels/cpu/cpu_operations.h"

namespace pointsman {

// A growing buffer that never shrinks: the workspaces live as long as their worker.
struct Buffer {
  float* get(size_t count) {
    if (data.size() < count) data.resize(count);
    return data.data();
  }
  AlignedFloats data;
};

// Activations of `rows` sequences through `steps` steps.
struct LstmTape {
  int rows = 0, steps = 0;
  Buffer h, c;      // [steps + 1][rows][H]; slot 0 is the start state, slot t + 1 the state after step t
  Buffer cells;     // [steps][rows][5H], kept for the backward pass, which writes over them
  Buffer inputs;    // [steps][rows][2]
  Buffer products;  // [rows][4H]

  void resize(int new_rows, int new_steps, bool keep_cells);
  float* h_slot(int slot) { return h.data.data() + static_cast<size_t>(slot) * rows * kHidden; }
  float* c_slot(int slot) { return c.data.data() + static_cast<size_t>(slot) * rows * kHidden; }
  float* cell(int step) { return cells.data.data() + static_cast<size_t>(step) * rows * kLstmTape; }
  float* input(int step) { return inputs.data.data() + static_cast<size_t>(step) * rows * 2; }
};

// Runs steps 0 .. steps - 1 from slot 0. start_bias, when given, replaces bias and inputs in step 0 (the
// decoder's trainable first input). A zero start state (encoder) saves step 0's product.
void lstm_forward(const PackedLstm& lstm, const float* start_bias, bool zero_start, bool keep_cells,
                  LstmTape& tape);

// Gradient sums of one LSTM, folded: pointers into a tile's buffer.
struct LstmGradient {
  float* recurrent;  // [4H][H]
  float* bias;       // [4H]
  float* fold;       // [2][4H]
  float* start;      // [4H] the first step's gate gradients (decoder); null: encoder
};

// Back through all steps. dh: [steps][rows][H], the gradient that reaches each step's output from outside,
// overwritten, as the tape's cells are; dc: [rows][H] starts with that of the last c and ends with that of
// slot 0. dh_start: [rows][H] out, gradient of slot 0's h; null: not wanted.
void lstm_backward(const PackedLstm& lstm, LstmTape& tape, float* dh, float* dc, float* dh_start,
                   const LstmGradient& sums);

// Encoded sequences of a tile.
struct EncodedTile {
  std::vector<References> references;  // [rows]
  Buffer storage;                      // [rows][slots][n][H]
  LstmTape tape;
};

// Runs an encoder over rows sequences of n items from the zero state. features: [rows] pointers to [n][2].
void encode_states(const PackedLstm& encoder, const float* const* features, int rows, int n, bool keep_cells,
                   LstmTape& tape);

// Encodes rows sequences of n items. features: [rows] pointers to [n][2].
void encode(const CpuParameters& parameters, const ReferenceSlots& slots, const float* const* features,
            int rows, int n, bool keep_cells, EncodedTile& tile);

// What the backward pass of a tile needs of its forward pass.
struct TileActivations {
  EncodedTile encoded;
  LstmTape decoder;  // row: rollout of the tile
  Buffer queries;    // [steps][rows][H] W_q h
  Buffer attention;  // [steps][rows][cpu::attention_activations]
};

// Projects one row's states (slots 1 .. steps of the tape) with a packed matrix [H][H]. out: [steps][H].
void project_states(LstmTape& tape, int row, const float* packed, float* out);

// kernels' fixed list 0, 1, .. n - 1.
std::vector<int32_t> identity_items(int n);

}  // namespace pointsman
