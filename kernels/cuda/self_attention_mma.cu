// SPDX-License-Identifier: Apache-2.0
// Self-attention's forward pass on tensor cores. A block takes up to 64 queries of one head (32 of a single
// head), a warp 16 of them. Keys and values pass through shared memory 64 at a time. The scores of a warp's
// queries and these keys stay in registers: what the first product leaves in a lane is the left operand of
// the second. Between two times 64 keys the sums are scaled to the new largest score (Milakov and Gimelshein
// 2018).
//
// tile_multiply_mma.cuh describes fragments. Here the left operands are queries, then weights; a lane has
// rows `group` and group + 8 of them.
#include <algorithm>
#include <cmath>

#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/self_attention_mma.h"
#include "kernels/cuda/tile_multiply_mma.cuh"

namespace pointsman::cuda {

inline constexpr int kWarpQueries = 16;
// Of a block; so wide a head's rows leave room for fewer in the 99 KB of the smallest devices.
template <int kWidth>
inline constexpr int kMostQueries = kWidth < kHidden ? 64 : 32;
inline constexpr int kKeys = 64, kKeyTiles = kKeys / 8;  // at a time
inline constexpr int kQkvWidth = 3 * kHidden;

// Floats from row to row in shared memory: lanes that read four numbers of two rows (queries, keys) or one
// number of eight columns in four rows (values) at once meet no bank conflict.
template <int kWidth>
inline constexpr int kKeyLine = kWidth % 32 == 16 ? kWidth : kWidth + 16;
template <int kWidth>
inline constexpr int kValueLine = kWidth + 4;

template <int kWidth>
constexpr size_t attention_mma_bytes(int queries) {
  return sizeof(float) * ((queries + kKeys) * kKeyLine<kWidth> + kKeys * kValueLine<kWidth>);
}

// Columns 0 .. kWidth - 1 of `count` rows from number `from` on; zeros from row n on.
template <int kWidth>
__device__ __forceinline__ void copy_rows(const float* rows, int from, int count, int n, float* to,
                                          int line) {
  constexpr int kVectors = kWidth / 4;
  for (int at = threadIdx.x; at < count * kVectors; at += blockDim.x) {
    const int row = at / kVectors, column = at % kVectors * 4;
    copy_to_shared(to + row * line + column, rows + int64_t{from + row} * kQkvWidth + column, from + row < n);
  }
}

__device__ __forceinline__ float largest_of_members(float x) {
  x = fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 1));
  return fmaxf(x, __shfl_xor_sync(0xFFFFFFFFu, x, 2));
}
__device__ __forceinline__ float sum_of_members(float x) {
  x += __shfl_xor_sync(0xFFFFFFFFu, x, 1);
  return x + __shfl_xor_sync(0xFFFFFFFFu, x, 2);
}

// A warp's 16 queries: what their lanes hold of them.
template <int kWidth, Precision kPrecision>
struct WarpQueries {
  using Cores = TensorCores<kPrecision>;

  int group = threadIdx.x % 32 / 4, member = threadIdx.x % 4;
  float largest[2] = {-INFINITY, -INFINITY};  // score of each of the two rows
  float total[2] = {};                        // the lane's part of the sum of the weights
  float sum[kWidth / 8][4] = {};              // of weighted values

  // score[t]: of keys 8 t .. + 7, of tiles before `tiles`. queries: at the warp's first one.
  __device__ __forceinline__ void score(const float* queries, const float* keys, int tiles,
                                        float (&score)[kKeyTiles][4]) const {
    constexpr int kLine = kKeyLine<kWidth>;
#pragma unroll
    for (int i = 0; i < 4 * kKeyTiles; ++i) score[i / 4][i % 4] = 0.0f;
#pragma unroll 1
    for (int d = 4 * member; d < kWidth; d += 16) {
      const float* const low = queries + group * kLine + d;
      const typename Cores::Left left = Cores::left(*reinterpret_cast<const float4*>(low),
                                                    *reinterpret_cast<const float4*>(low + 8 * kLine));
#pragma unroll
      for (int t = 0; t < kKeyTiles; ++t) {
        if (t >= tiles) break;
        const float* const key = keys + (8 * t + group) * kLine + d;
        Cores::multiply(left, Cores::right(*reinterpret_cast<const float4*>(key)), score[t]);
      }
    }
  }

