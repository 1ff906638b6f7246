// SPDX-License-Identifier: Apache-2.0
// decode() in fp32 on clusters of blocks, which sm_90 has, for batches too small to fill the device: the same
// arguments, the same bits.
#pragma once

#include "kernels/cuda/cuda_operations.h"

namespace pointsman::cuda {

// Dynamic shared memory of a block without references, whose tile has up to so many rows: 1, 2 or 4.
int64_t decode_cluster_bytes(int n, int tile_rows);

// How many clusters with one block a multiprocessor run at once, of any kernel; 0 where the device has none.
// All blocks of a cluster lie in one GPC, and GPCs differ in size. The first call asks the driver;
// decode_tiling() makes it, so that no later one comes while a stream is captured.
int clusters_at_once();

void decode_in_clusters(const DecodeArgs& args, cudaStream_t stream);

}  // namespace pointsman::cuda
