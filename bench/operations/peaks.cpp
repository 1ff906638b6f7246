// SPDX-License-Identifier: Apache-2.0
#include "bench/operations/device_timing.h"
#include "kernels/cuda/fma_peak.h"

namespace pointsman::bench {

namespace {

constexpr int kBlocks = 4096, kIterations = 4096;
constexpr size_t kCopied = size_t{1} << 30;

}  // namespace

Peaks measure_peaks(cudaStream_t stream) {
  DeviceArray<float> sink(1);
  double flops = 0.0;
  const Timing fma =
      time_on_device(stream, [&] { flops = cuda::fma_peak(sink.data(), kBlocks, kIterations, stream); });
  DeviceArray<char> from(kCopied), to(kCopied);
  from.fill_bytes(1);
  const Timing copy = time_on_device(stream, [&] {
    cuda::require(cudaMemcpyAsync(to.data(), from.data(), kCopied, cudaMemcpyDeviceToDevice, stream), "copy");
  });
  return {flops / 2.0 / (1e-3 * fma.median_ms), 2.0 * static_cast<double>(kCopied) / (1e-3 * copy.median_ms)};
}

}  // namespace pointsman::bench
