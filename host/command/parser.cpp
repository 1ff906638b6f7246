// SPDX-License-Identifier: Apache-2.0
#include "host/command/parser.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>

#include "host/command/manual.h"
#include "host/formats/text_scan.h"
#include "host/options/did_you_mean.h"

namespace pointsman {

namespace {

// What a flag of the program asked for.
struct TextWanted {
  std::string text;
};

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

void declare(CLI::App& app, const Command& program, const TextFlag& flag) {
  const auto answer = [&](const std::string& choice) { throw TextWanted{flag.text(program, choice)}; };
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

void add_long_names(const OptionRow& row, Words& names) {
  for (const std::string& name : row.names) {
    if (name.starts_with("--")) names.push_back(name.substr(2));
  }
}

// The keys that a section of this name, or none, may hold.
Words known_keys(const std::vector<Command>& commands, const std::string& section) {
  Words keys;
  for (const Command& command : commands) {
    if (!section.empty() && command.name != section) continue;
    for (const Option& option : command.options->all()) add_long_names(option.row(), keys);
  }
  return keys;
}

// What the words left open.
void set_rest(const Command& program, const Command& command) {
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
    std::ifstream file(path);
    if (!file && errno == ENOMEM) throw std::bad_alloc();
    if (!file) throw UsageError("--config " + path + ": cannot be read");
    for (const auto& [name, value] : read_config(file, path, program.subcommands, command)) {
      if (Option& option = *options.find(name); !option.is_given)
        set_from(option, value, "--config " + path + ": ");
    }
  }
  for (const Option& option : options.all()) {
    if (option.row().is_required && !option.is_given) throw UsageError(option.flag() + " is required");
  }
}

// What is wrong with words that CLI11 refuses: the first flag that it could not place, else what it says.
std::string describe(const CLI::App& app, const Command& called, const CLI::ParseError& error) {
  for (const std::string& word : app.remaining(true)) {
    if (word.size() < 2 || word[0] != '-') continue;
    const std::string flag = word.substr(0, word.find('='));
    Words known;
    for (const OptionRow& row : called.rows()) add_long_names(row, known);
    const std::string meant = nearest_word(std::string_view(flag).substr(flag.find_first_not_of('-')), known);
    return "unknown flag " + shown(flag) + (meant.empty() ? "" : "; did you mean --" + meant + "?");
  }
  return error.what();
}

}  // namespace

std::map<std::string, std::string> read_config(std::istream& file, const std::string& path,
                                               const std::vector<Command>& commands, const Command& command) {
  std::map<std::string, std::string> general, own;
  for (const CLI::ConfigItem& item : CLI::ConfigTOML().from_config(file)) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's own section marks
    std::string key = item.name;
    std::replace(key.begin(), key.end(), '_', '-');
    const std::string section = item.parents.empty() ? "" : item.parents.front();
    const bool is_foreign = std::any_of(commands.begin(), commands.end(), [&](const Command& one) {
      return one.name == section && one.has_own_parser;  // another program knows its keys
    });
    const Words keys = known_keys(commands, section);
    if (item.parents.size() > 1 || (!is_foreign && std::count(keys.begin(), keys.end(), key) == 0))
      throw UsageError("--config " + path + ": unknown key " + shown(item.fullname()) +
                       did_you_mean(key, keys));
    const Option* const option = command.options->find("--" + key);
    if (option == nullptr || (!section.empty() && section != command.name)) continue;
    const std::string value = joined(item.inputs, ",");
    if (value.find('\0') != std::string::npos)
      throw UsageError("--config " + path + ": " + key + ": a NUL byte");
    (section.empty() ? general : own).emplace(option->name(), value);
  }
  own.merge(general);
  return own;
}

Parsed parse(const Command& program, Words words) {
  normalise_flags(words);
  const Command* const command = find_command(words, program.subcommands);
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
  const Command& called = command != nullptr ? *command : program;
  const std::string see = " (see " + (command != nullptr ? command->name + " " : "") + "--help)";
  try {
    app.parse(words);
    set_rest(program, *command);
  } catch (const TextWanted& wanted) {
    return {nullptr, {}, wanted.text};
  } catch (const CLI::CallForHelp&) {
    return {nullptr, {}, help_text(called, name)};
  } catch (const CLI::ParseError& error) {
    throw UsageError(describe(app, called, error) + see);
  } catch (const UsageError& error) {
    throw UsageError(error.what() + see);
  }
  return {command, {}, {}};
}

}  // namespace pointsman
