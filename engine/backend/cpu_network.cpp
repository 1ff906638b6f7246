// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu_network.h"

#include <algorithm>
#include <numeric>

#include "kernels/cpu/cpu_operations.h"

namespace pointsman {

void LstmTape::resize(int new_rows, int new_steps, bool keep_cells) {
  rows = new_rows;
  steps = new_steps;
  const size_t states = static_cast<size_t>(steps + 1) * rows * kHidden;
  h.get(states);
  c.get(keep_cells ? states : static_cast<size_t>(rows) * kHidden);
  if (keep_cells) cells.get(static_cast<size_t>(steps) * rows * kLstmTape);
  inputs.get(static_cast<size_t>(steps) * rows * 2);
  products.get(static_cast<size_t>(rows) * kGates);
}

void lstm_forward(const PackedLstm& lstm, const float* start_bias, bool zero_start, bool keep_cells,
                  LstmTape& tape) {
  float* products = tape.products.data.data();
  for (int step = 0; step < tape.steps; ++step) {
    if (step == 0 && zero_start) {
      std::fill_n(products, static_cast<size_t>(tape.rows) * kGates, 0.0f);
    } else {
      cpu::multiply({tape.h_slot(step), kHidden, lstm.recurrent.data(), products, kGates, tape.rows, kHidden,
                     kGates, false});
    }
    const bool start = step == 0 && start_bias != nullptr;
    cpu::lstm_cell({tape.rows, products, kGates, lstm.fold.data(), start ? start_bias : lstm.bias.data(),
                    start ? nullptr : tape.input(step), tape.c_slot(keep_cells ? step : 0),
                    tape.h_slot(step + 1), tape.c_slot(keep_cells ? step + 1 : 0),
                    keep_cells ? tape.cell(step) : nullptr});
  }
}

namespace {

// Back through steps first .. end - 1, the later ones done.
void steps_backward(const PackedLstm& lstm, LstmTape& tape, int first, int end, float* dh, float* dc) {
  const size_t states = static_cast<size_t>(tape.rows) * kHidden;
  for (int step = end - 1; step >= first; --step) {
    if (step + 1 < tape.steps) {
      cpu::multiply({tape.cell(step + 1), kLstmTape, lstm.recurrent_t.data(), dh + step * states, kHidden,
                     tape.rows, kGates, kHidden, true});
    }
    cpu::lstm_cell_backward({tape.rows, tape.cell(step), tape.c_slot(step), dh + step * states, dc});
  }
}

}  // namespace

void lstm_backward(const PackedLstm& lstm, LstmTape& tape, float* dh, float* dc, float* dh_start,
                   const LstmGradient& sums) {
  // The weights' gradients of a block of steps are summed while the second-level cache still holds its gates.
  constexpr int kBlockRows = 128;
  const int block = std::max(1, kBlockRows / tape.rows);
  for (int end = tape.steps; end > 0;) {
    const int first = std::max(0, end - block);
    steps_backward(lstm, tape, first, end, dh, dc);
    // An encoder starts from h = 0: its first step adds nothing to W_hh.
    const int from = first == 0 && dh_start == nullptr ? 1 : first;
    cpu::accumulate_outer({tape.cell(from), kLstmTape, tape.h_slot(from), kHidden, sums.recurrent, kHidden,
                           (end - from) * tape.rows, kGates, kHidden});
    const int start_rows = first == 0 && sums.start != nullptr ? tape.rows : 0;
    cpu::accumulate_columns({tape.cell(first), kLstmTape, tape.input(first), start_rows,
                             (end - first) * tape.rows, sums.start, sums.bias, sums.fold});
    end = first;
  }
  if (dh_start != nullptr) {
    cpu::multiply({tape.cell(0), kLstmTape, lstm.recurrent_t.data(), dh_start, kHidden, tape.rows, kGates,
                   kHidden, false});
  }
}

void encode_states(const PackedLstm& encoder, const float* const* features, int rows, int n, bool keep_cells,
                   LstmTape& tape) {
  tape.resize(rows, n, keep_cells);
  std::fill_n(tape.h_slot(0), static_cast<size_t>(rows) * kHidden, 0.0f);
  std::fill_n(tape.c_slot(0), static_cast<size_t>(rows) * kHidden, 0.0f);
  for (int step = 0; step < n; ++step) {
    for (int row = 0; row < rows; ++row) std::copy_n(features[row] + 2 * step, 2, tape.input(step) + 2 * row);
  }
  lstm_forward(encoder, nullptr, true, keep_cells, tape);
}

void project_states(LstmTape& tape, int row, const float* packed, float* out) {
  cpu::multiply({tape.h_slot(1) + row * kHidden, tape.rows * kHidden, packed, out, kHidden, tape.steps,
                 kHidden, kHidden, false});
}

void encode(const CpuParameters& parameters, const ReferenceSlots& slots, const float* const* features,
            int rows, int n, bool keep_cells, EncodedTile& tile) {
  encode_states(parameters.encoder, features, rows, n, keep_cells, tile.tape);

  const size_t slice = static_cast<size_t>(n) * kHidden;
  float* storage = tile.storage.get(rows * slots.count * slice);
  const auto slot_of = [&](int row, int slot) {
    return slot < 0 ? nullptr : storage + (static_cast<size_t>(row) * slots.count + slot) * slice;
  };
  tile.references.resize(rows);
  for (int row = 0; row < rows; ++row) {
    for (int slot = 0; slot < slots.count; ++slot) {
      const float* packed = parameters.references.data() + static_cast<size_t>(slot) * kHidden * kHidden;
      project_states(tile.tape, row, packed, slot_of(row, slot));
    }
    References& r = tile.references[row];
    r = {slot_of(row, slots.glimpse),
         slot_of(row, slots.pointer),
         slot_of(row, slots.values),
         slot_of(row, slots.requeries),
         0.0f,
         0.0f};
    const int count = n * kHidden;
    cpu::exp_references({slot_of(row, slots.pointer), count, &r.pointer_bound});
    if (slots.glimpse >= 0) cpu::exp_references({slot_of(row, slots.glimpse), count, &r.glimpse_bound});
  }
}

std::vector<int32_t> identity_items(int n) {
  std::vector<int32_t> items(n);
  std::iota(items.begin(), items.end(), 0);
  return items;
}

}  // namespace pointsman
