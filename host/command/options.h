// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: the values of the common flags, and the exit codes.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/search/limits.h"
#include "host/formats/input_file.h"
#include "host/options/option_set.h"
#include "host/run/failure.h"

namespace pointsman {

// Of each code, for help and man page.
inline constexpr std::pair<const char*, const char*> kExitMeanings[] = {
    {"0", "done"},
    {"1", "internal error"},
    {"2", "usage"},
    {"3", "bad input, model or checkpoint file"},
    {"4", "memory, disk or device"},
    {"5", "a check failed"},
    {"130, 143, 129", "interrupted by SIGINT, SIGTERM or SIGHUP, the best kept"}};

inline constexpr const char* kCommonGroup = "Common options";

struct CommonOptions {
  std::string output;  // file; empty: stdout
  bool force = false;  // replace an existing output file
  std::string format;  // of the output; empty: see output_format()
  uint64_t seed = kDefaultSeed;
  double time_limit = 0;  // seconds from the start of the process; 0: none
  BackendOptions device;
  bool quiet = false;
  bool verbose = false;
  std::string log_format = "text";
  std::string max_input = kDefaultMaxInput;
  std::string config;                 // applied before the parse (main.cpp)
  std::vector<std::string> suffixes;  // no flag: those of -o that tell a format
  bool answer_on_stdout = false;      // no flag: -o is something else than the answer (train: the model)
};

// The flags that every subcommand has; `formats` are the values of its --format.
void add_common_options(OptionSet& set, CommonOptions& options, const std::vector<std::string>& formats);

// The deadline and the signals of this process. limit_each: seconds of one instance; 0: none.
SearchControl search_control(const CommonOptions& options, double limit_each = 0.0);

}  // namespace pointsman
