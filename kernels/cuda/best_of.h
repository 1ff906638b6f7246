// SPDX-License-Identifier: Apache-2.0
// Which rollout of every sequence costs least, found where the rollouts are: a search that wants only the
// best downloads those. CUB's segmented reduction finds them, a kernel of ours gathers them.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

namespace pointsman::cuda {

struct BestOfArgs {
  const int32_t* first_row;  // [sequences + 1]: rows first_row[s] .. first_row[s + 1] - 1 are sequence s's
  const int32_t* orders;     // [rows][n]
  const double* costs;       // [rows]; no NaN
  const double* log_probs;   // [rows]
  int sequences, n;
  void* scratch;                        // best_of_scratch(sequences) bytes
  int32_t* winners;                     // [sequences] out: row inside the sequence, the lowest of equal ones
  int32_t* best_orders;                 // [sequences][n] out; a sequence without rows is left out of all four
  double *best_costs, *best_log_probs;  // [sequences] out
};
int64_t best_of_scratch(int sequences);
// Enqueues on `stream`; neither allocates nor synchronises.
void best_of(const BestOfArgs& args, cudaStream_t stream);

}  // namespace pointsman::cuda
