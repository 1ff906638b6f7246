// SPDX-License-Identifier: Apache-2.0
// How a CPU backend that computes a part of a gradient's tiles meets those that compute the others.
#pragma once

#include <cstddef>
#include <span>

#include "kernels/common/policy.h"

namespace pointsman {

// Tiles of 16 rollouts of a call that others share: `first` tiles stand before this backend's own, and all
// together are `all`. A part is whole segments, so that its sums are addends of the whole's.
struct TileWindow {
  size_t first = 0, all = 0;
};

class CpuPart {
 public:
  virtual ~CpuPart() = default;

  // Of the gradient call that is being made.
  virtual TileWindow window() const = 0;
  // addends: this backend's segments, [..][sum.size()]. sum: all backends' segments, added in their order.
  virtual void add_segments(std::span<const float* const> addends, std::span<float> sum) = 0;
  // Of the tiles of a rollout onto a tape, in their order.
  virtual void take_statistics(std::span<const PolicyStatistics> tiles) = 0;
};

// The segments of a call of `tiles` tiles: at most kSegments, which decides the order of the sums.
inline constexpr size_t kSegments = 16;
inline size_t segments_of(size_t tiles) { return tiles < kSegments ? tiles : kSegments; }
// The first tile of a segment; that of segment segments_of(tiles) is the end.
inline size_t segment_begin(size_t segment, size_t tiles) { return segment * tiles / segments_of(tiles); }

}  // namespace pointsman
