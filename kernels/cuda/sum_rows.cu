// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/sum_rows.cuh"

namespace pointsman::cuda {

void sum_rows(const SumRowsArgs& args, cudaStream_t stream) {
  const int strips = (args.width + kSumColumns - 1) / kSumColumns;
  launch(sum_rows_kernel, dim3(args.range_count, strips), dim3(kSumThreads), kSumShared, stream, args);
}

void start_gradient(const StartGradientArgs& args, cudaStream_t stream) {
  const dim3 grid(args.sequences, 2 * kHidden / kSumColumns);
  launch(start_gradient_kernel, grid, dim3(kSumThreads), kSumShared, stream, args);
}

}  // namespace pointsman::cuda
