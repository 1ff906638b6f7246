// SPDX-License-Identifier: Apache-2.0
// What the kernels read of a parameter set: matrices transposed, in fours (index_in_fours), and the LSTM's
// input half folded (algebra identity 1), with the CPU's bits.
//
// Transposition: a block moves a 32 x 32 tile, a thread four terms of a column. Fold: a block takes 32 of the
// 4H rows of W_ih, its warps in turn the sums of these rows: W_ih E and W_ih W_c column by column, the bias,
// and W_ih start.
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

// Rows lie one word further apart than their length: no bank conflicts down a column.
inline constexpr int kTransposeTile = 32, kTransposeFours = kTransposeTile / 4;
inline constexpr int kTransposeThreads = kTransposeTile * kTransposeFours;
inline constexpr size_t kTransposeShared = sizeof(float) * kTransposeTile * (kTransposeTile + 1);
inline constexpr int kFoldRows = 32, kFoldThreads = 4 * kFoldRows;
inline constexpr size_t kFoldShared = sizeof(float) * kFoldRows * (kHidden + 1);

// out[k][column_offset + j] = in[offset + j depth + k], j = 0 .. columns - 1; out in fours, `width` columns.
struct TransposeArgs {
  SetArray in;
  int64_t offset;
  int columns, depth;
  MutableSetArray out;
  int column_offset, width;
};

// Grid: (columns / 32, depth / 32, sets), rounded up.
__global__ void __launch_bounds__(kTransposeThreads) transpose_kernel(TransposeArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, tile);
  constexpr int kLine = kTransposeTile + 1;
  const int lane = threadIdx.x % kTransposeTile, first = threadIdx.x / kTransposeTile;
  const int column = blockIdx.x * kTransposeTile, k = blockIdx.y * kTransposeTile;
  const int64_t set = blockIdx.z;
  const float* in = a.in.of(set) + a.offset;
#pragma unroll
  for (int j = first; j < kTransposeTile; j += kTransposeFours) {
    if (column + j < a.columns && k + lane < a.depth)
      tile[j * kLine + lane] = in[int64_t{column + j} * a.depth + k + lane];
  }
  __syncthreads();
  if (column + lane >= a.columns || k + 4 * first >= a.depth) return;
  const float* const four = tile + lane * kLine + 4 * first;
  float* const out = a.out.of(set) + index_in_fours(k + 4 * first, a.column_offset + column + lane, a.width);
  *reinterpret_cast<float4*>(out) = {four[0], four[1], four[2], four[3]};
}

// sum over d of row[d] vector[d step], upward.
__device__ __forceinline__ float fold_row(const float* row, const float* vector, int step) {
  float sum = 0.0f;
  for (int d = 0; d < kHidden; ++d) sum = fmaf(row[d], __ldg(vector + d * step), sum);
  return sum;
}

// Grid: (4H / 32, sets).
__global__ void __launch_bounds__(kFoldThreads)
    fold_input_kernel(SetArray all_parameters, LstmOffsets offsets, PreparedLstm prepared) {
  POINTSMAN_DYNAMIC_SHARED(float, rows);
  constexpr int kLine = kHidden + 1;
  const int64_t set = blockIdx.y;
  const int first = blockIdx.x * kFoldRows, lane = threadIdx.x % kFoldRows, j = first + lane;
  const float* parameters = all_parameters.of(set);
  for (int r = 0; r < kFoldRows; ++r) {
    rows[r * kLine + threadIdx.x] = parameters[offsets.weight_ih + (first + r) * kHidden + threadIdx.x];
  }
  __syncthreads();
  const float* row = rows + lane * kLine;
  float* fold = prepared.fold.of(set);
  const float bias = parameters[offsets.bias + j];
  const int features = offsets.features, inputs = features + offsets.contexts;
  for (int task = threadIdx.x / kFoldRows; task < inputs + 2; task += kFoldThreads / kFoldRows) {
    if (task < features) {
      fold[task * kGates + j] = fold_row(row, parameters + offsets.embedding + task, features);
    } else if (task < inputs) {
      const float* context = parameters + offsets.context + (task - features);
      fold[task * kGates + j] = fold_row(row, context, offsets.contexts);
    } else if (task == inputs) {
      prepared.bias.of(set)[j] = bias;
    } else if (offsets.start >= 0) {
      prepared.start_bias.of(set)[j] = fold_row(row, parameters + offsets.start, 1) + bias;
    }
  }
}

namespace {

void transpose(const TransposeArgs& args, int sets, cudaStream_t stream) {
  const auto tiles = [](int size) { return (size + kTransposeTile - 1) / kTransposeTile; };
  const dim3 grid(tiles(args.columns), tiles(args.depth), sets);
  launch(transpose_kernel, grid, kTransposeThreads, kTransposeShared, stream, args);
}

}  // namespace

void prepare_lstm(SetArray parameters, LstmOffsets offsets, PreparedLstm prepared, int sets,
                  cudaStream_t stream) {
  transpose({parameters, offsets.weight_hh, kGates, kHidden, prepared.recurrent, 0, kGates}, sets, stream);
  launch(fold_input_kernel, dim3(kGates / kFoldRows, sets), kFoldThreads, kFoldShared, stream, parameters,
         offsets, prepared);
}

void prepare_square(SetArray parameters, int64_t offset, MutableSetArray prepared, int column_offset,
                    int width, int sets, cudaStream_t stream) {
  transpose({parameters, offset, kHidden, kHidden, prepared, column_offset, width}, sets, stream);
}

void prepare_matrix(SetArray parameters, int64_t offset, int columns, int depth, MutableSetArray prepared,
                    int sets, cudaStream_t stream) {
  transpose({parameters, offset, columns, depth, prepared, 0, columns}, sets, stream);
}

}  // namespace pointsman::cuda
