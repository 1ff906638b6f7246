// SPDX-License-Identifier: Apache-2.0
// Self-attention of the items of a sequence, with the bits of kernels/cpu/encoder_layer.cpp in the forward
// pass. A block takes 32 items of one head of one sequence, four a half-warp, which it keeps in shared memory
// ("own"); all items of the sequence pass through shared memory in tiles of 32 ("other"). For the products of
// an own and an other item a lane takes one of 16 other items; for the sums over other items it takes the
// columns l + 16 i of its half-warp's own items. Scores never leave the block.
//
// self_attention_kernel: own are queries. The largest score is known before the first exponential, so the
//   scores are made twice.
// self_attention_backward_kernel: once with queries as own, for their gradient, and once with keys and values
//   as own, for theirs. Scores are made again; the mean of the weights' gradients under the weights is
//   dout . out.
#include <cmath>

#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/self_attention_mma.h"

namespace pointsman::cuda {

inline constexpr int kAttentionThreads = 128;  // with one block a multiprocessor asked for: else nvcc spills
inline constexpr int kAttentionHalfWarps = kAttentionThreads / kHalfWarp;
inline constexpr int kOwnItems = 4;                                      // of a half-warp
inline constexpr int kAttentionItems = kAttentionHalfWarps * kOwnItems;  // of a tile
inline constexpr int kQkv = 3 * kHidden;

// Rows of a tile lie so far apart that 8 lanes that each read a float4 of another row meet no bank conflict.
template <int kWidth>
inline constexpr int kTileLine = kWidth + 4;

// A query's softmax: p_j = exp((score_j - largest) scale) inverse; mean: of the gradients of p under p.
struct QuerySoftmax {
  float largest, inverse, mean;
};

// A block of 32 own items of a head of kWidth columns, with its shared memory: some tiles, then some arrays
// of weights. Its threads call every function together.
template <int kWidth>
struct AttentionBlock {
  static constexpr int kTile = kAttentionItems * kTileLine<kWidth>;  // floats
  static constexpr int kWeights = kAttentionThreads * kOwnItems;
  static constexpr int kColumns = kWidth / kHalfWarp;  // of a lane
  using Sums = float[kOwnItems][kColumns];

  const SelfAttentionArgs& a;
  float* shared;
  HalfWarp w = this_half_warp();
  int64_t first_row;  // of the sequence
  int head, first;    // first: own item

  __device__ __forceinline__ AttentionBlock(const SelfAttentionArgs& args, float* memory)
      : a(args), shared(memory) {
    const int blocks = (a.n + kAttentionItems - 1) / kAttentionItems;
    first = static_cast<int>(blockIdx.x % blocks) * kAttentionItems;
    head = static_cast<int>(blockIdx.x / blocks) % a.heads;
    first_row = static_cast<int64_t>(blockIdx.x / blocks / a.heads) * a.n;
  }

  static constexpr size_t bytes(int tiles, int weights) {
    return sizeof(float) * (tiles * kTile + weights * kWeights);
  }
  __device__ __forceinline__ float* tile(int number) const { return shared + number * kTile; }
  // Of the half-warp's own rows in a tile.
  __device__ __forceinline__ const float* own(int number) const {
    return tile(number) + threadIdx.x / kHalfWarp * kOwnItems * kTileLine<kWidth>;
  }
  // [kOwnItems][16] of the half-warp, behind `tiles` tiles.
  __device__ __forceinline__ float* weights(int tiles, int number) const {
    return tile(tiles) + number * kWeights + threadIdx.x / kHalfWarp * kOwnItems * kHalfWarp;
  }
  __device__ __forceinline__ int own_item(int i) const {
    return first + static_cast<int>(threadIdx.x) / kHalfWarp * kOwnItems + i;
  }

  // Columns 0 .. kWidth - 1 of rows from .. from + 31 into a tile; zeros from row n on.
  __device__ __forceinline__ void load(const float* rows, int ld, int from, int number) const {
    constexpr int kVectors = kWidth / 4;
    for (int at = threadIdx.x; at < kAttentionItems * kVectors; at += kAttentionThreads) {
      const int row = at / kVectors, column = at % kVectors * 4;
      const float* x = rows + static_cast<int64_t>(from + row) * ld + column;
      *reinterpret_cast<float4*>(tile(number) + row * kTileLine<kWidth> + column) =
          from + row < a.n ? *reinterpret_cast<const float4*>(x) : float4{0.0f, 0.0f, 0.0f, 0.0f};
    }
  }

