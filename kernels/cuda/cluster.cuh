// SPDX-License-Identifier: Apache-2.0
// Kernels on clusters of four blocks, which sm_90 has, for batches too small to fill the device: the same
// arguments and bits as the kernels of single blocks.
#pragma once

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

// ------------------------------------------------------------------------------ decode_cluster.cu, fp32

// Dynamic shared memory of a block without references, whose tile has up to so many rows: 1, 2 or 4.
int64_t decode_cluster_bytes(int n, int tile_rows);

// How many clusters with one block a multiprocessor run at once, of any kernel; 0 where the device has none.
// All blocks of a cluster lie in one GPC, and GPCs differ in size. The first call asks the driver;
// decode_tiling() makes it, so that no later one comes while a stream is captured.
int clusters_at_once();

void decode_in_clusters(const DecodeArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ lstm_cluster.cu, fp32

// Dynamic shared memory of a block. A cluster takes tile_rows rows of one parameter set, at most 32, through
// all steps.
int64_t lstm_cluster_bytes(bool backward, int tile_rows);

void lstm_forward_in_clusters(const LstmForwardArgs& args, int tile_rows, cudaStream_t stream);
void lstm_backward_in_clusters(const LstmBackwardArgs& args, int tile_rows, cudaStream_t stream);

// ------------------------------------------------------------------------------ what the kernels share

inline constexpr int kWarpLanes = 32;
inline constexpr int kBlockUnits = kHidden / kClusterBlocks;  // that a block owns, a lane each
static_assert(kBlockUnits == kWarpLanes);

// The word at `to` in the shared memory of all blocks.
template <typename T>
__device__ __forceinline__ void store_in_cluster(T* to, T value) {
#pragma unroll
  for (int block = 0; block < kClusterBlocks; ++block) *in_block_of_cluster(to, block) = value;
}

// All threads of the cluster.
__device__ __forceinline__ void sync_cluster() {
  cluster_arrive();
  cluster_wait();
}

}  // namespace pointsman::cuda
