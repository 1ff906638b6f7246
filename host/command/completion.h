// SPDX-License-Identifier: Apache-2.0
// Scripts by which a shell completes subcommands, flags, values that have a name, files and models.
#pragma once

#include <string>

#include "host/command/command_table.h"

namespace pointsman {

std::string bash_completion(const CommandTable& program);
std::string zsh_completion(const CommandTable& program);
std::string fish_completion(const CommandTable& program);

struct CompletedShell {
  const char* name;
  std::string (*script)(const CommandTable& program);
};

inline constexpr CompletedShell kCompletedShells[] = {
    {"bash", bash_completion}, {"zsh", zsh_completion}, {"fish", fish_completion}};

}  // namespace pointsman
