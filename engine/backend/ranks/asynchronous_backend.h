// SPDX-License-Identifier: Apache-2.0
// Training by ranks that do not wait for each other, as Bello et al. 2017 (section 5) trained theirs, after
// Mnih et al. 2016: every rank makes steps of its own on its own backend. Parameters and Adam's moments lie
// in rank 0's memory; a rank that has a gradient makes its update there, by itself, and goes on from what it
// left. What comes of it depends on who was when ready.
#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/cluster/communicator.h"

namespace pointsman {

struct AsynchronousBackend : Backend, SharedSteps {};

// Called by all ranks. own: what this rank computes on. ranks must outlive it. configure() is called once, by
// all ranks, with one parameter set. Parameters and optimiser are those that rank 0 loads before its first
// update(), which the other ranks' first take() waits for; what these load is passed over. most_stale: a
// gradient of parameters that more updates have changed since is left out. Beside its own backend's errors it
// throws ClusterError.
std::unique_ptr<AsynchronousBackend> make_asynchronous_backend(Communicator& ranks,
                                                               std::unique_ptr<Backend> own, int most_stale);

}  // namespace pointsman
