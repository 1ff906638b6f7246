// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/generate_instances.cuh"

namespace pointsman::cuda {

void generate_features(const GenerateFeaturesArgs& args, cudaStream_t stream) {
  const int64_t items = static_cast<int64_t>(args.count) * args.n;
  if (items == 0) return;
  const auto blocks = static_cast<unsigned>((items + kGenerateThreads - 1) / kGenerateThreads);
  launch(generate_features_kernel, dim3(blocks), dim3(kGenerateThreads), 0, stream, args);
}

}  // namespace pointsman::cuda
