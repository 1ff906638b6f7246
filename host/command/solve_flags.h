// SPDX-License-Identifier: Apache-2.0
// The flags of `pointsman solve`.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"
#include "host/command/instance_flags.h"
#include "host/command/options.h"
#include "host/run/solve_rules.h"

namespace CLI {
class App;
}

namespace pointsman {

struct SolveFlags {
  std::vector<std::string> files;
  InstanceFlags input;
  std::string model, mode = "auto", improve, init, ref;
  double limit_each = 0;  // seconds; 0: none
  bool resume = false;
  SolveOptions options;
};

void add_solve_flags(CLI::App& app, SolveFlags& flags);

// Turns the flags into `flags.options`. Throws UsageError for combinations that mean nothing.
void finish_solve_flags(SolveFlags& flags, const CLI::App& app, const CommonOptions& common);

}  // namespace pointsman
