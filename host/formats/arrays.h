// SPDX-License-Identifier: Apache-2.0
// Instances and answers from arrays, whether these lie in .npy and .npz files or in memory. All throw
// InputError.
#pragma once

#include <string>

#include "engine/problem/instance.h"
#include "host/formats/npy_array.h"
#include "host/formats/read_instances.h"

namespace pointsman {

// points: (B, n, 2) or (n, 2), the two numbers of each item.
InstanceBatch instances_of_points(const NpyArray& points, const ReadOptions& options);
// matrices: (B, n, n) or (n, n).
InstanceBatch instances_of_matrices(const NpyArray& matrices, const ReadOptions& options);
// weights, values: (B, n) or (n,). Their capacities are still to be set.
InstanceBatch instances_of_items(const NpyArray& weights, const NpyArray& values);
// capacity: a number or (B,).
void set_capacities(const NpyArray& capacity, InstanceBatch& instances);

// rows: (B, n) or (n,), tours or selections; `name` is theirs in messages.
SolutionBatch solutions_of_rows(const NpyArray& rows, const InstanceBatch& instances,
                                const std::string& name);

}  // namespace pointsman
