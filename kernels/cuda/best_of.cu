// SPDX-License-Identifier: Apache-2.0
#include "kernels/common/placement.h"
#include "kernels/cuda/best_of.cuh"

namespace pointsman::cuda {

namespace {

// Without scratch: only sets `bytes` to what CUB needs of it.
void find_best_rows(const BestOfArgs& args, void* scratch, size_t& bytes, BestRow* best,
                    cudaStream_t stream) {
  require(cub::DeviceSegmentedReduce::ArgMin(scratch, bytes, args.costs, best, args.sequences, args.first_row,
                                             args.first_row + 1, stream),
          "best of a sequence's rollouts");
}

struct BestOfScratch {
  BestOfScratch(Placement& placement, int sequences) {
    BestOfArgs sizes{};
    sizes.sequences = sequences;
    find_best_rows(sizes, nullptr, cub_bytes, nullptr, nullptr);
    best = placement.take<BestRow>(sequences);
    cub_scratch = placement.take<std::byte>(cub_bytes);
  }
  BestRow* best;
  std::byte* cub_scratch;
  size_t cub_bytes = 0;
};

}  // namespace

int64_t best_of_scratch(int sequences) {
  Placement counted;
  BestOfScratch(counted, sequences);
  return static_cast<int64_t>(counted.bytes());
}

void best_of(const BestOfArgs& args, cudaStream_t stream) {
  Placement placed(args.scratch);
  BestOfScratch scratch(placed, args.sequences);
  find_best_rows(args, scratch.cub_scratch, scratch.cub_bytes, scratch.best, stream);
  const int blocks = (args.sequences + kGatherWarps - 1) / kGatherWarps;
  launch(gather_best_kernel, dim3(blocks), dim3(kGatherThreads), 0, stream, args, scratch.best);
}

}  // namespace pointsman::cuda
