// SPDX-License-Identifier: Apache-2.0
// Whole LSTM sequences on clusters of four blocks, forward and backward, for batches too small to fill the
// device with blocks of their own. Each block owns 32 of the 128 units and keeps their recurrent weights in
// registers for all steps, 64 KB. After each step the blocks write what they made into each other's shared
// memory, and meet.
//
// A block has four warps. In the product a warp adds a quarter of the terms of k to all of the block's 128
// columns, four a lane, and hands a row's sums to the next warp while it takes the next row: each sum is made
// over k upward, as everywhere, and each number read from shared memory is used four times. In the cells a
// warp takes a row at a time, a lane a unit.
#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/lstm_cell.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/cuda/tile_multiply.cuh"

namespace pointsman::cuda {

inline constexpr int kWarps = 4, kThreads = kWarps * kWarpLanes;
inline constexpr int kBlockColumns = 4 * kBlockUnits;  // [4 gates][kBlockUnits]
inline constexpr int kQuarter = kHidden / kWarps;      // terms of k that a warp adds
inline constexpr int kLaneColumns = kBlockColumns / kWarpLanes;
static_assert(kLaneColumns == 4);

// What a thread is.
struct ClusterThread {
  int warp, lane;
  int unit;    // whose cells it computes, of the 128
  int gate;    // of its columns in the product
  int column;  // in a row of the gate's weights, the first of its columns
};

__device__ __forceinline__ ClusterThread cluster_thread() {
  const int warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
  const int first_unit = cluster_rank() * kBlockUnits;
  return {warp, lane, first_unit + lane, lane * kLaneColumns / kBlockUnits,
          first_unit + lane * kLaneColumns % kBlockUnits};
}

// The weights that a thread keeps.
struct LaneWeights {
  float4 of[kQuarter];  // [terms of k][columns]
};

// weights: of the thread's first column and term.
template <typename Weights>
__device__ __forceinline__ LaneWeights load_lane_weights(const Weights& weights) {
  LaneWeights w;
#pragma unroll
  for (int k = 0; k < kQuarter; k += 4) {
    float4 column[kLaneColumns];
    load_four<1>(weights, k, column);
    w.of[k] = {column[0].x, column[1].x, column[2].x, column[3].x};
    w.of[k + 1] = {column[0].y, column[1].y, column[2].y, column[3].y};
    w.of[k + 2] = {column[0].z, column[1].z, column[2].z, column[3].z};
    w.of[k + 3] = {column[0].w, column[1].w, column[2].w, column[3].w};
  }
  return w;
}

__device__ __forceinline__ void multiply_add(float x, const float4& w, float4& sum) {
  sum.x = fmaf(x, w.x, sum.x);
  sum.y = fmaf(x, w.y, sum.y);
  sum.z = fmaf(x, w.z, sum.z);
  sum.w = fmaf(x, w.w, sum.w);
}

// A row's numbers for a thread's quarter of the terms.
struct LaneInputs {
  float4 of[kQuarter / 4];
};

__device__ __forceinline__ void load_lane_inputs(const float* x, LaneInputs& v) {
#pragma unroll
  for (int k = 0; k < kQuarter / 4; ++k) v.of[k] = reinterpret_cast<const float4*>(x)[k];
}

// sum += the thread's terms.
__device__ __forceinline__ void multiply_quarter(const LaneInputs& v, const LaneWeights& w, float4& sum) {
#pragma unroll
  for (int k = 0; k < kQuarter / 4; ++k) {
    multiply_add(v.of[k].x, w.of[4 * k], sum);
    multiply_add(v.of[k].y, w.of[4 * k + 1], sum);
    multiply_add(v.of[k].z, w.of[4 * k + 2], sum);
    multiply_add(v.of[k].w, w.of[4 * k + 3], sum);
  }
}

// sums[row][column] = sum over k of x[row stride + k] weights[k][column], upward with fma from 0. x: at the
// first term of the thread's quarter. Warp q takes row `slot - q`, so that a row meets its quarters in order.
// While it does, the next row's numbers are on their way to the other of two sets of registers.
__device__ __forceinline__ void multiply_rows(const float* x, int stride, int rows, const ClusterThread& t,
                                              const LaneWeights& w, float* sums) {
  const auto take_row = [&](int row, const LaneInputs& v, LaneInputs& next) {
    const bool exists = static_cast<unsigned>(row) < static_cast<unsigned>(rows);
    float4* const own = reinterpret_cast<float4*>(sums + row * kBlockColumns) + t.lane;
    float4 sum = {0.0f, 0.0f, 0.0f, 0.0f};
    if (exists && t.warp > 0) sum = *own;
    // Beyond the rows some row again: nobody uses it.
    load_lane_inputs(x + max(0, min(row + 1, rows - 1)) * stride, next);
    if (exists) {
      multiply_quarter(v, w, sum);
      *own = sum;
    }
    __syncthreads();
  };
  LaneInputs first, second;
  load_lane_inputs(x, first);
#pragma unroll 1
  for (int row = -t.warp; row < rows + kWarps - 1 - t.warp; row += 2) {
    take_row(row, first, second);
    take_row(row + 1, second, first);
  }
}

// ------------------------------------------------------------------------------ forward

__device__ __forceinline__ float2 load_input(const LstmForwardArgs& a, const SetRange& tile, int r,
                                             int step) {
  if (r >= tile.rows || step >= a.steps) return {0.0f, 0.0f};
  const int64_t row = int64_t{tile.first_row} + r;
  return *reinterpret_cast<const float2*>(a.inputs + (row * a.steps + step) * 2);
}

// The cells of a step, from the sums of its product. States go to new_h of all blocks where they are wanted.
// `input` is of the first pass; it becomes the next step's. They are read a pass ahead.
template <bool kCells>
__device__ __forceinline__ void forward_cells(const LstmForwardArgs& a, const SetRange& tile,
                                              const ClusterThread& t, const LstmUnitWeights& w, int step,
                                              const float* sums, float* new_h, float* c, float2& input) {
  const bool wanted = step + 1 < a.steps;
#pragma unroll 1
  for (int pass = 0; pass < tile.rows; pass += kWarps) {
    const int r = pass + t.warp;
    const bool exists = r < tile.rows, is_last = pass + kWarps >= tile.rows;
    const float2 next_input = load_input(a, tile, is_last ? t.warp : r + kWarps, is_last ? step + 1 : step);
    LstmUnit u = {};
    if (exists) {
      float gate[4];
#pragma unroll
      for (int g = 0; g < 4; ++g) {
        const float sum = step > 0 ? sums[r * kBlockColumns + g * kBlockUnits + t.lane] : 0.0f;
        gate[g] = lstm_gate(sum, w.bias[g], w.fold0[g], w.fold1[g], input);
      }
      float& own_c = c[r * kBlockUnits + t.lane];
      u = lstm_unit(gate[0], gate[1], gate[2], gate[3], step > 0 ? own_c : 0.0f);
      own_c = u.c;
      if (wanted) store_in_cluster(new_h + r * kHidden + t.unit, u.h);
    }
    if (wanted && is_last) cluster_arrive();
    input = next_input;
    if (!exists) continue;
    const int64_t row = int64_t{tile.first_row} + r;
    const int64_t at = (row * (a.steps + 1) + step + 1) * kHidden + t.unit;
    a.h[at] = u.h;
    if constexpr (kCells) {
      a.c[at] = u.c;
      store_lstm_cell(u, a.cells + (row * a.steps + step) * kLstmCell + t.unit);
    }
    if (step + 1 == a.steps && a.c_last != nullptr) a.c_last[row * kHidden + t.unit] = u.c;
  }
}

template <bool kCells>
__device__ __forceinline__ void run_forward(const LstmForwardArgs& a, const SetRange& tile, int tile_rows) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  // h lies twice, for even and odd steps: one barrier of the cluster a step is enough.
  float* const sums = shared;
  float* const h = sums + tile_rows * kBlockColumns;
  float* const c = h + 2 * tile_rows * kHidden;
  const ClusterThread t = cluster_thread();
  const LaneWeights w = load_lane_weights(WeightsInFours(
      a.recurrent.of(tile.set) + t.warp * kQuarter * kGates, kGates, t.gate * kHidden + t.column));
  const LstmUnitWeights unit_weights = load_unit_weights(a, tile.set, t.unit);
#pragma unroll 1
  for (int r = t.warp; r < tile.rows; r += kWarps) {
    const int64_t at = (int64_t{tile.first_row} + r) * (a.steps + 1) * kHidden + t.unit;
    a.h[at] = 0.0f;
    if constexpr (kCells) a.c[at] = 0.0f;
  }
  float2 input = load_input(a, tile, t.warp, 0);
  sync_cluster();  // nobody writes to a block that has not begun
  for (int step = 0; step < a.steps; ++step) {
    float* const old_h = h + (step & 1) * tile_rows * kHidden;
    float* const new_h = h + (~step & 1) * tile_rows * kHidden;
    if (step > 0) {
      cluster_wait();
      multiply_rows(old_h + t.warp * kQuarter, kHidden, tile.rows, t, w, sums);
    }
    forward_cells<kCells>(a, tile, t, unit_weights, step, sums, new_h, c, input);
  }
}

