// SPDX-License-Identifier: Apache-2.0
// The emulation's kernels/cuda/device.cuh: the same names, readable for a host compiler.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstdint>

#include "kernels/cuda/stream.h"

namespace pointsman::cuda {

#define POINTSMAN_DYNAMIC_SHARED(type, name)                                      \
  static_assert(alignof(type) <= 16, "dynamic shared memory is 16-byte aligned"); \
  type* const name = static_cast<type*>(::pointsman::emulation::dynamic_shared_memory())

// A unit in the last place above, below or at 1 / x, as the bits of x have it: the instruction promises no
// more. The nearest where x's mantissa is next to all ones. There a unit decides whether the steps of `/`
// (and quick_quotient) end at the quotient of a power of two, and the GPU's `/`, of the same steps, is
// IEEE's.
inline float approximate_reciprocal(float x) {
  const float y = 1.0f / x;
  const uint32_t of_x = std::bit_cast<uint32_t>(x), bits = std::bit_cast<uint32_t>(y);
  if ((bits & 0x7F800000u) == 0) return std::bit_cast<float>(bits & 0x80000000u);  // flushed
  if ((bits & 0x7F800000u) == 0x7F800000u || (of_x & 0x7FFFF0u) == 0x7FFFF0u) return y;
  return std::bit_cast<float>(bits - 1 + (of_x * 0x9E3779B1u >> 16) % 3);
}

inline constexpr bool kHasClusters = true;

inline int cluster_rank() { return emulation::cluster_rank(); }
inline void cluster_arrive(POINTSMAN_EMULATION_SITE) { emulation::arrive_at_cluster(file, line); }
inline void cluster_wait(POINTSMAN_EMULATION_SITE) { emulation::wait_for_cluster(file, line); }
template <typename T>
T* in_block_of_cluster(T* own, int rank, POINTSMAN_EMULATION_SITE) {
  return static_cast<T*>(emulation::in_block_of_cluster(own, rank, file, line));
}

inline unsigned made_here(unsigned x) { return x; }

inline void copy_to_shared(float* to, const float* from, bool exists, POINTSMAN_EMULATION_SITE) {
  emulation::copy_later(to, exists ? from : nullptr, 16, file, line);
}
inline void end_copy_group() { emulation::end_copy_group(); }
template <int kPending>
void wait_for_copies() {
  emulation::finish_copies(kPending);
}

inline uint32_t to_tf32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const bool finite = (bits & 0x7F800000u) != 0x7F800000u;
  return finite ? (bits + 0xFFFu + ((bits >> 13) & 1u)) & 0xFFFFE000u : bits;
}

inline uint32_t to_bf16_pair(float low, float high) {
  const auto rounded = [](float x) {
    const uint32_t bits = std::bit_cast<uint32_t>(x);
    const bool finite = (bits & 0x7F800000u) != 0x7F800000u;
    return (finite ? bits + 0x7FFFu + ((bits >> 16) & 1u) : bits) >> 16;
  };
  return rounded(low) | rounded(high) << 16;
}

inline void meet_for_mma(emulation::WarpOp op, float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                         const char* file, int line) {
  emulation::MmaFragments fragments{{d[0], d[1], d[2], d[3]}, {a[0], a[1], a[2], a[3]}, {b[0], b[1]}};
  emulation::meet_warp(op, 0xFFFFFFFFu, reinterpret_cast<uintptr_t>(&fragments), 0, 32, file, line);
  for (int i = 0; i < 4; ++i) d[i] = fragments.d[i];
}

inline void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                             POINTSMAN_EMULATION_SITE) {
  meet_for_mma(emulation::WarpOp::kMmaTf32, d, a, b, file, line);
}

inline void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4], const uint32_t (&b)[2],
                              POINTSMAN_EMULATION_SITE) {
  meet_for_mma(emulation::WarpOp::kMmaBf16, d, a, b, file, line);
}

}  // namespace pointsman::cuda
