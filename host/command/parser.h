// SPDX-License-Identifier: Apache-2.0
// The command line, by CLI11, whose headers take seconds to compile.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "host/command/command.h"
#include "host/command/command_table.h"

namespace pointsman {

// A flag of the program itself that prints a text and ends it, as --version does.
struct TextFlag {
  std::string name, description;
  std::vector<std::string> choices = {};  // of its value; none: it takes none
  std::function<std::string(const CommandTable& program, const std::string& choice)> text;
};

struct Program {
  std::string name, description, footer;
  std::vector<TextFlag> texts;
  std::vector<Command> commands;
};

struct Parsed {
  const Command* command = nullptr;  // null: `text` was asked for
  Words words;                       // that follow, of a command with a parser of its own
  std::string text;
};

// Sets the options of the subcommand that the words name: from the words, else from the environment, else
// from the file of --config. Throws UsageError.
Parsed parse(const Program& program, Words words);

}  // namespace pointsman
