// SPDX-License-Identifier: Apache-2.0
// What a network reads of a matrix of ways, whose cities have no places. It sees the shares of the entropic
// assignment problem of all cities at a temperature of 1 / n of the mean way (Cuturi 2013), and what rows and
// columns are like.
#pragma once

#include <vector>

#include "engine/problem/instance.h"
#include "engine/problem/packing_units.h"

namespace pointsman {

// [n][AtspRules::kFeatures] of each city: the means of the ways from it and to it, in means of all; the three
// shortest of each, and the three largest shares of each as minus their logarithms, in tens of the
// temperature.
std::vector<float> matrix_features(const Instance& instance, double);
// As AtspRules reads them.
RuleNumbers matrix_numbers(const Instance& instance);

// The round trip begins at the city from which the ways are the shortest in the mean.
void make_circuit_example(int n, const float* features, int32_t* tour);

}  // namespace pointsman
