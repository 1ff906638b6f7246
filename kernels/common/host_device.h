// SPDX-License-Identifier: Apache-2.0
// Marks the functions that the CPU kernels, the CUDA kernels and the validator compile from one source, and
// says for what a source is compiled.
#pragma once

#if defined(__CUDACC__)
#define POINTSMAN_HOST_DEVICE __host__ __device__
#define POINTSMAN_DEVICE __device__ __forceinline__  // of what nvcc compiles for kernels alone
#else
#define POINTSMAN_HOST_DEVICE
#define POINTSMAN_DEVICE
#endif

// Before a loop whose arrays are to stay in a kernel's registers.
#if defined(__CUDA_ARCH__)
#define POINTSMAN_UNROLL _Pragma("unroll")
#else
#define POINTSMAN_UNROLL
#endif

namespace pointsman {

// 900 for sm_90; 0 for the host.
#if defined(__CUDA_ARCH__)
inline constexpr int kCudaArchitecture = __CUDA_ARCH__;
#else
inline constexpr int kCudaArchitecture = 0;
#endif

}  // namespace pointsman
