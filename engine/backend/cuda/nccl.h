// SPDX-License-Identifier: Apache-2.0
// NCCL, as far as it is used here. It is loaded at run time, so neither the build nor the CUDA module needs
// it; tests/kernels/cuda/nccl_declarations.cpp compares this with NCCL's own header where there is one.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>

namespace pointsman::cuda {

struct NcclId {
  char bytes[128];
};
using NcclCommunicator = void*;
using NcclResult = int;
inline constexpr NcclResult kNcclSuccess = 0;
inline constexpr int kNcclFloat = 7;

struct Nccl {
  NcclResult (*version)(int* version);
  NcclResult (*get_id)(NcclId* id);
  // Waits for all ranks; each has a device of its own, the thread's current one.
  NcclResult (*join)(NcclCommunicator* communicator, int ranks, NcclId id, int rank);
  // received: [ranks][count], in rank order. Enqueued.
  NcclResult (*all_gather)(const void* sent, void* received, size_t count, int type,
                           NcclCommunicator communicator, cudaStream_t stream);
  // What went wrong with enqueued work, which then never ends.
  NcclResult (*later_error)(NcclCommunicator communicator, NcclResult* error);
  NcclResult (*leave)(NcclCommunicator communicator);  // all ranks do, and may wait for each other
  NcclResult (*abort)(NcclCommunicator communicator);  // ends enqueued work
  const char* (*error_text)(NcclResult result);
};

// The library that the environment's POINTSMAN_NCCL names, else libnccl.so.2, loaded once; null: there is no
// libnccl.so.2, or POINTSMAN_NCCL is `off`. Throws ClusterError where a library that was named cannot be
// loaded.
const Nccl* find_nccl();

}  // namespace pointsman::cuda
