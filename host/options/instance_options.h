// SPDX-License-Identifier: Apache-2.0
// How instances are read or generated.
#pragma once

#include <string>
#include <vector>

#include "engine/problem/instance.h"
#include "host/formats/read_files.h"
#include "host/options/option_set.h"

namespace pointsman {

struct InstanceOptions {
  std::string format = "auto", problem;
  double capacity = 0;  // 0: the file's own
};

void add_instance_options(OptionSet& options, InstanceOptions& instances);
ReadOptions read_options(const InstanceOptions& instances);

struct GenerateOptions {
  std::string problem, like;
  int n = 0, count = 1;
  double capacity = 0;
};

// The problem is a positional.
void add_generate_options(OptionSet& options, GenerateOptions& generate);

// A positional that names a problem, which the call needs.
void add_problem(OptionSet& options, std::string& problem);

// Throws UsageError for a capacity where the problem has none.
void refuse_capacity(ProblemKind problem, double capacity);

}  // namespace pointsman