template <bool kCells>
__global__ void __launch_bounds__(kThreads) lstm_forward_cluster_kernel(LstmForwardArgs a, int tile_rows) {
  if constexpr (kHasClusters) {
    const SetRange tile = find_row_tile(a.ranges, blockIdx.x / kClusterBlocks, tile_rows);
    if (tile.rows > 0) run_forward<kCells>(a, tile, tile_rows);  // else none of the cluster does
  }
}

// ------------------------------------------------------------------------------ backward

// What one step of one row and unit reads of device memory.
struct BackwardInputs {
  bool is_made;
  LstmCell cell;
  float c_before, dh;
};

__device__ __forceinline__ BackwardInputs load_backward_inputs(const LstmBackwardArgs& a,
                                                               const SetRange& tile, int r, int step,
                                                               int unit) {
  const int64_t row = int64_t{tile.first_row} + r;
  BackwardInputs in = {};
  in.is_made = step >= 0 && r < tile.rows && step < made_steps(a, row);
  if (!in.is_made) return in;
  const int64_t state = row * (a.steps + 1) + step;
  in.cell = load_lstm_cell(a.cells + (row * a.steps + step) * kLstmCell + unit);
  in.c_before = a.c[state * kHidden + unit];
  in.dh = a.dh[(state + 1) * kHidden + unit];
  return in;
}

