// SPDX-License-Identifier: Apache-2.0
// The processors of several ranks as one backend, for training and active search. Each call is cut at the
// fixed segments of a gradient, every rank computes some of them, and their sums meet in the segments' order:
// parameters, costs and statistics have the bits of one process, whatever the number of ranks and of threads.
#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/cluster/communicator.h"
#include "engine/cluster/message.h"

namespace pointsman {

// A model's configuration as ranks tell it to each other.
void put(MessageWriter& message, const ModelConfig& config);
ModelConfig take_config(MessageReader& message);

// On rank 0, while every other rank is in serve_cluster_backend(); they leave it when this backend is
// destroyed between two calls. threads: of this rank. info() is this rank's device. A request's stop token is
// asked before the call, not within. ranks must outlive it. Beside the errors of a CPU backend it throws
// ClusterError.
std::unique_ptr<Backend> make_cluster_backend(Communicator& ranks, int threads);

// What the other ranks do meanwhile. Throws what a call throws: then the run cannot go on.
void serve_cluster_backend(Communicator& ranks, int threads);

}  // namespace pointsman
