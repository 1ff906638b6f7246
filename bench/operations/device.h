// SPDX-License-Identifier: Apache-2.0
// Device arrays, and times by CUDA events.
#pragma once

#include <cuda_runtime.h>

#include <random>
#include <vector>

#include "bench/measure.h"
#include "kernels/cuda/device_buffer.h"

namespace pointsman::bench {

// Copies without a stream are not in the order of cuda::Stream: what is under way is waited for.
inline void finish_device() { cuda::require(cudaDeviceSynchronize(), "device"); }

// Device memory of a fixed size. Throws std::bad_alloc when there is none left.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) { buffer_.reserve(std::max<size_t>(bytes(), 1)); }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) { upload(values); }

  T* data() const { return reinterpret_cast<T*>(buffer_.data()); }
  size_t size() const { return size_; }
  size_t bytes() const { return size_ * sizeof(T); }
  void fill_bytes(int byte) {
    cuda::require(cudaMemset(data(), byte, bytes()), "fill");
    finish_device();
  }
  void upload(const std::vector<T>& values) {
    cuda::require(cudaMemcpy(data(), values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
                  "upload");
    finish_device();
  }

 private:
  cuda::DeviceBuffer buffer_;
  size_t size_;
};

template <typename T>
std::vector<T> download(const T* from, size_t count) {
  std::vector<T> values(count);
  finish_device();
  cuda::require(cudaMemcpy(values.data(), from, count * sizeof(T), cudaMemcpyDeviceToHost), "download");
  return values;
}
template <typename T>
std::vector<T> download(const DeviceArray<T>& from) {
  return download(from.data(), from.size());
}

// Uniform in (-1, 1): a block of random numbers, repeated on the device, so that gigabytes take no time.
inline void fill_random(DeviceArray<float>& array, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-1.0f, 1.0f);
  std::vector<float> block(std::min<size_t>(array.size(), (size_t{1} << 20) - 3));
  for (float& value : block) value = uniform(generator);
  array.upload(block);
  for (size_t first = block.size(); first < array.size(); first += block.size()) {
    const size_t bytes = std::min(block.size(), array.size() - first) * sizeof(float);
    cuda::require(cudaMemcpy(array.data() + first, array.data(), bytes, cudaMemcpyDeviceToDevice), "repeat");
  }
  finish_device();
}

// Milliseconds of `run`, what it enqueues on the stream; `prepare` is enqueued before each run and not timed.
// Two runs of each warm up. All timed runs are enqueued at once, so that the device waits for no host.
template <typename Run, typename Prepare = void (*)()>
Statistics time_on_device(
    cudaStream_t stream, Run&& run, double seconds = 0.2, Prepare&& prepare = [] {}) {
  std::vector<cudaEvent_t> events;
  const auto measure = [&](size_t runs) {
    while (events.size() < 2 * runs) cuda::require(cudaEventCreate(&events.emplace_back()), "event");
    for (size_t k = 0; k < runs; ++k) {
      prepare();
      cuda::require(cudaEventRecord(events[2 * k], stream), "event");
      run();
      cuda::require(cudaEventRecord(events[2 * k + 1], stream), "event");
    }
    cuda::require(cudaStreamSynchronize(stream), "timed runs");
    std::vector<double> ms(runs);
    for (size_t k = 0; k < runs; ++k) {
      float elapsed = 0.0f;
      cuda::require(cudaEventElapsedTime(&elapsed, events[2 * k], events[2 * k + 1]), "event");
      ms[k] = static_cast<double>(elapsed);
    }
    return ms;
  };
  measure(1);
  const Statistics ms = statistics_of(measure(runs_for(measure(1).front(), seconds)));
  for (cudaEvent_t event : events) cudaEventDestroy(event);
  return ms;
}

}  // namespace pointsman::bench
