// SPDX-License-Identifier: Apache-2.0
#include "host/command/help_text.h"

#include <algorithm>

#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

constexpr size_t kDescriptionColumn = 30;

// "  name", then the description beside it, or below where the name is long, and what stands in brackets
// behind it on one line.
std::string entry(const std::string& name, const std::string& description, const std::string& brackets = "") {
  std::string text = "  " + wrapped(name, 6);
  const size_t used = text.size() - (text.rfind('\n') + 1);
  if (used + 2 > kDescriptionColumn) {
    text += "\n" + std::string(kDescriptionColumn, ' ');
  } else {
    text += std::string(kDescriptionColumn - used, ' ');
  }
  text += wrapped(description, kDescriptionColumn);
  if (brackets.empty()) return text + "\n";
  const bool fits = text.size() - (text.rfind('\n') + 1) + 1 + brackets.size() <= kHelpColumns;
  return text + (fits ? " " : "\n" + std::string(kDescriptionColumn, ' ')) + brackets + "\n";
}

// "[0..4096; default 0; POINTSMAN_THREADS]", or nothing.
std::string details(const OptionRow& row) {
  std::vector<std::string> parts;
  if (row.is_required && !row.is_positional) parts.emplace_back("required");
  if (!row.range.empty()) parts.push_back(row.range);
  if (!row.default_value.empty()) parts.push_back("default " + row.default_value);
  if (!row.environment.empty()) parts.push_back(row.environment);
  return parts.empty() ? "" : "[" + joined(parts, "; ") + "]";
}

std::string help_entry(const OptionRow& row) {
  std::string name = joined(row.names, ", ");
  if (!row.value.empty() && !(row.is_positional && row.choices.empty())) name += " " + row.value_text();
  if (row.is_repeated && row.is_positional) name += "...";
  return entry(name, row.description, details(row));
}

// Lines of prose are wrapped; those of an example, which begin with spaces, stay.
std::string wrapped_lines(const std::string& text) {
  std::string out;
  for (size_t from = 0; from < text.size();) {
    const size_t end = std::min(text.find('\n', from), text.size());
    const std::string line = text.substr(from, end - from);
    out += (line.starts_with(' ') ? line : wrapped(line, 0)) + "\n";
    from = end + 1;
  }
  return out;
}

}  // namespace

std::string wrapped(std::string_view text, size_t indent, size_t columns) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    const bool is_first = out.empty();
    if (!is_first && column + 1 + length > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!is_first) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, length);
    column += length;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return out;
}

std::string usage_text(const CommandTable& table, const std::string& name) {
  std::string text = name + " [OPTIONS]";
  for (const OptionRow& row : table.rows) {
    if (!row.is_positional) continue;
    const std::string word = row.names.front() + (row.is_repeated ? "..." : "");
    text += row.is_required ? " " + word : " [" + word + "]";
  }
  return text + (table.subcommands.empty() ? "" : " SUBCOMMAND");
}

std::string help_text(const CommandTable& table, const std::string& name) {
  std::string text = wrapped(table.description, 0) + "\nUsage: " + usage_text(table, name) + "\n";
  std::string group;
  for (const OptionRow& row : table.rows) {
    const std::string heading = row.is_positional ? "Positionals" : row.group;
    if (heading != group) text += "\n" + heading + ":\n";
    group = heading;
    text += help_entry(row);
  }
  if (!table.subcommands.empty()) text += "\nSubcommands:\n";
  for (const CommandTable& subcommand : table.subcommands)
    text += entry(subcommand.name, subcommand.description);
  return text + "\n" + wrapped_lines(table.footer);
}

}  // namespace pointsman
