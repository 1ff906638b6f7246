// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

namespace pointsman::cuda {

// Chains of fma in registers on `blocks` blocks, `iterations` rounds of them; sink: 1 float of device memory.
// Returns the floating-point operations of the launch, two an fma.
double fma_peak(float* sink, int blocks, int iterations, cudaStream_t stream);

}  // namespace pointsman::cuda
