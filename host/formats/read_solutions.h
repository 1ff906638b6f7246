// SPDX-License-Identifier: Apache-2.0
// Answers and optima that the user brings along, for --ref, `score` and `verify`.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/problem/instance.h"
#include "host/formats/input_error.h"

namespace pointsman {

// `what` as a number; nothing where it is none. Throws as read_reference().
std::optional<double> reference_number(const std::string& what);

// The costs to compare with, [instances]. `what` is a plain number (for every instance), or a file:
//   .npy    (B,) floats
//   text    one number a line
//   .tour   one TSPLIB tour, measured under the instance's metric; .npy or .npz of tours likewise
//   .json   {"costs":[..]}, or the program's own output (JSON or NDJSON), its solutions measured again
// None may be negative or NaN. Throws InputError; std::invalid_argument for such a number on the command
// line.
std::vector<double> read_reference(const std::string& what, const InstanceBatch& instances);

// The answers of a file, [instances]: the program's own output (JSON or NDJSON), a TSPLIB tour, .npy (orders
// of all items: (B,n) or (n) integers, from 0; choices: (B,n) or (n) uint8 or bool, 1 where taken), .npz with
// `tours` or `selections`. Only `order` and `objective` are set; the objective is what the file claims, NaN
// when it claims none. Whether an order is an answer is left to validate_solution. Throws InputError.
SolutionBatch read_solutions(const std::string& path, const InstanceBatch& instances);
// The same from bytes in memory; `name` stands for the path.
SolutionBatch parse_solutions(std::string_view bytes, const std::string& name,
                              const InstanceBatch& instances);

// Measures the answers of a file. InputError for the first that is not valid.
void check_solutions(SolutionBatch& solutions, const InstanceBatch& instances, const std::string& path);

}  // namespace pointsman
