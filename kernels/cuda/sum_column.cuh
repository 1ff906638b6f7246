// SPDX-License-Identifier: Apache-2.0
// Sums over rows in a fixed order: upward within blocks of 128 rows, then block by block. A block of threads
// takes 32 columns; each of its 8 warps sums one block of rows at a time (coalesced), then the first warp
// joins them.
#pragma once

#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

inline constexpr int kSumBlock = 128;   // rows summed upward
inline constexpr int kSumColumns = 32;  // of a block of threads
inline constexpr int kSumWarps = 8;
inline constexpr int kSumThreads = kSumColumns * kSumWarps;
inline constexpr size_t kSumShared = sizeof(float) * kSumThreads;

// The sum of a thread's column (thread % 32) over `rows` rows, in the first warp; null: no such column. All
// threads of the block call it. partial: shared memory, [kSumThreads].
__device__ __forceinline__ float sum_column(const float* column, int64_t ld, int rows, float* partial) {
  const int lane = threadIdx.x % kSumColumns, warp = threadIdx.x / kSumColumns;
  float total = 0.0f;
  for (int first = 0; first < rows; first += kSumBlock * kSumWarps) {
    const int begin = first + kSumBlock * warp, end = begin + kSumBlock < rows ? begin + kSumBlock : rows;
    float sum = 0.0f;
    if (column != nullptr) {
      for (int row = begin; row < end; ++row) sum += column[row * ld];
    }
    partial[threadIdx.x] = sum;
    __syncthreads();
    if (warp == 0) {
      const int blocks = (rows - first + kSumBlock - 1) / kSumBlock;
      for (int b = 0; b < kSumWarps && b < blocks; ++b) total += partial[b * kSumColumns + lane];
    }
    __syncthreads();
  }
  return total;
}

}  // namespace pointsman::cuda
