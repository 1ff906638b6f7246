// SPDX-License-Identifier: Apache-2.0
// Tours of the TSP by a network that re-reads.
#pragma once

#include "engine/backend/backend.h"

namespace pointsman {

// Backend::rollout() of a TSP's instances, stretch after stretch by calls of `stretches`, which gets
// sequences as engine/backend/stretch.h makes them. Rollouts that began alike share an encoding. log p is
// that of all cities but the first, which the network does not choose: forced orders may begin anywhere. One
// that leaves the cities that the network reads is infeasible. Not with a tape.
void roll_out_stretches(const RolloutRequest& request, const ModelConfig& config,
                        const RolloutCall& stretches, RolloutResult& result);

}  // namespace pointsman
