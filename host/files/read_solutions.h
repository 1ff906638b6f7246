// SPDX-License-Identifier: Apache-2.0
// Answers and optima that the user brings along, for --ref, `score` and `verify`.
#pragma once

#include <string>
#include <vector>

#include "engine/problem/instance.h"
#include "host/files/input_error.h"

namespace pointsman {

// The costs to compare with, [instances]. `what` is a plain number (for every instance), or a file:
//   .npy    (B,) floats
//   text    one number a line
//   .tour   one TSPLIB tour, measured under the instance's metric; .npy or .npz of tours likewise
//   .json   {"costs":[..]}, or the program's own output (JSON or NDJSON), its solutions measured again
// Throws InputError.
std::vector<double> read_reference(const std::string& what, const InstanceBatch& instances);

// The answers of a file, [instances]: the program's own output (JSON or NDJSON), a TSPLIB tour, .npy (TSP:
// (B,n) or (n) integers, cities from 0; KnapSack: (B,n) or (n) uint8 or bool, 1 where taken), .npz with
// `tours` or `selections`. Only `order` and `cost` are set; cost is what the file claims, NaN when it claims
// none. Whether an order is a tour or fits the sack is left to validate_solution. Throws InputError.
SolutionBatch read_solutions(const std::string& path, const InstanceBatch& instances);

}  // namespace pointsman
