// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu_tile.h"

#include <algorithm>

namespace pointsman {

std::vector<RolloutTile> cut_into_tiles(const SequenceBatch& sequences, const int32_t* counts,
                                        int max_sequences, int max_rollouts) {
  std::vector<RolloutTile> tiles;
  RolloutTile tile;
  int64_t result = 0;
  const auto flush = [&] {
    if (!tile.pieces.empty()) tiles.push_back(std::move(tile));
    tile = {};
  };
  for (int s = 0; s < sequences.count; ++s) {
    const int count = counts == nullptr ? 1 : counts[s];
    if (!tile.pieces.empty() && sequences.set_of(tile.pieces.back().sequence) != sequences.set_of(s)) flush();
    for (int first = 0; first < count;) {
      if (static_cast<int>(tile.pieces.size()) == max_sequences || tile.rollouts >= max_rollouts) flush();
      const int taken = std::min<int64_t>(count - first, max_rollouts - tile.rollouts);
      tile.pieces.push_back({s, first, taken, result + first});
      tile.rollouts += taken;
      first += taken;
    }
    result += count;
  }
  flush();
  return tiles;
}

}  // namespace pointsman
