// SPDX-License-Identifier: Apache-2.0
// A first tour: of all edges the shortest that still fits, again and again (Bentley 1992, "greedy").
#pragma once

#include <cstdint>
#include <vector>

#include "engine/search/distances.h"
#include "engine/search/local/neighbour_lists.h"

namespace pointsman {

// [n], as `distances` numbers the cities; some 16 to 20% above the optimum on random cities. Edges come from
// the lists of all cities; where these leave fragments, from lists of the fragments' ends. Of equally short
// edges the first by place. O(n log n) in the plane.
std::vector<int32_t> greedy_edges(const Distances& distances, const NeighbourLists& lists,
                                  const StopToken& stop);

}  // namespace pointsman
