// SPDX-License-Identifier: Apache-2.0
// One backend of several ranks, for training and active search. Every rank computes some of a gradient's
// segments. On CPUs the segments' sums are added in their order: the bits are those of one process, whatever
// the number of ranks and threads. On CUDA devices, one a rank, each rank's sum is added in rank order: the
// bits depend on the number of ranks only.
#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/cluster/communicator.h"
#include "engine/cluster/message.h"

namespace pointsman {

// A model's configuration in a message.
void put(MessageWriter& message, const ModelConfig& config);
ModelConfig take_config(MessageReader& message);

// On rank 0, while every other rank is in serve_cluster_backend(), which returns when this backend is
// destroyed between two calls. device: this rank's, with a gradient_sum() (std::invalid_argument without);
// on all ranks or on none: null, for the CPU with so many threads. read_gradient() of devices is this rank's.
// A request's stop token is checked before the call, not during it. ranks must outlive it. Also throws
// ClusterError.
std::unique_ptr<Backend> make_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device,
                                              int threads = 0);

// The other ranks' part. If it throws, the run cannot go on.
void serve_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device, int threads = 0);

}  // namespace pointsman
