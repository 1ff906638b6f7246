// SPDX-License-Identifier: Apache-2.0
// How the CPU backend cuts a call: a worker takes a tile.
#pragma once

#include <vector>

#include "engine/backend/backend.h"

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

}  // namespace pointsman
