// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/input_gradient.cuh"

namespace pointsman::cuda {

int64_t input_gradient_scratch(int rows, int range_count) {
  return static_cast<int64_t>(row_tile_count(rows, range_count, kInputGradientRows)) * kInputGradientWidth;
}

void input_gradient(const InputGradientArgs& args, cudaStream_t stream) {
  const int tiles = row_tile_count(args.rows, args.range_count, kInputGradientRows);
  launch(input_gradient_parts_kernel, dim3(tiles, kGates / kHidden), dim3(kHidden), kInputGradientShared,
         stream, args);
  const int parts = args.start.data == nullptr ? kInputGradientParts - 1 : kInputGradientParts;
  launch(input_gradient_sum_kernel, dim3(args.range_count, parts * kGates / kSumColumns), dim3(kSumThreads),
         kSumShared, stream, args);
}

void unfold_input(const UnfoldArgs& args, cudaStream_t stream) {
  const auto kernel = args.start.data == nullptr ? unfold_input_kernel<false> : unfold_input_kernel<true>;
  launch(kernel, dim3(args.sets), dim3(kUnfoldThreads), kUnfoldShared, stream, args);
}

}  // namespace pointsman::cuda
