// SPDX-License-Identifier: Apache-2.0
// Random instances made where they are used. A thread makes one item: a Philox block (10 rounds of 2 wide
// products, 4 xors and 2 sums), 2 doubles of 3 operations each, one rounding each. 8 bytes an item; no shared
// memory.
#include "kernels/common/uniform_item.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

constexpr int kGenerateThreads = 256;

__global__ void __launch_bounds__(kGenerateThreads) generate_features_kernel(GenerateFeaturesArgs a) {
  const int64_t at = static_cast<int64_t>(blockIdx.x) * kGenerateThreads + threadIdx.x;
  if (at >= static_cast<int64_t>(a.count) * a.n) return;
  const int64_t instance = at / a.n;
  const UniformItem item = uniform_item(a.seed, a.first + instance, static_cast<int>(at - instance * a.n));
  reinterpret_cast<float2*>(a.features)[at] =
      make_float2(static_cast<float>(item.first), static_cast<float>(item.second));
}

void generate_features(const GenerateFeaturesArgs& args, cudaStream_t stream) {
  const int64_t items = static_cast<int64_t>(args.count) * args.n;
  if (items == 0) return;
  const auto blocks = static_cast<unsigned>((items + kGenerateThreads - 1) / kGenerateThreads);
  launch(generate_features_kernel, dim3(blocks), dim3(kGenerateThreads), 0, stream, args);
}

}  // namespace pointsman::cuda
