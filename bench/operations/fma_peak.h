// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "kernels/cuda/stream.h"

namespace pointsman::bench {

// Chains of fma in registers on `blocks` blocks, `iterations` rounds of them; sink: 1 float of device memory.
// Returns the fma instructions of the launch.
double fma_peak(float* sink, int blocks, int iterations, cudaStream_t stream);

}  // namespace pointsman::bench
