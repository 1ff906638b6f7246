// SPDX-License-Identifier: Apache-2.0
// How a block finds its rows: every SetRange is cut into tiles of tile_rows rows, so that no tile reads two
// parameter sets. Range r's tiles are numbered from first_row / tile_rows + r on: they fit before the
// next range's, and a block finds its range by bisection. At most one number a range is left without rows.
#pragma once

#include <cstdint>

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

// Tile numbers, blocks to launch, for ranges that cover `rows` rows.
constexpr int row_tile_count(int rows, int range_count, int tile_rows) {
  return rows / tile_rows + range_count;
}
// items: rows of the arrays that belong to one row of the ranges, here and below.
inline int row_tile_count(const SetRanges& ranges, int tile_rows, int items = 1) {
  return row_tile_count(ranges.rows * items, ranges.count, tile_rows);
}

__device__ __forceinline__ int first_row_tile(const SetRanges& ranges, int range, int tile_rows,
                                              int items = 1) {
  return ranges.data[range].first_row * items / tile_rows + range;
}

// The last range whose first(range) is not beyond `at`.
template <typename First>
__device__ __forceinline__ int find_range(int range_count, int at, const First& first) {
  int range = 0;
  for (int end = range_count; end - range > 1;) {
    const int middle = range + (end - range) / 2;
    (first(middle) <= at ? range : end) = middle;
  }
  return range;
}

// Rows first_row .. first_row + rows - 1 of parameter set `set`; rows <= 0: the block has nothing to do. The
// same for every thread that asks for the same tile.
__device__ __forceinline__ SetRange find_row_tile(const SetRanges& ranges, int tile, int tile_rows,
                                                  int items = 1) {
  const int range =
      find_range(ranges.count, tile, [&](int r) { return first_row_tile(ranges, r, tile_rows, items); });
  const int skipped = (tile - first_row_tile(ranges, range, tile_rows, items)) * tile_rows;
  const SetRange whole = ranges.data[range];
  const int left = whole.rows * items - skipped;
  return {whole.set, whole.first_row * items + skipped, left < tile_rows ? left : tile_rows};
}

}  // namespace pointsman::cuda
