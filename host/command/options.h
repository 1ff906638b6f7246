// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: the values of the common flags, and the exit codes.
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/search/search.h"
#include "host/formats/input_file.h"
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

// A command line that asks for something impossible.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

struct CommonOptions {
  std::string output;  // file; empty: stdout
  bool force = false;  // replace an existing output file
  std::string format;  // of the output; empty: see output_format()
  uint64_t seed = kDefaultSeed;
  int threads = 0;        // 0: all
  double time_limit = 0;  // seconds from the start of the process; 0: none
  std::string device = "auto";
  std::string precision = "fp32";
  bool quiet = false;
  bool verbose = false;
  std::string log_format = "text";
  std::string max_input = kDefaultMaxInput;
  std::string config;                 // applied before the parse (main.cpp)
  std::vector<std::string> suffixes;  // no flag: those of -o that tell a format
  bool answer_on_stdout = false;      // no flag: -o is something else than the answer (train: the model)
};

BackendOptions backend_options(const CommonOptions& options);

// The deadline and the signals of this process.
SearchControl search_control(const CommonOptions& options);

// When the process started, for --time-limit and the times that are reported.
Clock::time_point process_start();
double milliseconds_since(Clock::time_point start);

}  // namespace pointsman
