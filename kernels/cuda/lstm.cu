// SPDX-License-Identifier: Apache-2.0
// Whole LSTM sequences, forward and backward: a block takes 8 or 32 rows of one parameter set through all
// steps. h stays in shared memory, c and the gates in registers: thread j of a group owns unit j of the
// group's 8 rows, so its four columns of the product are the unit's four gates.
//
// Batches too small to keep the device busy this way go to lstm_cluster.cu where blocks form clusters.
#include <algorithm>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/lstm_cell.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/cuda/tile_multiply.cuh"
#include "kernels/cuda/tile_multiply_mma.cuh"

namespace pointsman::cuda {

// h and the inputs lie twice, for even and odd steps: one barrier a step is enough.
constexpr size_t lstm_forward_shared(int tile_rows) { return 2 * sizeof(float) * tile_rows * (kHidden + 2); }
constexpr size_t lstm_backward_shared(int tile_rows) { return sizeof(float) * tile_rows * kGates; }

// What the steps of one thread share.
struct LstmThread {
  int unit, first, rows;  // the thread's unit; its first row in the tile; how many of its 8 rows exist
  int64_t row;            // the first row in the batch
};

__device__ __forceinline__ LstmThread lstm_thread(const SetRange& tile) {
  const int first = threadIdx.x / kHidden * kTileRows, left = tile.rows - first;
  return {static_cast<int>(threadIdx.x % kHidden), first, left < kTileRows ? left : kTileRows,
          int64_t{tile.first_row} + first};
}

// Input of a step for the tile's rows, loaded by the block's first threads; missing rows read zeros.
__device__ __forceinline__ void load_inputs(const LstmForwardArgs& a, const SetRange& tile, int tile_rows,
                                            int step, float2* inputs) {
  const int r = threadIdx.x;
  if (r >= tile_rows || step >= a.steps) return;
  float2 input = {0.0f, 0.0f};
  if (r < tile.rows) {
    const float* from = a.inputs + ((int64_t{tile.first_row} + r) * a.steps + step) * 2;
    input = {from[0], from[1]};
  }
  inputs[r] = input;
}

template <bool kCells>
__device__ __forceinline__ void start_lstm(const LstmForwardArgs& a, const LstmThread& t) {
  for (int r = 0; r < t.rows; ++r) {
    const int64_t at = (t.row + r) * (a.steps + 1) * kHidden + t.unit;
    a.h[at] = 0.0f;
    if constexpr (kCells) a.c[at] = 0.0f;
  }
}

// The cells of the thread's 8 rows after the product, from their inputs. new_h: the unit's, H apart.
template <bool kCells>
__device__ __forceinline__ void lstm_cells(const LstmForwardArgs& a, const LstmThread& t,
                                           const LstmUnitWeights& w, int step,
                                           const float (&sum)[4][kTileRows], const float2* inputs,
                                           float* new_h, float (&c)[kTileRows]) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    float gate[4];
#pragma unroll
    for (int g = 0; g < 4; ++g) gate[g] = lstm_gate(sum[g][r], w.bias[g], w.fold0[g], w.fold1[g], inputs[r]);
    const LstmUnit u = lstm_unit(gate[0], gate[1], gate[2], gate[3], c[r]);
    c[r] = u.c;
    new_h[r * kHidden] = u.h;
    if (r >= t.rows) continue;
    const int64_t at = ((t.row + r) * (a.steps + 1) + step + 1) * kHidden + t.unit;
    a.h[at] = u.h;
    if constexpr (kCells) {
      a.c[at] = u.c;
      store_lstm_cell(u, a.cells + ((t.row + r) * a.steps + step) * kLstmCell + t.unit);
    }
  }
}

template <int kGroups, bool kCells>
__global__ void __launch_bounds__(kHidden* kGroups) lstm_forward_kernel(LstmForwardArgs a) {
  constexpr int kRows = kGroups * kTileRows;
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  float2* const inputs = reinterpret_cast<float2*>(shared + 2 * kRows * kHidden);
  const SetRange tile = find_row_tile(a.ranges, blockIdx.x, kRows);
  if (tile.rows <= 0) return;
  const LstmThread t = lstm_thread(tile);
  const LstmUnitWeights w = load_unit_weights(a, tile.set, t.unit);
  const WeightsInFours recurrent(a.recurrent.of(tile.set), kGates, t.unit);
  start_lstm<kCells>(a, t);
  float c[kTileRows] = {};
  load_inputs(a, tile, kRows, 0, inputs);
  for (int step = 0; step < a.steps; ++step) {
    __syncthreads();
    const int now = (step & 1) * kRows, then = kRows - now;
    load_inputs(a, tile, kRows, step + 1, inputs + then);
    float sum[4][kTileRows] = {};
    if (step > 0) tile_multiply(shared + (now + t.first) * kHidden, kHidden, recurrent, sum);
    lstm_cells<kCells>(a, t, w, step, sum, inputs + now + t.first,
                       shared + (then + t.first) * kHidden + t.unit, c);
  }
  if (a.c_last == nullptr) return;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    if (r < t.rows) a.c_last[(t.row + r) * kHidden + t.unit] = c[r];
  }
}

