// SPDX-License-Identifier: Apache-2.0
// lstm_forward() in fp32 and lstm_backward() on clusters of blocks, which sm_90 has: the same arguments, the
// same bits. A cluster takes tile_rows rows of one parameter set, at most 32, through all steps.
#pragma once

#include "kernels/cuda/cuda_operations.h"

namespace pointsman::cuda {

// Dynamic shared memory of a block.
int64_t lstm_cluster_bytes(bool backward, int tile_rows);

void lstm_forward_in_clusters(const LstmForwardArgs& args, int tile_rows, cudaStream_t stream);
void lstm_backward_in_clusters(const LstmBackwardArgs& args, int tile_rows, cudaStream_t stream);

}  // namespace pointsman::cuda