  // dot[i] = own row i . other, upward from 0.
  __device__ __forceinline__ static void dot_own(const float* own, const float* other,
                                                 float (&dot)[kOwnItems]) {
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) dot[i] = 0.0f;
#pragma unroll 4
    for (int d = 0; d < kWidth; d += 4) {
      const float4 y = *reinterpret_cast<const float4*>(other + d);
#pragma unroll
      for (int i = 0; i < kOwnItems; ++i) {
        const float4 x = *reinterpret_cast<const float4*>(own + i * kTileLine<kWidth> + d);
        dot[i] = fmaf(x.x, y.x, dot[i]);
        dot[i] = fmaf(x.y, y.y, dot[i]);
        dot[i] = fmaf(x.z, y.z, dot[i]);
        dot[i] = fmaf(x.w, y.w, dot[i]);
      }
    }
  }

  // sum[i] += sum over j < count, upward, of weights[i][j] row j.
  __device__ __forceinline__ void add_weighted(const float* weights, const float* rows, int count,
                                               Sums& sum) const {
#pragma unroll 1
    for (int j = 0; j < count; j += 4) {
      float4 four[kOwnItems];
#pragma unroll
      for (int i = 0; i < kOwnItems; ++i)
        four[i] = *reinterpret_cast<const float4*>(weights + i * kHalfWarp + j);
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        if (j + t >= count) break;
#pragma unroll
        for (int c = 0; c < kColumns; ++c) {
          const float value = rows[(j + t) * kTileLine<kWidth> + w.lane + kHalfWarp * c];
#pragma unroll
          for (int i = 0; i < kOwnItems; ++i) {
            const float weight = t == 0 ? four[i].x : t == 1 ? four[i].y : t == 2 ? four[i].z : four[i].w;
            sum[i][c] = fmaf(weight, value, sum[i][c]);
          }
        }
      }
    }
  }

  // Calls visit(first, count, offset) for each 16 items of all n: `count` of them, `offset` the floats to the
  // first one's row in a tile. fill(first): fills the tiles.
  template <typename Fill, typename Visit>
  __device__ __forceinline__ void for_each_sixteen(const Fill& fill, const Visit& visit) const {
    for (int from = 0; from < a.n; from += kAttentionItems) {
      __syncthreads();
      fill(from);
      __syncthreads();
      for (int at = 0; at < kAttentionItems && from + at < a.n; at += kHalfWarp) {
        const int left = a.n - from - at;
        visit(from + at, left < kHalfWarp ? left : kHalfWarp, at * kTileLine<kWidth>);
      }
    }
  }

  // Forward: largest[i] = the largest score of own query i, in tile 0; keys go through tile 1.
  __device__ __forceinline__ void largest_scores(const float* rows, float (&largest)[kOwnItems]) const {
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) largest[i] = -INFINITY;
    const auto fill = [&](int from) { load(rows + kHidden, kQkv, from, 1); };
    for_each_sixteen(fill, [&](int, int count, int offset) {
      float score[kOwnItems];
      dot_own(own(0), tile(1) + offset + w.lane * kTileLine<kWidth>, score);
      if (w.lane >= count) return;
#pragma unroll
      for (int i = 0; i < kOwnItems; ++i) largest[i] = fmaxf(largest[i], score[i]);
    });
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) largest[i] = largest_lane(w, largest[i]);
  }

  __device__ __forceinline__ void store_attended(const float (&largest)[kOwnItems],
                                                 const float (&total)[kOwnItems], const Sums& sum) const {
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) {
      const int item = own_item(i);
      if (item >= a.n) return;
      const int64_t row = first_row + item;
      float* out = a.out + row * kHidden + head * kWidth + w.lane;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) out[kHalfWarp * c] = sum[i][c] / total[i];
      if (a.softmax == nullptr || w.lane > 0) continue;
      reinterpret_cast<float2*>(a.softmax)[row * a.heads + head] = make_float2(largest[i], total[i]);
    }
  }

  // Backward: all but the mean of a query's softmax; nothing behind the last.
  __device__ __forceinline__ QuerySoftmax load_softmax(int item) const {
    if (item >= a.n) return {0.0f, 0.0f, 0.0f};
    const float2 found = reinterpret_cast<const float2*>(a.softmax)[(first_row + item) * a.heads + head];
    return {found.x, 1.0f / found.y, 0.0f};
  }

  // dout . out of an own query, by all lanes.
  __device__ __forceinline__ float mean_gradient(int item, const float* dout) const {
    if (item >= a.n) return 0.0f;
    const float* out = a.out + (first_row + item) * kHidden + head * kWidth;
    float sum = 0.0f;
#pragma unroll
    for (int d = w.lane; d < kWidth; d += kHalfWarp) sum = fmaf(dout[d], out[d], sum);
    return sum_lanes(w, sum);
  }

  // Of the four own queries, by the half-warp; their means also go to the keys' launch. dout: own rows.
  __device__ __forceinline__ void own_softmax(const float* dout, float* means,
                                              QuerySoftmax (&softmax)[kOwnItems]) const {
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) {
      const int item = own_item(i);
      softmax[i] = load_softmax(item);
      softmax[i].mean = mean_gradient(item, dout + i * kTileLine<kWidth>);
      if (w.lane == 0 && item < a.n) means[(first_row + item) * a.heads + head] = softmax[i].mean;
    }
  }

  __device__ __forceinline__ void store_gradient(float* dqkv, int column, const Sums& sum) const {
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) {
      const int item = own_item(i);
      if (item >= a.n) return;
      float* out = dqkv + (first_row + item) * kQkv + column + head * kWidth + w.lane;
#pragma unroll
      for (int c = 0; c < kColumns; ++c) out[kHalfWarp * c] = sum[i][c];
    }
  }
};

