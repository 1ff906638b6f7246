// SPDX-License-Identifier: Apache-2.0
// From an instance in the user's units to what the network reads: scaling, dihedral copies, input order.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

// TSP: inside [0,1]^2 unchanged; otherwise the bounding box's corner is moved to 0 and both axes are divided
// by its longer side. KnapSack: weights times trained_capacity / W; values divided by the largest when that
// is > 1. Returns [n][2].
std::vector<float> network_features(const Instance& instance, double trained_capacity);

// The eight symmetries of the unit square, copy 0 being the identity. point: [2], in place.
void apply_dihedral(int copy, float* point);

// A uniformly random permutation of 0 .. n-1 (Fisher-Yates), a function of (seed, instance_key, replica)
// only; Philox on the input-order stream.
std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n);

}  // namespace pointsman