// What reaches the thread's unit through the gates, from the sums of a row: a part for each gate.
__device__ __forceinline__ float recurrent_part(const float* sums, int r, int lane) {
  const float* const part = sums + r * kBlockColumns + lane;
  return ((part[0] + part[kBlockUnits]) + part[2 * kBlockUnits]) + part[3 * kBlockUnits];
}

// The cells of a step: their gates' gradients go to device memory, and where wanted to `dgates` of all
// blocks. sums: of the step after it, null before there is one. `in` is of the first pass; it becomes the
// next step's. They are read a pass ahead.
__device__ __forceinline__ void backward_cells(const LstmBackwardArgs& a, const SetRange& tile,
                                               const ClusterThread& t, int step, bool wanted,
                                               const float* sums, float* dc, float* dgates,
                                               BackwardInputs& in) {
#pragma unroll 1
  for (int pass = 0; pass < tile.rows; pass += kWarps) {
    const int r = pass + t.warp;
    const bool exists = r < tile.rows, is_last = pass + kWarps >= tile.rows;
    const BackwardInputs next =
        load_backward_inputs(a, tile, is_last ? t.warp : r + kWarps, is_last ? step - 1 : step, t.unit);
    LstmUnitGradient d = {};
    if (exists) {
      float& own_dc = dc[r * kBlockUnits + t.lane];
      const float dh = in.dh + (sums == nullptr ? 0.0f : recurrent_part(sums, r, t.lane));
      d.c = own_dc;
      if (in.is_made) d = lstm_unit_backward(in.cell, in.c_before, dh, d.c);
      own_dc = d.c;
      if (wanted) {
        float* const to = dgates + r * kGates + t.unit;
        store_in_cluster(to, d.i);
        store_in_cluster(to + kHidden, d.f);
        store_in_cluster(to + 2 * kHidden, d.g);
        store_in_cluster(to + 3 * kHidden, d.o);
      }
    }
    if (wanted && is_last) cluster_arrive();
    in = next;
    if (!exists) continue;
    store_gates(d, a.dgates + ((int64_t{tile.first_row} + r) * (a.steps + 1) + step) * kGates + t.unit);
  }
}

