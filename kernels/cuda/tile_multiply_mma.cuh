// SPDX-License-Identifier: Apache-2.0
// The products of tile_multiply.cuh on tensor cores: sums in fp32, factors as the precision says.
//
// The left operand is 16 rows of the weights as stored, [columns][H]. The right one is 8 rows of the tile, so
// that a tile of 8 rows fills it. A fragment is their 16 x 8 sums. Thread (group = lane / 4, member = lane %
// 4) gets the sums of left rows `group` and group + 8 with tile rows 2 member and 2 member + 1. Left rows 0
// .. 7 are 8 units of one gate, and 8 .. 15 the same units of the next gate. Two such operands leave all four
// gates of a unit in one thread: it makes the cell without an exchange and holds c in registers.
//
// In a block of 32 rows (512 threads) each warp takes 8 units of all rows. In smaller blocks four warps take
// every 8 rows, 32 units each. Either way a thread has four "pairs" of a unit and two rows, and makes the
// gates of two pairs at a time: more sums would not fit into 128 registers. Weights come by 16-byte loads of
// 64 bytes a left row, and the next ones are on their way while these are multiplied; k runs in the order
// that these loads give.
#pragma once

#include "kernels/common/network.h"
#include "kernels/common/precision.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/tile_multiply.cuh"

