// SPDX-License-Identifier: Apache-2.0
// The command line, by CLI11, whose headers take seconds to compile.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <vector>

#include "host/command/command.h"

namespace pointsman {

struct Parsed {
  const Command* command = nullptr;  // null: `text` was asked for
  Words words;                       // that follow, of a command with a parser of its own
  std::string text;
};

// Sets the options of the subcommand that the words name: from the words, else from the environment, else
// from the file of --config. Throws UsageError.
Parsed parse(const Command& program, Words words);

// The --config file: lines "samples = 64", comments with #, and sections named after a subcommand. The values
// that it has for the options of `command`, one of `commands`, by name ("first_sample"): a section's own
// before the file's general ones. `path` names it in messages. Throws UsageError for what is no config file,
// a section that is no subcommand or a key that no option has.
std::map<std::string, std::string> read_config(std::istream& file, const std::string& path,
                                               const std::vector<Command>& commands, const Command& command);

}  // namespace pointsman
