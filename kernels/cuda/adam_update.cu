// SPDX-License-Identifier: Apache-2.0
// The gradient's L2 clip, Adam (Kingma & Ba 2015) and zeroing, with the arithmetic of
// kernels/cpu/adam_update.cpp.
//
// First launch: a block sums the squares of 8,192 gradients in double. Second launch: each block joins its
// set's sums (in the same order in every block), then makes one pass.
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

inline constexpr int kAdamThreads = 256;
inline constexpr int kAdamChunk = 8192;  // elements of a block
inline constexpr size_t kAdamShared = sizeof(double) * kAdamThreads;

POINTSMAN_HOST_DEVICE constexpr int adam_chunks(int64_t count) {
  return static_cast<int>((count + kAdamChunk - 1) / kAdamChunk);
}

// The sum of the threads' values by a tree, for all of them. values: shared memory, [kAdamThreads].
__device__ __forceinline__ double sum_of_block(double value, double* values) {
  const int thread = threadIdx.x;
  values[thread] = value;
  __syncthreads();
  for (int half = kAdamThreads / 2; half > 0; half /= 2) {
    if (thread < half) values[thread] += values[thread + half];
    __syncthreads();
  }
  return values[0];
}

__device__ __forceinline__ int64_t chunk_end(int64_t count) {
  const int64_t end = (int64_t{blockIdx.x} + 1) * kAdamChunk;
  return end < count ? end : count;
}

// Grid: (chunks, sets). scratch: [sets][chunks].
__global__ void __launch_bounds__(kAdamThreads) squared_norm_kernel(AdamUpdateArgs a) {
  POINTSMAN_DYNAMIC_SHARED(double, values);
  const int64_t set = a.first_set + static_cast<int>(blockIdx.y);
  const float* gradient = a.gradient.of(set) + a.offset;
  const int64_t end = chunk_end(a.count);
  double sum = 0.0;
#pragma unroll 4
  for (int64_t i = int64_t{blockIdx.x} * kAdamChunk + threadIdx.x; i < end; i += kAdamThreads) {
    const double g = gradient[i];
    sum = fma(g, g, sum);
  }
  sum = sum_of_block(sum, values);
  if (threadIdx.x == 0) a.scratch[int64_t{blockIdx.y} * gridDim.x + blockIdx.x] = sum;
}

// What one set's elements share.
struct AdamFactors {
  float scale, correction1, correction2;  // of the clip; 1 - beta^t
};

__device__ __forceinline__ float adam_correction(float beta, int64_t step) {
  return static_cast<float>(1.0 - pow(static_cast<double>(beta), static_cast<double>(step)));
}

// Joins the set's sums of squares; all threads get the factors.
__device__ __forceinline__ AdamFactors adam_factors(const AdamUpdateArgs& a, int64_t set, double* values) {
  const double* sums = a.scratch + int64_t{blockIdx.y} * gridDim.x;
  double sum = 0.0;
  for (unsigned i = threadIdx.x; i < gridDim.x; i += kAdamThreads) sum += sums[i];
  const double norm = sqrt(sum_of_block(sum, values));
  __syncthreads();
  AdamFactors* const factors = reinterpret_cast<AdamFactors*>(values);
  if (threadIdx.x == 0) {
    const double scale = norm > a.max_norm ? a.max_norm / norm : 1.0;
    const int64_t step = a.steps[set];
    *factors = {static_cast<float>(scale), adam_correction(a.beta1, step), adam_correction(a.beta2, step)};
    if (blockIdx.x == 0) a.norms[blockIdx.y] = norm;
  }
  __syncthreads();
  return *factors;
}

// Grid: (chunks, sets).
__global__ void __launch_bounds__(kAdamThreads) adam_update_kernel(AdamUpdateArgs a) {
  POINTSMAN_DYNAMIC_SHARED(double, values);
  const int64_t set = a.first_set + static_cast<int>(blockIdx.y);
  const AdamFactors factors = adam_factors(a, set, values);
  if (a.steps[set] == 0) return;
  float* parameters = a.parameters.of(set) + a.offset;
  float* first_moment = a.first_moment.of(set) + a.offset;
  float* second_moment = a.second_moment.of(set) + a.offset;
  float* gradient = a.gradient.of(set) + a.offset;
  const int64_t end = chunk_end(a.count);
  for (int64_t i = int64_t{blockIdx.x} * kAdamChunk + threadIdx.x; i < end; i += kAdamThreads) {
    const float g = gradient[i] * factors.scale;
    const float m = fmaf(a.beta1, first_moment[i], (1.0f - a.beta1) * g);
    const float v = fmaf(a.beta2, second_moment[i], (1.0f - a.beta2) * (g * g));
    const float denominator = sqrtf(v / factors.correction2) + a.epsilon;
    parameters[i] = fmaf(-a.learning_rate, (m / factors.correction1) / denominator, parameters[i]);
    first_moment[i] = m;
    second_moment[i] = v;
    gradient[i] = 0.0f;
  }
}

int64_t adam_update_scratch(int64_t count, int sets) { return int64_t{adam_chunks(count)} * sets; }

void adam_update(const AdamUpdateArgs& args, cudaStream_t stream) {
  const dim3 grid(adam_chunks(args.count), args.sets);
  launch(squared_norm_kernel, grid, kAdamThreads, kAdamShared, stream, args);
  launch(adam_update_kernel, grid, kAdamThreads, kAdamShared, stream, args);
}

}  // namespace pointsman::cuda
