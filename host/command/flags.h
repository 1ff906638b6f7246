// SPDX-License-Identifier: Apache-2.0
// How a flag is declared. Only files that declare some include this: CLI11's headers take seconds to compile.
#pragma once

#include <CLI/CLI.hpp>
#include <optional>
#include <string>
#include <vector>

#include "host/command/option_table.h"
#include "host/command/options.h"

namespace pointsman {

// "-n,--samples" -> "POINTSMAN_SAMPLES".
std::string environment_name(const std::string& names);

// The same check; where it takes only some words ("{a,b}") its refusal names the one that was meant.
CLI::Validator with_hint(const CLI::Validator& check);

// Declares an option with its default in the help and its environment variable. A value must pass `check`.
template <typename T>
CLI::Option* add_option(CLI::App& app, const std::string& names, T& value, const std::string& help,
                        const CLI::Validator& check = {}) {
  return app.add_option(names, value, help)
      ->capture_default_str()
      ->envname(environment_name(names))
      ->check(with_hint(check));
}

// Likewise of a value that may be left to the program: `unset` on the command line means none.
template <typename T>
CLI::Option* add_optional(CLI::App& app, const std::string& names, std::optional<T>& value, T unset,
                          const std::string& help, const CLI::Validator& check) {
  const auto take = [&value, unset](const T& given) {
    value = given == unset ? std::nullopt : std::optional<T>(given);
  };
  CLI::Option* option = app.add_option_function<T>(names, take, help)->envname(environment_name(names));
  return option->default_str(CLI::detail::to_string(unset))->check(with_hint(check));
}

// On the command line itself: what the environment or a configuration file sets for every run is no mistake
// in this one.
bool is_typed(const CLI::App& app, const char* name);
// Throws UsageError(name: why) for the first of the flags that is.
void refuse_typed(const CLI::App& app, std::initializer_list<const char*> names, const std::string& why);

CLI::Option* add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help);

// The flags that every subcommand has; `formats` are the values of its --format.
void add_common_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats);

}  // namespace pointsman
