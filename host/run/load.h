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

// Throws UsageError for instances that no network reads. `who` needs one: "score".
void require_coordinates(const InstanceBatch& instances, const std::string& path, const std::string& who);

// An answer that no run gave has no numbers of a network.
Solution without_network(Solution solution);

// The answers of a file, measured. Throws InputError, naming it, for the first that is no answer.
SolutionBatch measured_answers(SolutionBatch solutions, const InstanceBatch& instances,
                               const std::string& file);
// Reads them (read_files.h).
SolutionBatch load_solutions(const std::string& path, const InstanceBatch& instances);

// Throws UsageError for combinations that mean nothing.
void check_generate_options(const GenerateOptions& options, uint64_t seed);
InstanceBatch generate(const GenerateOptions& options, uint64_t seed, const StopToken& stop = {});

}  // namespace pointsman
