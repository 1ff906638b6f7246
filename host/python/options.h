// SPDX-License-Identifier: Apache-2.0
// Keyword arguments as flags of the command line, "--samples=64": one table declares, checks and resolves
// both.
#pragma once

#include <string>
#include <vector>

#include "host/command/generate_flags.h"
#include "host/run/load.h"
#include "host/command/options.h"
#include "host/command/solve_flags.h"
#include "host/run/train_setup.h"

namespace pointsman {

using Arguments = std::vector<std::string>;

struct SolveRequest {
  SolveFlags flags;
  CommonOptions common;
};
// All throw UsageError for what the program would refuse.
SolveRequest parse_solve(const Arguments& arguments);

struct GenerateRequest {
  GenerateFlags flags;
  CommonOptions common;
};
GenerateRequest parse_generate(const Arguments& arguments);

struct TrainRequest {
  TrainFlags flags;
  CommonOptions common;
  std::vector<float> initial;
};
TrainRequest parse_train(const Arguments& arguments);

InstanceFlags parse_read(const Arguments& arguments);

// The device, the threads and the precision of one.
CommonOptions parse_common(const Arguments& arguments);

}  // namespace pointsman
