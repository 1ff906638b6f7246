// SPDX-License-Identifier: Apache-2.0
// Errors of the CUDA runtime as exceptions, and a stream that is destroyed with its owner.
#pragma once

#include <cuda_runtime.h>

#include <stdexcept>
#include <string>

namespace pointsman::cuda {

inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
  }
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
