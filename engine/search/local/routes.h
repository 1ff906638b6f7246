// SPDX-License-Identifier: Apache-2.0
// Routes of a CVRP without a network.
#pragma once

#include "engine/problem/instance.h"
#include "engine/search/limits.h"

namespace pointsman {

// Savings (Clarke and Wright 1964): every customer begins with a route of its own; the two routes whose ends
// i and j save most, d(0, i) + d(0, j) - d(i, j), become one where a vehicle can carry both, until none can.
// Pairs are those of each customer's 40 nearest. Ties by number. It passed validate_solution; its log_prob
// and network_objective are NaN. Stopped early, it is quick_answer(). std::invalid_argument for another
// problem.
Solution savings_routes(const Instance& instance, const SearchControl& control);

}  // namespace pointsman
