// SPDX-License-Identifier: Apache-2.0
// Self-attention of the items of a sequence, with the bits of kernels/cpu/encoder_layer.cpp in the forward
// pass. A block takes 32 items of one head of one sequence, four a half-warp, which it keeps in shared memory
// ("own"); all items of the sequence pass through shared memory in tiles of 32 ("other"). For the products of
// an own and an other item a lane takes one of 16 other items; for the sums over other items it takes the
// columns l + 16 i of its half-warp's own items. Scores never leave the block.
//
// self_attention_kernel: own are queries. The largest score is known before the first exponential, so the
//   scores are made twice: 3 n^2 d fma a head of d columns and n^2 exp. Shared memory: 3 tiles of
//   128 (d + 4) bytes and 2 KB; 18.7 KB at d = 32.
// self_attention_backward_kernel: once with queries as own, for their gradient, and once with keys and values
//   as own, for theirs: 3 n^2 d and 4 n^2 d fma and n^2 exp each. Scores are made again; the mean of the
//   weights' gradients under the weights is dout . out. Shared memory: 4 tiles and 2 or 4 KB; 70 KB at d =
//   128.
//
// Device memory an item and head: 16 d bytes forward, 44 d backward; tiles come n / 32 times from the L2.
#include <cmath>

#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/half_warp_attention.cuh"

namespace pointsman::cuda {

inline constexpr int kAttentionThreads = 128;  // with one block a multiprocessor asked for: else nvcc spills
inline constexpr int kAttentionHalfWarps = kAttentionThreads / kHalfWarp;
inline constexpr int kOwnItems = 4;                                      // of a half-warp
inline constexpr int kAttentionItems = kAttentionHalfWarps * kOwnItems;  // of a tile
inline constexpr int kQkv = 3 * kHidden;

// Rows of a tile lie so far apart that 8 lanes that each read a float4 of another row meet no bank conflict.
template <int kWidth>
inline constexpr int kTileLine = kWidth + 4;

// The block's shared memory.
template <int kWidth>
struct AttentionMemory {
  static constexpr int kTile = kAttentionItems * kTileLine<kWidth>;  // floats
  static constexpr int kWeights = kAttentionThreads * kOwnItems;

  float* shared;

  __device__ __forceinline__ float* tile(int number) const { return shared + number * kTile; }
  // Of the half-warp's own rows in a tile.
  __device__ __forceinline__ const float* own(int number) const {
    return tile(number) + threadIdx.x / kHalfWarp * kOwnItems * kTileLine<kWidth>;
  }
  // [kOwnItems][16] of the half-warp, behind `tiles` tiles.
  __device__ __forceinline__ float* weights(int tiles, int number) const {
    return tile(tiles) + number * kWeights + threadIdx.x / kHalfWarp * kOwnItems * kHalfWarp;
  }
};

template <int kWidth>
constexpr size_t attention_shared(int tiles, int weights) {
  using Memory = AttentionMemory<kWidth>;
  return sizeof(float) * (tiles * Memory::kTile + weights * Memory::kWeights);
}

// Which items a block owns.
struct AttentionBlock {
  int64_t first_row;  // of the sequence
  int head, first;    // first: own item