// More than two numbers an item: 8 rows a block, which reads them where they are added. No cells.
__global__ void __launch_bounds__(kHidden, 1)  // 1: else nvcc spills to fit four blocks
    lstm_forward_wide_kernel(LstmForwardArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, h);
  const SetRange tile = find_row_tile(a.ranges, blockIdx.x, kTileRows);
  if (tile.rows <= 0) return;
  const LstmThread t = lstm_thread(tile);
  const float *bias = a.bias.of(tile.set) + t.unit, *fold = a.fold.of(tile.set) + t.unit;
  start_lstm<false>(a, t);
  float c[kTileRows] = {};
  for (int step = 0; step < a.steps; ++step) {
    float sum[4][kTileRows] = {};
    if (step > 0) tile_multiply(h, kHidden, WeightsInFours(a.recurrent.of(tile.set), kGates, t.unit), sum);
    __syncthreads();
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) {
      const int64_t row = t.row + (r < t.rows ? r : 0);  // missing rows are the first one again
      float gate[4] = {sum[0][r], sum[1][r], sum[2][r], sum[3][r]};
      add_inputs(bias, fold, a.inputs + (row * a.steps + step) * a.width, a.width, gate);
      const LstmUnit u = lstm_unit(gate[0], gate[1], gate[2], gate[3], c[r]);
      c[r] = u.c;
      h[r * kHidden + t.unit] = u.h;
      if (r >= t.rows) continue;
      a.h[(row * (a.steps + 1) + step + 1) * kHidden + t.unit] = u.h;
      if (step + 1 == a.steps && a.c_last != nullptr) a.c_last[row * kHidden + t.unit] = u.c;
    }
    __syncthreads();
  }
}

// ------------------------------------------------------------------------------ backward

// Cells of the thread's 8 rows: gate gradients to device memory and to `dgates` (shared memory).
__device__ __forceinline__ void lstm_cells_backward(const LstmBackwardArgs& a, const LstmThread& t, int step,
                                                    const int (&made)[kTileRows],
                                                    const float (&dh)[kTileRows], float (&dc)[kTileRows],
                                                    float* dgates) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    LstmUnitGradient d = {0.0f, 0.0f, 0.0f, 0.0f, dc[r]};
    const int64_t row = t.row + r, state = row * (a.steps + 1) + step;
    if (step < made[r]) {
      d = lstm_unit_backward(load_lstm_cell(a.cells + (row * a.steps + step) * kLstmCell + t.unit),
                             a.c[state * kHidden + t.unit], a.dh[(state + 1) * kHidden + t.unit] + dh[r],
                             dc[r]);
    }
    dc[r] = d.c;
    store_gates(d, dgates + r * kGates);
    if (r < t.rows) store_gates(d, a.dgates + state * kGates + t.unit);
  }
}

// dh = dgates W_hh for a group of 8 rows. Each of its four warps takes one gate's 128 terms in all columns,
// as many fma for each word read as the forward product, and leaves its sum where the gate was; then they are
// joined.
__device__ __forceinline__ void recurrent_gradient(const float* weight_hh, int unit, float* dgates,
                                                   float (&dh)[kTileRows]) {
  const int gate = unit / 32, lane = unit % 32;
  float sum[4][kTileRows];
  __syncthreads();
  tile_multiply<32>(dgates + gate * kHidden, kGates,
                    WeightsAsStored(weight_hh + gate * kHidden * kHidden, kHidden, lane), sum);
  __syncwarp();
#pragma unroll
  for (int c = 0; c < 4; ++c) {
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) dgates[r * kGates + gate * kHidden + c * 32 + lane] = sum[c][r];
  }
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const float* parts = dgates + r * kGates + unit;
    dh[r] = ((parts[0] + parts[kHidden]) + parts[2 * kHidden]) + parts[3 * kHidden];
  }
}

