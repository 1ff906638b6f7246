// SPDX-License-Identifier: Apache-2.0
// Blocks of device memory and of page-locked host memory that grow on demand and are freed with their owner.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <new>

#include "kernels/cuda/stream.h"

namespace pointsman::cuda {

template <cudaError_t (*kAllocate)(void**, size_t), cudaError_t (*kFree)(void*)>
class GrowingBlock {
 public:
  GrowingBlock() = default;
  ~GrowingBlock() { release(); }
  GrowingBlock(const GrowingBlock&) = delete;
  GrowingBlock& operator=(const GrowingBlock&) = delete;

  // At least `bytes`; what the block held is lost when it grows. Throws std::bad_alloc.
  std::byte* reserve(size_t bytes) {
    if (bytes <= bytes_) return data_;
    release();
    void* data = nullptr;
    const cudaError_t error = kAllocate(&data, bytes);
    if (error == cudaErrorMemoryAllocation) {
      cudaGetLastError();  // so that the next call does not find it
      throw std::bad_alloc();
    }
    require(error, "memory");
    data_ = static_cast<std::byte*>(data);
    bytes_ = bytes;
    return data_;
  }

  void release() {
    if (data_ != nullptr) kFree(data_);
    data_ = nullptr;
    bytes_ = 0;
  }

  std::byte* data() const { return data_; }
  size_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

inline cudaError_t allocate_device(void** data, size_t bytes) { return cudaMalloc(data, bytes); }
inline cudaError_t allocate_pinned(void** data, size_t bytes) { return cudaMallocHost(data, bytes); }
inline cudaError_t free_device(void* data) { return cudaFree(data); }
inline cudaError_t free_pinned(void* data) { return cudaFreeHost(data); }

using DeviceBuffer = GrowingBlock<allocate_device, free_device>;
using PinnedBuffer = GrowingBlock<allocate_pinned, free_pinned>;

}  // namespace pointsman::cuda
