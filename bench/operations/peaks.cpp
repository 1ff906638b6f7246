// SPDX-License-Identifier: Apache-2.0
#include "bench/operations/device.h"
#include "bench/operations/fma_peak.h"

namespace pointsman::bench {

namespace {

constexpr int kBlocks = 4096, kIterations = 4096;
constexpr size_t kCopied = size_t{1} << 30;

}  // namespace

Peaks cuda_peaks(int device) {
  cuda::require(cudaSetDevice(device), "device");
  const cuda::Stream stream;
  DeviceArray<float> sink(1);
  double fmas = 0.0;
  const auto compute = [&] { fmas = fma_peak(sink.data(), kBlocks, kIterations, stream.get()); };
  DeviceArray<char> from(kCopied), to(kCopied);
  from.fill_bytes(1);
  const auto copy = [&] {
    cuda::require(cudaMemcpyAsync(to.data(), from.data(), kCopied, cudaMemcpyDeviceToDevice, stream.get()),
                  "copy");
  };
  const double compute_ms = time_on_device(stream.get(), compute).median,
               copy_ms = time_on_device(stream.get(), copy).median;
  return {1e3 * fmas / compute_ms, 1e3 * 2.0 * static_cast<double>(kCopied) / copy_ms};
}

}  // namespace pointsman::bench