// Back through the steps. dgates lie twice, for even and odd steps; sums are of the step 0 in the end, if its
// product was wanted and there was one.
__device__ __forceinline__ void backward_steps(const LstmBackwardArgs& a, const SetRange& tile, int tile_rows,
                                               int most, const ClusterThread& t, const LaneWeights& w,
                                               float* sums, float* dc, float* all_dgates) {
  BackwardInputs in = load_backward_inputs(a, tile, t.warp, a.steps - 1, t.unit);
  for (int step = a.steps - 1; step >= 0; --step) {
    const bool wanted = step < most && (step > 0 || a.dh_start != nullptr);
    float* const dgates = all_dgates + (step & 1) * tile_rows * kGates;
    backward_cells(a, tile, t, step, wanted, step + 1 < most ? sums : nullptr, dc, dgates, in);
    if (!wanted) continue;
    cluster_wait();
    multiply_rows(dgates + t.gate * kHidden + t.warp * kQuarter, kGates, tile.rows, t, w, sums);
  }
}

__device__ __forceinline__ void run_backward(const LstmBackwardArgs& a, const SetRange& tile, int tile_rows) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  float* const sums = shared;
  float* const dgates = sums + tile_rows * kBlockColumns;
  float* const dc = dgates + 2 * tile_rows * kGates;
  const ClusterThread t = cluster_thread();
  const LaneWeights w = load_lane_weights(WeightsAsStored(
      a.weight_hh.of(tile.set) + (t.gate * kHidden + t.warp * kQuarter) * kHidden, kHidden, t.column));
#pragma unroll 1
  for (int r = t.warp; r < tile.rows; r += kWarps) {
    const int64_t row = int64_t{tile.first_row} + r;
    dc[r * kBlockUnits + t.lane] = a.dc_last == nullptr ? 0.0f : a.dc_last[row * kHidden + t.unit];
    store_gates({}, a.dgates + (row * (a.steps + 1) + a.steps) * kGates + t.unit);
  }
  const int most = made_steps(a, tile);
  sync_cluster();  // nobody writes to a block that has not begun
  backward_steps(a, tile, tile_rows, most, t, w, sums, dc, dgates);
#pragma unroll 1
  for (int r = t.warp; r < tile.rows; r += kWarps) {
    const int64_t at = (int64_t{tile.first_row} + r) * kHidden + t.unit;
    if (a.dh_start != nullptr) a.dh_start[at] = most > 0 ? recurrent_part(sums, r, t.lane) : 0.0f;
    if (a.dc_start != nullptr) a.dc_start[at] = dc[r * kBlockUnits + t.lane];
  }
}

__global__ void __launch_bounds__(kThreads) lstm_backward_cluster_kernel(LstmBackwardArgs a, int tile_rows) {
  if constexpr (kHasClusters) {
    const SetRange tile = find_row_tile(a.ranges, blockIdx.x / kClusterBlocks, tile_rows);
    if (tile.rows > 0) run_backward(a, tile, tile_rows);  // else none of the cluster does
  }
}

namespace {

template <typename Args>
void launch_tiles(void (*kernel)(Args, int), bool backward, const Args& args, int tile_rows,
                  cudaStream_t stream) {
  launch_clusters(kernel, kClusterBlocks, row_tile_count(args.ranges, tile_rows) * kClusterBlocks, kThreads,
                  lstm_cluster_bytes(backward, tile_rows), stream, args, tile_rows);
}

}  // namespace

int64_t lstm_cluster_bytes(bool backward, int tile_rows) {
  // A row's sums, its states or gates of two steps, and c or dc.
  return sizeof(float) * tile_rows * (kBlockColumns + 2 * (backward ? kGates : kHidden) + kBlockUnits);
}

void lstm_forward_in_clusters(const LstmForwardArgs& args, int tile_rows, cudaStream_t stream) {
  launch_tiles(args.cells != nullptr ? lstm_forward_cluster_kernel<true> : lstm_forward_cluster_kernel<false>,
               false, args, tile_rows, stream);
}

void lstm_backward_in_clusters(const LstmBackwardArgs& args, int tile_rows, cudaStream_t stream) {
  launch_tiles(lstm_backward_cluster_kernel, true, args, tile_rows, stream);
}

}  // namespace pointsman::cuda
