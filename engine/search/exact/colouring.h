// SPDX-License-Identifier: Apache-2.0
// The fewest colours of a graph.
#pragma once

#include "engine/problem/instance.h"
#include "engine/search/limits.h"

namespace pointsman {

// A colouring with the fewest colours, by branch and bound in the order of DSATUR (Brelaz 1979) behind a
// clique; never worse than quick_answer(). Exponential at worst; milliseconds for random graphs of 50 nodes.
// Where `control` ends it early it is the best so far, its start is kBranchAndBound, and its status says so.
// It takes a stack frame a node, so
// solve allows kMostExactNodes. Throws std::invalid_argument for another problem.
Solution exact_colouring(const Instance& instance, const SearchControl& control);

}  // namespace pointsman
