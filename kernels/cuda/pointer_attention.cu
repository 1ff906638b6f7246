// SPDX-License-Identifier: Apache-2.0
// Projections of encoded items. A block takes one sequence: tiles of 32 states pass through shared memory (16
// KiB and 128 B), a thread makes 8 items of one column of every slice. The largest |a| of a sequence decides
// whether exp(2a) or a is stored, so both are written once as they come and read again, from the cache, for
// the exponentials. Rows that are packed are all read again.
#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/cuda/tile_multiply.cuh"

namespace pointsman::cuda {

inline constexpr int kProjectThreads = 512;
inline constexpr int kProjectItems = kProjectThreads / kHidden * kTileRows;
inline constexpr int kProjectShared = (kProjectItems * kHidden + kProjectThreads / 32) * sizeof(float);

// Every thread gets the block's largest x. scratch: a float a warp.
__device__ __forceinline__ float largest_in_block(float x, float* scratch) {
#pragma unroll
  for (int step = 16; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, step));
  __syncthreads();
  if (threadIdx.x % 32 == 0) scratch[threadIdx.x / 32] = x;
  __syncthreads();
  for (int warp = 0; warp < kProjectThreads / 32; ++warp) x = fmaxf(x, scratch[warp]);
  return x;
}

// States of items first .. first + kProjectItems - 1 into shared memory; zeros behind the last.
__device__ __forceinline__ void load_states(const float* states, int first, int n, float* tile) {
  for (int at = threadIdx.x; at < kProjectItems * kHidden; at += kProjectThreads) {
    tile[at] = first + at / kHidden < n ? states[int64_t{first} * kHidden + at] : 0.0f;
  }
}

// In place: rows of a become rows of exp(2a) where `exponents`, and packed ones where `packed`. A half-warp a
// row; a lane overwrites only what it alone has read.
__device__ __forceinline__ void finish_rows(float* values, int rows, bool exponents, bool packed) {
  const HalfWarp w = this_half_warp();
  for (int row = threadIdx.x / kHalfWarp; row < rows; row += kProjectThreads / kHalfWarp) {
    float* const at = values + int64_t{row} * kHidden;
    float x[kOwned];
    load_reference(w, at, x);
#pragma unroll
    for (int i = 0; i < kOwned; ++i) x[i] = exponents ? exp_bounded_f32(x[i] + x[i]) : x[i];
    if (packed) {
      store_packed(w, x, reinterpret_cast<PackedPair*>(at));
    } else {
      store_reference(w, x, at);
    }
  }
}

template <int kCount>
__global__ void __launch_bounds__(kProjectThreads, 1)  // 1: else nvcc spills to fit two blocks
    project_references_kernel(ProjectReferencesArgs args) {
  POINTSMAN_DYNAMIC_SHARED(float, tile);
  const SetRange sequence = find_row_tile(args.ranges, blockIdx.x, 1);
  if (sequence.rows <= 0) return;
  const int column = threadIdx.x % kHidden, first_item = threadIdx.x / kHidden * kTileRows;
  const int64_t slice = int64_t{args.n} * kHidden;
  const float* states = args.h + (sequence.first_row * (slice + kHidden) + kHidden);
  const WeightsInFours weights(args.weights.of(sequence.set), kCount * kHidden, column);
  float* references = args.references + sequence.first_row * kCount * slice;
  float largest[kCount] = {};
  for (int first = 0; first < args.n; first += kProjectItems) {
    __syncthreads();
    load_states(states, first, args.n, tile);
    __syncthreads();
    float sum[kCount][kTileRows];
    tile_multiply(tile + first_item * kHidden, kHidden, weights, sum);
#pragma unroll
    for (int r = 0; r < kTileRows; ++r) {
      const int item = first + first_item + r;
      if (item >= args.n) break;
#pragma unroll
      for (int c = 0; c < kCount; ++c) {
        references[c * slice + int64_t{item} * kHidden + reference_index(column)] = sum[c][r];
        largest[c] = fmaxf(largest[c], fabsf(sum[c][r]));
      }
    }
  }
  __syncthreads();  // whoever reads a number again need not be who wrote it
#pragma unroll
  for (int c = 0; c < kCount; ++c) {
    bool exponents = false;
    if (const bool glimpse = c == args.projections.glimpse; glimpse || c == args.projections.pointer) {
      const float bound = largest_in_block(largest[c], tile + kProjectItems * kHidden);
      if (threadIdx.x == 0) args.bounds[2 * sequence.first_row + (glimpse ? 0 : 1)] = bound;
      exponents = bound <= kFactoredLimit;
    }
    if (exponents || args.packed) finish_rows(references + c * slice, args.n, exponents, args.packed);
  }
  if (threadIdx.x == 0 && args.projections.glimpse < 0) args.bounds[2 * sequence.first_row] = 0.0f;
}

void project_references(const ProjectReferencesArgs& args, cudaStream_t stream) {
  if (args.ranges.rows == 0) return;
  const dim3 blocks(row_tile_count(args.ranges, 1)), threads(kProjectThreads);
  const auto run = [&](void (*kernel)(ProjectReferencesArgs)) {
    launch(kernel, blocks, threads, kProjectShared, stream, args);
  };
  switch (args.projections.count) {
    case 1:  // no glimpse
      return run(project_references_kernel<1>);
    case 3:  // one glimpse
      return run(project_references_kernel<3>);
    case 4:
      return run(project_references_kernel<4>);
    default:
      throw std::invalid_argument("number of projections");
  }
}

}  // namespace pointsman::cuda
