// SPDX-License-Identifier: Apache-2.0
// What the kernels on clusters of four blocks share: lstm_cluster.cu and decode_cluster.cu.
#pragma once

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

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
