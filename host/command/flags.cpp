// SPDX-License-Identifier: Apache-2.0
#include "host/command/flags.h"

#include <CLI/CLI.hpp>
#include <cctype>
#include <cstdlib>

#include "host/run/did_you_mean.h"

namespace pointsman {

namespace {

// "-n,--samples" -> "POINTSMAN_SAMPLES".
std::string environment_name(const std::string& names) {
  std::string name = names.substr(names.find("--") + 2);
  name = name.substr(0, name.find(','));
  for (char& c : name) c = c == '-' ? '_' : static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return "POINTSMAN_" + name;
}

}  // namespace

Check::Check(const CLI::Validator& validator) : validator_(std::make_shared<CLI::Validator>(validator)) {}

Check one_of(const std::vector<std::string>& words) {
  const CLI::Validator member = CLI::IsMember(words);
  const auto wrong = [member, words](const std::string& value) {
    const std::string refusal = member(value);
    return refusal.empty() ? refusal : refusal + did_you_mean(value, words);
  };
  return Check({wrong, member.get_description()});
}

Check one_of_numbers(const std::vector<int>& numbers) { return Check(CLI::IsMember(numbers)); }

template <typename Number>
Check within(Number low, Number high) {
  return Check(CLI::Range(low, high));
}

Check judged_by(const std::function<std::string(const std::string&)>& wrong) {
  return Check({[wrong](const std::string& value) { return wrong(value); }, ""});
}

Declared Declared::required() const { return Declared(option_->required()); }

Declared Declared::type_name(const std::string& name) const { return Declared(option_->type_name(name)); }

Declared Declared::one_each() const { return Declared(option_->allow_extra_args(false)); }

void Declared::check(const Check& check) const {
  if (check.validator()) option_->check(*check.validator());
}

CLI::App* add_subcommand(CLI::App& parent, const std::string& name, const std::string& what,
                         const std::string& footer) {
  CLI::App* const app = parent.add_subcommand(name, what);
  app->footer(footer);
  return app;
}

void begin_group(CLI::App& app, const std::string& heading) { app.option_defaults()->group(heading); }

template <typename T>
Declared add_positional(CLI::App& app, const std::string& name, T& value, const std::string& help) {
  return Declared(app.add_option(name, value, help));
}

template <typename T>
Declared add_option(CLI::App& app, const std::string& names, T& value, const std::string& help,
                    const Check& check) {
  const Declared option(
      app.add_option(names, value, help)->capture_default_str()->envname(environment_name(names)));
  option.check(check);
  return option;
}

template <typename T>
Declared add_optional(CLI::App& app, const std::string& names, std::optional<T>& value, T unset,
                      const std::string& help, const Check& check) {
  const auto take = [&value, unset](const T& given) {
    value = given == unset ? std::nullopt : std::optional<T>(given);
  };
  const Declared option(app.add_option_function<T>(names, take, help)
                            ->envname(environment_name(names))
                            ->default_str(CLI::detail::to_string(unset)));
  option.check(check);
  return option;
}

void add_flag(CLI::App& app, const std::string& names, bool& value, const std::string& help) {
  app.add_flag(names, value, help)->envname(environment_name(names));
}

void add_flag(CLI::App& app, const std::string& names, std::optional<bool>& value, const std::string& help) {
  const auto take = [&value](int64_t times) { value = times > 0; };
  app.add_flag_function(names, take, help)->envname(environment_name(names));
}

bool is_given(const CLI::App& app, const char* name) { return app.get_option(name)->count() > 0; }

bool is_typed(const CLI::App& app, const char* name) {
  return is_given(app, name) && std::getenv(app.get_option(name)->get_envname().c_str()) == nullptr;
}

void refuse_typed(const CLI::App& app, std::initializer_list<const char*> names, const std::string& why) {
  for (const char* name : names) {
    if (is_typed(app, name)) throw UsageError(std::string(name) + ": " + why);
  }
}

// Of all types that flags.h names.
template Check within(int, int);
template Check within(int64_t, int64_t);
template Check within(double, double);

template Declared add_positional(CLI::App&, const std::string&, std::string&, const std::string&);
template Declared add_positional(CLI::App&, const std::string&, std::vector<std::string>&,
                                 const std::string&);

template Declared add_option(CLI::App&, const std::string&, std::string&, const std::string&, const Check&);
template Declared add_option(CLI::App&, const std::string&, int&, const std::string&, const Check&);
template Declared add_option(CLI::App&, const std::string&, int64_t&, const std::string&, const Check&);
template Declared add_option(CLI::App&, const std::string&, uint64_t&, const std::string&, const Check&);
template Declared add_option(CLI::App&, const std::string&, float&, const std::string&, const Check&);
template Declared add_option(CLI::App&, const std::string&, double&, const std::string&, const Check&);
template Declared add_option(CLI::App&, const std::string&, std::optional<int>&, const std::string&,
                             const Check&);
template Declared add_option(CLI::App&, const std::string&, std::optional<double>&, const std::string&,
                             const Check&);
template Declared add_option(CLI::App&, const std::string&, std::vector<std::string>&, const std::string&,
                             const Check&);

template Declared add_optional(CLI::App&, const std::string&, std::optional<int>&, int, const std::string&,
                               const Check&);
template Declared add_optional(CLI::App&, const std::string&, std::optional<int64_t>&, int64_t,
                               const std::string&, const Check&);
template Declared add_optional(CLI::App&, const std::string&, std::optional<float>&, float,
                               const std::string&, const Check&);
template Declared add_optional(CLI::App&, const std::string&, std::optional<double>&, double,
                               const std::string&, const Check&);

}  // namespace pointsman
