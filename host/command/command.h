// SPDX-License-Identifier: Apache-2.0
// One subcommand of the program: its options and what it does. Each lives in a file of its own.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "host/command/options.h"
#include "host/options/option_set.h"

namespace pointsman {

using Words = std::vector<std::string>;

struct Command {
  std::string name, description, footer;
  std::shared_ptr<CommonOptions> common = std::make_shared<CommonOptions>();
  std::shared_ptr<OptionSet> options = std::make_shared<OptionSet>();
  // After the parse; returns the exit code, throws on failure. words: of `has_own_parser` all that follow.
  std::function<int(const Words& words)> run = {};
  bool has_own_parser = false;  // another program knows its options
};

Command solve_command();
Command train_command();
Command score_command();
Command eval_command();
Command generate_command();
Command verify_command();
Command bench_command();
Command info_command();

}  // namespace pointsman
