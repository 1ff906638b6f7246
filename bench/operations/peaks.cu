// SPDX-License-Identifier: Apache-2.0
// The device's peaks: kChains independent chains of fma a thread, which hide the latency of each other, and
// no memory; and a copy of memory alone.
#include "bench/operations/device.h"

namespace pointsman::bench {

namespace {

constexpr int kThreads = 256, kChains = 16;
constexpr int kBlocks = 4096, kIterations = 4096;
constexpr size_t kCopied = size_t{1} << 30;

__global__ void __launch_bounds__(kThreads) fma_peak_kernel(float* sink, float factor) {
  float x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<float>(threadIdx.x + i);
  for (int iteration = 0; iteration < kIterations; ++iteration) {
#pragma unroll
    for (int i = 0; i < kChains; ++i) x[i] = fmaf(x[i], factor, 0.25f);
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kChains; ++i) sum += x[i];
  // Never true (the chains stay between 0 and some hundred), but the compiler cannot know.
  if (sum < 0.0f) *sink = sum;
}

}  // namespace

Peaks cuda_peaks(int device) {
  cuda::require(cudaSetDevice(device), "device");
  const cuda::Stream stream;
  DeviceArray<float> sink(1);
  DeviceArray<char> from(kCopied), to(kCopied);
  from.fill_bytes(1);
  const auto compute = [&] {
    fma_peak_kernel<<<kBlocks, kThreads, 0, stream.get()>>>(sink.data(), 0.5f);
    cuda::require(cudaGetLastError(), "fma_peak");
  };
  const auto copy = [&] {
    cuda::require(cudaMemcpyAsync(to.data(), from.data(), kCopied, cudaMemcpyDeviceToDevice, stream.get()),
                  "copy");
  };
  const double fmas = static_cast<double>(kChains) * kThreads * kBlocks * kIterations,
               compute_ms = time_on_device(stream.get(), compute).median,
               copy_ms = time_on_device(stream.get(), copy).median;
  return {1e3 * fmas / compute_ms, 1e3 * 2.0 * static_cast<double>(kCopied) / copy_ms};
}

}  // namespace pointsman::bench
