// SPDX-License-Identifier: Apache-2.0
// The --config file: lines "samples = 64", comments with #, and sections named after a subcommand. Its values
// go into the environment where the user's own environment has none, so "flag > environment > file > default"
// is one mechanism.
#pragma once

#include <string>

namespace CLI {
class App;
}

namespace pointsman {

// Applies `path` for a subcommand of `root`. Throws UsageError for a file that cannot be read, a section that
// is no subcommand or a key that no flag has.
void apply_config_file(const std::string& path, const CLI::App& root, const CLI::App& subcommand);

}  // namespace pointsman
