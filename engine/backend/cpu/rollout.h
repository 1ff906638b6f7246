// SPDX-License-Identifier: Apache-2.0
// Rollouts of a tile of sequences on one worker. Rollouts of one sequence that have chosen the same items so
// far have the same state and the same probabilities, so the network is evaluated once for each distinct
// prefix (algebra identity 8) and each rollout of the group draws with its own uniform: bits as one by one.
// The tree of prefixes is walked depth first, a block of groups at a time, so that the second-level cache
// holds what a block computes, however many rollouts the tile has.
#pragma once

#include <deque>
#include <vector>

#include "engine/backend/cpu/branch_queue.h"
#include "engine/backend/cpu/prior.h"

namespace pointsman {

// Network states and remaining items of groups.
struct GroupStates {
  Buffer h, c;                 // [groups][H]
  std::vector<int32_t> items;  // [groups][n]

  void make_room(size_t groups, int n) {
    h.get(groups * kHidden);
    c.get(groups * kHidden);
    if (items.size() < groups * n) items.resize(groups * n);
  }
};

// Of the members of a block of groups, in their order.
struct Draws {
  std::vector<uint32_t> instances, samples;  // [members]
  Buffer uniforms;                           // [members]
  std::vector<int32_t> positions;            // [members] in their group's list
  int first_member = 0;                      // of the block, in its level

  void make_room(int members) {
    const size_t count = cpu::padded(members);
    for (auto* key : {&instances, &samples})
      if (key->size() < count) key->resize(count);
    if (positions.size() < count) positions.resize(count);
    uniforms.get(count);
  }
};

struct RolloutWorkspace {
  EncodedTile encoded;
  Buffer products, logits, prefix, attention;
  Draws draws;
  std::deque<GroupStates> levels;
  Prior prior;
};

struct TileRolloutArgs {
  const CpuParameters& parameters;
  const RolloutRequest& request;
  const RolloutTile& tile;
  TileActivations* recorded;  // where the tile's activations go, or null
  RolloutResult& result;
  BranchQueue& branches;  // takes none of a request with a tape
};

// Fills orders, costs and log_probs of the tile's rollouts and returns the tile's statistics, less those of
// the branches that went to the queue.
PolicyStatistics roll_out_tile(const TileRolloutArgs& args, RolloutWorkspace& workspace);

}  // namespace pointsman