  // Scores of `count` keys become weights, zero behind the last one; the sums so far are scaled to them.
  __device__ __forceinline__ void weigh(int count, float scale, float (&score)[kKeyTiles][4]) {
    const auto exists = [&](int i) { return i / 4 * 8 + 2 * member + i % 2 < count; };
    const float before[2] = {largest[0], largest[1]};
#pragma unroll
    for (int i = 0; i < 4 * kKeyTiles; ++i) {
      if (exists(i)) largest[i % 4 / 2] = fmaxf(largest[i % 4 / 2], score[i / 4][i % 4]);
    }
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      largest[r] = largest_of_members(largest[r]);
      const float factor = exp_f32((before[r] - largest[r]) * scale);  // of zeros the first time
      total[r] *= factor;
#pragma unroll
      for (int i = 0; i < kWidth / 4; ++i) sum[i / 2][2 * r + i % 2] *= factor;
    }
#pragma unroll
    for (int i = 0; i < 4 * kKeyTiles; ++i) {
      float& weight = score[i / 4][i % 4];
      weight = exists(i) ? exp_f32((weight - largest[i % 4 / 2]) * scale) : 0.0f;
      total[i % 4 / 2] += weight;
    }
  }

  // A lane's weights of two tiles are of keys 2 member and 2 member + 1 of each, so its values are, too.
  __device__ __forceinline__ void add_values(const float (&weight)[kKeyTiles][4], const float* values,
                                             int tiles) {
    constexpr int kLine = kValueLine<kWidth>;
#pragma unroll
    for (int t = 0; t < kKeyTiles; t += 2) {
      if (t >= tiles) break;
      const float(&a)[4] = weight[t], (&b)[4] = weight[t + 1];
      const typename Cores::Left left = Cores::left({a[0], a[1], b[0], b[1]}, {a[2], a[3], b[2], b[3]});
#pragma unroll
      for (int c = 0; c < kWidth / 8; ++c) {
        const float* const value = values + (8 * t + 2 * member) * kLine + 8 * c + group;
        const float4 v = {value[0], value[kLine], value[8 * kLine], value[9 * kLine]};
        Cores::multiply(left, Cores::right(v), sum[c]);
      }
    }
  }

  // first_row: of the sequence; query: the warp's first one in it.
  __device__ __forceinline__ void store(const SelfAttentionArgs& a, int64_t first_row, int query,
                                        int head) const {
#pragma unroll
    for (int r = 0; r < 2; ++r) {
      const float all = sum_of_members(total[r]);
      const int item = query + group + 8 * r;
      if (item >= a.n) continue;
      const int64_t row = first_row + item;
#pragma unroll
      for (int c = 0; c < kWidth / 8; ++c) {
        float* const out = a.out + row * kHidden + head * kWidth + 8 * c + 2 * member;
        *reinterpret_cast<float2*>(out) = {sum[c][2 * r] / all, sum[c][2 * r + 1] / all};
      }
      if (a.softmax == nullptr || member > 0) continue;
      reinterpret_cast<float2*>(a.softmax)[row * a.heads + head] = {largest[r], all};
    }
  }
};

// Grid: (blocks of queries, heads, sequences) in one number, queries fastest.
template <int kWidth, Precision kPrecision>
__global__ void __launch_bounds__(kMostQueries<kWidth> / kWarpQueries * 32, 1)  // 1: else nvcc spills
    self_attention_mma_kernel(SelfAttentionArgs a, float scale) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const int queries = blockDim.x / 32 * kWarpQueries, blocks = (a.n + queries - 1) / queries;
  const int first = blockIdx.x % blocks * queries, head = blockIdx.x / blocks % a.heads;
  const int64_t first_row = int64_t{blockIdx.x / blocks / a.heads} * a.n;
  const float* const rows = a.qkv + first_row * kQkvWidth + head * kWidth;
  float* const keys = shared + queries * kKeyLine<kWidth>;
  float* const values = keys + kKeys * kKeyLine<kWidth>;
  const int own = threadIdx.x / 32 * kWarpQueries;
  WarpQueries<kWidth, kPrecision> warp;
  copy_rows<kWidth>(rows, first, queries, a.n, shared, kKeyLine<kWidth>);
#pragma unroll 1
  for (int from = 0; from < a.n; from += kKeys) {
    if (from > 0) __syncthreads();
    copy_rows<kWidth>(rows + kHidden, from, kKeys, a.n, keys, kKeyLine<kWidth>);
    copy_rows<kWidth>(rows + 2 * kHidden, from, kKeys, a.n, values, kValueLine<kWidth>);
    end_copy_group();
    wait_for_copies<0>();
    __syncthreads();
    const int count = min(a.n - from, kKeys), tiles = (count + 7) / 8;
    float weight[kKeyTiles][4];
    warp.score(shared + own * kKeyLine<kWidth>, keys, tiles, weight);
    warp.weigh(count, scale, weight);
    warp.add_values(weight, values, tiles);
  }
  warp.store(a, first_row, first + own, head);
}

template <int kWidth>
void self_attention_mma(const SelfAttentionArgs& args, float scale, cudaStream_t stream) {
  const int warps = std::min((args.n + kWarpQueries - 1) / kWarpQueries, kMostQueries<kWidth> / kWarpQueries);
  const int queries = warps * kWarpQueries, blocks = (args.n + queries - 1) / queries;
  const dim3 grid(static_cast<unsigned>(blocks) * args.heads * args.sequences);
  const auto run = [&](void (*kernel)(SelfAttentionArgs, float)) {
    launch(kernel, grid, warps * 32, attention_mma_bytes<kWidth>(queries), stream, args, scale);
  };
  with_precision(args.precision, [&]<Precision kPrecision>() {
    if constexpr (kPrecision != Precision::kFp32) run(self_attention_mma_kernel<kWidth, kPrecision>);
  });
}

template void self_attention_mma<kHidden>(const SelfAttentionArgs&, float, cudaStream_t);
template void self_attention_mma<kHidden / 2>(const SelfAttentionArgs&, float, cudaStream_t);
template void self_attention_mma<kHidden / 4>(const SelfAttentionArgs&, float, cudaStream_t);
template void self_attention_mma<kHidden / 8>(const SelfAttentionArgs&, float, cudaStream_t);

}  // namespace pointsman::cuda
