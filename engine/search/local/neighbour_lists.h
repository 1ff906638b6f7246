// SPDX-License-Identifier: Apache-2.0
// Candidate lists: the cities that a good tour is likely to visit next.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "engine/problem/fixed_edges.h"
#include "engine/search/distances.h"
#include "kernels/tools/stop_token.h"

namespace pointsman {

struct Neighbour {
  double distance;
  int32_t place;  // as Distances numbers the cities
};

// Lists of several cities, each nearest first, equally near ones by place.
class NeighbourLists {
 public:
  // For each of the cities `of` its `nearest` nearest others of `among`; in the plane also the nearest of
  // each quadrant that has none of them (Johnson & McGeoch 1997), so that clusters stay tied to each other.
  // O(n log n) in the plane, by a k-d tree (Bentley 1990), else O(n^2). A stop throws CallStopped.
  NeighbourLists(const Distances& distances, std::span<const int32_t> of, std::span<const int32_t> among,
                 int nearest, const StopToken& stop);
  NeighbourLists(const Distances& distances, std::span<const int32_t> among, int nearest,
                 const StopToken& stop)
      : NeighbourLists(distances, among, among, nearest, stop) {}

  // Of of[i].
  std::span<const Neighbour> operator[](size_t i) const {
    return std::span(entries_).subspan(begins_[i], begins_[i + 1] - begins_[i]);
  }

 private:
  std::vector<Neighbour> entries_;
  std::vector<size_t> begins_{0};
};

// 0 .. n - 1.
std::vector<int32_t> all_places(int n);

// A first tour, [n], by the shortest edge that still fits, again and again (Bentley 1992, "greedy"), as
// `distances` numbers the cities; some 16 to 20% above the optimum on random cities. Edges come from the
// lists of all cities; where these leave fragments, from lists of the fragments' ends. Of equally short edges
// the first by place. Fixed edges come before all others. O(n log n) in the plane.
std::vector<int32_t> greedy_edges(const Distances& distances, const NeighbourLists& lists,
                                  const FixedEdges& fixed, const StopToken& stop);

}  // namespace pointsman
