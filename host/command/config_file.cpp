// SPDX-License-Identifier: Apache-2.0
#include "host/command/config_file.h"

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <fstream>
#include <new>

#include "host/command/flags.h"
#include "host/formats/text_scan.h"
#include "host/run/did_you_mean.h"

namespace pointsman {
namespace {

// What the section of another program may hold, that program knows.
bool is_known(const CLI::App& root, const std::string& section, const std::string& key) {
  for (const CLI::App* subcommand : root.get_subcommands([](const CLI::App*) { return true; })) {
    const bool named = subcommand->get_name() == section;
    if ((named || section.empty()) && subcommand->get_option_no_throw("--" + key)) return true;
    if (named && subcommand->get_prefix_command()) return true;
  }
  return false;
}

// The keys that is_known() takes in this section.
std::vector<std::string> known_keys(const CLI::App& root, const std::string& section) {
  std::vector<std::string> keys;
  for (const CLI::App* subcommand : root.get_subcommands([](const CLI::App*) { return true; })) {
    if (!section.empty() && subcommand->get_name() != section) continue;
    for (const CLI::Option* option : subcommand->get_options()) {
      for (const std::string& name : option->get_lnames()) keys.push_back(name);
    }
  }
  return keys;
}

}  // namespace

std::vector<ConfigSetting> read_config(std::istream& file, const std::string& path, const CLI::App& root,
                                       const CLI::App& subcommand) {
  std::vector<CLI::ConfigItem> items = CLI::ConfigTOML().from_config(file);
  // The first to reach the environment stays.
  std::stable_sort(items.begin(), items.end(), [](const CLI::ConfigItem& a, const CLI::ConfigItem& b) {
    return a.parents.size() > b.parents.size();
  });
  std::vector<ConfigSetting> settings;
  for (const CLI::ConfigItem& item : items) {
    if (item.name == "++" || item.name == "--") continue;  // CLI11's own section marks
    std::string key = item.name;
    std::replace(key.begin(), key.end(), '_', '-');
    const std::string section = item.parents.empty() ? "" : item.parents.front();
    if (item.parents.size() > 1 || !is_known(root, section, key)) {
      throw UsageError("--config " + path + ": unknown key " + shown(item.fullname()) +
                       did_you_mean(key, known_keys(root, section)));
    }
    if (!section.empty() && section != subcommand.get_name()) continue;
    const CLI::Option* option = subcommand.get_option_no_throw("--" + key);
    if (!option) continue;
    const std::string value = joined(item.inputs, ",");
    if (value.find('\0') != std::string::npos)
      throw UsageError("--config " + path + ": " + key + ": a NUL byte");
    settings.push_back({option->get_envname(), value});
  }
  return settings;
}

void apply_config_file(const std::string& path, const CLI::App& root, const CLI::App& subcommand) {
  if (subcommand.get_prefix_command()) return;  // the program behind it reads the file
  std::ifstream file(path);
  if (!file && errno == ENOMEM) throw std::bad_alloc();
  if (!file) throw UsageError("--config " + path + ": cannot be read");
  for (const ConfigSetting& setting : read_config(file, path, root, subcommand))
    setenv(setting.variable.c_str(), setting.value.c_str(), 0);
}

}  // namespace pointsman
