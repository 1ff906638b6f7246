// SPDX-License-Identifier: Apache-2.0
// How a subcommand and its flags are declared. CLI11 stays behind it: its headers take seconds to compile, so
// only the files that parse include them.
#pragma once

#include <functional>
#include <initializer_list>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "host/command/option_table.h"
#include "host/command/options.h"

namespace CLI {
class Validator;
}

namespace pointsman {

// What a value must be; of the default constructor, anything.
class Check {
 public:
  Check() = default;
  explicit Check(const CLI::Validator& validator);
  // Null: takes all.
  const CLI::Validator* validator() const { return validator_.get(); }

 private:
  std::shared_ptr<const CLI::Validator> validator_;
};

// A refusal names the word that was meant.
Check one_of(const std::vector<std::string>& words);
Check one_of_numbers(const std::vector<int>& numbers);
// Both ends are in it. Of int, int64_t and double.
template <typename Number>
Check within(Number low, Number high);
// `wrong` tells what is wrong with a value; empty: nothing.
Check judged_by(const std::function<std::string(const std::string&)>& wrong);

// A flag that was just declared; its application owns it.
class Declared {
 public:
  explicit Declared(CLI::Option* option) : option_(option) {}
  Declared required() const;
  // What the help calls its value, where that is not its type.
  Declared type_name(const std::string& name) const;
  // One value each time that it is given; else a flag of many values takes all words up to the next flag.
  Declared one_each() const;
  void check(const Check& check) const;

 private:
  CLI::Option* option_;
};

// `parent` owns it.
CLI::App* add_subcommand(CLI::App& parent, const std::string& name, const std::string& what,
                         const std::string& footer);

// What is declared after it stands under this heading.
void begin_group(CLI::App& app, const std::string& heading);

// std::string, or std::vector of it for any number of words. It has no variable in the environment.
template <typename T>
Declared add_positional(CLI::App& app, const std::string& name, T& value, const std::string& help);

// Declares an option with its default in the help and its environment variable. A value must pass `check`. Of
// std::string, int, int64_t, uint64_t, float, double, std::optional<double>, std::optional<int> and
// std::vector<std::string>.
template <typename T>
Declared add_option(CLI::App& app, const std::string& names, T& value, const std::string& help,
                    const Check& check = {});

// Likewise of a value that may be left to the program: `unset` on the command line means none. Of int,
// int64_t, float and double.
template <typename T>
Declared add_optional(CLI::App& app, const std::string& names, std::optional<T>& value, T unset,
                      const std::string& help, const Check& check);

void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help);
// `names` has one that says no: "--shuffle,!--no-shuffle".
void add_flag(CLI::App& app, const std::string& names, std::optional<bool>& value, const std::string& help);

// By the command line, the environment or a configuration file.
bool is_given(const CLI::App& app, const char* name);
// On the command line itself: what the environment or a configuration file sets for every run is no mistake
// in this one.
bool is_typed(const CLI::App& app, const char* name);
// Throws UsageError(name: why) for the first of the flags that is.
void refuse_typed(const CLI::App& app, std::initializer_list<const char*> names, const std::string& why);

// The flags that every subcommand has; `formats` are the values of its --format.
void add_common_options(CLI::App& app, CommonOptions& options, const std::vector<std::string>& formats);

}  // namespace pointsman
