// SPDX-License-Identifier: Apache-2.0
// Answers as a table for people.
#include <array>
#include <cmath>
#include <cstdio>

#include "host/files/formats.h"

namespace pointsman {
namespace {

std::string text_row(const char* index, const std::string& id, const char* n, const std::string& cost,
                     const std::string& second, const std::string& gap, const char* status) {
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(), "%6s  %-20.40s %6s %16s %16s %9s  %s", index, id.c_str(), n,
                cost.c_str(), second.c_str(), gap.c_str(), status);
  return std::string(line.data()) + "\n";
}

std::string short_number(double value, const char* format = "%.10g") {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), format, value);
  return text.data();
}

std::string percent(double gap) { return std::isfinite(gap) ? short_number(100.0 * gap, "%.3g%%") : "-"; }

// For a person: control bytes of an id must not reach the terminal.
std::string visible(const std::string& id) {
  std::string out;
  for (const char c : id) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return out.empty() ? "-" : out;
}

}  // namespace

std::string write_text_answers(const Answer& answer) {
  const SolveSummary& s = answer.summary;
  std::string out = text_row("index", "id", "n", "cost or value", "float or weight", "gap", "status");
  for (size_t i = 0; i < answer.solutions.size(); ++i) {
    const Instance& instance = answer.instances[i];
    const Solution& solution = answer.solutions[i];
    out += text_row(std::to_string(i).c_str(), visible(instance.id), std::to_string(instance.n()).c_str(),
                    short_number(solution.objective),
                    short_number(problem_of(instance).has_capacity ? solution.weight : solution.unrounded),
                    percent(answer.gap(i)), name_of(solution.status));
  }
  out +=
      std::to_string(s.instances) + " solved, mean " + short_number(s.mean_cost) +
      (std::isfinite(s.mean_network_cost) ? " (the network alone " + short_number(s.mean_network_cost) + ")"
                                          : "") +
      ", gap " + percent(s.gap) + ", mode " + s.mode + ", " + std::to_string(s.samples) +
      " samples, augment " + std::to_string(s.augment) + ", shuffle " + (s.shuffle ? "on" : "off") +
      ", improve " + (s.improve ? "on" : "off") + ", model " + s.model + ", seed " + std::to_string(s.seed) +
      "\n";
  return out;
}

}  // namespace pointsman
