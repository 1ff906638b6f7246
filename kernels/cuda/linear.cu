// SPDX-License-Identifier: Apache-2.0
// The linear layers of the attention encoder. A block makes 32 rows in 128, 384 or 512 columns: the rows
// pass through shared memory (16 KB) in pieces of 128 of their length, a thread makes 8 of them in up to four
// columns 128 apart.
#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/cuda/tile_multiply.cuh"

namespace pointsman::cuda {

inline constexpr int kLinearThreads = 512;
inline constexpr int kLinearRows = kLinearThreads / kHidden * kTileRows;
inline constexpr size_t kLinearShared = sizeof(float) * kLinearRows * kHidden;

// Elements k .. k + part - 1 of the tile's rows; zeros behind the last row.
__device__ __forceinline__ void load_linear_tile(const LinearArgs& a, const SetRange& rows, int k, int part,
                                                 float* tile) {
  for (int at = 4 * threadIdx.x; at < kLinearRows * kHidden; at += 4 * kLinearThreads) {
    const int row = at / kHidden, column = at % kHidden;
    if (column >= part) continue;
    const int64_t from = int64_t{rows.first_row + row} * a.depth + k + column;
    *reinterpret_cast<float4*>(tile + at) =
        row < rows.rows ? *reinterpret_cast<const float4*>(a.x + from) : float4{0.0f, 0.0f, 0.0f, 0.0f};
  }
}

__device__ __forceinline__ float apply(LinearArgs::Function function, float x) {
  switch (function) {
    case LinearArgs::Function::kRelu:
      return x > 0.0f ? x : 0.0f;
    case LinearArgs::Function::kTanh:
      return tanh_f32(x);
    default:
      return x;
  }
}

template <int kColumns>
__device__ __forceinline__ void store_linear(const LinearArgs& a, const SetRange& rows, int first_row,
                                             int column, const float (&sum)[kColumns][kTileRows]) {
  const float* biases = a.bias.of(rows.set) + column;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    if (first_row + r >= rows.rows) break;
    const int row = rows.first_row + first_row + r;
    const int64_t from = int64_t{row} * a.columns + column;
    const int64_t to = a.to_states ? from + int64_t{row / a.items + 1} * a.columns : from;
#pragma unroll
    for (int c = 0; c < kColumns; ++c) {
      const float bias = __ldg(biases + c * kHidden);
      const float start = a.base == nullptr ? bias : a.base[from + c * kHidden] + bias;
      a.y[to + c * kHidden] = apply(a.function, start + sum[c][r]);
    }
  }
}

// Grid: (tiles of 32 rows, strips of kColumns 128 columns). With one column a thread the last strip may be
// narrower.
template <int kColumns>
__global__ void __launch_bounds__(kLinearThreads, 1) linear_kernel(LinearArgs a) {  // 1: else nvcc spills
  POINTSMAN_DYNAMIC_SHARED(float, tile);
  const SetRange rows = find_row_tile(a.ranges, blockIdx.x, kLinearRows, a.items);
  if (rows.rows <= 0) return;
  const int column = blockIdx.y * kColumns * kHidden + threadIdx.x % kHidden;
  const int first_row = threadIdx.x / kHidden * kTileRows;
  // A thread behind the last column makes that one too, and stores nothing.
  const float* weights = a.weight.of(rows.set) + (column < a.columns ? column : a.columns - 1);
  float sum[kColumns][kTileRows] = {};
  for (int k = 0; k < a.depth; k += kHidden) {
    const int part = a.depth - k < kHidden ? a.depth - k : kHidden;
    __syncthreads();
    load_linear_tile(a, rows, k, part, tile);
    __syncthreads();
    tile_multiply_add<kColumns>(tile + first_row * kHidden, kHidden, weights + int64_t{k} * a.columns,
                                a.columns, part, sum);
  }
  if (column < a.columns) store_linear(a, rows, first_row, column, sum);
}

void linear(const LinearArgs& args, cudaStream_t stream) {
  if (args.ranges.rows == 0) return;
  const auto run = [&](void (*kernel)(LinearArgs), int columns) {
    const int strip = columns * kHidden;
    const dim3 grid(row_tile_count(args.ranges, kLinearRows, args.items), (args.columns + strip - 1) / strip);
    launch(kernel, grid, kLinearThreads, kLinearShared, stream, args);
  };
  const auto divides = [&](int columns) { return args.columns % (columns * kHidden) == 0; };
  if (divides(4)) return run(linear_kernel<4>, 4);
  if (divides(3)) return run(linear_kernel<3>, 3);
  run(linear_kernel<1>, 1);
}

}  // namespace pointsman::cuda
