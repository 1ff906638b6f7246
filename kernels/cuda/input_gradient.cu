// SPDX-License-Identifier: Apache-2.0
// Sums of gate gradients over the rows and steps of each set, and the unfolding of the LSTM's input half.
//
// Partial sums: a block takes 4 rows through all steps in one gate's 128 columns, one after the other; then
// the partials of a set are summed as in sum_column.cuh.
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/cuda/sum_column.cuh"

namespace pointsman::cuda {

inline constexpr int kInputGradientRows = 4;   // rows of a partial sum
inline constexpr int kInputGradientParts = 4;  // bias, two of fold, start
inline constexpr int kInputGradientWidth = kInputGradientParts * kGates;
inline constexpr int kInputGradientChunk =
    kHidden;  // steps whose inputs are gathered at a time: one a thread
inline constexpr size_t kInputGradientShared = sizeof(float2) * kInputGradientChunk;

// What row `row` of the batch reads at a step; nothing in the decoder's first step, or from the end of its
// order on.
__device__ __forceinline__ float2 input_of(const InputGradientArgs& a, int64_t row, int step) {
  int64_t item = row * a.steps + step;
  if (a.orders != nullptr) {
    const int chosen = step == 0 ? -1 : a.orders[row * a.steps + step - 1];
    if (chosen < 0) return {0.0f, 0.0f};
    const int64_t sequence = a.sequence_of == nullptr ? row : a.sequence_of[row];
    item = sequence * a.steps + chosen;
  }
  return {a.features[2 * item], a.features[2 * item + 1]};
}

// Grid: (tiles of 4 rows, gates). scratch: [tiles][4 parts][4H].
__global__ void __launch_bounds__(kHidden) input_gradient_parts_kernel(InputGradientArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float2, inputs);
  const SetRange tile = find_row_tile(a.ranges, blockIdx.x, kInputGradientRows);
  if (tile.rows <= 0) return;
  const int thread = threadIdx.x, column = blockIdx.y * kHidden + thread;
  float bias = 0.0f, fold0 = 0.0f, fold1 = 0.0f, start = 0.0f;
  for (int64_t row = tile.first_row; row < tile.first_row + tile.rows; ++row) {
    const float* dgates = a.dgates + row * (a.steps + 1) * kGates + column;
    start += dgates[0];
    for (int first = 0; first < a.steps; first += kInputGradientChunk) {
      const int count = a.steps - first < kInputGradientChunk ? a.steps - first : kInputGradientChunk;
      __syncthreads();
      if (thread < count) inputs[thread] = input_of(a, row, first + thread);
      __syncthreads();
#pragma unroll 8
      for (int step = 0; step < count; ++step) {
        const float d = dgates[int64_t{first + step} * kGates];
        bias += d;
        fold0 = fmaf(d, inputs[step].x, fold0);
        fold1 = fmaf(d, inputs[step].y, fold1);
      }
    }
  }
  float* out = a.scratch + int64_t{blockIdx.x} * kInputGradientWidth + column;
  out[0] = bias;
  out[kGates] = fold0;
  out[2 * kGates] = fold1;
  out[3 * kGates] = start;
}

// Grid: (ranges, strips of 32 of the parts' columns).
__global__ void __launch_bounds__(kSumThreads) input_gradient_sum_kernel(InputGradientArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, partial);
  const SetRange range = a.ranges.data[blockIdx.x];
  const int first = first_row_tile(a.ranges, blockIdx.x, kInputGradientRows);
  const int tiles = (range.rows + kInputGradientRows - 1) / kInputGradientRows;
  const int at = blockIdx.y * kSumColumns + threadIdx.x % kSumColumns;
  const float* in = a.scratch + int64_t{first} * kInputGradientWidth + at;
  const float sum = sum_column(in, kInputGradientWidth, tiles, partial);
  if (threadIdx.x >= kSumColumns) return;
  if (at < kGates) {
    a.bias.of(range.set)[at] += sum;
  } else if (at < 3 * kGates) {
    a.fold.of(range.set)[at - kGates] += sum;
  } else {
    a.start.of(range.set)[at - 3 * kGates] += sum;
  }
}

