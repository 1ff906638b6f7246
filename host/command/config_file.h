// SPDX-License-Identifier: Apache-2.0
// The --config file: lines "samples = 64", comments with #, and sections named after a subcommand.
#pragma once

#include <istream>
#include <string>
#include <vector>

namespace CLI {
class App;
}

namespace pointsman {

// The value of a flag, under the name that it has in the environment.
struct ConfigSetting {
  std::string variable, value;
};

// What the file sets for `subcommand`, one of those of `root`: a section's own values before the file's
// general ones. `path` names it in messages. Throws UsageError for what is no config file, a section that is
// no subcommand or a key that no flag has.
std::vector<ConfigSetting> read_config(std::istream& file, const std::string& path, const CLI::App& root,
                                       const CLI::App& subcommand);

// Puts the settings into the environment where the user's own environment has none, so "flag > environment >
// file > default" is one mechanism. UsageError also for a file that cannot be read.
void apply_config_file(const std::string& path, const CLI::App& root, const CLI::App& subcommand);

}  // namespace pointsman
