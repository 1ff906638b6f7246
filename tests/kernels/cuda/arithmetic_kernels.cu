// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/half_warp_attention.cuh"
#include "tests/kernels/cuda/arithmetic_kernels.h"

namespace pointsman::cuda {
namespace {

constexpr int kThreads = 128;

template <bool kPairs>
__global__ void multiply_kernel(const uint32_t* a, const uint32_t* b, float* d) {
  const unsigned lane = threadIdx.x;
  uint32_t left[4], right[2];
  float sums[4];
  for (int i = 0; i < 4; ++i) left[i] = a[4 * lane + i], sums[i] = d[4 * lane + i];
  for (int i = 0; i < 2; ++i) right[i] = b[2 * lane + i];
  if constexpr (kPairs) {
    mma_m16n8k16_bf16(sums, left, right);
  } else {
    mma_m16n8k8_tf32(sums, left, right);
  }
  for (int i = 0; i < 4; ++i) d[4 * lane + i] = sums[i];
}

__device__ __forceinline__ uint64_t next_of(uint64_t& state) {  // splitmix64
  uint64_t z = (state += 0x9E3779B97F4A7C15ull);
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9ull;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EBull;
  return z ^ (z >> 31);
}

// Of one exponent in [low, high]; one in eight mantissas is within 64 units of an end.
__device__ __forceinline__ float drawn(uint64_t bits, int low, int high) {
  const auto exponent = static_cast<uint32_t>(low + 127 + static_cast<int>((bits >> 32) % (high - low + 1)));
  uint32_t mantissa = static_cast<uint32_t>(bits) & 0x7FFFFFu;
  if (bits >> 61 == 0) mantissa = (bits >> 60 & 1) != 0 ? 0x7FFFFFu - mantissa % 64 : mantissa % 64;
  return __uint_as_float(exponent << 23 | mantissa);
}

__global__ void __launch_bounds__(kThreads)
    quotients_kernel(uint64_t seed, int64_t pairs_a_thread, int64_t* wrong, float* pairs) {
  const unsigned thread = blockIdx.x * kThreads + threadIdx.x;
  uint64_t state = seed + (static_cast<uint64_t>(thread) << 40);
  int64_t count = 0;
  float last_n = 0.0f, last_d = 0.0f;
  for (int64_t i = 0; i < pairs_a_thread; ++i) {
    // The contract: d in [1, 1e36], n finite, |n / d| >= kSmallestQuotient = 2^-100.
    const float d = drawn(next_of(state), 0, 118);
    const int exponent = static_cast<int>(__float_as_uint(d) >> 23) - 127;
    const uint64_t bits = next_of(state);
    float n = drawn(bits, exponent - 98 < -126 ? -126 : exponent - 98, 127);
    if ((bits >> 59 & 1) != 0) n = -n;
    if (quick_quotient(n, d) == n / d) continue;
    ++count;
    last_n = n, last_d = d;
  }
  wrong[thread] = count;
  pairs[2 * thread] = last_n, pairs[2 * thread + 1] = last_d;
}

}  // namespace

void multiply_fragments_tf32(const uint32_t* a, const uint32_t* b, float* d) {
  launch(multiply_kernel<false>, dim3(1), dim3(32), 0, nullptr, a, b, d);
}
void multiply_fragments_bf16(const uint32_t* a, const uint32_t* b, float* d) {
  launch(multiply_kernel<true>, dim3(1), dim3(32), 0, nullptr, a, b, d);
}
void compare_quotients(uint64_t seed, int64_t pairs_a_thread, int64_t* wrong, float* pairs) {
  launch(quotients_kernel, dim3(kQuotientThreads / kThreads), dim3(kThreads), 0, nullptr, seed,
         pairs_a_thread, wrong, pairs);
}

}  // namespace pointsman::cuda