// ------------------------------------------------------------------------------ unfold

inline constexpr int kUnfoldGroups = 8;  // of 128 threads; each takes an eighth of the 4H rows of W_ih
inline constexpr int kUnfoldThreads = kUnfoldGroups * kHidden;
inline constexpr size_t kUnfoldShared = 3 * sizeof(float) * kUnfoldThreads;

// The sum of a part [groups][H] over its groups.
__device__ __forceinline__ float sum_groups(const float* part, int unit) {
  float sum = 0.0f;
#pragma unroll
  for (int g = 0; g < kUnfoldGroups; ++g) sum += part[g * kHidden + unit];
  return sum;
}

// One block a set: thread d of a group owns column d of W_ih.
template <bool kStart>
__global__ void __launch_bounds__(kUnfoldThreads) unfold_input_kernel(UnfoldArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, parts);
  const int64_t set = a.first_set + static_cast<int>(blockIdx.x);
  const int d = threadIdx.x % kHidden, group = threadIdx.x / kHidden;
  const float* parameters = a.parameters.of(set);
  float* gradient = a.gradient.of(set);
  const float* fold = a.fold.of(set);
  const float* first = kStart ? a.start.of(set) : nullptr;
  const float e0 = parameters[a.offsets.embedding + 2 * d], e1 = parameters[a.offsets.embedding + 2 * d + 1];
  const float s = kStart ? parameters[a.offsets.start + d] : 0.0f;

  float de0 = 0.0f, de1 = 0.0f, ds = 0.0f;
  constexpr int kRows = kGates / kUnfoldGroups;
#pragma unroll 4
  for (int j = group * kRows; j < (group + 1) * kRows; ++j) {
    const int64_t at = a.offsets.weight_ih + j * kHidden + d;
    const float w = parameters[at], x = __ldg(fold + j), y = __ldg(fold + kGates + j);
    float dw = fmaf(y, e1, x * e0);
    de0 = fmaf(w, x, de0);
    de1 = fmaf(w, y, de1);
    if constexpr (kStart) {
      const float z = __ldg(first + j);
      dw = fmaf(z, s, dw);
      ds = fmaf(w, z, ds);
    }
    gradient[at] += dw;
  }
  parts[threadIdx.x] = de0;
  parts[kUnfoldThreads + threadIdx.x] = de1;
  parts[2 * kUnfoldThreads + threadIdx.x] = ds;
  __syncthreads();
  if (group > 0) return;
  gradient[a.offsets.embedding + 2 * d] += sum_groups(parts, d);
  gradient[a.offsets.embedding + 2 * d + 1] += sum_groups(parts + kUnfoldThreads, d);
  if constexpr (kStart) gradient[a.offsets.start + d] += sum_groups(parts + 2 * kUnfoldThreads, d);
}

int64_t input_gradient_scratch(int rows, int range_count) {
  return int64_t{row_tile_count(rows, range_count, kInputGradientRows)} * kInputGradientWidth;
}

void input_gradient(const InputGradientArgs& args, cudaStream_t stream) {
  const int tiles = row_tile_count(args.ranges, kInputGradientRows);
  launch(input_gradient_parts_kernel, dim3(tiles, kGates / kHidden), kHidden, kInputGradientShared, stream,
         args);
  const int parts = args.start.data == nullptr ? kInputGradientParts - 1 : kInputGradientParts;
  launch(input_gradient_sum_kernel, dim3(args.ranges.count, parts * kGates / kSumColumns), kSumThreads,
         kSumShared, stream, args);
}

void unfold_input(const UnfoldArgs& args, cudaStream_t stream) {
  const auto kernel = args.start.data == nullptr ? unfold_input_kernel<false> : unfold_input_kernel<true>;
  launch(kernel, args.sets, kUnfoldThreads, kUnfoldShared, stream, args);
}

}  // namespace pointsman::cuda
