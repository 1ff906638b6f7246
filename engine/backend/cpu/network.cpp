// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/network.h"

#include <algorithm>

#include "engine/backend/requests.h"

namespace pointsman {
std::vector<RolloutTile> cut_into_tiles(const SequenceBatch& sequences, const int32_t* counts,
                                        int max_sequences, int64_t max_rollouts, int64_t max_piece) {
  std::vector<RolloutTile> tiles;
  RolloutTile tile;
  int64_t result = 0;
  const auto flush = [&] {
    if (!tile.pieces.empty()) tiles.push_back(std::move(tile));
    tile = {};
  };
  for (int s = 0; s < sequences.count; ++s) {
    const int count = rollouts_of(counts, s);
    if (!tile.pieces.empty() && sequences.set_of(tile.pieces.back().sequence) != sequences.set_of(s)) flush();
    if (count <= max_piece && tile.rollouts + count > max_rollouts) flush();
    for (int first = 0; first < count;) {
      if (static_cast<int>(tile.pieces.size()) == max_sequences || tile.rollouts >= max_rollouts) flush();
      const int64_t room = tile.pieces.empty() ? max_piece : max_rollouts - tile.rollouts;
      const int taken = static_cast<int>(std::min<int64_t>(count - first, room));
      tile.pieces.push_back({s, first, taken, result + first});
      tile.rollouts += taken;
      first += taken;
    }
    result += count;
  }
  flush();
  return tiles;
}

std::vector<RolloutTile> gradient_tiles(const SequenceBatch& sequences, const int32_t* counts) {
  return cut_into_tiles(sequences, counts, kGradientRows, kGradientRows, kGradientRows);
}

void multiply_square(const float* x, const AlignedFloats& packed, float* y, int rows, bool accumulate) {
  cpu::multiply({x, kHidden, packed.data(), y, kHidden, rows, kHidden, kHidden, accumulate});
}

void accumulate_square(const float* x, const float* y, float* sum, int rows) {
  cpu::accumulate_outer({x, kHidden, y, kHidden, sum, kHidden, rows, kHidden, kHidden});
}

void LstmStates::resize(int new_rows, int new_steps, int new_width, bool new_with_cells) {
  rows = new_rows;
  steps = new_steps;
  width = new_width;
  with_cells = new_with_cells;
  h.get(at(steps + 1) * kHidden);
  c.get(at(with_cells ? steps + 1 : 1) * kHidden);
  if (with_cells) cells.get(at(steps) * kLstmCell);
  inputs.get(at(steps) * width);
  products.get(at(1) * kGates);
}

namespace {

// Back through steps first .. end - 1, the later ones done.
void steps_backward(const PackedLstm& lstm, LstmStates& states, int first, int end,
                    const LstmStateGradients& gradients) {
  const size_t row_floats = floats_of(states.rows);
  for (int step = end - 1; step >= first; --step) {
    float* dh_step = gradients.dh + step * row_floats;
    if (step + 1 < states.steps) {
      cpu::multiply({states.cell(step + 1), kLstmCell, lstm.recurrent.backward.data(), dh_step, kHidden,
                     states.rows, kGates, kHidden, true});
    }
    cpu::lstm_cell_backward(states.rows, states.cell(step), states.c_before(step), dh_step, gradients.dc);
  }
}

}  // namespace

void lstm_backward(const PackedLstm& lstm, LstmStates& states, const LstmStateGradients& gradients,
                   const LstmGradient& sums, const StopToken& stop) {
  // The weights' gradients of a block of steps are summed while the second-level cache still holds its gates.
  constexpr int kBlockRows = 128;
  const int block = std::max(1, kBlockRows / states.rows);
  for (int end = states.steps; end > 0;) {
    const int first = std::max(0, end - block);
    stop.check();
    steps_backward(lstm, states, first, end, gradients);
    // An encoder starts from h = 0: its first step adds nothing to W_hh.
    const int from = first == 0 && gradients.dh_start == nullptr ? 1 : first;
    cpu::accumulate_outer({states.cell(from), kLstmCell, states.h_before(from), kHidden, sums.recurrent,
                           kHidden, (end - from) * states.rows, kGates, kHidden});
    const int start_rows = first == 0 && sums.start != nullptr ? states.rows : 0;
    cpu::accumulate_columns({states.cell(first), kLstmCell, states.input(first), states.width, start_rows,
                             (end - first) * states.rows, sums.start, sums.bias, sums.fold});
    end = first;
  }
  if (gradients.dh_start != nullptr) {
    cpu::multiply({states.cell(0), kLstmCell, lstm.recurrent.backward.data(), gradients.dh_start, kHidden,
                   states.rows, kGates, kHidden, false});
  }
}

constexpr int kStepItems = 32;  // a step of one LSTM row takes about as long as that many items in attention

void encode_states(const PackedLstm& encoder, const TileCall& call, bool with_cells, LstmStates& states) {
  const int rows = static_cast<int>(call.tile.pieces.size()), n = call.batch.n;
  const int width = encoder.inputs;
  states.resize(rows, n, width, with_cells);
  std::fill_n(states.h_before(0), floats_of(rows), 0.0f);
  std::fill_n(states.c_before(0), floats_of(rows), 0.0f);
  for (int row = 0; row < rows; ++row) {
    const float* features = call.features_of(row);
    for (int step = 0; step < n; ++step)
      std::copy_n(features + width * step, width, states.input(step) + width * row);
  }
  float* products = states.products.data();
  std::fill_n(products, floats_of(rows, kGates), 0.0f);  // of the zero state
  StopMeter meter(&call.stop);
  for (int step = 0; step < n; ++step) {
    meter.check(kStepItems * rows);
    if (step > 0) {
      cpu::multiply({states.h_before(step), kHidden, encoder.recurrent.forward.data(), products, kGates, rows,
                     kHidden, kGates, false});
    }
    cpu::lstm_cell({rows, products, kGates, encoder.fold.data(), encoder.bias.data(), states.input(step),
                    width, states.c_before(step), states.h_after(step), states.c_after(step),
                    states.cell(step)});
  }
}

void encode(const TileCall& call, bool with_cells, EncodedTile& encoded) {
  const CpuParameters& parameters = call.parameters;
  const Projections& p = parameters.projections;
  const int n = call.batch.n, rows = static_cast<int>(call.tile.pieces.size());
  const size_t floats = floats_of(n);
  const float* items;  // encoded
  int next_item = kHidden, next_row = n * kHidden;
  if (parameters.config.encoder == Encoder::kLstm) {
    encode_states(parameters.encoder, call, with_cells, encoded.states);
    encoded.start_h = encoded.states.h_after(n - 1);
    encoded.start_c = encoded.states.c_after(n - 1);
    items = encoded.states.h_after(0);
    next_item = rows * kHidden, next_row = kHidden;
  } else {
    attention_encoder_forward(call, with_cells, encoded.attention);
    encoded.start_h = encoded.attention.start_h.data();
    encoded.start_c = encoded.attention.start_c.data();
    items = encoded.attention.output.data();
  }
  float* storage = encoded.storage.get(rows * p.count * floats);
  encoded.references.resize(rows);
  for (int row = 0; row < rows; ++row) {
    const auto projected = [&](int i) { return i < 0 ? nullptr : storage + (row * p.count + i) * floats; };
    for (int i = 0; i < p.count; ++i) {
      call.stop.check();
      cpu::multiply({items + static_cast<size_t>(row) * next_row, next_item,
                     parameters.references.forward.data() + i * kSquare, projected(i), kHidden, n, kHidden,
                     kHidden, false});
    }
    cpu::References& r = encoded.references[row];
    r = {projected(p.glimpse), projected(p.pointer), projected(p.values), projected(p.requeries), 0.0f, 0.0f};
    r.pointer_bound = cpu::exp_references(projected(p.pointer), n * kHidden);
    if (p.glimpse >= 0) r.glimpse_bound = cpu::exp_references(projected(p.glimpse), n * kHidden);
  }
}

}  // namespace pointsman
