// SPDX-License-Identifier: Apache-2.0
// The --config file: lines "samples = 64", comments with #, and sections named after a subcommand.
#pragma once

#include <istream>
#include <map>
#include <string>
#include <vector>

#include "host/command/command.h"

namespace pointsman {

// The values that the file has for the options of `command`, one of `commands`, by name ("first_sample"): a
// section's own before the file's general ones. `path` names it in messages. Throws UsageError for what is no
// config file, a section that is no subcommand or a key that no option has.
std::map<std::string, std::string> read_config(std::istream& file, const std::string& path,
                                               const std::vector<Command>& commands, const Command& command);

// Of a file, which must be readable (UsageError).
std::map<std::string, std::string> load_config(const std::string& path, const std::vector<Command>& commands,
                                               const Command& command);

}  // namespace pointsman
