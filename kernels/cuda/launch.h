// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <utility>

#include "kernels/cuda/stream.h"

namespace pointsman::cuda {

// kernel<<<grid, block, shared_bytes, stream>>>(arguments...), with more than 48 KiB of shared memory allowed
// for.
template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  if (shared_bytes > 48 * 1024) {
    require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
            "shared memory of a kernel");
  }
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  require(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "launch");
}

}  // namespace pointsman::cuda
