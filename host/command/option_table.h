// SPDX-License-Identifier: Apache-2.0
// The one table of subcommands and options, as the parser holds it, in words: help, man page and completion
// are made of it.
#pragma once

#include <string>
#include <vector>

namespace CLI {
class App;
class Option;
}  // namespace CLI

namespace pointsman {

inline constexpr const char* kCommonGroup = "Common options";  // what every subcommand has
// Kinds of values, as the table names them beside CLI11's TEXT, INT, UINT and FLOAT.
inline constexpr const char* kFileValue = "FILE";
inline constexpr const char* kModelValue = "MODEL";  // a file or a model's name

struct OptionRow {
  std::vector<std::string> names;    // "-m", "--model"; of a positional its one name
  std::string value;                 // "INT"; empty: takes none
  std::vector<std::string> choices;  // the values with a name; empty: none has
  std::string range, default_value;  // "0..4096"; empty: none
  std::string environment;           // its variable; empty: none
  std::string description, group;
  bool is_positional = false, is_required = false, is_repeated = false;

  // "auto|greedy", else the kind of value.
  std::string value_text() const;
  bool operator==(const OptionRow&) const = default;
};

OptionRow row_of(const CLI::Option& option);

// A program or a subcommand.
struct CommandTable {
  std::string name, description, footer;
  bool is_door = false;         // another program knows its options
  std::vector<OptionRow> rows;  // positionals in their order, then options
  std::vector<CommandTable> subcommands;
};

CommandTable table_of(const CLI::App& app);

// "a", "b" of "{a,b}"; none of any other text.
std::vector<std::string> choices_in(const std::string& text);

}  // namespace pointsman
