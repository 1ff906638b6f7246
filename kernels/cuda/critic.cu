// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/critic.cuh"

namespace pointsman::cuda {

void critic_forward(const CriticArgs& args, cudaStream_t stream) {
  const size_t floats = (kTileRows + 2) * kHidden + kCriticHalfWarps + 2 * list_length(args.n);
  launch(critic_forward_kernel, row_tile_count(args.sequences, args.range_count, 1), kCriticThreads,
         floats * sizeof(float), stream, args);
}

void critic_gradient(const CriticGradientArgs& args, cudaStream_t stream) {
  const size_t floats = 3 * kHidden + 3 * list_length(args.forward.n);
  launch(critic_gradient_kernel, row_tile_count(args.forward.sequences, args.forward.range_count, 1),
         kCriticThreads, floats * sizeof(float), stream, args);
}

}  // namespace pointsman::cuda