template <int kGroups>
__global__ void __launch_bounds__(kHidden* kGroups) lstm_backward_kernel(LstmBackwardArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const SetRange tile = find_row_tile(a.ranges, blockIdx.x, kGroups * kTileRows);
  if (tile.rows <= 0) return;
  const LstmThread t = lstm_thread(tile);
  const float* weight_hh = a.weight_hh.of(tile.set);
  float* const dgates = shared + t.first * kGates;

  float dh[kTileRows] = {}, dc[kTileRows] = {};
  int made[kTileRows];
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    made[r] = 0;
    if (r >= t.rows) continue;
    made[r] = made_steps(a, t.row + r);
    if (a.dc_last != nullptr) dc[r] = a.dc_last[(t.row + r) * kHidden + t.unit];
    store_gates({}, a.dgates + ((t.row + r) * (a.steps + 1) + a.steps) * kGates + t.unit);
  }
  const int most = made_steps(a, tile);
  for (int step = a.steps - 1; step >= 0; --step) {
    // The same thread reads these words last in the step before and writes them first in this one.
    lstm_cells_backward(a, t, step, made, dh, dc, dgates + t.unit);
    const bool wanted = step > 0 || a.dh_start != nullptr;
    if (wanted && step < most) recurrent_gradient(weight_hh, t.unit, dgates, dh);
  }
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    if (r >= t.rows) continue;
    if (a.dh_start != nullptr) a.dh_start[(t.row + r) * kHidden + t.unit] = dh[r];
    if (a.dc_start != nullptr) a.dc_start[(t.row + r) * kHidden + t.unit] = dc[r];
  }
}

// ---------------------------------------------------------------------------- on tensor cores

// The forward pass without cells. A block takes 8 or 32 rows as above; tile_multiply_mma.cuh says which units
// of which rows a thread has.

// A step of the thread's four pairs.
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void lstm_step_mma(const LstmForwardArgs& a, const SetRange& tile, int step,
                                              const float* h, const float2* inputs, float* new_h,
                                              float (&c)[kTileRows]) {
  float product[4][4] = {};
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    if (at % 4 == 0 && step > 0) {
      multiply_gates<kPrecision, kWhole>(a.weight_hh.of(tile.set), h, at / 4, product);
    }
    const MmaShare share = gate_share<kWhole>();
    const int pair = at / 2, r = at % 2;
    const int unit = share.unit_of(pair), row = share.row_of(pair, r);
    const LstmUnitWeights w = load_unit_weights(a, tile.set, unit);
    float gate[4];
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      const float sum = product[2 * (pair % 2) + g / 2][g % 2 * 2 + r];
      gate[g] = lstm_gate(sum, w.bias[g], w.fold0[g], w.fold1[g], inputs[row]);
    }
    const LstmUnit u = lstm_unit(gate[0], gate[1], gate[2], gate[3], c[at]);
    c[at] = u.c;
    new_h[swizzled(row, unit)] = u.h;
    if (row >= tile.rows) continue;
    const int64_t in_batch = int64_t{tile.first_row} + row;
    a.h[(in_batch * (a.steps + 1) + step + 1) * kHidden + unit] = u.h;
    if (step + 1 == a.steps && a.c_last != nullptr) a.c_last[in_batch * kHidden + unit] = u.c;
  }
}

template <int kGroups, Precision kPrecision>
__global__ void __launch_bounds__(kHidden* kGroups) lstm_forward_mma_kernel(LstmForwardArgs a) {
  constexpr int kRows = kGroups * kTileRows;
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  float2* const inputs = reinterpret_cast<float2*>(shared + 2 * kRows * kHidden);
  const SetRange tile = find_row_tile(a.ranges, blockIdx.x, kRows);
  if (tile.rows <= 0) return;
  start_lstm<false>(a, lstm_thread(tile));
  float c[kTileRows] = {};
  load_inputs(a, tile, kRows, 0, inputs);
  for (int step = 0; step < a.steps; ++step) {
    __syncthreads();
    const int now = (step & 1) * kRows, then = kRows - now;
    load_inputs(a, tile, kRows, step + 1, inputs + then);
    lstm_step_mma<kPrecision, kGroups == 4>(a, tile, step, shared + now * kHidden, inputs + now,
                                            shared + then * kHidden, c);
  }
}

