// SPDX-License-Identifier: Apache-2.0
// The flags that tell how input files are to be read.
#pragma once

#include <string>
#include <vector>

#include "host/command/options.h"
#include "host/formats/read_instances.h"

namespace CLI {
class App;
}

namespace pointsman {

struct InstanceFlags {
  std::string format = "auto", problem;
  double capacity = 0;  // 0: the file's own
};

// Of every problem, for a flag or an argument that names one.
std::vector<std::string> problem_choices();

void add_instance_options(CLI::App& app, InstanceFlags& flags);
// --capacity where the problem has none is a UsageError.
void refuse_capacity(ProblemKind problem, double capacity);

ReadOptions read_options(const InstanceFlags& flags);

// Reads a whole file and logs its warnings. "-" is stdin.
InstanceBatch load_instances(const std::string& path, const InstanceFlags& flags);

// Throws UsageError for instances that are a matrix of distances. `who` needs coordinates: "score".
void require_coordinates(const InstanceBatch& instances, const std::string& path, const std::string& who);

// Reads the answers of a file (read_solutions.h), which must all be valid: InputError for the first that is
// not.
SolutionBatch load_solutions(const std::string& path, const InstanceBatch& instances);

}  // namespace pointsman
