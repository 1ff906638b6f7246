// SPDX-License-Identifier: Apache-2.0
// Rollouts of a tile of sequences on one worker. Rollouts of one sequence that have chosen the same items so
// far have the same state and the same probabilities, so the network is evaluated once for each distinct
// prefix (algebra identity 8) and each rollout of the group draws with its own uniform: bits as one by one.
#pragma once

#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cpu_network.h"

namespace pointsman {

// Rollouts first .. first + count - 1 of sequence `sequence`; they write to results from `result` on.
struct RolloutPiece {
  int sequence;
  int first, count;
  int64_t result;
};

// Pieces of consecutive sequences with one parameter set; a sequence may be cut into pieces of several tiles.
struct RolloutTile {
  std::vector<RolloutPiece> pieces;
  int64_t rollouts = 0;
};

// Cuts a request into tiles of at most max_sequences pieces and max_rollouts rollouts.
std::vector<RolloutTile> cut_into_tiles(const SequenceBatch& sequences, const int32_t* counts,
                                        int max_sequences, int max_rollouts);

struct RolloutWorkspace {
  EncodedTile encoded;
  Buffer products, h[2], c[2], logits, prefix, attention;
  std::vector<int32_t> items[2];
};

// Fills orders, costs and log_probs of the tile's rollouts and returns the tile's statistics. kept: where the
// tile's activations go (one rollout a piece), or null.
PolicyStatistics roll_out_tile(const CpuParameters& parameters, const AttentionWeights& weights,
                               const ReferenceSlots& slots, const RolloutRequest& request,
                               const RolloutTile& tile, bool want_entropy, RolloutWorkspace& workspace,
                               TileActivations* kept, RolloutResult& result);

AttentionWeights attention_weights(const CpuParameters& parameters, const ModelConfig& config,
                                   const ParameterLayout& layout, const Policy& policy);

}  // namespace pointsman