template <int kWidth>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    self_attention_kernel(SelfAttentionArgs a, float scale) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const AttentionBlock<kWidth> block(a, shared);
  const HalfWarp w = block.w;
  const float* rows = a.qkv + block.first_row * kQkv + block.head * kWidth;
  float* weights = block.weights(3, 0);
  block.load(rows, kQkv, block.first, 0);
  float largest[kOwnItems], total[kOwnItems] = {}, sum[kOwnItems][kWidth / kHalfWarp] = {};
  block.largest_scores(rows, largest);
  const auto fill = [&](int first) {
    block.load(rows + kHidden, kQkv, first, 1);
    block.load(rows + 2 * kHidden, kQkv, first, 2);
  };
  block.for_each_sixteen(fill, [&](int, int count, int offset) {
    float score[kOwnItems];
    block.dot_own(block.own(0), block.tile(1) + offset + w.lane * kTileLine<kWidth>, score);
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) {
      const float e = w.lane < count ? exp_f32((score[i] - largest[i]) * scale) : 0.0f;
      total[i] += e;
      weights[i * kHalfWarp + w.lane] = e;
    }
    __syncwarp(w.mask);
    block.add_weighted(weights, block.tile(2) + offset, count, sum);
    __syncwarp(w.mask);
  });
#pragma unroll
  for (int i = 0; i < kOwnItems; ++i) total[i] = sum_lanes(w, total[i]);
  block.store_attended(largest, total, sum);
}

// p and the gradient of the score.
__device__ __forceinline__ float2 score_gradient(const QuerySoftmax& query, float score, float dp,
                                                 float scale) {
  const float p = exp_f32((score - query.largest) * scale) * query.inverse;
  return make_float2(p, p * (dp - query.mean) * scale);
}

