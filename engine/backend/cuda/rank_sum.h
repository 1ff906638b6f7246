// SPDX-License-Identifier: Apache-2.0
// Sums over the devices of several ranks, in rank order: NCCL gathers the addends on every device, which adds
// them. Where a rank lacks NCCL or two ranks share a device, they go through the hosts' memory. The same bits
// either way.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "engine/backend/cuda/device.h"
#include "engine/backend/cuda/nccl.h"
#include "engine/cluster/communicator.h"
#include "kernels/cuda/device_buffer.h"
#include "kernels/cuda/stream.h"

namespace pointsman::cuda {

// What no other device of any machine has. The slices of one GPU (MIG) share it: NCCL takes them for one.
std::string identity_of(const cudaDeviceProp& device);

class RankSum {
 public:
  // Called by all ranks, each with its device as the thread's current one. ranks and stream must outlive it.
  // Throws ClusterError, and std::runtime_error where CUDA fails.
  RankSum(Communicator& ranks, const DeviceStream& stream);
  ~RankSum();
  RankSum(const RankSum&) = delete;
  RankSum& operator=(const RankSum&) = delete;

  // Called by all ranks. array: [size] of device memory, written by the stream's work: it becomes the sum, at
  // the latest when the stream is done. Throws ClusterError, and DeviceError where the addends of all ranks
  // do not fit the device.
  void add_up(float* array, size_t size);

 private:
  void add_on_hosts(float* array, size_t size);

  Communicator& ranks_;
  const DeviceStream& stream_;
  const Nccl* nccl_ = nullptr;  // null: through the hosts
  NcclCommunicator communicator_ = nullptr;
  DeviceBuffer gathered_;
  std::vector<float> own_, sum_;  // through the hosts
};

}  // namespace pointsman::cuda
