// SPDX-License-Identifier: Apache-2.0
// Errors of the CUDA runtime as exceptions, launches, and a stream that is destroyed with its owner.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>
#include <utility>

namespace pointsman::cuda {

inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
  }
}

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

class Stream {
 public:
  Stream() { require(cudaStreamCreate(&stream_), "stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize() const { require(cudaStreamSynchronize(stream_), "kernels"); }

 private:
  cudaStream_t stream_ = nullptr;
};

}  // namespace pointsman::cuda
