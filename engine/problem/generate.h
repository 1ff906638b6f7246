// SPDX-License-Identifier: Apache-2.0
// Random instances: uniform in the unit square (TSP), weights and values uniform in [0, 1) (KnapSack), places
// uniform in the unit square and demands 1 .. 9 (CVRP; Kool et al. 2019), ways uniform in [0, 1) and then
// closed under the triangle inequality (ATSP; Kwon et al. 2021), places uniform in a square of side 100 with
// windows around the times of a random tour (TSPTW; Dumas et al. 1995), graphs of which every two nodes are
// joined with probability 1/2 (colouring). And how one instance becomes many input sequences: dihedral copies
// and random input orders.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/problem/problem.h"
#include "kernels/tools/stop_token.h"

namespace pointsman {

// n is the number of items, a depot among them. Instances first .. first + count - 1 of the endless sequence
// of `seed`: instance i depends on (seed, i) only (Philox, instances stream; 53-bit doubles). A stop ends it
// with CallStopped.
InstanceBatch generate_instances(ProblemKind problem, int n, uint64_t seed, uint64_t first, int count,
                                 const StopToken& stop = {});

// The features [n][F] of such an instance of a problem without a matrix, with this capacity, for training.
void generate_features(ProblemKind problem, int n, double capacity, uint64_t seed, uint64_t index,
                       float* features);

// Bit for bit what `numpy.random.seed(seed); numpy.random.uniform(size=(count, n, 2))` gives (MT19937, 53-bit
// doubles), or for KnapSack two calls of size (count, n): all weights, then all values; for CVRP Kool's
// generator: uniform(size=(count, 2)) depots, uniform(size=(count, n - 1, 2)) customers, randint(1, 10,
// size=(count, n - 1)) demands. std::invalid_argument for other problems.
InstanceBatch generate_like_numpy(ProblemKind problem, int n, uint32_t seed, int count,
                                  const StopToken& stop = {});

// Whether it takes a problem whose items have these numbers.
inline bool can_be_like_numpy(ItemFields fields) {
  return fields == ItemFields::kCoordinates || fields == ItemFields::kWeightAndValue ||
         fields == ItemFields::kCoordinatesAndDemand;
}

// The eight symmetries of the unit square, copy 0 being the identity. point: [2], in place.
void apply_dihedral(int copy, float* point);

// A uniformly random permutation of 0 .. n-1 (Fisher-Yates) that leaves 0 .. fixed-1 in their places, a
// function of (seed, instance_key, replica) only; Philox on the input-order stream.
std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n,
                                 int fixed = 0);

}  // namespace pointsman
