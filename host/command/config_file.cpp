// SPDX-License-Identifier: Apache-2.0
#include "host/command/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <fstream>
#include <new>

#include "host/formats/text_scan.h"
#include "host/options/did_you_mean.h"

namespace pointsman {
namespace {

// Whether a section of this name, or none, may hold the key. What the section of another program may hold,
// that program knows.
bool is_known(const std::vector<Command>& commands, const std::string& section, const std::string& key) {
  return std::any_of(commands.begin(), commands.end(), [&](const Command& command) {
    const bool is_own = command.name == section;
    if (is_own && command.has_own_parser) return true;
    return (is_own || section.empty()) && command.options->find("--" + key) != nullptr;
  });
}

// The keys that is_known() takes in this section.
std::vector<std::string> known_keys(const std::vector<Command>& commands, const std::string& section) {
  std::vector<std::string> keys;
  for (const Command& command : commands) {
    if (!section.empty() && command.name != section) continue;
    for (const Option& option : command.options->all()) {
      for (const std::string& name : option.row().names) {
        if (name.starts_with("--")) keys.push_back(name.substr(2));
      }
    }
  }
  return keys;
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
    if (item.parents.size() > 1 || !is_known(commands, section, key)) {
      throw UsageError("--config " + path + ": unknown key " + shown(item.fullname()) +
                       did_you_mean(key, known_keys(commands, section)));
    }
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

std::map<std::string, std::string> load_config(const std::string& path, const std::vector<Command>& commands,
                                               const Command& command) {
  std::ifstream file(path);
  if (!file && errno == ENOMEM) throw std::bad_alloc();
  if (!file) throw UsageError("--config " + path + ": cannot be read");
  return read_config(file, path, commands, command);
}

}  // namespace pointsman