namespace {

// Who takes a tile, and its rows.
struct Tiling {
  bool in_clusters;
  int rows;
};

enum class Pass { kForward, kBackward };

// The tiling with which all rows take least, by estimated clocks of a step of a tile on sm_90 (fp32, forward
// with cells): more rows a tile use a block better, fewer leave less of the device without work. A
// multiprocessor takes three blocks of 8 rows at once, by what the L2 delivers of their weights, one of 32,
// and two of clusters, which wait for each other less than they compute.
Tiling choose_tiling(const SetRanges& ranges, Pass pass, bool clusters_allowed) {
  struct Choice {
    Tiling tiling;
    int clocks[2];  // by Pass
    int blocks;     // that a multiprocessor takes at once
  };
  constexpr Choice kChoices[] = {{{false, 8}, {16100, 13800}, 3}, {{false, 32}, {28300, 27800}, 1},
                                 {{true, 4}, {4600, 4400}, 2},    {{true, 8}, {6900, 6700}, 2},
                                 {{true, 16}, {11400, 11300}, 1}, {{true, 32}, {20400, 20600}, 1}};
  const int clusters = clusters_allowed ? clusters_at_once() : 0;
  const int64_t shared_limit = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  const int multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
  Tiling best = {};
  int64_t least = 0;
  for (const auto& [tiling, clocks, blocks] : kChoices) {
    const bool fits = lstm_cluster_bytes(pass == Pass::kBackward, tiling.rows) <= shared_limit;
    const int at_once = (tiling.in_clusters ? clusters : multiprocessors) * blocks;
    if (at_once == 0 || (tiling.in_clusters && !fits)) continue;
    const int tiles = (ranges.rows + tiling.rows - 1) / tiling.rows + ranges.count - 1;  // at most
    int64_t all = int64_t{(tiles + at_once - 1) / at_once} * clocks[static_cast<int>(pass)];
    if (tiling.in_clusters && tiles > clusters) all = all * 7 / 5;  // two share a multiprocessor
    if (best.rows == 0 || all < least) best = tiling, least = all;
  }
  return best;
}

template <typename Args>
void launch_tiles(void (*kernel)(Args), int tile_rows, size_t shared_bytes, const Args& args,
                  cudaStream_t stream) {
  launch(kernel, row_tile_count(args.ranges, tile_rows), tile_rows / kTileRows * kHidden, shared_bytes,
         stream, args);
}

template <int kGroups>
auto forward_kernel(const LstmForwardArgs& args) {
  return with_precision(args.precision, [&]<Precision kPrecision>() {
    if constexpr (kPrecision != Precision::kFp32) {
      return lstm_forward_mma_kernel<kGroups, kPrecision>;
    } else {
      return args.cells != nullptr ? lstm_forward_kernel<kGroups, true> : lstm_forward_kernel<kGroups, false>;
    }
  });
}

void lstm_forward_wide(const LstmForwardArgs& args, cudaStream_t stream) {
  if (args.precision != Precision::kFp32 || args.cells != nullptr) {
    throw std::invalid_argument("lstm_forward: two numbers an item, or fp32 without cells");
  }
  launch_tiles(lstm_forward_wide_kernel, kTileRows, sizeof(float) * kTileRows * kHidden, args, stream);
}

}  // namespace

void lstm_forward(const LstmForwardArgs& args, cudaStream_t stream) {
  if (args.precision != Precision::kFp32 && args.cells != nullptr) {
    throw std::invalid_argument("lstm_forward: cells are written in fp32 only");
  }
  if (args.width != 2) return lstm_forward_wide(args, stream);
  const auto [in_clusters, rows] =
      choose_tiling(args.ranges, Pass::kForward, args.precision == Precision::kFp32);
  if (in_clusters) return lstm_forward_in_clusters(args, rows, stream);
  launch_tiles(rows == kTileRows ? forward_kernel<1>(args) : forward_kernel<4>(args), rows,
               lstm_forward_shared(rows), args, stream);
}

void lstm_backward(const LstmBackwardArgs& args, cudaStream_t stream) {
  const auto [in_clusters, rows] = choose_tiling(args.ranges, Pass::kBackward, true);
  if (in_clusters) return lstm_backward_in_clusters(args, rows, stream);
  launch_tiles(rows == kTileRows ? lstm_backward_kernel<1> : lstm_backward_kernel<4>, rows,
               lstm_backward_shared(rows), args, stream);
}

}  // namespace pointsman::cuda
