// SPDX-License-Identifier: Apache-2.0
// Eight rows of the decode kernel, by the 128 threads of their group: LSTM states and queries, in fp32 or on
// tensor cores.
#pragma once

#include "kernels/cuda/decode_row.cuh"
#include "kernels/cuda/lstm_cell.cuh"
#include "kernels/cuda/tile_multiply.cuh"
#include "kernels/cuda/tile_multiply_mma.cuh"

namespace pointsman::cuda {

// One thread's unit of the group's rows.
struct DecodeGroup {
  int unit, first_row;
  float c[kTileRows];

  __device__ __forceinline__ DecodeGroup()
      : unit(static_cast<int>(threadIdx.x % kHidden)),
        first_row(static_cast<int>(threadIdx.x / kHidden) * kTileRows),
        c{} {}
};

__device__ __forceinline__ bool chooses(const DecodeMemory& memory, int row) {
  return memory.rows[row].remaining > 1;
}

// Does some of these 8 rows still choose?
__device__ __forceinline__ bool any_chooses(const DecodeMemory& memory, int first_row) {
  bool any = false;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) any |= chooses(memory, first_row + r);
  return any;
}

__device__ __forceinline__ bool group_chooses(const DecodeMemory& memory, const DecodeGroup& group) {
  return any_chooses(memory, group.first_row);
}

// Rollout of the group's row r.
__device__ __forceinline__ int64_t recorded_as(const DecodeTile& tile, const DecodeGroup& group, int r) {
  return tile.result + made_here(group.first_row) + r;
}

// What the encoder made of a row's sequence: a unit's h, and its c; zeros of rows that the tile has not.
__device__ __forceinline__ float load_start(const DecodeArgs& args, const DecodeTile& tile, bool shares,
                                            int row, int unit, float& c) {
  c = 0.0f;
  if (row >= rows_at_start(tile, shares)) return 0.0f;
  const int64_t sequence = sequence_of(tile, row);
  const float h = args.start_h[sequence * args.start_stride + unit];
  c = args.start_c[sequence * kHidden + unit];
  if (args.record.h != nullptr) {
    const int64_t at = (tile.result + row) * (args.n + 1) * kHidden + unit;
    args.record.h[at] = h;
    args.record.c[at] = c;
  }
  return h;
}

__device__ __forceinline__ void load_start(const DecodeArgs& args, const DecodeTile& tile, bool shares,
                                           const DecodeMemory& memory, DecodeGroup& group) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    memory.h[row * kHidden + group.unit] = load_start(args, tile, shares, row, group.unit, group.c[r]);
  }
}

// A unit's bias and folded input half in a step; the first step has no input but start_bias.
struct DecodeUnitWeights {
  const float *bias, *fold;

  __device__ __forceinline__ DecodeUnitWeights(const DecodeArgs& args, const DecodeTile& tile, int step,
                                               int unit) {
    const SetArray& biases = step == 0 ? args.start_bias : args.bias;
    bias = biases.data + tile.set * biases.stride + unit;
    fold = args.fold.data + tile.set * args.fold.stride + unit;
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

// State t + 1 of the group's rows.
__device__ __forceinline__ void step_network(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int step, DecodeGroup& group,
                                             float (&new_h)[kTileRows]) {
  float product[4][kTileRows];
  tile_multiply<4>(memory.h + group.first_row * kHidden, kHidden,
                   args.recurrent.data + tile.set * args.recurrent.stride + group.unit, kGates, product);
  const int unit = made_here(group.unit);
  const DecodeUnitWeights weights(args, tile, step, unit);
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    const float sums[4] = {product[0][r], product[1][r], product[2][r], product[3][r]};
    const LstmUnit cell = step_unit(weights, step, memory.rows[row], sums, group.c[r]);
    new_h[r] = cell.h;
    if (args.record.h == nullptr || !chooses(memory, row)) continue;
    record_unit(args, recorded_as(tile, group, r), step, unit, cell);
  }
}

__device__ __forceinline__ void store_h(const DecodeMemory& memory, const DecodeGroup& group,
                                        const float (&h)[kTileRows]) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) memory.h[(group.first_row + r) * kHidden + group.unit] = h[r];
}

// Calls each(row, unit, place in memory.h, c) for the thread's units.
template <typename Each>
__device__ __forceinline__ void for_each_unit(DecodeGroup& group, const Each& each) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    each(row, group.unit, row * kHidden + group.unit, group.c[r]);
  }
}

