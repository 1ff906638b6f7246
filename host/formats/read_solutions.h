// SPDX-License-Identifier: Apache-2.0
// Reads solutions and reference costs, for --ref, `score` and `verify`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/problem/instance.h"
#include "host/formats/input_error.h"

namespace pointsman {

// `what` as a number; nothing if it is none. Throws as read_reference().
std::optional<double> reference_number(const std::string& what);

// The reference costs, [instances]. `what` is a number, which holds for every instance, or a file:
//   .npy    (B,) floats
//   text    one number a line
//   .json   {"costs":[..]}
//   any file that read_solutions() reads; the costs of its solutions are computed
// Throws InputError for a negative cost or NaN in a file, std::invalid_argument for a negative number.
std::vector<double> read_reference(const std::string& what, const InstanceBatch& instances);

// The solutions of a file, [instances]: our own output (JSON or NDJSON), a TSPLIB tour, .npy (tours: (B,n) or
// (n) integers, from 0; selections: (B,n) or (n) uint8 or bool, 1 for a chosen item), .npz with `tours` or
// `selections`. Sets what ParseAnswers sets. Throws InputError.
SolutionBatch read_solutions(const std::string& path, const InstanceBatch& instances);
// Parses bytes in memory. `name` is used as the path.
SolutionBatch parse_solutions(std::string_view bytes, const std::string& name,
                              const InstanceBatch& instances);

// Validates the solutions of a file and sets their objectives. Throws InputError for the first invalid one.
void check_solutions(SolutionBatch& solutions, const InstanceBatch& instances, const std::string& path);

}  // namespace pointsman
