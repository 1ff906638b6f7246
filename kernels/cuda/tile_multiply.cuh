// SPDX-License-Identifier: Apache-2.0
// The product of a tile of rows with a 128 x N matrix, out of registers: a thread holds the sums of 8 rows in
// kColumns columns. Four steps of k read 8 float4 of x (shared memory, the same for the whole warp) and 4
// kColumns weights (coalesced) for 32 kColumns fma; the next ones are on their way meanwhile.
//
// Blocks have 128 threads for every 8 rows: thread % 128 is the column (the unit), thread / 128 the group of
// rows.
#pragma once

#include "kernels/common/network.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

inline constexpr int kTileRows = 8;  // rows of a thread

template <int kColumns, int kStride>
__device__ __forceinline__ void load_weights(const float* weights, int ld, float (&w)[4][kColumns]) {
#pragma unroll
  for (int k = 0; k < 4; ++k) {
#pragma unroll
    for (int c = 0; c < kColumns; ++c) w[k][c] = __ldg(weights + k * ld + c * kStride);
  }
}

// Four steps of k.
template <int kColumns>
__device__ __forceinline__ void multiply_four(const float* x, int ldx, const float (&w)[4][kColumns],
                                              float (&sum)[kColumns][kTileRows]) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const float4 v = *reinterpret_cast<const float4*>(x + r * ldx);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      sum[c][r] = fmaf(v.x, w[0][c], sum[c][r]);
      sum[c][r] = fmaf(v.y, w[1][c], sum[c][r]);
      sum[c][r] = fmaf(v.z, w[2][c], sum[c][r]);
      sum[c][r] = fmaf(v.w, w[3][c], sum[c][r]);
    }
  }
}

// Fours of weights in registers. One is multiplied while the others are on their way from the L2, some 250
// clocks: with one column a four takes 44 instructions, with three or four columns more than a hundred.
constexpr int fours_of(int columns) { return columns == 1 ? 4 : 2; }

// sum[c][r] += sum over k of x[r][k] weights[k][c kStride], k = 0 .. depth - 1 upward with fma. x: shared
// memory, 16-byte aligned, rows ldx (a multiple of 4) apart. weights: device memory, at the thread's first
// column, rows ld apart. depth: a multiple of 4 kFours.
template <int kColumns, int kStride = kHidden, int kFours = 2>
__device__ __forceinline__ void tile_multiply_add(const float* x, int ldx, const float* weights, int ld,
                                                  int depth, float (&sum)[kColumns][kTileRows]) {
  float w[kFours][4][kColumns];
#pragma unroll
  for (int i = 0; i < kFours - 1; ++i) {
    load_weights<kColumns, kStride>(weights + static_cast<size_t>(4 * i) * ld, ld, w[i]);
  }
#pragma unroll 1
  for (int k = 0; k < depth; k += 4 * kFours) {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      // The last round reads its own weights again rather than past the matrix.
      const int ahead = k + 4 * (i + kFours - 1), next = ahead < depth ? ahead : ahead - 4 * kFours;
      load_weights<kColumns, kStride>(weights + static_cast<size_t>(next) * ld, ld,
                                      w[(i + kFours - 1) % kFours]);
      multiply_four<kColumns>(x + k + 4 * i, ldx, w[i], sum);
    }
  }
}

// The same from 0 over k = 0 .. 127: the CPU's bits.
template <int kColumns, int kStride = kHidden>
__device__ __forceinline__ void tile_multiply(const float* x, int ldx, const float* weights, int ld,
                                              float (&sum)[kColumns][kTileRows]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) {
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) sum[c][r] = 0.0f;
  }
  tile_multiply_add<kColumns, kStride, fours_of(kColumns)>(x, ldx, weights, ld, kHidden, sum);
}

}  // namespace pointsman::cuda
