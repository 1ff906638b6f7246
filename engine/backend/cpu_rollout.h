// SPDX-License-Identifier: Apache-2.0
// Rollouts of a tile of sequences on one worker. Rollouts of one sequence that have chosen the same items so
// far have the same state and the same probabilities, so the network is evaluated once for each distinct
// prefix (algebra identity 8) and each rollout of the group draws with its own uniform: bits as one by one.
#pragma once

#include <vector>

#include "engine/backend/cpu_prior.h"

namespace pointsman {

struct RolloutWorkspace {
  EncodedTile encoded;
  Buffer products, h[2], c[2], logits, prefix, attention;
  std::vector<int32_t> items[2];
  Prior prior;
};

// Fills orders, costs and log_probs of the tile's rollouts and returns the tile's statistics. recorded: where
// the tile's activations go, or null.
PolicyStatistics roll_out_tile(const CpuParameters& parameters, const RolloutRequest& request,
                               const RolloutTile& tile, RolloutWorkspace& workspace,
                               TileActivations* recorded, RolloutResult& result);

}  // namespace pointsman
