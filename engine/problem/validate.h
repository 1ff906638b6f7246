// SPDX-License-Identifier: Apache-2.0
// The last word on every answer: recomputed on the host in double from the user's own numbers.
#pragma once

#include <string>

#include "engine/problem/instance.h"

namespace pointsman {

// Distance between two cities under the instance's metric (TSPLIB95, section 2: nint, ceil, pseudo-Euclidean,
// great circle).
double city_distance(const Instance& instance, int a, int b);

// Fills cost, cost_euclidean and weight from `order`. Returns an empty string when the order is a permutation
// of all cities, or a set of distinct items within the capacity; else what is wrong with it, for a person.
std::string validate_solution(const Instance& instance, Solution& solution);

// Whether a network could have drawn this answer: valid, every item fitting when its turn came, and, as it
// packs until nothing fits, no item left that still would.
bool is_reachable(const Instance& instance, Solution solution);

// True when a is the better answer (shorter tour, larger value).
bool is_better(const Instance& instance, double cost_a, double cost_b);

// cost / reference - 1 for TSP, 1 - value / reference for KnapSack: >= 0 at best equal to the reference.
double gap(const Instance& instance, double cost, double reference);

}  // namespace pointsman