  __device__ __forceinline__ explicit AttentionBlock(const SelfAttentionArgs& a) {
    const int blocks = (a.n + kAttentionItems - 1) / kAttentionItems;
    first = static_cast<int>(blockIdx.x % blocks) * kAttentionItems;
    head = static_cast<int>(blockIdx.x / blocks) % a.heads;
    first_row = static_cast<int64_t>(blockIdx.x / blocks / a.heads) * a.n;
  }
  __device__ __forceinline__ int own_item(int i) const {
    return first + static_cast<int>(threadIdx.x) / kHalfWarp * kOwnItems + i;
  }
};

// Columns 0 .. kWidth - 1 of rows first .. first + 31; zeros from row n on.
template <int kWidth>
__device__ __forceinline__ void load_attention_tile(const float* rows, int ld, int first, int n,
                                                    float* tile) {
  constexpr int kVectors = kWidth / 4;
  for (int at = threadIdx.x; at < kAttentionItems * kVectors; at += kAttentionThreads) {
    const int row = at / kVectors, column = at % kVectors * 4;
    const float* from = rows + static_cast<int64_t>(first + row) * ld + column;
    *reinterpret_cast<float4*>(tile + row * kTileLine<kWidth> + column) =
        first + row < n ? *reinterpret_cast<const float4*>(from) : float4{0.0f, 0.0f, 0.0f, 0.0f};
  }
}

// dot[i] = own row i . other, upward from 0.
template <int kWidth>
__device__ __forceinline__ void dot_own(const float* own, const float* other, float (&dot)[kOwnItems]) {
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
template <int kWidth>
__device__ __forceinline__ void add_weighted(HalfWarp w, const float* weights, const float* rows, int count,
                                             float (&sum)[kOwnItems][kWidth / kHalfWarp]) {
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
      for (int c = 0; c < kWidth / kHalfWarp; ++c) {
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
// first one's row in a tile. load(first): fills the tiles. All threads of the block call it.
template <int kWidth, typename Load, typename Visit>
__device__ __forceinline__ void for_each_sixteen(int n, const Load& load, const Visit& visit) {
  for (int first = 0; first < n; first += kAttentionItems) {
    __syncthreads();
    load(first);
    __syncthreads();
    for (int at = 0; at < kAttentionItems && first + at < n; at += kHalfWarp) {
      const int left = n - first - at;
      visit(first + at, left < kHalfWarp ? left : kHalfWarp, at * kTileLine<kWidth>);
    }
  }
}

// ---------------------------------------------------------------------------- forward

// largest[i] = the largest score of own query i; keys: a tile.
template <int kWidth>
__device__ __forceinline__ void largest_scores(HalfWarp w, const float* rows, int n, const float* own,
                                               float* keys, float (&largest)[kOwnItems]) {
#pragma unroll
  for (int i = 0; i < kOwnItems; ++i) largest[i] = -INFINITY;
  const auto load = [&](int first) { load_attention_tile<kWidth>(rows + kHidden, kQkv, first, n, keys); };
  for_each_sixteen<kWidth>(n, load, [&](int, int count, int offset) {
    float score[kOwnItems];
    dot_own<kWidth>(own, keys + offset + w.lane * kTileLine<kWidth>, score);
    if (w.lane >= count) return;
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) largest[i] = fmaxf(largest[i], score[i]);
  });
#pragma unroll
  for (int i = 0; i < kOwnItems; ++i) largest[i] = largest_lane(w, largest[i]);
}

template <int kWidth>
__device__ __forceinline__ void store_attended(HalfWarp w, const SelfAttentionArgs& a,
                                               const AttentionBlock& block, const float (&largest)[kOwnItems],
                                               const float (&total)[kOwnItems],
                                               const float (&sum)[kOwnItems][kWidth / kHalfWarp]) {
#pragma unroll
  for (int i = 0; i < kOwnItems; ++i) {
    const int item = block.own_item(i);
    if (item >= a.n) return;
    const int64_t row = block.first_row + item;
    float* out = a.out + row * kHidden + block.head * kWidth + w.lane;
#pragma unroll
    for (int c = 0; c < kWidth / kHalfWarp; ++c) out[kHalfWarp * c] = sum[i][c] / total[i];
    if (a.softmax == nullptr || w.lane > 0) continue;
    reinterpret_cast<float2*>(a.softmax)[row * a.heads + block.head] = make_float2(largest[i], total[i]);
  }
}

template <int kWidth>
__global__ void __launch_bounds__(kAttentionThreads, 1)
    self_attention_kernel(SelfAttentionArgs a, float scale) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const AttentionMemory<kWidth> memory{shared};
  const HalfWarp w = this_half_warp();
  const AttentionBlock block(a);
  const float* rows = a.qkv + block.first_row * kQkv + block.head * kWidth;
  float *keys = memory.tile(1), *values = memory.tile(2), *weights = memory.weights(3, 0);
  load_attention_tile<kWidth>(rows, kQkv, block.first, a.n, memory.tile(0));
  float largest[kOwnItems], total[kOwnItems] = {}, sum[kOwnItems][kWidth / kHalfWarp] = {};
  largest_scores<kWidth>(w, rows, a.n, memory.own(0), keys, largest);
  const auto load = [&](int first) {
    load_attention_tile<kWidth>(rows + kHidden, kQkv, first, a.n, keys);
    load_attention_tile<kWidth>(rows + 2 * kHidden, kQkv, first, a.n, values);
  };
  for_each_sixteen<kWidth>(a.n, load, [&](int, int count, int offset) {
    float score[kOwnItems];
    dot_own<kWidth>(memory.own(0), keys + offset + w.lane * kTileLine<kWidth>, score);
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) {
      const float e = w.lane < count ? exp_f32((score[i] - largest[i]) * scale) : 0.0f;
      total[i] += e;
      weights[i * kHalfWarp + w.lane] = e;
    }
    __syncwarp(w.mask);
    add_weighted<kWidth>(w, weights, values + offset, count, sum);
    __syncwarp(w.mask);
  });
#pragma unroll
  for (int i = 0; i < kOwnItems; ++i) total[i] = sum_lanes(w, total[i]);
  store_attended<kWidth>(w, a, block, largest, total, sum);
}

// ---------------------------------------------------------------------------- backward

// A query's softmax: p_j = exp((score_j - largest) scale) inverse; mean: of the gradients of p under p.
struct QuerySoftmax {
  float largest, inverse, mean;
};

// All but the mean, of a query; nothing behind the last.
__device__ __forceinline__ QuerySoftmax load_softmax(const SelfAttentionArgs& a, const AttentionBlock& block,
                                                     int item) {
  if (item >= a.n) return {0.0f, 0.0f, 0.0f};
  const float2 found =
      reinterpret_cast<const float2*>(a.softmax)[(block.first_row + item) * a.heads + block.head];
  return {found.x, 1.0f / found.y, 0.0f};
}

// dout . out of own query i, by all lanes.
template <int kWidth>
__device__ __forceinline__ float mean_gradient(HalfWarp w, const SelfAttentionArgs& a,
                                               const AttentionBlock& block, int item, const float* dout) {
  if (item >= a.n) return 0.0f;
  const float* out = a.out + (block.first_row + item) * kHidden + block.head * kWidth;
  float sum = 0.0f;
#pragma unroll
  for (int d = w.lane; d < kWidth; d += kHalfWarp) sum = fmaf(dout[d], out[d], sum);
  return sum_lanes(w, sum);
}

template <int kWidth>
__device__ __forceinline__ void store_gradient(HalfWarp w, const SelfAttentionBackwardArgs& a,
                                               const AttentionBlock& block, int column,
                                               const float (&sum)[kOwnItems][kWidth / kHalfWarp]) {
#pragma unroll
  for (int i = 0; i < kOwnItems; ++i) {
    const int item = block.own_item(i);
    if (item >= a.forward.n) return;
    float* out = a.dqkv + (block.first_row + item) * kQkv + column + block.head * kWidth + w.lane;
#pragma unroll
    for (int c = 0; c < kWidth / kHalfWarp; ++c) out[kHalfWarp * c] = sum[i][c];
  }
}

// Of the four own queries, by the half-warp; their means also go to the keys' launch. dout: own rows.
template <int kWidth>
__device__ __forceinline__ void own_softmax(HalfWarp w, const SelfAttentionBackwardArgs& args,
                                            const AttentionBlock& block, const float* dout,
                                            QuerySoftmax (&own)[kOwnItems]) {
  const SelfAttentionArgs& a = args.forward;
#pragma unroll
  for (int i = 0; i < kOwnItems; ++i) {
    const int item = block.own_item(i);
    own[i] = load_softmax(a, block, item);
    own[i].mean = mean_gradient<kWidth>(w, a, block, item, dout + i * kTileLine<kWidth>);
    if (w.lane == 0 && item < a.n) args.means[(block.first_row + item) * a.heads + block.head] = own[i].mean;
  }
}

// What a lane finds of one other item and the four own ones.
struct ScorePair {
  float score[kOwnItems], dp[kOwnItems];  // the products q k and dout v
};

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
  const SelfAttentionArgs& a = args.forward;
  const AttentionMemory<kWidth> memory{shared};
  const HalfWarp w = this_half_warp();
  const AttentionBlock block(a);
  const float* qkv = a.qkv + block.first_row * kQkv + block.head * kWidth;
  const float* dout = args.dout + block.first_row * kHidden + block.head * kWidth;
  const auto load_pair = [&](bool keys, int first, int tile) {
    load_attention_tile<kWidth>(keys ? qkv + kHidden : qkv, kQkv, first, a.n, memory.tile(tile));
    load_attention_tile<kWidth>(keys ? qkv + 2 * kHidden : dout, keys ? kQkv : kHidden, first, a.n,
                                memory.tile(tile + 1));
  };
  load_pair(kKeys, block.first, 0);
  __syncthreads();
  QuerySoftmax queries[kKeys ? 1 : kOwnItems];
  if constexpr (!kKeys) own_softmax<kWidth>(w, args, block, memory.own(1), queries);
  float *dscores = memory.weights(4, 0), *weights = memory.weights(4, 1);
  float dquery[kOwnItems][kWidth / kHalfWarp] = {}, dvalue[kOwnItems][kWidth / kHalfWarp] = {};
  const auto load = [&](int first) { load_pair(!kKeys, first, 2); };
  for_each_sixteen<kWidth>(a.n, load, [&](int first, int count, int offset) {
    const int row = offset + w.lane * kTileLine<kWidth>;
    ScorePair pair;
    dot_own<kWidth>(memory.own(0), memory.tile(2) + row, pair.score);
    dot_own<kWidth>(memory.own(1), memory.tile(3) + row, pair.dp);
    if constexpr (kKeys) {
      queries[0] = load_softmax(a, block, first + w.lane);
      if (w.lane < count)
        queries[0].mean = args.means[(block.first_row + first + w.lane) * a.heads + block.head];
    }
#pragma unroll
    for (int i = 0; i < kOwnItems; ++i) {
      const float2 found = score_gradient(queries[kKeys ? 0 : i], pair.score[i], pair.dp[i], scale);
      dscores[i * kHalfWarp + w.lane] = found.y;
      if constexpr (kKeys) weights[i * kHalfWarp + w.lane] = found.x;
    }
    __syncwarp(w.mask);
    add_weighted<kWidth>(w, dscores, memory.tile(2) + offset, count, dquery);
    if constexpr (kKeys) add_weighted<kWidth>(w, weights, memory.tile(3) + offset, count, dvalue);
    __syncwarp(w.mask);
  });
  store_gradient<kWidth>(w, args, block, kKeys ? kHidden : 0, dquery);
  if constexpr (kKeys) store_gradient<kWidth>(w, args, block, 2 * kHidden, dvalue);
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
  if (args.sequences == 0) return;
  with_width(args.heads, [&]<int kWidth>() {
    launch(self_attention_kernel<kWidth>, blocks_of(args), dim3(kAttentionThreads),
           attention_shared<kWidth>(3, 1), stream, args, scale_of(kWidth));
  });
}

void self_attention_backward(const SelfAttentionBackwardArgs& args, cudaStream_t stream) {
  if (args.forward.sequences == 0) return;
  with_width(args.forward.heads, [&]<int kWidth>() {
    const dim3 blocks = blocks_of(args.forward), threads(kAttentionThreads);
    launch(self_attention_backward_kernel<kWidth, false>, blocks, threads, attention_shared<kWidth>(4, 1),
           stream, args, scale_of(kWidth));
    launch(self_attention_backward_kernel<kWidth, true>, blocks, threads, attention_shared<kWidth>(4, 2),
           stream, args, scale_of(kWidth));
  });
}

}  // namespace pointsman::cuda
