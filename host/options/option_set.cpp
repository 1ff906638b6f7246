// SPDX-License-Identifier: Apache-2.0
#include "host/options/option_set.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <limits>
#include <type_traits>

#include "host/formats/text_scan.h"
#include "host/options/did_you_mean.h"
#include "models/tools/json_text.h"

namespace pointsman {

namespace {

struct TypeWords {
  const char *value, *expected;
};
constexpr TypeWords kTypes[] = {
    {"", "true or false"}, {"INT", "a whole number"}, {"UINT", "a whole number from 0 to 2^64 - 1"},
    {"FLOAT", "a number"}, {"TEXT", "text"},          {"TEXT", "text"}};

// As help and messages have it: short.
std::string short_text(double number) { return printed("%g", number); }

std::string text_of(const OptionValue& value) {
  return std::visit(
      [](const auto& held) -> std::string {
        using Held = std::decay_t<decltype(held)>;
        if constexpr (std::is_same_v<Held, std::monostate>) {
          return {};
        } else if constexpr (std::is_same_v<Held, bool>) {
          return held ? "true" : "false";
        } else if constexpr (std::is_same_v<Held, std::string>) {
          return held;
        } else {
          return number_text(held);
        }
      },
      value);
}

// The whole text as a value of this type; empty: it is none.
template <typename T>
OptionValue parsed(std::string_view text) {
  if constexpr (std::is_same_v<T, bool>) {
    if (text == "true" || text == "on" || text == "yes" || text == "1") return true;
    if (text == "false" || text == "off" || text == "no" || text == "0") return false;
    return {};
  } else if constexpr (std::is_same_v<T, std::string>) {
    return std::string(text);
  } else {
    if (text.starts_with('+')) text.remove_prefix(1);
    T number{};
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (error != std::errc() || end != text.data() + text.size()) return {};
    return number;
  }
}

using Wide = __int128;  // holds what a rounded int64_t or uint64_t may come to

// A number of another type as one of this; empty where it is none or would be rounded.
template <typename T>
OptionValue converted(const OptionValue& value) {
  if (std::holds_alternative<T>(value)) return value;
  if constexpr (!std::is_same_v<T, std::string>) {
    std::optional<Wide> whole;
    if (const auto* const integer = std::get_if<int64_t>(&value)) whole = *integer;
    if (const auto* const natural = std::get_if<uint64_t>(&value)) whole = *natural;
    if (whole && static_cast<Wide>(static_cast<T>(*whole)) == *whole) return static_cast<T>(*whole);
  }
  return {};
}

template <typename T>
constexpr OptionType type_for() {
  if constexpr (std::is_same_v<T, bool>) return OptionType::kSwitch;
  if constexpr (std::is_same_v<T, uint64_t>) return OptionType::kUnsigned;
  if constexpr (std::is_floating_point_v<T>) return OptionType::kReal;
  if constexpr (std::is_same_v<T, std::string>) return OptionType::kText;
  if constexpr (std::is_same_v<T, std::vector<std::string>>) return OptionType::kTexts;
  return OptionType::kInteger;
}

// Of a variable's value, which may be optional.
template <typename T>
T plain(const T&);
template <typename T>
T plain(const std::optional<T>&);

// What std::get() finds for a plain variable.
template <typename T>
using Held = std::conditional_t<
    std::is_floating_point_v<T>, double,
    std::conditional_t<std::is_integral_v<T> && !std::is_same_v<T, bool> && !std::is_same_v<T, uint64_t>,
                       int64_t, T>>;

template <typename T>
OptionValue value_of(const T& variable) {
  return static_cast<Held<T>>(variable);
}

template <typename T>
OptionValue value_of(const std::optional<T>& variable) {
  return variable ? value_of(*variable) : OptionValue();
}

}  // namespace

std::string in_library_names(const std::string& message) {
  std::string out = message;
  for (size_t at = out.find("--"); at != std::string::npos; at = out.find("--", at)) {
    const bool begins = at == 0 || out[at - 1] == ' ' || out[at - 1] == '(';
    size_t end = std::min(out.find_first_not_of("abcdefghijklmnopqrstuvwxyz-", at), out.size());
    if (begins && end > at + 2 && out[at + 2] != '-') {
      out.erase(at, 2);
      end -= 2;
      std::replace(out.begin() + static_cast<std::ptrdiff_t>(at),
                   out.begin() + static_cast<std::ptrdiff_t>(end), '-', '_');
    }
    at = end;
  }
  return out;
}

std::string OptionRow::value_text() const { return choices.empty() ? value : joined(choices, "|"); }

Option& Option::range(double low, double high) {
  range_ = {low, high};
  row_.range = short_text(low) + ".." + short_text(high);
  if (type_ == OptionType::kInteger)
    row_.range = printed("%lld..%lld", static_cast<long long>(low), static_cast<long long>(high));
  return *this;
}

std::string Option::flag() const {
  const auto is_long = [](const std::string& name) { return name.starts_with("--"); };
  const auto found = std::find_if(row_.names.begin(), row_.names.end(), is_long);
  return found == row_.names.end() ? row_.names.front() : *found;
}

std::string Option::name() const {
  std::string name = flag();
  name.erase(0, name.find_first_not_of('-'));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void Option::refuse(const std::string& text) const {
  std::string expected = kTypes[static_cast<int>(type_)].expected;
  if (has_all_choices()) expected = (row_.choices.size() > 1 ? "one of " : "") + joined(row_.choices, ", ");
  if (const size_t dots = row_.range.find(".."); dots != std::string::npos)
    expected += " from " + row_.range.substr(0, dots) + " to " + row_.range.substr(dots + 2);
  throw UsageError(flag() + ": expected " + expected + ", found " + shown(text) +
                   (has_all_choices() ? did_you_mean(text, row_.choices) : ""));
}

void Option::set(const OptionValue& value) {
  if (const auto* const text = std::get_if<std::string>(&value)) return set_text(*text);
  if (std::count(row_.choices.begin(), row_.choices.end(), "on") > 0) {
    const OptionValue is_on = converted<bool>(value);
    return set_text(is_on.index() == 0 ? text_of(value) : std::get<bool>(is_on) ? "on" : "off");
  }
  const OptionValue own = convert_(value);
  if (own.index() == 0) refuse(text_of(value));
  take(own);
}

void Option::set_text(const std::string& text) {
  if (wrong_) {
    if (const std::string wrong = wrong_(text); !wrong.empty()) throw UsageError(flag() + ": " + wrong);
  }
  const OptionValue own = parse_(text);
  if (own.index() == 0) refuse(text);
  take(own);
}

void Option::take(const OptionValue& own) {
  if (has_all_choices() && std::count(row_.choices.begin(), row_.choices.end(), text_of(own)) == 0)
    refuse(text_of(own));
  if (range_) {
    const auto* const integer = std::get_if<int64_t>(&own);
    const double number = integer ? static_cast<double>(*integer) : std::get<double>(own);
    if (!(number >= range_->first && number <= range_->second)) refuse(text_of(own));
  }
  store_(own);
}

std::string Option::text() const { return text_of(load_()); }

Option& OptionSet::declare(const char* names, OptionType type, std::string description) {
  Option& option = options_.emplace_back();
  option.type_ = type;
  option.parse_ = parsed<std::string>;
  option.convert_ = converted<std::string>;
  OptionRow& row = option.row_;
  for (std::string_view left = names; !left.empty();) {
    const size_t comma = std::min(left.find(','), left.size());
    row.names.emplace_back(left.substr(0, comma));
    left.remove_prefix(std::min(comma + 1, left.size()));
  }
  row.is_positional = !row.names.front().starts_with('-');
  row.is_repeated = type == OptionType::kTexts;
  row.value = kTypes[static_cast<int>(type)].value;
  row.description = std::move(description);
  row.group = group_;
  if (!row.is_positional) {
    row.environment = "POINTSMAN_" + option.name();
    for (char& c : row.environment) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  }
  return option;
}

template <typename T>
Option& OptionSet::add(const char* names, T& variable, std::string description) {
  using Type = decltype(plain(variable));
  Option& option = declare(names, type_for<Type>(), std::move(description));
  if constexpr (std::is_same_v<Type, std::vector<std::string>>) {
    option.load_ = [] { return OptionValue(); };
    option.store_ = [&variable, is_first = true](const OptionValue& value) mutable {
      if (std::exchange(is_first, false)) variable.clear();
      variable.push_back(std::get<std::string>(value));
    };
  } else {
    option.load_ = [&variable] { return value_of(variable); };
    option.parse_ = parsed<Held<Type>>;
    option.convert_ = converted<Held<Type>>;
    option.store_ = [&variable](const OptionValue& value) {
      variable = static_cast<Type>(std::get<Held<Type>>(value));
    };
  }
  if (option.type() != OptionType::kSwitch) option.row_.default_value = option.text();
  if (option.type() == OptionType::kReal && !option.row_.default_value.empty())
    option.row_.default_value = short_text(std::get<double>(option.load_()));
  if (std::is_same_v<T, int>)
    option.range(std::numeric_limits<int>::min(), std::numeric_limits<int>::max()).row_.range.clear();
  return option;
}

template <typename T>
Option& OptionSet::add(const char* names, std::optional<T>& variable, T unset, std::string description) {
  Option& option = add(names, variable, std::move(description));
  option.row_.default_value = text_of(value_of(unset));
  option.store_ = [&variable, unset](const OptionValue& value) {
    const T given = static_cast<T>(std::get<Held<T>>(value));
    variable = given == unset ? std::nullopt : std::optional<T>(given);
  };
  return option;
}

Option* OptionSet::find(const std::string& name) {
  for (Option& option : options_) {
    const std::vector<std::string>& names = option.row().names;
    if (std::count(names.begin(), names.end(), name) > 0 || option.name() == name) return &option;
  }
  return nullptr;
}

void OptionSet::set(const std::string& name, const OptionValue& value) {
  Option* const option = find(name);
  if (option == nullptr || option->name() != name) {
    std::vector<std::string> names;
    for (const Option& one : options_) names.push_back(one.name());
    throw UsageError(shown(name) + ": no such option" + did_you_mean(name, names));
  }
  option->set(value);
  option->is_given = option->is_typed = true;
}

void OptionSet::refuse_typed(std::span<const char* const> flags, const std::string& why) const {
  for (const char* flag : flags) {
    if (is_typed(flag)) throw UsageError(std::string(flag) + ": " + why);
  }
}

template Option& OptionSet::add(const char*, bool&, std::string);
template Option& OptionSet::add(const char*, std::optional<bool>&, std::string);
template Option& OptionSet::add(const char*, int&, std::string);
template Option& OptionSet::add(const char*, int64_t&, std::string);
template Option& OptionSet::add(const char*, uint64_t&, std::string);
template Option& OptionSet::add(const char*, float&, std::string);
template Option& OptionSet::add(const char*, double&, std::string);
template Option& OptionSet::add(const char*, std::string&, std::string);
template Option& OptionSet::add(const char*, std::vector<std::string>&, std::string);
template Option& OptionSet::add(const char*, std::optional<int>&, std::string);
template Option& OptionSet::add(const char*, std::optional<double>&, std::string);
template Option& OptionSet::add(const char*, std::optional<int>&, int, std::string);
template Option& OptionSet::add(const char*, std::optional<int64_t>&, int64_t, std::string);
template Option& OptionSet::add(const char*, std::optional<float>&, float, std::string);
template Option& OptionSet::add(const char*, std::optional<double>&, double, std::string);

}  // namespace pointsman
