// SPDX-License-Identifier: Apache-2.0
// One subcommand of the program: what it adds to the command line and what it does. Each lives in a file of
// its own.
#pragma once

#include <functional>
#include <memory>

#include "host/command/flags.h"

namespace pointsman {

struct Command {
  CLI::App* app = nullptr;                // the subcommand, owned by its parent
  std::shared_ptr<CommonOptions> common;  // filled by the parse
  std::function<int()> run;               // after the parse; returns the exit code, throws on failure
};

Command add_solve(CLI::App& parent);
Command add_train(CLI::App& parent);
Command add_score(CLI::App& parent);
Command add_eval(CLI::App& parent);
Command add_generate(CLI::App& parent);
Command add_verify(CLI::App& parent);
Command add_bench(CLI::App& parent);
Command add_info(CLI::App& parent);

}  // namespace pointsman
