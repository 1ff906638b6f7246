// SPDX-License-Identifier: Apache-2.0
// Device arrays and times by CUDA events.
#pragma once

#include <cuda_runtime.h>

#include <cmath>
#include <random>
#include <vector>

#include "bench/measure.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::bench {

// Device memory of a fixed size. Throws when there is none left.
template <typename T>
class DeviceArray {
 public:
  explicit DeviceArray(size_t size) : size_(size) {
    if (cudaMalloc(reinterpret_cast<void**>(&data_), std::max<size_t>(size, 1) * sizeof(T)) == cudaSuccess)
      return;
    cudaGetLastError();  // clear it: the bench goes on with what fits
    throw std::runtime_error(std::to_string(size * sizeof(T) >> 20) + " MiB do not fit");
  }
  explicit DeviceArray(const std::vector<T>& values) : DeviceArray(values.size()) {
    cuda::require(cudaMemcpy(data_, values.data(), values.size() * sizeof(T), cudaMemcpyHostToDevice),
                  "upload");
  }
  ~DeviceArray() { cudaFree(data_); }
  DeviceArray(const DeviceArray&) = delete;
  DeviceArray& operator=(const DeviceArray&) = delete;

  T* data() const { return data_; }
  size_t size() const { return size_; }
  std::vector<T> download() const {
    std::vector<T> values(size_);
    cuda::require(cudaMemcpy(values.data(), data_, size_ * sizeof(T), cudaMemcpyDeviceToHost), "download");
    return values;
  }
  void fill_bytes(int byte) { cuda::require(cudaMemset(data_, byte, size_ * sizeof(T)), "fill"); }

 private:
  T* data_ = nullptr;
  size_t size_;
};

// Uniform in (-bound, bound): a block of random numbers, repeated on the device, so that gigabytes take no
// time.
inline void fill_random(DeviceArray<float>& array, float bound, unsigned seed) {
  std::mt19937 generator(seed);
  std::uniform_real_distribution<float> uniform(-bound, bound);
  std::vector<float> block(std::min<size_t>(array.size(), (size_t{1} << 20) - 3));
  for (float& value : block) value = uniform(generator);
  cuda::require(cudaMemcpy(array.data(), block.data(), block.size() * sizeof(float), cudaMemcpyHostToDevice),
                "upload");
  for (size_t first = block.size(); first < array.size(); first += block.size()) {
    const size_t count = std::min(block.size(), array.size() - first);
    cuda::require(
        cudaMemcpy(array.data() + first, array.data(), count * sizeof(float), cudaMemcpyDeviceToDevice),
        "repeat");
  }
}

// ||a - b|| / ||b||; NaN where either has one.
inline double relative_error(const std::vector<float>& a, const std::vector<float>& b) {
  double difference = 0.0, norm = 0.0;
  for (size_t k = 0; k < b.size(); ++k) {
    const double delta = static_cast<double>(a[k]) - static_cast<double>(b[k]);
    difference += delta * delta;
    norm += static_cast<double>(b[k]) * static_cast<double>(b[k]);
  }
  return std::sqrt(difference / norm);
}

// Times `run`, what it enqueues on the stream; `prepare` is enqueued before each run and not timed. Two runs
// of each warm up. All timed runs are enqueued at once, so that the device waits for no host.
template <typename Prepare, typename Run>
Timing time_on_device(cudaStream_t stream, Prepare&& prepare, Run&& run, double seconds = 0.2) {
  std::vector<cudaEvent_t> events;
  const auto measure = [&](int runs) {
    while (events.size() < size_t{2} * static_cast<size_t>(runs)) {
      cuda::require(cudaEventCreate(&events.emplace_back()), "event");
    }
    for (int k = 0; k < runs; ++k) {
      prepare();
      cuda::require(cudaEventRecord(events[size_t{2} * k], stream), "event");
      run();
      cuda::require(cudaEventRecord(events[size_t{2} * k + 1], stream), "event");
    }
    cuda::require(cudaStreamSynchronize(stream), "timed runs");
    std::vector<double> ms;
    for (int k = 0; k < runs; ++k) {
      float elapsed = 0.0f;
      cuda::require(cudaEventElapsedTime(&elapsed, events[size_t{2} * k], events[size_t{2} * k + 1]),
                    "event");
      ms.push_back(static_cast<double>(elapsed));
    }
    return ms;
  };
  measure(1);
  const Timing timing = timing_of(measure(runs_for(measure(1).front(), seconds)));
  for (cudaEvent_t event : events) cudaEventDestroy(event);
  return timing;
}

template <typename Run>
Timing time_on_device(cudaStream_t stream, Run&& run, double seconds = 0.2) {
  return time_on_device(
      stream, [] {}, run, seconds);
}

// fma rate and copy bandwidth of this device, measured now.
Peaks measure_peaks(cudaStream_t stream);

}  // namespace pointsman::bench
