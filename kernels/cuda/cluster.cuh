// SPDX-License-Identifier: Apache-2.0
// What the kernels on clusters of four blocks share: lstm_cluster.cu and decode_cluster.cu.
#pragma once

#include <map>
#include <mutex>
#include <utility>

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

inline constexpr int kWarpLanes = 32;
inline constexpr int kBlockUnits = kHidden / kClusterBlocks;  // that a block owns, a lane each
static_assert(kBlockUnits == kWarpLanes);

// How many clusters of a kernel run at once where a multiprocessor takes one block; 0 where the device has no
// clusters. All blocks of a cluster lie in one GPC, and GPCs differ in size.
inline int clusters_at_once(const void* kernel, int threads) {
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 9) return 0;
  static std::mutex mutex;
  static std::map<std::pair<const void*, int>, int> known;  // by device: each call of a kernel asks
  int device = 0;
  require(cudaGetDevice(&device), "current device");
  const std::lock_guard lock(mutex);
  const auto [entry, is_new] = known.try_emplace({kernel, device}, 0);
  if (!is_new) return entry->second;
  const int shared =
      device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);  // so that two blocks do not fit
  allow_shared_memory(kernel, shared);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {kClusterBlocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kClusterBlocks);
  config.blockDim = dim3(threads);
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  require(cudaOccupancyMaxActiveClusters(&entry->second, kernel, &config), "clusters at once");
  return entry->second;
}

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
