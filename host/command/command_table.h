// SPDX-License-Identifier: Apache-2.0
// The program's subcommands and options in words: help, manual page and completion are made of it.
#pragma once

#include <string>
#include <vector>

#include "host/options/option_set.h"

namespace pointsman {

// A program or a subcommand.
struct CommandTable {
  std::string name, description, footer;
  bool has_own_parser = false;  // another program knows its options
  std::vector<OptionRow> rows;  // positionals in their order, then options
  std::vector<CommandTable> subcommands;
};

}  // namespace pointsman
