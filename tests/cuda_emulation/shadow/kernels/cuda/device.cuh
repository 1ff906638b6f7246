// SPDX-License-Identifier: Apache-2.0
// The emulation's kernels/cuda/device.cuh: the same names, readable for a host compiler.
#pragma once

#include <cuda_runtime.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace pointsman::cuda {

#define POINTSMAN_DYNAMIC_SHARED(type, name)                                      \
  static_assert(alignof(type) <= 16, "dynamic shared memory is 16-byte aligned"); \
  type* const name = static_cast<type*>(::pointsman::emulation::dynamic_shared_memory())

inline float approximate_reciprocal(float x) { return 1.0f / x; }

inline unsigned made_here(unsigned x) { return x; }

inline uint32_t to_tf32(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  const bool finite = (bits & 0x7F800000u) != 0x7F800000u;
  return finite ? (bits + 0x1000u) & 0xFFFFE000u : bits;
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

inline void check(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
  }
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  if (shared_bytes > 48 * 1024) {
    check(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                               cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
          "shared memory of a kernel");
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "launch");
}

}  // namespace pointsman::cuda
