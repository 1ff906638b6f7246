// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/adam_update.cuh"

namespace pointsman::cuda {

int64_t adam_update_scratch(int64_t count, int sets) {
  return static_cast<int64_t>(adam_chunks(count)) * sets;
}

void adam_update(const AdamUpdateArgs& args, cudaStream_t stream) {
  const dim3 grid(adam_chunks(args.count), args.sets);
  launch(squared_norm_kernel, grid, dim3(kAdamThreads), kAdamShared, stream, args);
  launch(adam_update_kernel, grid, dim3(kAdamThreads), kAdamShared, stream, args);
}

}  // namespace pointsman::cuda