// kKeys: keys and values are own and queries and their dout other; else the other way round. Tiles 0 and 1
// are own, 2 and 3 other: queries or keys, then dout or values. The queries' launch writes the means that the
// keys' reads.
template <int kWidth, bool kKeys>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    self_attention_backward_kernel(SelfAttentionBackwardArgs args, float scale) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const AttentionBlock<kWidth> block(args.forward, shared);
  const HalfWarp w = block.w;
  const float* qkv = args.forward.qkv + block.first_row * kQkv + block.head * kWidth;
  const float* dout = args.dout + block.first_row * kHidden + block.head * kWidth;
  const auto load_pair = [&](bool keys, int first, int tile) {
    block.load(keys ? qkv + kHidden : qkv, kQkv, first, tile);
    block.load(keys ? qkv + 2 * kHidden : dout, keys ? kQkv : kHidden, first, tile + 1);
  };
  load_pair(kKeys, block.first, 0);
  __syncthreads();
  QuerySoftmax queries[kKeys ? 1 : kOwnItems];
  if constexpr (!kKeys) block.own_softmax(block.own(1), args.means, queries);
  float *dscores = block.weights(4, 0), *weights = block.weights(4, 1);
  float dquery[kOwnItems][kWidth / kHalfWarp] = {}, dvalue[kOwnItems][kWidth / kHalfWarp] = {};
  const auto fill = [&](int first) { load_pair(!kKeys, first, 2); };
  block.for_each_sixteen(fill, [&](int first, int count, int offset) {
    const int row = offset + w.lane * kTileLine<kWidth>;
    float score[kOwnItems], dp[kOwnItems];  // q k and dout v of one other item and the four own ones
    block.dot_own(block.own(0), block.tile(2) + row, score);
    block.dot_own(block.own(1), block.tile(3) + row, dp);
    if constexpr (kKeys) {
      const int item = first + w.lane;
      queries[0] = block.load_softmax(item);
      if (w.lane < count)
        queries[0].mean = args.means[(block.first_row + item) * args.forward.heads + block.head];
    }
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) {
      const float2 found = score_gradient(queries[kKeys ? 0 : i], score[i], dp[i], scale);
      dscores[i * kHalfWarp + w.lane] = found.y;
      if constexpr (kKeys) weights[i * kHalfWarp + w.lane] = found.x;
    }
    __syncwarp(w.mask);
    block.add_weighted(dscores, block.tile(2) + offset, count, dquery);
    if constexpr (kKeys) block.add_weighted(weights, block.tile(3) + offset, count, dvalue);
    __syncwarp(w.mask);
  });
  block.store_gradient(args.dqkv, kKeys ? kHidden : 0, dquery);
  if constexpr (kKeys) block.store_gradient(args.dqkv, 2 * kHidden, dvalue);
}

namespace {

// f.template operator()<d>() with the width of a head.
template <typename F>
void with_width(int heads, const F& f) {
  switch (heads) {
    case 1:
      return f.template operator()<kHidden>();
    case 2:
      return f.template operator()<kHidden / 2>();
    case 4:
      return f.template operator()<kHidden / 4>();
    case 8:
      return f.template operator()<kHidden / 8>();
    default:
      throw std::invalid_argument("number of heads");
  }
}

dim3 blocks_of(const SelfAttentionArgs& a) {
  const int blocks = (a.n + kAttentionItems - 1) / kAttentionItems;
  return dim3(static_cast<unsigned>(blocks) * a.heads * a.sequences);
}

float scale_of(int width) { return 1.0f / std::sqrt(static_cast<float>(width)); }

}  // namespace

void self_attention(const SelfAttentionArgs& args, cudaStream_t stream) {
  with_width(args.heads, [&]<int kWidth>() {
    if (args.precision != Precision::kFp32) return self_attention_mma<kWidth>(args, scale_of(kWidth), stream);
    launch(self_attention_kernel<kWidth>, blocks_of(args), kAttentionThreads,
           AttentionBlock<kWidth>::bytes(3, 1), stream, args, scale_of(kWidth));
  });
}

void self_attention_backward(const SelfAttentionBackwardArgs& args, cudaStream_t stream) {
  with_width(args.forward.heads, [&]<int kWidth>() {
    const dim3 blocks = blocks_of(args.forward), threads(kAttentionThreads);
    launch(self_attention_backward_kernel<kWidth, false>, blocks, threads,
           AttentionBlock<kWidth>::bytes(4, 1), stream, args, scale_of(kWidth));
    launch(self_attention_backward_kernel<kWidth, true>, blocks, threads, AttentionBlock<kWidth>::bytes(4, 2),
           stream, args, scale_of(kWidth));
  });
}

}  // namespace pointsman::cuda
