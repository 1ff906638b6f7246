// SPDX-License-Identifier: Apache-2.0
// Help and manual page: both print the table of options.
#include "host/command/manual.h"

#include <algorithm>
#include <map>

#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

constexpr size_t kHelpColumns = 100, kDescriptionColumn = 30, kManualColumns = 72;

constexpr const char* kDescription =
    "Pointsman trains pointer networks and solves the travelling salesman problem (TSP) and 0-1 KnapSack "
    "with them, with local search and with branch and bound. The result goes to standard output, or to the "
    "file of -o, and nothing else does; the log goes to standard error. - stands for standard input. In "
    "flags _ and - are the same.";
constexpr const char* kPrecedence =
    "A value comes from the flag, else from the environment, else from the file of --config, else it is the "
    "default.";
constexpr std::pair<const char*, const char*> kVariables[] = {
    {"POINTSMAN_FLAG", "Every flag: POINTSMAN_TIME_LIMIT is --time-limit."},
    {"POINTSMAN_MODEL_PATH", "Folders between colons in which models are looked for before all others."},
    {"POINTSMAN_CUDA_MODULE", "The CUDA module."},
    {"POINTSMAN_MPI", "off: one process, although an MPI launcher started it."},
    {"POINTSMAN_MPI_MODULE", "The MPI module."},
    {"POINTSMAN_NCCL", "NCCL's library, or off; default: libnccl.so.2."},
    {"POINTSMAN_SIMD", "avx512, avx2 or sse4 forces an instruction set."},
    {"NO_COLOR", "Turns colour off."}};

// The text in lines of at most `columns`, broken at spaces; all but the first are indented by `indent`
// spaces, which count. A longer word stands alone.
std::string wrapped(std::string_view text, size_t indent, size_t columns = kHelpColumns) {
  std::string out;
  size_t column = indent;
  while (!text.empty()) {
    const size_t length = std::min(text.find(' '), text.size());
    if (!out.empty() && column + 1 + length > columns) {
      out += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (!out.empty()) {
      out += ' ';
      ++column;
    }
    out += text.substr(0, length);
    column += length;
    text.remove_prefix(std::min(length + 1, text.size()));
  }
  return out;
}

// "pointsman solve [OPTIONS] FILE...", of the program or subcommand that is called by `name`.
std::string usage_text(const Command& command, const std::string& name) {
  std::string text = name + " [OPTIONS]";
  for (const OptionRow& row : command.rows()) {
    if (!row.is_positional) continue;
    const std::string word = row.names.front() + (row.is_repeated ? "..." : "");
    text += row.is_required ? " " + word : " [" + word + "]";
  }
  return text + (command.subcommands.empty() ? "" : " SUBCOMMAND");
}

// Whether the kind of value stands behind the names.
bool shows_value(const OptionRow& row) {
  return !row.value.empty() && !(row.is_positional && row.choices.empty());
}

const char* dots(const OptionRow& row) { return row.is_repeated && row.is_positional ? "..." : ""; }

// "[0..4096; default 0; POINTSMAN_THREADS]", or nothing. The manual page says the rest elsewhere.
std::string details(const OptionRow& row, bool in_help) {
  std::vector<std::string> parts;
  if (in_help && row.is_required && !row.is_positional) parts.emplace_back("required");
  if (!row.range.empty()) parts.push_back(row.range);
  if (!row.default_value.empty()) parts.push_back("default " + row.default_value);
  if (in_help && !row.environment.empty()) parts.push_back(row.environment);
  return parts.empty() ? "" : "[" + joined(parts, "; ") + "]";
}

// ---- help

// "  name", then the description beside it, or below where the name is long, and what stands in brackets
// behind it on one line.
std::string help_entry(const std::string& name, const std::string& description,
                       const std::string& brackets = "") {
  const std::string next_line = "\n" + std::string(kDescriptionColumn, ' ');
  std::string text = "  " + wrapped(name, 6);
  const auto used = [&] { return text.size() - (text.rfind('\n') + 1); };
  text += used() + 2 > kDescriptionColumn ? next_line : std::string(kDescriptionColumn - used(), ' ');
  text += wrapped(description, kDescriptionColumn);
  if (brackets.empty()) return text + "\n";
  return text + (used() + 1 + brackets.size() <= kHelpColumns ? " " : next_line) + brackets + "\n";
}

// Lines of prose are wrapped; those of an example, which begin with spaces, stay.
std::string wrapped_lines(const std::string& text) {
  std::string out;
  LineScanner scanner(text);
  for (std::string_view line; scanner.next(line);)
    out += (line.starts_with(' ') ? std::string(line) : wrapped(line, 0)) + "\n";
  return out;
}

// ---- manual page

// roff's own characters are written by name, so that dashes and quotes can be copied into a shell.
std::string roff(std::string_view text) {
  static const std::map<char, const char*> kNames = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                                                     {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"},
                                                     {'"', "\\(dq"}};
  std::string out = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) out += kNames.contains(c) ? kNames.at(c) : std::string(1, c);
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

// In lines of which none is read as a macro.
std::string paragraph(std::string_view text) {
  const std::string lines = wrapped(text, 0, kManualColumns);
  std::string out;
  LineScanner scanner(lines);
  for (std::string_view line; scanner.next_filled(line);) out += roff(line) + "\n";
  return out;
}

std::string tagged(const std::string& tag, std::string_view text) {
  return ".TP\n" + tag + "\n" + paragraph(text);
}

std::string man_entry(const OptionRow& row) {
  const std::string names = joined(row.names, ", ", row.is_positional ? italic : bold);
  const std::string value = shows_value(row) ? " " + italic(row.value_text()) : "";
  const std::string more = details(row, false);
  return tagged(names + dots(row) + value, row.description + (more.empty() ? "" : " " + more));
}

// The lines of a footer that are examples, which begin with spaces, or the others.
std::vector<std::string> footer_lines(const std::string& footer, bool examples) {
  std::vector<std::string> lines;
  LineScanner scanner(footer);
  for (std::string_view line; scanner.next_filled(line);) {
    if (line != "Examples:" && line.starts_with("  ") == examples) lines.emplace_back(line);
  }
  return lines;
}

std::string examples_of(const Command& command) {
  const std::vector<std::string> lines = footer_lines(command.footer, true);
  std::string text = ".EX\n";
  for (const std::string& line : lines) text += roff(trim(line)) + "\n";
  return lines.empty() ? "" : text + ".EE\n";
}

bool has_row(const std::vector<OptionRow>& rows, const OptionRow& row) {
  return std::find(rows.begin(), rows.end(), row) != rows.end();
}

// What every subcommand has in the same words.
std::vector<OptionRow> common_rows(const Command& program) {
  std::vector<OptionRow> common = program.subcommands.front().rows();
  for (const Command& one : program.subcommands) {
    if (!one.has_own_parser)
      std::erase_if(common, [&](const auto& row) { return !has_row(one.rows(), row); });
  }
  return common;
}

std::string subcommand_section(const Command& command, const std::string& name,
                               const std::vector<OptionRow>& common) {
  std::string text = ".SS " + roff(name) + "\n" + paragraph(command.description + ".");
  if (command.has_own_parser) return text + bold(name + " --help") + "\nlists its options.\n";
  for (const OptionRow& row : command.rows()) {
    if (!has_row(common, row)) text += man_entry(row);
  }
  const std::string examples = examples_of(command), prose = joined(footer_lines(command.footer, false), " ");
  if (!examples.empty()) text += ".PP\n" + examples;
  return text + (prose.empty() ? "" : ".PP\n" + paragraph(prose));
}

}  // namespace

