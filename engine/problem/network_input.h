// SPDX-License-Identifier: Apache-2.0
// How one instance becomes many input sequences: dihedral copies and input orders.
#pragma once

#include <cstdint>
#include <vector>

namespace pointsman {

// The eight symmetries of the unit square, copy 0 being the identity. point: [2], in place.
void apply_dihedral(int copy, float* point);

// A uniformly random permutation of 0 .. n-1 (Fisher-Yates), a function of (seed, instance_key, replica)
// only; Philox on the input-order stream.
std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n);

}  // namespace pointsman
