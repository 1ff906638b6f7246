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
  NcclResult (*get_id)(NcclId* id);
  // Waits for all ranks; each has a device of its own, the thread's current one.
  NcclResult (*join)(NcclCommunicator* communicator, int ranks, NcclId id, int rank);
  // received: [ranks][count], in rank order. Enqueued.
  NcclResult (*all_gather)(const void* sent, void* received, size_t count, int type,
                           NcclCommunicator communicator, cudaStream_t stream);
  NcclResult (*leave)(NcclCommunicator communicator);  // may wait for the others to leave
  NcclResult (*abort)(NcclCommunicator communicator);  // waits for nobody
  const char* (*error_text)(NcclResult result);
};

// The library that the environment's POINTSMAN_NCCL names, else libnccl.so.2; null: there is none, or
// POINTSMAN_NCCL is `off`. Loaded once.
const Nccl* find_nccl();

}  // namespace pointsman::cuda
