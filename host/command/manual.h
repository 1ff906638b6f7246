// SPDX-License-Identifier: Apache-2.0
// What is made of the program's subcommands and options in words: help, manual page, completion.
#pragma once

#include <string>
#include <utility>

#include "host/command/command.h"

namespace pointsman {

// What each exit code means.
inline constexpr std::pair<const char*, const char*> kExitMeanings[] = {
    {"0", "done"},
    {"1", "internal error"},
    {"2", "usage"},
    {"3", "bad input, model or checkpoint file"},
    {"4", "memory, disk or device"},
    {"5", "a check failed"},
    {"130, 143, 129", "interrupted by SIGINT, SIGTERM or SIGHUP, the best kept"}};

// What --help of the program or subcommand that is called by `name` prints, in at most 100 columns.
std::string help_text(const Command& command, const std::string& name);

// pointsman(1) in the macros of man(7). The same options give the same bytes.
std::string man_page(const Command& program);

// A script by which a shell, "bash", "zsh" or "fish", completes subcommands, flags, values that have a name,
// files and models.
std::string completion(const Command& program, const std::string& shell);

}  // namespace pointsman
