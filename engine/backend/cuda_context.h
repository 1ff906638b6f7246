// SPDX-License-Identifier: Apache-2.0
// What every call of the CUDA backend works with: the device, one stream, the parameters and the memory.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>

#include "engine/backend/backend.h"
#include "engine/backend/cuda_parameters.h"
#include "kernels/cuda/cublas_multiply.h"
#include "kernels/cuda/device_buffer.h"
#include "models/config.h"
#include "models/parameter_layout.h"

namespace pointsman::cuda {

// The device memory beside the parameters, as one block. What a rollout kept lies at its start; each chunk of
// a call takes the rest anew.
class CudaMemory {
 public:
  // limit: bytes; 0: nine tenths of what the device has free.
  void configure(size_t limit);

  void release() {
    block_.release();
    kept_ = 0;
  }

  size_t available() const { return limit_ - kept_; }
  // The work area of a chunk, of at least `bytes`. It may have to grow: then what was kept is forgotten.
  std::byte* work(size_t bytes);

  // The first `bytes` of the last work area stay until forget(). Nothing may be kept at the time.
  void keep(size_t bytes) { kept_ = bytes; }
  void forget() { kept_ = 0; }
  bool keeps() const { return kept_ > 0; }
  std::byte* kept() const { return block_.data(); }

 private:
  DeviceBuffer block_;
  size_t limit_ = 0, kept_ = 0;
};

struct CudaContext {
  // Throws DeviceError when there is no such device.
  CudaContext(int device_index, Precision precision_);

  // CUDA's current device belongs to the thread, and each call may come from another.
  void make_current() const { require(cudaSetDevice(index), "device"); }

  const int index;
  const Precision precision;  // of rollouts without `keep`
  cudaDeviceProp properties{};
  Stream stream;
  Cublas cublas;
  CudaMemory memory;
  PinnedBuffer uploads, downloads;
  ModelConfig config;
  std::optional<ParameterLayout> layout;
  std::optional<CudaParameters> parameters;

 private:
  static int checked(int device_index);
};

// "12 MiB", for messages about memory.
std::string mebibytes(size_t bytes);

}  // namespace pointsman::cuda
