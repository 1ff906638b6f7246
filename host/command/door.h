// SPDX-License-Identifier: Apache-2.0
// Subcommands that are doors: they become a program of its own.
#pragma once

#include <string>
#include <vector>

#include "host/command/command.h"

namespace pointsman {

struct Door {
  std::vector<std::string>
      words;            // the program, found as a shell finds it, and what stands before the user's words
  std::string missing;  // what is told where it cannot be started
};

// A subcommand that takes any words, also --help, and hands them on.
Command add_door(CLI::App& parent, const std::string& name, const std::string& what, Door (*door)());

}  // namespace pointsman
