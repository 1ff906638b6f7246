// SPDX-License-Identifier: Apache-2.0
// Sums over the rows of a set or of a sequence.
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/sum_column.cuh"

namespace pointsman::cuda {

// Grid: (ranges, strips of 32 columns).
__global__ void __launch_bounds__(kSumThreads) sum_rows_kernel(SumRowsArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, partial);
  const SetRange range = a.ranges.data[blockIdx.x];
  const int column = blockIdx.y * kSumColumns + threadIdx.x % kSumColumns;
  const float* in = column < a.width ? a.in + range.first_row * a.ld + column : nullptr;
  const float sum = sum_column(in, a.ld, range.rows, partial);
  if (threadIdx.x < kSumColumns && in != nullptr) a.out.of(range.set)[column] += sum;
}

// Grid: (sequences, strips of 32 units of h, then of c).
__global__ void __launch_bounds__(kSumThreads) start_gradient_kernel(StartGradientArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, partial);
  const int64_t sequence = blockIdx.x;
  const int strip = blockIdx.y % (kHidden / kSumColumns),
            unit = strip * kSumColumns + threadIdx.x % kSumColumns;
  const bool of_h = blockIdx.y < kHidden / kSumColumns;
  const int first = a.first_row[sequence], rows = a.first_row[sequence + 1] - first;
  const float* in = (of_h ? a.dh_start : a.dc_start) + int64_t{first} * kHidden + unit;
  const float sum = sum_column(in, kHidden, rows, partial);
  if (threadIdx.x >= kSumColumns) return;
  if (of_h) {
    a.h[sequence * a.h_stride + unit] += sum;
  } else {
    a.c[sequence * kHidden + unit] = sum;
  }
}

// A thread a column.
__global__ void __launch_bounds__(kSumThreads) add_rows_kernel(AddRowsArgs a) {
  const int64_t column = int64_t{blockIdx.x} * kSumThreads + threadIdx.x;
  if (column >= a.width) return;
  float sum = a.in[column];
  for (int row = 1; row < a.rows; ++row) sum += a.in[row * a.width + column];
  a.out[column] = sum;
}

void add_rows(const AddRowsArgs& args, cudaStream_t stream) {
  const auto blocks = static_cast<unsigned>((args.width + kSumThreads - 1) / kSumThreads);
  launch(add_rows_kernel, blocks, kSumThreads, 0, stream, args);
}

void sum_rows(const SumRowsArgs& args, cudaStream_t stream) {
  const int strips = (args.width + kSumColumns - 1) / kSumColumns;
  launch(sum_rows_kernel, dim3(args.ranges.count, strips), kSumThreads, kSumShared, stream, args);
}

void start_gradient(const StartGradientArgs& args, cudaStream_t stream) {
  const dim3 grid(args.sequences, 2 * kHidden / kSumColumns);
  launch(start_gradient_kernel, grid, kSumThreads, kSumShared, stream, args);
}

}  // namespace pointsman::cuda
