// SPDX-License-Identifier: Apache-2.0
// The device's single-precision peak: kChains independent chains of fma a thread, which hide the latency of
// each other, and no memory.
#include "bench/operations/fma_peak.h"

namespace pointsman::bench {

namespace {

constexpr int kThreads = 256, kChains = 16;

__global__ void __launch_bounds__(kThreads) fma_peak_kernel(float* sink, int iterations, float factor) {
  float x[kChains];
#pragma unroll
  for (int i = 0; i < kChains; ++i) x[i] = static_cast<float>(threadIdx.x + i);
  for (int iteration = 0; iteration < iterations; ++iteration) {
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

double fma_peak(float* sink, int blocks, int iterations, cudaStream_t stream) {
  fma_peak_kernel<<<blocks, kThreads, 0, stream>>>(sink, iterations, 0.5f);
  cuda::require(cudaGetLastError(), "fma_peak");
  return static_cast<double>(kChains) * kThreads * blocks * iterations;
}

}  // namespace pointsman::bench
