// SPDX-License-Identifier: Apache-2.0
// The last word on every answer: recomputed on the host in double from the user's own numbers.
#pragma once

#include <string>

#include "engine/problem/instance.h"

namespace pointsman {

// Fills objective, unrounded and weight from `order`. Returns an empty string when the order is a permutation
// of all cities, or a set of distinct items within the capacity; else what is wrong with it, for a person.
std::string validate_solution(const Instance& instance, Solution& solution);

// The same, of an answer of our own: an invalid one is a defect of the program, std::logic_error `what` +
// why.
void require_valid(const Instance& instance, Solution& solution, const char* what);

// Whether a network could have drawn this answer: valid, every item feasible when its turn came, and none
// left that still would be.
bool is_reachable(const Instance& instance, Solution solution);

}  // namespace pointsman
