// SPDX-License-Identifier: Apache-2.0
#include "host/command/config_file.h"

#include <algorithm>
#include <cstdlib>
#include <fstream>

#include "host/command/flags.h"

namespace pointsman {
namespace {

// The option of one subcommand that a key means; null when it has none.
const CLI::Option* find_option(const CLI::App& subcommand, const std::string& key) {
  return subcommand.get_option_no_throw("--" + key);
}

// What the section of another program may hold, that program knows.
bool is_known(const CLI::App& root, const std::string& section, const std::string& key) {
  for (const CLI::App* subcommand : root.get_subcommands([](const CLI::App*) { return true; })) {
    const bool named = subcommand->get_name() == section;
    if ((named || section.empty()) && find_option(*subcommand, key)) return true;
    if (named && subcommand->get_prefix_command()) return true;
  }
  return false;
}

std::string join(const std::vector<std::string>& values) {
  std::string text;
  for (const std::string& value : values) text += (text.empty() ? "" : ",") + value;
  return text;
}

}  // namespace

void apply_config_file(const std::string& path, const CLI::App& root, const CLI::App& subcommand) {
  if (subcommand.get_prefix_command()) return;  // the program behind it reads the file
  std::ifstream file(path);
  if (!file) throw UsageError("--config " + path + ": cannot be read");
  std::vector<CLI::ConfigItem> items = CLI::ConfigTOML().from_config(file);
  // A section's own values come before the file's general ones, and the first to reach the environment stays.
  std::stable_sort(items.begin(), items.end(), [](const CLI::ConfigItem& a, const CLI::ConfigItem& b) {
    return a.parents.size() > b.parents.size();
  });
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's own section marks
    std::string key = item.name;
    std::replace(key.begin(), key.end(), '_', '-');
    const std::string section = item.parents.empty() ? "" : item.parents.front();
    if (item.parents.size() > 1 || !is_known(root, section, key)) {
      throw UsageError("--config " + path + ": unknown key \"" + item.fullname() + "\"");
    }
    if (!section.empty() && section != subcommand.get_name()) continue;
    const CLI::Option* option = find_option(subcommand, key);
    if (option) setenv(option->get_envname().c_str(), join(item.inputs).c_str(), 0);
  }
}

}  // namespace pointsman
