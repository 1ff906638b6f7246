// SPDX-License-Identifier: Apache-2.0
// Local search on a TSP tour: 2-opt and Or-opt over neighbour lists with a work queue (Bentley 1992).
#pragma once

#include <cstdint>

#include "engine/problem/instance.h"
#include "engine/search/search_control.h"
#include "models/config.h"

namespace pointsman {

struct ImproveOptions {
  int neighbours = 10;  // length of each city's candidate list
  int64_t kicks = 0;    // local double-bridge kicks after the first local optimum (iterated search); 0: none
  uint64_t seed = kDefaultSeed;  // of the kicks
};

// Replaces solution.order by a tour that is never longer under the instance's own metric, and revalidates it.
// TSP only; KnapSack solutions are left as they are. Stops early when control says so.
void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control);

}  // namespace pointsman
