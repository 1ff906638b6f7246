// SPDX-License-Identifier: Apache-2.0
// What the subcommands share: the common flags, how a flag is declared, and the exit codes.
#pragma once

#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <stdexcept>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/search/search.h"

namespace pointsman {

// The process's exit code is the `code` of its JSON answer; an interrupted run answers 130 (SIGINT) or 143
// (SIGTERM).
enum ExitCode : int {
  kExitDone = 0,  // also when the time limit ended the search
  kExitInternal = 1,
  kExitUsage = 2,
  kExitInput = 3,     // bad input, model or checkpoint file
  kExitResource = 4,  // memory, disk, device
  kExitCheck = 5,     // a verification or a bench check failed
};

// A command line that asks for something impossible.
class UsageError : public std::runtime_error {
 public:
  using std::runtime_error::runtime_error;
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
  std::string config;             // applied before the parse (config_file.h)
  bool answer_on_stdout = false;  // no flag: -o is something else than the answer (train: the model)
};

// "-n,--samples" -> "POINTSMAN_SAMPLES".
std::string environment_name(const std::string& names);

// Declares an option with its default in the help and its environment variable.
template <typename T>
CLI::Option* add_option(CLI::App& app, const std::string& names, T& value, const std::string& help) {
  return app.add_option(names, value, help)->capture_default_str()->envname(environment_name(names));
}

// Likewise of a value that may be left to the program: `unset` on the command line means none.
template <typename T>
CLI::Option* add_optional(CLI::App& app, const std::string& names, std::optional<T>& value, T unset,
                          const std::string& help) {
  const auto take = [&value, unset](const T& given) {
    value = given == unset ? std::nullopt : std::optional<T>(given);
  };
  CLI::Option* option = app.add_option_function<T>(names, take, help)->envname(environment_name(names));
  return option->default_str(CLI::detail::to_string(unset));
}

// On the command line itself: what the environment or a configuration file sets for every run is no mistake
// in this one.
bool is_typed(const CLI::App& app, const char* name);

CLI::Option* add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help);

// The flags that every subcommand has; `formats` are the values of its --format.
void add_common_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats);

BackendOptions backend_options(const CommonOptions& options);

// The deadline and the signals of this process.
SearchControl search_control(const CommonOptions& options);

// When the process started, for --time-limit and the times that are reported.
Clock::time_point process_start();
double milliseconds_since(Clock::time_point start);

}  // namespace pointsman
