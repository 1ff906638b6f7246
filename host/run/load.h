// SPDX-License-Identifier: Apache-2.0
// Instances and solutions by the options of a call.
#pragma once

#include <cstdint>
#include <string>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "host/options/call_options.h"

namespace pointsman {

// Reads a whole file and logs its warnings. "-" is stdin.
InstanceBatch load_instances(const std::string& path, const InstanceOptions& options);

// Throws UsageError for instances that are a matrix of distances. `who` needs coordinates: "score".
void require_coordinates(const InstanceBatch& instances, const std::string& path, const std::string& who);

// Reads the solutions of a file (read_solutions.h), which must all be valid: InputError for the first that is
// not.
SolutionBatch load_solutions(const std::string& path, const InstanceBatch& instances);

// Throws UsageError for combinations that mean nothing.
void check_generate_options(const GenerateOptions& options, uint64_t seed);
InstanceBatch generate(const GenerateOptions& options, uint64_t seed, const StopToken& stop = {});

}  // namespace pointsman
