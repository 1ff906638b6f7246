// SPDX-License-Identifier: Apache-2.0
// What the backward passes by half-warps need besides half_warp_attention.cuh.
#pragma once

#include "kernels/cuda/half_warp_attention.cuh"

namespace pointsman::cuda {

// Room for a list of n items, or their scores: attention_scores() reads items four at a time.
POINTSMAN_HOST_DEVICE constexpr int list_length(int n) { return (n + 3) / 4 * 4; }

__device__ __forceinline__ double sum_lanes(HalfWarp w, double x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(w.mask, x, step);
  return x;
}

// Bit l: lane l's flag.
__device__ __forceinline__ unsigned ballot_lanes(HalfWarp w, bool flag) {
  const unsigned all = __ballot_sync(w.mask, flag);
  return (all >> (threadIdx.x & 16)) & 0xFFFFu;
}

__device__ __forceinline__ void store_owned(HalfWarp w, const float (&x)[kOwned], float* vector) {
#pragma unroll
  for (int i = 0; i < kOwned; ++i) vector[w.lane + kHalfWarp * i] = x[i];
}

__device__ __forceinline__ void store_reference(HalfWarp w, const float (&x)[kOwned], float* row) {
  *reinterpret_cast<float4*>(row + 4 * w.lane) = make_float4(x[0], x[1], x[2], x[3]);
  *reinterpret_cast<float4*>(row + kHidden / 2 + 4 * w.lane) = make_float4(x[4], x[5], x[6], x[7]);
}

}  // namespace pointsman::cuda
