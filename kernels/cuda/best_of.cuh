// SPDX-License-Identifier: Apache-2.0
// The winners' answers side by side. A warp takes a sequence and copies its best row. No shared memory, no
// arithmetic; 8 n + 60 bytes a sequence, beside the 8 bytes a row that the reduction before it reads.
#pragma once

#include <cub/device/device_segmented_reduce.cuh>

#include "kernels/cuda/best_of.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

using BestRow = cub::KeyValuePair<int, double>;  // row inside the sequence, its cost

constexpr int kGatherThreads = 128, kGatherWarps = kGatherThreads / 32;

__global__ void __launch_bounds__(kGatherThreads) gather_best_kernel(BestOfArgs a, const BestRow* best) {
  const int64_t sequence = static_cast<int64_t>(blockIdx.x) * kGatherWarps + threadIdx.x / 32;
  if (sequence >= a.sequences) return;
  const int64_t first = a.first_row[sequence];
  if (first == a.first_row[sequence + 1]) return;
  const BestRow winner = best[sequence];
  const int64_t row = first + winner.key;
  const int lane = threadIdx.x % 32;
  for (int i = lane; i < a.n; i += 32) a.best_orders[sequence * a.n + i] = a.orders[row * a.n + i];
  if (lane != 0) return;
  a.winners[sequence] = winner.key;
  a.best_costs[sequence] = winner.value;
  a.best_log_probs[sequence] = a.log_probs[row];
}

}  // namespace pointsman::cuda
