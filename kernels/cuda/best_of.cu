// SPDX-License-Identifier: Apache-2.0
// The winners' answers side by side. A warp takes a sequence and copies its best row.
#include <cfloat>
#include <cub/device/device_segmented_reduce.cuh>

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/tools/placement.h"

namespace pointsman::cuda {

using BestRow = cub::KeyValuePair<int, double>;  // row inside the sequence, its cost

constexpr int kGatherThreads = 128, kGatherWarps = kGatherThreads / 32;

__global__ void __launch_bounds__(kGatherThreads) gather_best_kernel(BestOfArgs a, const BestRow* best) {
  const int64_t sequence = int64_t{blockIdx.x} * kGatherWarps + threadIdx.x / 32;
  if (sequence >= a.sequences) return;
  const int64_t first = a.first_row[sequence];
  // CUB starts from {1, DBL_MAX}, which is also its answer where no row costs less.
  const bool has_best = best[sequence].value < DBL_MAX;
  const BestRow winner = has_best ? best[sequence] : BestRow{-1, INFINITY};
  const int64_t row = first + winner.key;
  const int lane = threadIdx.x % 32;
  for (int i = lane; i < a.steps; i += 32)
    a.best_orders[sequence * a.steps + i] = has_best ? a.orders[row * a.steps + i] : -1;
  if (lane != 0) return;
  a.winners[sequence] = winner.key;
  a.best_costs[sequence] = winner.value;
  a.best_log_probs[sequence] = has_best ? a.log_probs[row] : -INFINITY;
}

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
  launch(gather_best_kernel, blocks, kGatherThreads, 0, stream, args, scratch.best);
}

}  // namespace pointsman::cuda
