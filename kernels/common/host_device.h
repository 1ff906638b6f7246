// SPDX-License-Identifier: Apache-2.0
// Marks the functions that the CPU kernels, the CUDA kernels and the validator compile from one source.
#pragma once

#if defined(__CUDACC__)
#define POINTSMAN_HOST_DEVICE __host__ __device__
#else
#define POINTSMAN_HOST_DEVICE
#endif
