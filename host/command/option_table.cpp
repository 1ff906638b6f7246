// SPDX-License-Identifier: Apache-2.0
#include "host/command/option_table.h"

#include <CLI/CLI.hpp>
#include <algorithm>

#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

// What "TYPE" or "TYPE:CHECK" tells: IsMember checks "{a,b}", Range "INT in [0 - 4096]".
void read_type(const std::string& type, OptionRow& row) {
  const size_t colon = type.find(':');
  row.value = type.substr(0, colon);
  const std::string check = colon == std::string::npos ? type : type.substr(colon + 1);
  row.choices = choices_in(check);
  const size_t bracket = check.find('[');
  if (row.choices.empty() && bracket != std::string::npos && check.back() == ']')
    row.range = check.substr(bracket + 1, check.size() - bracket - 2);
  const size_t dash = row.range.find(" - ");
  if (dash != std::string::npos) row.range.replace(dash, 3, "..");
}

}  // namespace

std::string OptionRow::value_text() const { return choices.empty() ? value : joined(choices, "|"); }

std::vector<std::string> choices_in(const std::string& text) {
  std::vector<std::string> choices;
  if (text.size() < 2 || text.front() != '{' || text.back() != '}') return choices;
  for (size_t from = 1; from < text.size();) {
    const size_t end = std::min(text.find(',', from), text.size() - 1);
    choices.push_back(text.substr(from, end - from));
    from = end + 1;
  }
  return choices;
}

OptionRow row_of(const CLI::Option& option) {
  OptionRow row;
  row.is_positional = option.get_positional();
  if (row.is_positional) row.names.push_back(option.get_name(true, false));
  for (const std::string& name : option.get_snames()) row.names.push_back("-" + name);
  for (const std::string& name : option.get_lnames()) row.names.push_back("--" + name);
  if (option.get_type_size() != 0) read_type(option.get_type_name(), row);
  const std::string initial = option.get_default_str();
  if (initial != "[]" && initial != "nan" && !option.get_required()) row.default_value = initial;
  row.environment = option.get_envname();
  row.description = option.get_description();
  row.group = option.get_group();
  row.is_required = option.get_required();
  row.is_repeated = option.get_expected_max() > 1;
  return row;
}

CommandTable table_of(const CLI::App& app) {
  CommandTable table{
      app.get_name(), app.get_description(), app.get_footer(), app.get_prefix_command(), {}, {}};
  const std::vector<const CLI::Option*> options = app.get_options();
  for (const CLI::Option* option : options) table.rows.push_back(row_of(*option));
  std::stable_partition(table.rows.begin(), table.rows.end(),
                        [](const OptionRow& row) { return row.is_positional; });
  for (const CLI::App* subcommand : app.get_subcommands([](const CLI::App*) { return true; }))
    table.subcommands.push_back(table_of(*subcommand));
  return table;
}

}  // namespace pointsman