__device__ __forceinline__ void make_queries(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int step, const DecodeGroup& group) {
  float product[1][kTileRows];
  tile_multiply<1>(memory.h + group.first_row * kHidden, kHidden,
                   args.query.data + tile.set * args.query.stride + group.unit, kHidden, product);
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    memory.query[row * kHidden + group.unit] = product[0][r];
    if (args.record.queries == nullptr || !chooses(memory, row)) continue;
    args.record.queries[(recorded_as(tile, group, r) * args.n + step) * kHidden + group.unit] = product[0][r];
  }
}

// ---------------------------------------------------------------------------- the same, on tensor cores

// Units and rows as gate_share() says, which is made anew where it is asked: c[2 p + r] is of pair p's r-th
// row.
template <Precision kPrecision, bool kWhole>
struct MmaGroup {
  float c[kTileRows] = {};
};

// A block of 32 rows makes its products for all of them.
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ bool group_chooses(const DecodeMemory& memory,
                                              const MmaGroup<kPrecision, kWhole>&) {
  return kWhole || any_chooses(memory, threadIdx.x / kHidden * kTileRows);
}

template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void store_h(const DecodeMemory& memory, const MmaGroup<kPrecision, kWhole>&,
                                        const float (&h)[kTileRows]) {
  const MmaShare share = gate_share<kWhole>();
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    memory.h[swizzled(share.row_of(at / 2, at % 2), share.unit_of(at / 2))] = h[at];
  }
}

// Rows that the tile does not have start as the first one.
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void load_start(const DecodeArgs& args, const DecodeTile& tile, bool shares,
                                           const DecodeMemory& memory, MmaGroup<kPrecision, kWhole>& group) {
  const MmaShare share = gate_share<kWhole>();
  float h[kTileRows];
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    const int row = share.row_of(at / 2, at % 2), unit = share.unit_of(at / 2);
    const int64_t sequence = sequence_of(tile, row < rows_at_start(tile, shares) ? row : 0);
    h[at] = args.start_h[sequence * args.start_stride + unit];
    group.c[at] = args.start_c[sequence * kHidden + unit];
  }
  store_h(memory, group, h);
}

template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void step_network(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int step,
                                             MmaGroup<kPrecision, kWhole>& group, float (&new_h)[kTileRows]) {
  const SetArray& biases = step == 0 ? args.start_bias : args.bias;
  const MmaShare share = gate_share<kWhole>();
  float product[4][4];
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    if (at % 4 == 0) {
      multiply_gates<kPrecision, kWhole>(args.weight_hh.data + tile.set * args.weight_hh.stride, memory.h,
                                         at / 4, product);
    }
    const int pair = at / 2, r = at % 2, unit = share.unit_of(pair);
    const float* fold = args.fold.data + tile.set * args.fold.stride + unit;
    const float* bias = biases.data + tile.set * biases.stride + unit;
    const float2 input = memory.rows[share.row_of(pair, r)].input;  // zeros before the first choice
    float gate[4];
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      const float sum = product[2 * (pair % 2) + g / 2][g % 2 * 2 + r];
      gate[g] = lstm_gate(sum, bias[g * kHidden], fold[g * kHidden], fold[kGates + g * kHidden], input);
    }
    const LstmUnit cell = lstm_unit(gate[0], gate[1], gate[2], gate[3], group.c[at]);
    group.c[at] = cell.c;
    new_h[at] = cell.h;
  }
}

template <Precision kPrecision, bool kWhole, typename Each>
__device__ __forceinline__ void for_each_unit(MmaGroup<kPrecision, kWhole>& group, const Each& each) {
  const MmaShare share = gate_share<kWhole>();
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    const int row = share.row_of(at / 2, at % 2), unit = share.unit_of(at / 2);
    each(row, unit, swizzled(row, unit), group.c[at]);
  }
}

template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void make_queries(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int,
                                             const MmaGroup<kPrecision, kWhole>&) {
  const MmaShare share = query_share<kWhole>();
  float product[2][4];
  multiply_queries<kPrecision, kWhole>(args.query_weight.data + tile.set * args.query_weight.stride, memory.h,
                                       product);
#pragma unroll
  for (int p = 0; p < 2; ++p) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = share.row_of(p, i % 2), unit = share.unit_of(p) + i / 2 * 8;
      memory.query[row * kHidden + unit] = product[p][i];
    }
  }
}

}  // namespace pointsman::cuda
