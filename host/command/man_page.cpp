// SPDX-License-Identifier: Apache-2.0
#include "host/command/man_page.h"

#include <algorithm>
#include <utility>

#include "host/command/help_text.h"
#include "host/command/options.h"
#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

constexpr const char* kDescription =
    "Pointsman trains pointer networks and solves the travelling salesman problem (TSP) and 0-1 KnapSack "
    "with "
    "them, with local search and with branch and bound. The result goes to standard output, or to the file "
    "of "
    "-o, and nothing else does; the log goes to standard error. - stands for standard input. In flags _ and "
    "- "
    "are the same.";
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

// roff's own characters are written by name, so that dashes and quotes can be copied into a shell.
std::string roff(std::string_view text) {
  static constexpr std::pair<char, const char*> kEscapes[] = {{'\\', "\\e"},  {'-', "\\-"},   {'\'', "\\(aq"},
                                                              {'`', "\\(ga"}, {'^', "\\(ha"}, {'~', "\\(ti"},
                                                              {'"', "\\(dq"}};
  std::string out = text.starts_with('.') ? "\\&" : "";
  for (const char c : text) {
    const auto named = std::find_if(std::begin(kEscapes), std::end(kEscapes),
                                    [c](const auto& name) { return name.first == c; });
    out += named == std::end(kEscapes) ? std::string(1, c) : named->second;
  }
  return out;
}

std::string bold(std::string_view text) { return "\\fB" + roff(text) + "\\fR"; }
std::string italic(std::string_view text) { return "\\fI" + roff(text) + "\\fR"; }

// In lines of which none is read as a macro.
std::string paragraph(std::string_view text) {
  constexpr size_t kColumns = 72;
  const std::string lines = wrapped(text, 0, kColumns);
  std::string out;
  LineScanner scanner(lines);
  for (std::string_view line; scanner.next_filled(line);) out += roff(line) + "\n";
  return out;
}

std::string tagged(const std::string& tag, std::string_view text) {
  return ".TP\n" + tag + "\n" + paragraph(text);
}

std::string man_entry(const OptionRow& row) {
  std::string tag = joined(row.names, ", ", row.is_positional ? italic : bold);
  if (row.is_repeated && row.is_positional) tag += "...";
  if (!row.value.empty() && !(row.is_positional && row.choices.empty()))
    tag += " " + italic(row.value_text());
  std::vector<std::string> more;
  if (!row.range.empty()) more.push_back(row.range);
  if (!row.default_value.empty()) more.push_back("default " + row.default_value);
  return tagged(tag, row.description + (more.empty() ? "" : " [" + joined(more, "; ") + "]"));
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

std::string examples_of(const CommandTable& table) {
  const std::vector<std::string> lines = footer_lines(table.footer, true);
  std::string text = lines.empty() ? "" : ".PP\n.EX\n";
  for (const std::string& line : lines) text += roff(trim(line)) + "\n";
  return lines.empty() ? "" : text + ".EE\n";
}

bool has_row(const CommandTable& table, const OptionRow& row) {
  return std::find(table.rows.begin(), table.rows.end(), row) != table.rows.end();
}

// What every subcommand has in the same words.
std::vector<OptionRow> common_rows(const CommandTable& program) {
  std::vector<OptionRow> common;
  for (const OptionRow& row : program.subcommands.front().rows) {
    const bool in_all =
        std::all_of(program.subcommands.begin(), program.subcommands.end(),
                    [&](const CommandTable& one) { return one.has_own_parser || has_row(one, row); });
    if (in_all) common.push_back(row);
  }
  return common;
}

std::string subcommand_section(const CommandTable& table, const std::string& name,
                               const std::vector<OptionRow>& common) {
  std::string text = ".SS " + roff(name) + "\n" + paragraph(table.description + ".");
  if (table.has_own_parser) return text + bold(name + " --help") + "\nlists its options.\n";
  for (const OptionRow& row : table.rows) {
    if (std::find(common.begin(), common.end(), row) == common.end()) text += man_entry(row);
  }
  const std::string prose = joined(footer_lines(table.footer, false), " ");
  return text + examples_of(table) + (prose.empty() ? "" : ".PP\n" + paragraph(prose));
}

std::string tail_sections(const CommandTable& program) {
  std::string text = ".SH ENVIRONMENT\n" + paragraph(kPrecedence);
  for (const auto& [name, meaning] : kVariables) text += tagged(bold(name), meaning);
  text += ".SH FILES\n" +
          tagged(italic("PREFIX/share/pointsman/models/*.safetensors"), "The models that -m finds by name.") +
          ".SH EXIT STATUS\n";
  for (const auto& [code, meaning] : kExitMeanings) text += tagged(bold(code), meaning);
  return text + ".SH EXAMPLES\n" + examples_of(program).substr(std::string_view(".PP\n").size());
}

}  // namespace

std::string man_page(const CommandTable& program) {
  const std::string version = "pointsman " POINTSMAN_VERSION;
  std::string summary = program.description;
  summary.front() = static_cast<char>(summary.front() - 'A' + 'a');
  summary.pop_back();  // the full stop
  std::string text = ".TH POINTSMAN 1 \"\" \"" + version + "\" \"User Commands\"\n.SH NAME\npointsman \\- " +
                     roff(summary) + "\n.SH SYNOPSIS\n.nf\n";
  for (const CommandTable& one : program.subcommands) {
    const std::string name = "pointsman " + one.name;
    text += bold(name) + roff(usage_text(one, name).substr(name.size())) + "\n";
  }
  text += ".fi\n.SH DESCRIPTION\n" + paragraph(kDescription);
  for (const OptionRow& row : program.rows) text += man_entry(row);
  const std::vector<OptionRow> common = common_rows(program);
  text += ".SH SUBCOMMANDS\n";
  for (const CommandTable& one : program.subcommands) {
    text += subcommand_section(one, "pointsman " + one.name, common);
  }
  text += ".SH COMMON OPTIONS\nEvery subcommand has them.\n";
  for (const OptionRow& row : common) text += man_entry(row);
  return text + tail_sections(program);
}

}  // namespace pointsman
