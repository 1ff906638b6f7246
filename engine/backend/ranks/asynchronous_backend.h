// SPDX-License-Identifier: Apache-2.0
// Asynchronous training, as in Bello et al. 2017 (section 5), after Mnih et al. 2016: every rank makes its
// own steps on its own backend. Parameters and Adam's moments lie in rank 0's memory, where each rank applies
// its own gradients. Results depend on the timing.
#pragma once

#include <memory>

#include "engine/backend/backend.h"
#include "engine/cluster/communicator.h"

namespace pointsman {

struct AsynchronousBackend : Backend, SharedSteps {};

// Called by all ranks. own: this rank's backend. ranks must outlive it. All ranks call configure() once, with
// one parameter set. Parameters and optimiser are those that rank 0 loads before its first update(), which
// the other ranks' first take() waits for; loads of other ranks are ignored. most_stale: gradients older than
// so many updates are dropped. Also throws ClusterError.
std::unique_ptr<AsynchronousBackend> make_asynchronous_backend(Communicator& ranks,
                                                               std::unique_ptr<Backend> own, int most_stale);

}  // namespace pointsman
