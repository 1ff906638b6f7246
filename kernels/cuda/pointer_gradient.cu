// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/placement.h"
#include "kernels/cuda/pointer_gradient.cuh"

namespace pointsman::cuda {

namespace {

PointerGradientScratch place_scratch(Placement& placement, size_t rows, size_t sequences, size_t n,
                                     size_t glimpses) {
  const size_t steps = rows * n, passes = glimpses + 1;
  PointerGradientScratch s;
  s.chosen_at = placement.take<int32_t>(steps);
  s.capacity = placement.take<double>(steps);
  s.du = placement.take<float>(steps * passes * n);
  s.p = placement.take<float>(steps * glimpses * n);
  s.factors = placement.take<float>(steps * passes * kHidden);
  s.direct = placement.take<int32_t>(steps * passes);
  s.dout = placement.take<float>(steps * glimpses * kHidden);
  s.dv = placement.take<double>(sequences * n * 2 * kHidden);
  return s;
}

}  // namespace

int64_t pointer_gradient_scratch(int rows, int sequences, int n, int glimpses) {
  Placement counted;
  place_scratch(counted, rows, sequences, n, glimpses);
  return static_cast<int64_t>(counted.bytes());
}

void pointer_gradient(const PointerGradientArgs& args, cudaStream_t stream) {
  Placement placement(args.scratch);
  const PointerGradientScratch scratch =
      place_scratch(placement, args.rows, args.sequences, args.n, args.attention.glimpses);
  const unsigned tiles = (args.n + kGradientHalfWarps - 1) / kGradientHalfWarps;
  constexpr int kRowsABlock = kGradientThreads / 32;
  if (args.rows > 0) {
    const size_t shared = size_t{kGradientHalfWarps} * 2 * list_length(args.n) * sizeof(float);
    with_rules(args.problem, [&]<typename Rules>() {
      launch(list_choices_kernel<Rules>, (args.rows + kRowsABlock - 1) / kRowsABlock, kGradientThreads, 0,
             stream, args, scratch);
      launch(step_gradients_kernel<Rules>, args.rows * tiles, kGradientThreads, shared, stream, args,
             scratch);
    });
  }
  launch(item_gradients_kernel, args.sequences * args.projections.count * tiles, kGradientThreads, 0, stream,
         args, scratch);
  launch(sum_v_kernel, args.sequences, 2 * kHidden, 0, stream, args, scratch);
}

}  // namespace pointsman::cuda
