// SPDX-License-Identifier: Apache-2.0
// Keyword arguments as options of the table that the command line has.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "host/options/call_options.h"
#include "host/options/solve_options.h"
#include "host/options/train_options.h"
#include "models/parameter_file.h"

namespace pointsman {

// By name: {"samples": 64}.
using Keywords = std::map<std::string, std::variant<bool, int64_t, uint64_t, double, std::string>>;

// All throw UsageError for what the program would refuse.
void set_all(OptionSet& options, const Keywords& keywords);
SolveRequest solve_request(SolveCalls& calls, const Keywords& keywords);
BackendOptions device_request(const Keywords& keywords);
InstanceOptions read_request(const Keywords& keywords);

struct GenerateRequest {
  GenerateOptions options;
  uint64_t seed = kDefaultSeed;
};
GenerateRequest generate_request(const Keywords& keywords);

// A training, whose files are read and whose start is made.
struct PreparedTraining {
  TrainRequest request;
  BackendOptions device;
  double time_limit = 0;  // seconds; 0: none
  std::vector<float> initial;
};
PreparedTraining prepared_training(const Keywords& keywords);

// The names of a call's keywords ("solve", "device", "read", "generate", "train") and their types as a type
// stub has them.
std::vector<std::pair<std::string, std::string>> keywords_of(const std::string& call);

}  // namespace pointsman
