// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "host/command/command_table.h"

namespace pointsman {

// pointsman(1) in the macros of man(7). The same table gives the same bytes.
std::string man_page(const CommandTable& program);

}  // namespace pointsman
