// SPDX-License-Identifier: Apache-2.0
// Distances between cities as TSPLIB95, section 2, defines them.
#pragma once

#include "engine/problem/instance.h"

namespace pointsman {

// Under the instance's metric: nint, ceil, pseudo-Euclidean, great circle, or the plain Euclidean length.
double city_distance(const Instance& instance, int a, int b);

}  // namespace pointsman
