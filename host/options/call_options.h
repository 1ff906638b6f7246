// SPDX-License-Identifier: Apache-2.0
// Options that calls share: how instances are read or generated, the device, the seed, the limit, the output.
#pragma once

#include <cstdint>
#include <string>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "host/formats/read_files.h"
#include "host/options/option_set.h"

namespace pointsman {

struct InstanceOptions {
  std::string format = "auto", problem;
  double capacity = 0;           // 0: the file's own
  int32_t start = -1, end = -1;  // of a path; -1: the file's own, or any
  // Empty: the file's own; as they are named; any.
  std::string metric = {}, columns = {}, first_city = {};
  KnapsackLayout layout = KnapsackLayout::kAuto;
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

// The device, its threads and the precision.
void add_device_options(OptionSet& options, BackendOptions& device);
void add_seed(OptionSet& options, uint64_t& seed);
void add_time_limit(OptionSet& options, double& seconds);
void add_output(OptionSet& options, std::string& path, bool& force);

}  // namespace pointsman