namespace pointsman::cuda {

// Where element k of a tile's row lies in shared memory. Two neighbouring rows are read as float4, rows of
// one parity written as words: neither meet in a bank.
__device__ __forceinline__ int swizzled(int row, int k) {
  return row * kHidden + (k ^ ((row & 1) << 4) ^ ((row >> 1 & 3) << 3));
}

// Fragments of 16 consecutive k. A thread holds four of them (x, y, z, w) for each of its rows.
template <Precision kPrecision>
struct TensorCores;

template <>
struct TensorCores<Precision::kTf32> {
  struct Left {
    uint32_t x[2][4];
  };
  struct Right {
    uint32_t x[2][2];
  };
  static __device__ __forceinline__ Left left(float4 low, float4 high) {
    return {{{to_tf32(low.x), to_tf32(high.x), to_tf32(low.y), to_tf32(high.y)},
             {to_tf32(low.z), to_tf32(high.z), to_tf32(low.w), to_tf32(high.w)}}};
  }
  static __device__ __forceinline__ Right right(float4 v) {
    return {{{to_tf32(v.x), to_tf32(v.y)}, {to_tf32(v.z), to_tf32(v.w)}}};
  }
  static __device__ __forceinline__ void multiply(const Left& a, const Right& b, float (&d)[4]) {
    mma_m16n8k8_tf32(d, a.x[0], b.x[0]);
    mma_m16n8k8_tf32(d, a.x[1], b.x[1]);
  }
};

// x - tf32(x), exact.
__device__ __forceinline__ float tf32_rest(float x) { return x - __uint_as_float(to_tf32(x)); }
__device__ __forceinline__ float4 tf32_rest(float4 v) {
  return {tf32_rest(v.x), tf32_rest(v.y), tf32_rest(v.z), tf32_rest(v.w)};
}

// (big + small) (big + small) without the product of the small ones, the smaller terms first.
template <>
struct TensorCores<Precision::kTf32x3> {
  using Single = TensorCores<Precision::kTf32>;
  struct Left {
    Single::Left big, small;
  };
  struct Right {
    Single::Right big, small;
  };
  static __device__ __forceinline__ Left left(float4 low, float4 high) {
    return {Single::left(low, high), Single::left(tf32_rest(low), tf32_rest(high))};
  }
  static __device__ __forceinline__ Right right(float4 v) {
    return {Single::right(v), Single::right(tf32_rest(v))};
  }
  static __device__ __forceinline__ void multiply(const Left& a, const Right& b, float (&d)[4]) {
    Single::multiply(a.small, b.big, d);
    Single::multiply(a.big, b.small, d);
    Single::multiply(a.big, b.big, d);
  }
};

template <>
struct TensorCores<Precision::kBf16> {
  struct Left {
    uint32_t x[4];
  };
  struct Right {
    uint32_t x[2];
  };
  static __device__ __forceinline__ Left left(float4 low, float4 high) {
    return {{to_bf16_pair(low.x, low.y), to_bf16_pair(high.x, high.y), to_bf16_pair(low.z, low.w),
             to_bf16_pair(high.z, high.w)}};
  }
  static __device__ __forceinline__ Right right(float4 v) {
    return {{to_bf16_pair(v.x, v.y), to_bf16_pair(v.z, v.w)}};
  }
  static __device__ __forceinline__ void multiply(const Left& a, const Right& b, float (&d)[4]) {
    mma_m16n8k16_bf16(d, a.x, b.x);
  }
};

// Distances in the weights, in floats: between the two halves of a left operand, between operands 2 i and 2 i
// + 1, and from each such pair to the next.
struct LeftStrides {
  int half, inner, outer;
  __device__ __forceinline__ int operator()(int operand) const {
    return operand / 2 * outer + operand % 2 * inner;
  }
};

// d[t kOperands + a]: left operand a by rows first_row + 8 t .. + 7 of x (shared memory, swizzled). weights:
// device memory, the first left row of the warp. By whole warps.
template <Precision kPrecision, int kOperands, int kTiles>
__device__ __forceinline__ void tile_multiply_mma(const float* weights, LeftStrides strides, const float* x,
                                                  int first_row, float (&d)[kOperands * kTiles][4]) {
  using Cores = TensorCores<kPrecision>;
  const int thread = made_here(threadIdx.x), group = thread % 32 / 4, member = thread % 4;
#pragma unroll
  for (int i = 0; i < 4 * kOperands * kTiles; ++i) d[i / 4][i % 4] = 0.0f;
  const float* from = weights + group * kHidden + 4 * member;
  float4 low = __ldg(reinterpret_cast<const float4*>(from));
  float4 high = __ldg(reinterpret_cast<const float4*>(from + strides.half));
#pragma unroll 1
  for (int k = 0; k < kHidden; k += 16) {
    // The last round reads its own weights again rather than past the matrix.
    const int next_k = k + 16 < kHidden ? k + 16 : k;
#pragma unroll
    for (int a = 0; a < kOperands; ++a) {
      const typename Cores::Left left = Cores::left(low, high);
      const float* next = a + 1 < kOperands ? from + k + strides(a + 1) : from + next_k;
      low = __ldg(reinterpret_cast<const float4*>(next));
      high = __ldg(reinterpret_cast<const float4*>(next + strides.half));
#pragma unroll
      for (int t = 0; t < kTiles; ++t) {
        const float* row = x + swizzled(first_row + 8 * t + group, k + 4 * member);
        Cores::multiply(left, Cores::right(*reinterpret_cast<const float4*>(row)), d[t * kOperands + a]);
      }
    }
  }
}

// What a thread of the block holds of a product: pair p is of one unit (of queries also the 8th after it) and
// two rows.
struct MmaShare {
  int unit, unit_step, row, row_step;
  __device__ __forceinline__ int unit_of(int pair) const { return unit + pair * unit_step; }
  __device__ __forceinline__ int row_of(int pair, int r) const { return row + pair * row_step + r; }
};

// Four pairs: the gates of one unit each. kWhole: the block has 32 rows.
template <bool kWhole>
__device__ __forceinline__ MmaShare gate_share() {
  const int thread = made_here(threadIdx.x), warp = thread / 32, group = thread % 32 / 4, member = thread % 4;
  if constexpr (kWhole) return {8 * warp + group, 0, 2 * member, 8};
  return {32 * (warp % 4) + group, 8, 8 * (warp / 4) + 2 * member, 0};
}

// Two pairs: units 8 apart.
template <bool kWhole>
__device__ __forceinline__ MmaShare query_share() {
  const int thread = made_here(threadIdx.x), warp = thread / 32, group = thread % 32 / 4, member = thread % 4;
  if constexpr (kWhole) return {16 * (warp / 2) + group, 0, 16 * (warp % 2) + 2 * member, 8};
  return {32 * (warp % 4) + group, 16, 8 * (warp / 4) + 2 * member, 0};
}

// The pairs 2 pass and 2 pass + 1 only: as many sums as leave room for all the rest in registers. d[2 p] =
// gates i (of both rows) and f of the p-th of them, d[2 p + 1] = g and o. weight_hh: [4H][H].
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void multiply_gates(const float* weight_hh, const float* h, int pass,
                                               float (&d)[4][4]) {
  constexpr LeftStrides kStrides = {kHidden * kHidden, 2 * kHidden * kHidden, 8 * kHidden};
  const int warp = made_here(threadIdx.x) / 32;
  if constexpr (kWhole) {
    tile_multiply_mma<kPrecision, 2, 2>(weight_hh + 8 * warp * kHidden, kStrides, h, 16 * pass, d);
  } else {
    tile_multiply_mma<kPrecision, 4, 1>(weight_hh + (32 * (warp % 4) + 16 * pass) * kHidden, kStrides, h,
                                        8 * (warp / 4), d);
  }
}

// d[p]: both rows of a unit, then of the 8th after it. weights: [H][H].
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void multiply_queries(const float* weights, const float* h, float (&d)[2][4]) {
  constexpr LeftStrides kStrides = {8 * kHidden, 16 * kHidden, 0};
  const int warp = made_here(threadIdx.x) / 32;
  if constexpr (kWhole) {
    tile_multiply_mma<kPrecision, 1, 2>(weights + 16 * (warp / 2) * kHidden, kStrides, h, 16 * (warp % 2), d);
  } else {
    tile_multiply_mma<kPrecision, 2, 1>(weights + 32 * (warp % 4) * kHidden, kStrides, h, 8 * (warp / 4), d);
  }
}

}  // namespace pointsman::cuda
