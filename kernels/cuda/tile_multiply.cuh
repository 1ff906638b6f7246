// SPDX-License-Identifier: Apache-2.0
// The product of a tile of rows with a 128 x N matrix, out of registers: a thread holds the sums of kRows
// rows in kColumns columns. Four steps of k read a float4 of x for each row (shared memory, the same for the
// whole warp) and one of the weights for each column (coalesced), for 4 kRows kColumns fma; the next weights
// are on their way meanwhile. So 8 rows in four columns take 12 loads for 128 fma.
//
// Blocks have 128 threads for every 8 rows ("a group").
#pragma once

#include "kernels/common/network.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

inline constexpr int kTileRows = 8;  // rows of a group

// Weights in device memory, from a thread's first column on. four(k, j): terms k .. k + 3 of the j-th column
// after it; k a multiple of 4.
struct WeightsInFours {  // index_in_fours
  const float* data;
  int columns;

  __device__ __forceinline__ WeightsInFours(const float* matrix, int width, int first_column)
      : data(matrix + index_in_fours(0, first_column, width)), columns(width) {}
  __device__ __forceinline__ float4 four(int k, int j) const {
    return __ldg(reinterpret_cast<const float4*>(data + k * columns + 4 * j));
  }
};
struct WeightsAsStored {  // [depth][columns]
  const float* data;
  int columns;

  __device__ __forceinline__ WeightsAsStored(const float* matrix, int width, int first_column)
      : data(matrix + first_column), columns(width) {}
  __device__ __forceinline__ float4 four(int k, int j) const {
    const float* const at = data + k * columns + j;
    return {__ldg(at), __ldg(at + columns), __ldg(at + 2 * columns), __ldg(at + 3 * columns)};
  }
};

template <int kStride, typename Weights, int kColumns>
__device__ __forceinline__ void load_four(const Weights& weights, int k, float4 (&w)[kColumns]) {
#pragma unroll
  for (int c = 0; c < kColumns; ++c) w[c] = weights.four(k, c * kStride);
}

// Four steps of k.
template <int kColumns, int kRows>
__device__ __forceinline__ void multiply_four(const float* x, int ldx, const float4 (&w)[kColumns],
                                              float (&sum)[kColumns][kRows]) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float4 v = *reinterpret_cast<const float4*>(x + r * ldx);
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      sum[c][r] = fmaf(v.x, w[c].x, sum[c][r]);
      sum[c][r] = fmaf(v.y, w[c].y, sum[c][r]);
      sum[c][r] = fmaf(v.z, w[c].z, sum[c][r]);
      sum[c][r] = fmaf(v.w, w[c].w, sum[c][r]);
    }
  }
}

// Fours of weights in registers. One is multiplied while the others are on their way from the L2, some 250
// clocks: with 8 sums a thread a four takes some 40 instructions, with 24 or more over a hundred.
constexpr int fours_of(int sums) { return sums <= 8 ? 4 : 2; }

// sum[c][r] = sum over k of x[r][k] weights[k][c kStride], k = 0 .. 127 upward with fma from 0: the CPU's
// bits. x: shared memory, 16-byte aligned, rows ldx (a multiple of 4) apart.
template <int kStride = kHidden, typename Weights, int kColumns, int kRows>
__device__ __forceinline__ void tile_multiply(const float* x, int ldx, const Weights& weights,
                                              float (&sum)[kColumns][kRows]) {
  constexpr int kFours = fours_of(kColumns * kRows);
  float4 w[kFours][kColumns];
#pragma unroll
  for (int i = 0; i < kColumns * kRows; ++i) sum[i / kRows][i % kRows] = 0.0f;
#pragma unroll
  for (int i = 0; i < kFours - 1; ++i) load_four<kStride>(weights, 4 * i, w[i]);
#pragma unroll 1
  for (int k = 0; k < kHidden; k += 4 * kFours) {
#pragma unroll
    for (int i = 0; i < kFours; ++i) {
      // The last round reads its own weights again rather than past the matrix.
      const int ahead = k + 4 * (i + kFours - 1), next = ahead < kHidden ? ahead : ahead - 4 * kFours;
      load_four<kStride>(weights, next, w[(i + kFours - 1) % kFours]);
      multiply_four(x + k + 4 * i, ldx, w[i], sum);
    }
  }
}

// A thread's part of a product with 128 columns by the 128 threads of a group: four of the 8 rows, in two
// columns. So it reads 6 fours for 32 fma; 8 rows in one column would read 9.
struct SquareShare {
  int column = static_cast<int>(threadIdx.x % (kHidden / 2));       // and the 64th after it
  int row = static_cast<int>(threadIdx.x / (kHidden / 2) % 2) * 4;  // of the group, the first
};
inline constexpr int kSquareRows = kTileRows / 2;

// sum[c][r]: row share.row + r in column share.column + 64 c. x: the group's rows, H apart. matrix: [H][H] in
// fours.
__device__ __forceinline__ void multiply_square(const float* x, const float* matrix, const SquareShare& share,
                                                float (&sum)[2][kSquareRows]) {
  tile_multiply<kHidden / 2>(x + share.row * kHidden, kHidden, WeightsInFours(matrix, kHidden, share.column),
                             sum);
}

}  // namespace pointsman::cuda
