// SPDX-License-Identifier: Apache-2.0
// Measures the device's single-precision peak: kChains independent chains of fma a thread, which hide the
// latency of each other, and no memory. 2 kChains flops an iteration and thread.
#pragma once

#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

inline constexpr int kPeakThreads = 256, kPeakChains = 16;

__global__ void __launch_bounds__(kPeakThreads) fma_peak_kernel(float* sink, int iterations, float factor) {
  float x[kPeakChains];
#pragma unroll
  for (int i = 0; i < kPeakChains; ++i) x[i] = static_cast<float>(threadIdx.x + i);
  for (int iteration = 0; iteration < iterations; ++iteration) {
#pragma unroll
    for (int i = 0; i < kPeakChains; ++i) x[i] = fmaf(x[i], factor, 0.25f);
  }
  float sum = 0.0f;
#pragma unroll
  for (int i = 0; i < kPeakChains; ++i) sum += x[i];
  // Never true (the chains stay between 0 and some hundred), but the compiler cannot know.
  if (sum < 0.0f) *sink = sum;
}

}  // namespace pointsman::cuda
