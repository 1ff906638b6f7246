// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/pointer_attention.cuh"

namespace pointsman::cuda {

void project_references(const ProjectReferencesArgs& args, cudaStream_t stream) {
  if (args.sequences == 0) return;
  const dim3 blocks(row_tile_count(args.sequences, args.range_count, 1)), threads(kProjectThreads);
  const auto run = [&](void (*kernel)(ProjectReferencesArgs)) {
    launch(kernel, blocks, threads, kProjectShared, stream, args);
  };
  switch (args.projections.count) {
    case 1:  // no glimpse
      return run(project_references_kernel<1>);
    case 3:  // one glimpse
      return run(project_references_kernel<3>);
    case 4:
      return run(project_references_kernel<4>);
    default:
      throw std::invalid_argument("number of projections");
  }
}

}  // namespace pointsman::cuda
