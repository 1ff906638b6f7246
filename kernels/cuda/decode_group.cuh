// SPDX-License-Identifier: Apache-2.0
// Eight rows of the decode kernel, by the 128 threads of their group: LSTM states and queries, in fp32 or on
// tensor cores.
#pragma once

#include "kernels/cuda/decode_row.cuh"
#include "kernels/cuda/lstm_cell.cuh"
#include "kernels/cuda/tile_multiply.cuh"
#include "kernels/cuda/tile_multiply_mma.cuh"

namespace pointsman::cuda {

// What the encoder made of a row's sequence: a unit's h, and its c; zeros of rows that the tile has not.
__device__ __forceinline__ float load_start(const DecodeThread& t, int row, int unit, float& c) {
  c = 0.0f;
  if (row >= t.rows_at_start()) return 0.0f;
  const int64_t sequence = t.sequence_of(row);
  const float h = t.args.start_h[sequence * t.args.start_stride + unit];
  c = t.args.start_c[sequence * kHidden + unit];
  if (t.args.record.h != nullptr) {
    const int64_t at = (t.tile.result + row) * (t.args.n + 1) * kHidden + unit;
    t.args.record.h[at] = h;
    t.args.record.c[at] = c;
  }
  return h;
}

// A unit's bias and folded input half in a step; the first step has no input but start_bias.
struct DecodeUnitWeights {
  const float *bias, *fold;

  __device__ __forceinline__ DecodeUnitWeights(const DecodeThread& t, int step, int unit) {
    // Spelled out, as in load_unit_weights().
    const SetArray &biases = step == 0 ? t.args.start_bias : t.args.bias, &folds = t.args.fold;
    bias = biases.data + t.tile.set * biases.stride + unit;
    fold = folds.data + t.tile.set * folds.stride + unit;
  }
};

// A unit's state t + 1 from its c and product of state t and the item that the row chose in step t - 1.
__device__ __forceinline__ LstmUnit step_unit(const DecodeUnitWeights& w, int step, const DecodeRow& row,
                                              const float (&product)[4], float& c) {
  float gate[4];
#pragma unroll
  for (int g = 0; g < 4; ++g) {
    gate[g] = step == 0 ? product[g] + w.bias[g * kHidden]
                        : lstm_gate(product[g], w.bias[g * kHidden], w.fold[g * kHidden],
                                    w.fold[kGates + g * kHidden], row.input);
  }
  const LstmUnit cell = lstm_unit(gate[0], gate[1], gate[2], gate[3], c);
  c = cell.c;
  return cell;
}

__device__ __forceinline__ void record_unit(const DecodeArgs& args, int64_t rollout, int step, int unit,
                                            const LstmUnit& cell) {
  const int64_t state = rollout * (args.n + 1) + step + 1;
  args.record.h[state * kHidden + unit] = cell.h;
  args.record.c[state * kHidden + unit] = cell.c;
  store_lstm_cell(cell, args.record.cells + (rollout * args.n + step) * kLstmCell + unit);
}

// Does some of these 8 rows still choose?
__device__ __forceinline__ bool any_chooses(const DecodeThread& t, int first_row) {
  bool any = false;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) any |= t.chooses(first_row + r);
  return any;
}

// One thread's unit of the group's rows.
struct DecodeGroup {
  int unit = static_cast<int>(threadIdx.x % kHidden);
  int first_row = static_cast<int>(threadIdx.x / kHidden) * kTileRows;
  float c[kTileRows] = {};

  __device__ __forceinline__ static float load_start(const DecodeThread& t, int row, int unit, float& c) {
    return cuda::load_start(t, row, unit, c);
  }
  __device__ __forceinline__ bool chooses(const DecodeThread& t) const { return any_chooses(t, first_row); }

  // Rollout of the group's row r.
  __device__ __forceinline__ int64_t recorded_as(const DecodeThread& t, int r) const {
    return t.tile.result + made_here(first_row) + r;
  }

