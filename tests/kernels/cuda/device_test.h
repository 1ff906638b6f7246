// SPDX-License-Identifier: Apache-2.0
// What the tests of the CUDA kernels share. It knows CUDA's runtime only, so that the same tests run under
// the emulation and on a GPU.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

namespace pointsman::cuda {

inline void require_success(cudaError_t error) {
  if (error != cudaSuccess) throw std::runtime_error(std::string("CUDA: ") + cudaGetErrorString(error));
}

// An array in device memory. Without values its words are NaN as floats and doubles, and as integers neither
// an index nor 0 nor -1: what a kernel leaves unwritten, or reads too early, shows.
template <typename T>
class DeviceArray {
 public:
  static_assert(std::is_trivially_copyable_v<T>);

  explicit DeviceArray(size_t size) : size_(size) {
    if (size_ == 0) return;
    require_success(cudaMalloc(&data_, size_ * sizeof(T)));
    std::vector<uint32_t> words((size_ * sizeof(T) + 3) / 4, 0x7FFDCDCDu);
    require_success(cudaMemcpy(data_, words.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    require_success(cudaDeviceSynchronize());  // of no order with cuda::Stream
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(DeviceArray&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  DeviceArray& operator=(DeviceArray&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }

  void upload(const std::vector<T>& values) {
    if (values.size() != size_) throw std::invalid_argument("DeviceArray::upload: another size");
    if (size_ > 0)
      require_success(cudaMemcpy(data_, values.data(), size_ * sizeof(T), cudaMemcpyHostToDevice));
    require_success(cudaDeviceSynchronize());
  }
  // Waits for all kernels first.
  std::vector<T> download() const {
    require_success(cudaDeviceSynchronize());
    std::vector<T> values(size_);
    if (size_ > 0)
      require_success(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost));
    return values;
  }

 private:
  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace pointsman::cuda
