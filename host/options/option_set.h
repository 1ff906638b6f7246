// SPDX-License-Identifier: Apache-2.0
// The options of a call: one record each, of which the command line, the C library, the Python package, the
// messages between ranks, the help, the manual page, the completions and the type stubs are made.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

namespace pointsman {

// Options that mean nothing, alone or together. The message names them as the command line does.
class UsageError : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

// A message that names options as the libraries do: "--first-sample" becomes "first_sample".
std::string in_library_names(const std::string& message);

// Names of values beside TEXT, INT, UINT and FLOAT.
inline constexpr const char* kFileValue = "FILE";
inline constexpr const char* kModelValue = "MODEL";  // a file or a model's name

// What is said of an option.
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

// As a front end has it. The empty one stands for an optional variable without a value.
using OptionValue = std::variant<std::monostate, bool, int64_t, uint64_t, double, std::string>;

enum class OptionType { kSwitch, kInteger, kUnsigned, kReal, kText, kTexts };

// An option that is bound to a variable, which must outlive it.
class Option {
 public:
  Option& required() {
    row_.is_required = true;
    row_.default_value.clear();
    return *this;
  }
  Option& type_name(const char* name) {
    row_.value = name;
    return *this;
  }
  Option& range(double low, double high);  // both ends are in it
  Option& choices(std::vector<std::string> words) {
    row_.choices = std::move(words);
    return *this;
  }
  // `wrong` says what is wrong with the text of a value; empty: nothing. With it `choices` are only shown.
  Option& judged_by(std::function<std::string(const std::string&)> wrong) {
    wrong_ = std::move(wrong);
    return *this;
  }

  const OptionRow& row() const { return row_; }
  OptionType type() const { return type_; }
  bool has_all_choices() const { return !row_.choices.empty() && !wrong_; }
  std::string flag() const;  // "--first-sample", or a positional's name
  std::string name() const;  // "first_sample"

  // Throw UsageError for a value that is none of its type, range or choices.
  void set(const OptionValue& value);
  void set_text(const std::string& text);
  // Its variable's value, which set_text() reads back to the bit; empty: an optional variable without one.
  std::string text() const;

  bool is_given = false;  // by a caller, the environment or a configuration file
  bool is_typed = false;  // by the caller: what is set for every run is no mistake in this one

 private:
  friend class OptionSet;
  [[noreturn]] void refuse(const std::string& text) const;
  void take(const OptionValue& own);  // of its type

  OptionRow row_;
  OptionType type_ = OptionType::kText;
  std::optional<std::pair<double, double>> range_;
  std::function<std::string(const std::string&)> wrong_;
  OptionValue (*parse_)(std::string_view text) = nullptr;  // as the variable's type; empty: it is none
  OptionValue (*convert_)(const OptionValue& value) = nullptr;
  std::function<void(const OptionValue&)> store_;
  std::function<OptionValue()> load_;
};

class OptionSet {
 public:
  OptionSet() = default;
  OptionSet(const OptionSet&) = delete;
  OptionSet& operator=(const OptionSet&) = delete;

  // What is declared after it stands under this heading.
  void begin_group(const char* heading) { group_ = heading; }

  // names: "-n,--samples"; one that begins with "--no-" says no. Its type is the variable's: bool and
  // std::optional<bool> are switches, std::vector<std::string> takes many words.
  template <typename T>
  Option& add(const char* names, T& variable, std::string description);
  // A variable that may be left to the program: the value `unset` means none.
  template <typename T>
  Option& add(const char* names, std::optional<T>& variable, T unset, std::string description);
  // One of several words for the values of a variable, which may be optional.
  template <typename T>
  using Words = std::vector<std::pair<const char*, T>>;
  template <typename Variable, typename T>
  Option& add_words(const char* names, Variable& variable, const Words<T>& words, std::string description);
  // A file, and a model's file or name.
  Option& add_file(const char* names, std::string& path, std::string description) {
    return add(names, path, std::move(description)).type_name(kFileValue);
  }
  Option& add_model(const char* names, std::string& model, std::string description) {
    return add(names, model, std::move(description)).type_name(kModelValue);
  }
  // on or off, of bool or std::optional<bool>.
  template <typename Variable>
  Option& add_on_off(const char* names, Variable& variable, std::string description) {
    return add_words(names, variable, Words<bool>{{"on", true}, {"off", false}}, std::move(description));
  }

  std::deque<Option>& all() { return options_; }
  const std::deque<Option>& all() const { return options_; }
  // By one of its names as they stand in the row, or by name(); null: there is none.
  Option* find(const std::string& name);
  const Option* find(const std::string& name) const { return const_cast<OptionSet*>(this)->find(name); }
  // Sets the option of that name of the libraries. Throws UsageError, also where there is none.
  void set(const std::string& name, const OptionValue& value);

  // False also where there is no such flag.
  bool is_given(const char* flag) const { return has(flag, &Option::is_given); }
  bool is_typed(const char* flag) const { return has(flag, &Option::is_typed); }
  // Throws UsageError(flag: why) for the first of the flags that the caller gave.
  void refuse_typed(std::span<const char* const> flags, const std::string& why) const;

 private:
  Option& declare(const char* names, OptionType type, std::string description);
  bool has(const char* flag, bool Option::*state) const {
    const Option* const option = find(flag);
    return option != nullptr && option->*state;
  }

  std::deque<Option> options_;
  std::string group_ = "Options";
};

template <typename Variable, typename T>
Option& OptionSet::add_words(const char* names, Variable& variable, const Words<T>& words,
                             std::string description) {
  Option& option = declare(names, OptionType::kText, std::move(description));
  option.load_ = [&variable, words]() -> OptionValue {
    for (const auto& [word, meaning] : words) {
      if (variable == meaning) return std::string(word);
    }
    return {};
  };
  option.store_ = [&variable, words](const OptionValue& value) {
    for (const auto& [word, meaning] : words) {
      if (std::get<std::string>(value) == word) variable = meaning;
    }
  };
  std::vector<std::string> choices;
  for (const auto& [word, meaning] : words) choices.emplace_back(word);
  option.row_.default_value = option.text();
  return option.choices(std::move(choices));
}

}  // namespace pointsman
