// SPDX-License-Identifier: Apache-2.0
// What --help prints: the table of options in at most 100 columns.
#pragma once

#include <string>
#include <string_view>

#include "host/command/command_table.h"

namespace pointsman {

inline constexpr size_t kHelpColumns = 100;

// The text in lines of at most `columns`, broken at spaces; all but the first are indented by `indent`
// spaces, which count. A longer word stands alone.
std::string wrapped(std::string_view text, size_t indent, size_t columns = kHelpColumns);

// "pointsman solve [OPTIONS] FILE...", of the program or subcommand that is called by `name`.
std::string usage_text(const CommandTable& table, const std::string& name);

std::string help_text(const CommandTable& table, const std::string& name);

}  // namespace pointsman
