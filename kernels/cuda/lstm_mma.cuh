// SPDX-License-Identifier: Apache-2.0
// lstm_forward() with the products on tensor cores, without a cells. A block takes 8 or 32 rows of one
// parameter set through all steps; which units of which rows a thread has says tile_multiply_mma.cuh. Counts
// as lstm.cuh's forward pass but for the product; shared memory the same.
#pragma once

#include "kernels/cuda/lstm.cuh"
#include "kernels/cuda/tile_multiply_mma.cuh"

namespace pointsman::cuda {

// A step of the thread's four pairs.
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void lstm_step_mma(const LstmForwardArgs& a, const SetRange& tile, int step,
                                              const float* h, const float2* inputs, float* new_h,
                                              float (&c)[kTileRows]) {
  float product[4][4] = {};
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    if (at % 4 == 0 && step > 0) {
      multiply_gates<kPrecision, kWhole>(a.weight_hh.data + tile.set * a.weight_hh.stride, h, at / 4,
                                         product);
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
    const int64_t in_batch = static_cast<int64_t>(tile.first_row) + row;
    a.h[(in_batch * (a.steps + 1) + step + 1) * kHidden + unit] = u.h;
    if (step + 1 == a.steps && a.c_last != nullptr) a.c_last[in_batch * kHidden + unit] = u.c;
  }
}

template <int kGroups, Precision kPrecision>
__global__ void __launch_bounds__(kHidden* kGroups) lstm_forward_mma_kernel(LstmForwardArgs a) {
  constexpr int kRows = kGroups * kTileRows;
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  float2* const inputs = reinterpret_cast<float2*>(shared + 2 * kRows * kHidden);
  const SetRange tile = find_row_tile(a.ranges, a.range_count, blockIdx.x, kRows);
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

}  // namespace pointsman::cuda