std::string help_text(const Command& command, const std::string& name) {
  std::string text = wrapped(command.description, 0) + "\nUsage: " + usage_text(command, name) + "\n";
  std::string group;
  for (const OptionRow& row : command.rows()) {
    const std::string heading = row.is_positional ? "Positionals" : row.group;
    if (heading != group) text += "\n" + heading + ":\n";
    group = heading;
    const std::string value = shows_value(row) ? " " + row.value_text() : "";
    text += help_entry(joined(row.names, ", ") + value + dots(row), row.description, details(row, true));
  }
  if (!command.subcommands.empty()) text += "\nSubcommands:\n";
  for (const Command& subcommand : command.subcommands)
    text += help_entry(subcommand.name, subcommand.description);
  return text + "\n" + wrapped_lines(command.footer);
}

std::string man_page(const Command& program) {
  const std::string version = "pointsman " POINTSMAN_VERSION;
  std::string summary = program.description;
  summary.front() = static_cast<char>(summary.front() - 'A' + 'a');
  summary.pop_back();  // the full stop
  std::string text = ".TH POINTSMAN 1 \"\" \"" + version + "\" \"User Commands\"\n.SH NAME\npointsman \\- " +
                     roff(summary) + "\n.SH SYNOPSIS\n.nf\n";
  for (const Command& one : program.subcommands) {
    const std::string name = "pointsman " + one.name;
    text += bold(name) + roff(usage_text(one, name).substr(name.size())) + "\n";
  }
  text += ".fi\n.SH DESCRIPTION\n" + paragraph(kDescription);
  for (const OptionRow& row : program.rows()) text += man_entry(row);
  const std::vector<OptionRow> common = common_rows(program);
  text += ".SH SUBCOMMANDS\n";
  for (const Command& one : program.subcommands) {
    text += subcommand_section(one, "pointsman " + one.name, common);
  }
  text += ".SH COMMON OPTIONS\nEvery subcommand has them.\n";
  for (const OptionRow& row : common) text += man_entry(row);
  text += ".SH ENVIRONMENT\n" + paragraph(kPrecedence);
  for (const auto& [name, meaning] : kVariables) text += tagged(bold(name), meaning);
  text += ".SH FILES\n" +
          tagged(italic("PREFIX/share/pointsman/models/*.safetensors"), "The models that -m finds by name.") +
          ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitMeanings) text += tagged(bold(code), meaning);
  return text + ".SH EXAMPLES\n" + examples_of(program);
}

}  // namespace pointsman
