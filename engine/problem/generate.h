// SPDX-License-Identifier: Apache-2.0
// Random instances: uniform in the unit square (TSP), weights and values uniform in [0, 1) (KnapSack). And
// how one instance becomes many input sequences: dihedral copies and random input orders.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "kernels/tools/stop_token.h"

namespace pointsman {

// Instances first .. first + count - 1 of the endless sequence of `seed`: instance i depends on (seed, i)
// only (Philox, instances stream; 53-bit doubles). A stop ends it with CallStopped.
InstanceBatch generate_instances(ProblemKind problem, int n, uint64_t seed, uint64_t first, int count,
                                 const StopToken& stop = {});

// The same, straight into network inputs: float features [count][n][2] (x, y or weight, value), for training.
void generate_features(int n, uint64_t seed, uint64_t first, int count, float* features);

// Bit for bit what `numpy.random.seed(seed); numpy.random.uniform(size=(count, n, 2))` gives (MT19937, 53-bit
// doubles), or for KnapSack two calls of size (count, n): all weights, then all values.
InstanceBatch generate_like_numpy(ProblemKind problem, int n, uint32_t seed, int count,
                                  const StopToken& stop = {});

// The eight symmetries of the unit square, copy 0 being the identity. point: [2], in place.
void apply_dihedral(int copy, float* point);

// A uniformly random permutation of 0 .. n-1 (Fisher-Yates), a function of (seed, instance_key, replica)
// only; Philox on the input-order stream.
std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n);

}  // namespace pointsman
