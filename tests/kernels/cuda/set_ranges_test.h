// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "kernels/cuda/cuda_operations.h"

namespace pointsman::cuda {

// Ranges of the given lengths; their sets count downward, so that no range reads set 0 by luck.
inline std::vector<SetRange> make_ranges(const std::vector<int>& lengths) {
  std::vector<SetRange> ranges;
  int first = 0;
  for (size_t r = 0; r < lengths.size(); ++r) {
    ranges.push_back({static_cast<int32_t>(lengths.size() - 1 - r), first, lengths[r]});
    first += lengths[r];
  }
  return ranges;
}

inline int rows_of(const std::vector<SetRange>& ranges) {
  return ranges.back().first_row + ranges.back().rows;
}

inline int set_of(const std::vector<SetRange>& ranges, int row) {
  for (const SetRange& r : ranges) {
    if (row < r.first_row + r.rows) return r.set;
  }
  return -1;
}

}  // namespace pointsman::cuda