  // State t + 1 of the group's rows.
  __device__ __forceinline__ void step_network(const DecodeThread& t, int step, float (&new_h)[kTileRows]) {
    float product[4][kTileRows];
    tile_multiply(t.memory.h + first_row * kHidden, kHidden,
                  WeightsInFours(t.args.recurrent.of(t.tile.set), kGates, unit), product);
    const int its_unit = made_here(unit);
    const DecodeUnitWeights weights(t, step, its_unit);
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) {
      const int row = first_row + r;
      const float sums[4] = {product[0][r], product[1][r], product[2][r], product[3][r]};
      const LstmUnit cell = step_unit(weights, step, t.memory.rows[row], sums, c[r]);
      new_h[r] = cell.h;
      if (t.args.record.h == nullptr || !t.chooses(row)) continue;
      record_unit(t.args, recorded_as(t, r), step, its_unit, cell);
    }
  }

  // Calls each(i, row, unit, place in memory.h, c) for the thread's i-th row and unit.
  template <typename Each>
  __device__ __forceinline__ void for_each_unit(const Each& each) {
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) each(r, first_row + r, unit, (first_row + r) * kHidden + unit, c[r]);
  }

  __device__ __forceinline__ void make_queries(const DecodeThread& t, int step) const {
    const SquareShare share;
    float product[2][kSquareRows];
    multiply_square(t.memory.h + first_row * kHidden, t.args.query.of(t.tile.set), share, product);
#pragma unroll
    for (int i = 0; i < 2 * kSquareRows; ++i) {
      const int its_row = share.row + i / 2, column = share.column + i % 2 * (kHidden / 2);
      const float sum = product[i % 2][i / 2];
      t.memory.query[(first_row + its_row) * kHidden + column] = sum;
      if (t.args.record.queries == nullptr || !t.chooses(first_row + its_row)) continue;
      t.args.record.queries[(recorded_as(t, its_row) * t.args.n + step) * kHidden + column] = sum;
    }
  }
};

// The same on tensor cores. Units and rows as gate_share() says, which is made anew where it is asked: c[2 p
// + r] is of pair p's r-th row.
template <Precision kPrecision, bool kWhole>
struct MmaGroup {
  float c[kTileRows] = {};

  // What the row starts with; rows that the tile does not have as the first one.
  __device__ __forceinline__ static float load_start(const DecodeThread& t, int row, int unit, float& c) {
    const int64_t sequence = t.sequence_of(row < t.rows_at_start() ? row : 0);
    c = t.args.start_c[sequence * kHidden + unit];
    return t.args.start_h[sequence * t.args.start_stride + unit];
  }

  // A block of 32 rows makes its products for all of them.
  __device__ __forceinline__ bool chooses(const DecodeThread& t) const {
    return kWhole || any_chooses(t, threadIdx.x / kHidden * kTileRows);
  }

  __device__ __forceinline__ void step_network(const DecodeThread& t, int step, float (&new_h)[kTileRows]) {
    const MmaShare share = gate_share<kWhole>();
    float product[4][4];
#pragma unroll
    for (int at = 0; at < kTileRows; ++at) {
      if (at % 4 == 0) {
        multiply_gates<kPrecision, kWhole>(t.args.weight_hh.of(t.tile.set), t.memory.h, at / 4, product);
      }
      const int pair = at / 2, r = at % 2;
      const DecodeUnitWeights w(t, step, share.unit_of(pair));
      const float2 input = t.memory.rows[share.row_of(pair, r)].input;  // zeros before the first choice
      float gate[4];
#pragma unroll
      for (int g = 0; g < 4; ++g) {
        const float sum = product[2 * (pair % 2) + g / 2][g % 2 * 2 + r];
        gate[g] =
            lstm_gate(sum, w.bias[g * kHidden], w.fold[g * kHidden], w.fold[kGates + g * kHidden], input);
      }
      const LstmUnit cell = lstm_unit(gate[0], gate[1], gate[2], gate[3], c[at]);
      c[at] = cell.c;
      new_h[at] = cell.h;
    }
  }

  template <typename Each>
  __device__ __forceinline__ void for_each_unit(const Each& each) {
    const MmaShare share = gate_share<kWhole>();
#pragma unroll
    for (int at = 0; at < kTileRows; ++at) {
      const int row = share.row_of(at / 2, at % 2), unit = share.unit_of(at / 2);
      each(at, row, unit, swizzled(row, unit), c[at]);
    }
  }

  __device__ __forceinline__ void make_queries(const DecodeThread& t, int) const {
    const MmaShare share = query_share<kWhole>();
    float product[2][4];
    multiply_queries<kPrecision, kWhole>(t.args.query_weight.of(t.tile.set), t.memory.h, product);
#pragma unroll
    for (int p = 0; p < 2; ++p) {
#pragma unroll
      for (int i = 0; i < 4; ++i) {
        const int row = share.row_of(p, i % 2), unit = share.unit_of(p) + i / 2 * 8;
        t.memory.query[row * kHidden + unit] = product[p][i];
      }
    }
  }
};

}  // namespace pointsman::cuda
