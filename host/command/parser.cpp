// SPDX-License-Identifier: Apache-2.0
#include "host/command/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdlib>

#include "host/command/config_file.h"
#include "host/command/help_text.h"
#include "host/formats/text_scan.h"
#include "host/options/did_you_mean.h"

namespace pointsman {

namespace {

// What a flag of the program asked for.
struct TextWanted {
  std::string text;
};

OptionRow help_row() {
  OptionRow row;
  row.names = {"-h", "--help"};
  row.description = "Print this help message and exit";
  row.group = "Options";
  return row;
}

OptionRow row_of(const TextFlag& flag) {
  OptionRow row = help_row();
  row.names = {flag.name};
  row.description = flag.description;
  row.choices = flag.choices;
  if (!flag.choices.empty()) row.value = "TEXT";
  return row;
}

CommandTable table_of(const Command& command) {
  CommandTable table{command.name, command.description, command.footer, command.has_own_parser, {}, {}};
  if (command.has_own_parser) return table;
  table.rows.push_back(help_row());
  for (const Option& option : command.options->all()) table.rows.push_back(option.row());
  std::stable_partition(table.rows.begin(), table.rows.end(),
                        [](const OptionRow& row) { return row.is_positional; });
  return table;
}

CommandTable table_of(const Program& program) {
  CommandTable table{program.name, program.description, program.footer, false, {help_row()}, {}};
  for (const TextFlag& flag : program.texts) table.rows.push_back(row_of(flag));
  for (const Command& command : program.commands) table.subcommands.push_back(table_of(command));
  return table;
}

// Flags are the same with "_" and "-": --time_limit is --time-limit. Values and everything after "--" stay.
void normalise_flags(Words& words) {
  for (std::string& word : words) {
    if (word == "--") break;
    if (!word.starts_with("--")) continue;
    const auto end = word.begin() + static_cast<std::ptrdiff_t>(std::min(word.find('='), word.size()));
    std::replace(word.begin(), end, '_', '-');
  }
}

// CLI11 would only say that a subcommand is missing. Null where flags come first.
const Command* find_command(const Words& words, const std::vector<Command>& commands) {
  if (words.empty() || words[0].starts_with('-')) return nullptr;
  for (const Command& command : commands) {
    if (command.name == words[0]) return &command;
  }
  Words names;
  for (const Command& command : commands) names.push_back(command.name);
  throw UsageError("unknown subcommand \"" + words[0] + "\": expected one of " + joined(names, ", ") +
                   did_you_mean(words[0], names));
}

void declare(CLI::App& app, const Program& program, const TextFlag& flag) {
  const auto answer = [&](const std::string& choice) {
    throw TextWanted{flag.text(table_of(program), choice)};
  };
  if (flag.choices.empty()) {
    app.add_flag_callback(flag.name, [=] { answer(""); });
    return;
  }
  app.add_option_function<std::string>(flag.name, [=, &flag](const std::string& choice) {
    if (std::count(flag.choices.begin(), flag.choices.end(), choice) > 0) answer(choice);
    throw UsageError(flag.name + ": expected one of " + joined(flag.choices, ", ") + ", found " +
                     shown(choice) + did_you_mean(choice, flag.choices));
  });
}

void declare(CLI::App& app, Option& option) {
  std::string names = joined(option.row().names, ",");
  const size_t negative = names.find(",--no-");
  if (negative != std::string::npos) names.insert(negative + 1, "!");
  const auto take = [&option](const auto& value) {
    option.is_given = option.is_typed = true;
    option.set(value);
  };
  if (option.type() == OptionType::kSwitch) {
    app.add_flag_function(names, [=](int64_t times) { take(times > 0); });
  } else if (option.type() == OptionType::kTexts) {
    app.add_option_function<Words>(names, [=](const Words& words) {
      for (const std::string& word : words) take(word);
    });
  } else {
    app.add_option_function<std::string>(names, take);
  }
}

// What the words left open.
void set_rest(const Program& program, const Command& command) {
  OptionSet& options = *command.options;
  const auto set_from = [](Option& option, const std::string& value, const std::string& where) {
    try {
      option.is_given = true;
      option.set_text(value);
    } catch (const UsageError& error) {
      throw UsageError(where + error.what());
    }
  };
  for (Option& option : options.all()) {
    const std::string& variable = option.row().environment;
    const char* const value = variable.empty() ? nullptr : std::getenv(variable.c_str());
    if (!option.is_given && value != nullptr && *value != '\0') set_from(option, value, variable + ": ");
  }
  const Option* const config = options.find("--config");
  if (config != nullptr && config->is_given) {
    const std::string path = config->text();
    for (const auto& [name, value] : load_config(path, program.commands, command)) {
      if (Option& option = *options.find(name); !option.is_given)
        set_from(option, value, "--config " + path + ": ");
    }
  }
  for (const Option& option : options.all()) {
    if (option.row().is_required && !option.is_given) throw UsageError(option.flag() + " is required");
  }
}

// The first flag that the parse could not place; empty: none.
std::string unknown_flag(const CLI::App& app) {
  for (const std::string& word : app.remaining(true)) {
    if (word.size() > 1 && word[0] == '-') return word.substr(0, word.find('='));
  }
  return {};
}

// What is wrong with words that CLI11 refuses.
std::string describe(const CLI::App& app, const CommandTable& table, const CLI::ParseError& error) {
  const std::string flag = unknown_flag(app);
  if (flag.empty()) return error.what();
  Words known;
  for (const OptionRow& row : table.rows) {
    for (const std::string& name : row.names) {
      if (name.starts_with("--")) known.push_back(name.substr(2));
    }
  }
  const std::string meant = nearest_word(std::string_view(flag).substr(flag.find_first_not_of('-')), known);
  return "unknown flag " + shown(flag) + (meant.empty() ? "" : "; did you mean --" + meant + "?");
}

}  // namespace

Parsed parse(const Program& program, Words words) {
  normalise_flags(words);
  const Command* const command = find_command(words, program.commands);
  if (command != nullptr && command->has_own_parser) return {command, {words.begin() + 1, words.end()}, {}};
  CLI::App app(program.description, program.name);
  app.require_subcommand(1);
  for (const TextFlag& flag : program.texts) declare(app, program, flag);
  if (command != nullptr) {
    CLI::App* const own = app.add_subcommand(command->name);
    for (Option& option : command->options->all()) declare(*own, option);
  }
  std::reverse(words.begin(), words.end());  // as CLI11 wants a vector
  const std::string name = program.name + (command != nullptr ? " " + command->name : "");
  const auto table = [&] { return command != nullptr ? table_of(*command) : table_of(program); };
  const std::string see = " (see " + (command != nullptr ? command->name + " " : "") + "--help)";
  try {
    app.parse(words);
    set_rest(program, *command);
  } catch (const TextWanted& wanted) {
    return {nullptr, {}, wanted.text};
  } catch (const CLI::CallForHelp&) {
    return {nullptr, {}, help_text(table(), name)};
  } catch (const CLI::ParseError& error) {
    throw UsageError(describe(app, table(), error) + see);
  } catch (const UsageError& error) {
    throw UsageError(error.what() + see);
  }
  return {command, {}, {}};
}

}  // namespace pointsman
