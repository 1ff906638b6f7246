// SPDX-License-Identifier: Apache-2.0
// What several ranks compute on as one backend, for training and active search. Each call is cut at the fixed
// segments of a gradient, and every rank computes some of them. On CPUs their sums meet in the segments'
// order: parameters, costs and statistics have the bits of one process, whatever the number of ranks and of
// threads. On CUDA devices, one a rank, a rank's segments are one sum, and those are added in rank order:
// every run of as many ranks has the same bits.
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
// destroyed between two calls. threads: of this rank's CPU; device: this rank's, of a backend that has
// sum_gradients(). All ranks name the same of the two. info() is this rank's and how many they are;
// read_gradient() of devices is this rank's. A request's stop token is asked before the call, not within.
// ranks must outlive it. Beside the errors of the ranks' backends it throws ClusterError.
std::unique_ptr<Backend> make_cluster_backend(Communicator& ranks, int threads);
std::unique_ptr<Backend> make_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device);

// What the other ranks do meanwhile. Throws what a call throws: then the run cannot go on.
void serve_cluster_backend(Communicator& ranks, int threads);
void serve_cluster_backend(Communicator& ranks, std::unique_ptr<Backend> device);

}  // namespace pointsman
