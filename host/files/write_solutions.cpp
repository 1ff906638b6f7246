// SPDX-License-Identifier: Apache-2.0
#include "host/files/write_solutions.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include "host/files/json_document.h"
#include "host/files/npy_array.h"
#include "host/files/text_scan.h"
#include "host/files/zip_archive.h"

namespace pointsman {

namespace {

const char* status_name(Status status) {
  switch (status) {
    case Status::kDone:
      return "done";
    case Status::kTimeLimit:
      return "time_limit";
    case Status::kInterrupted:
      return "interrupted";
  }
  return "";
}

const char* boolean_text(bool value) { return value ? "true" : "false"; }

double gap_of(const std::vector<double>& gaps, size_t i) { return gaps.empty() ? kNoNumber : gaps[i]; }

std::string summary_json(const SolveSummary& s) {
  return "{\"instances\":" + std::to_string(s.instances) + ",\"mean_cost\":" + number_text(s.mean_cost) +
         (std::isfinite(s.mean_network_cost) ? ",\"mean_network_cost\":" + number_text(s.mean_network_cost)
                                             : "") +
         ",\"gap\":" + number_text(s.gap) + ",\"computing_times\":{\"loading\":" + number_text(s.loading_ms) +
         ",\"solving\":" + number_text(s.solving_ms) + "},\"mode\":" + json_text(s.mode) +
         ",\"samples\":" + std::to_string(s.samples) + ",\"augment\":" + std::to_string(s.augment) +
         ",\"shuffle\":" + boolean_text(s.shuffle) + ",\"improve\":" + boolean_text(s.improve) +
         ",\"model\":" + json_text(s.model) + ",\"model_sha256\":" + json_text(s.model_sha256) +
         ",\"device\":" + json_text(s.device) + ",\"seed\":" + std::to_string(s.seed) +
         ",\"version\":" + json_text(s.version) + "}";
}

std::string format_json(const InstanceBatch& instances, const SolutionBatch& solutions,
                        const std::vector<double>& gaps, const SolveSummary& summary) {
  std::string out = "{\"code\":" + std::to_string(summary.code) + ",\"summary\":" + summary_json(summary) +
                    ",\n \"solutions\":[";
  for (size_t i = 0; i < solutions.size(); ++i) {
    out += (i > 0 ? ",\n  " : "\n  ") +
           solution_json(static_cast<int64_t>(i), instances[i], solutions[i], gap_of(gaps, i));
  }
  return out + "]}\n";
}

std::string format_ndjson(const InstanceBatch& instances, const SolutionBatch& solutions,
                          const std::vector<double>& gaps) {
  std::string out;
  for (size_t i = 0; i < solutions.size(); ++i) {
    out += solution_json(static_cast<int64_t>(i), instances[i], solutions[i], gap_of(gaps, i)) + "\n";
  }
  return out;
}

// The same round trip from city 0 towards its lower-numbered neighbour.
std::vector<int32_t> normal_form(std::vector<int32_t> tour) {
  std::rotate(tour.begin(), std::find(tour.begin(), tour.end(), 0), tour.end());
  if (tour.size() > 2 && tour.back() < tour[1]) std::reverse(tour.begin() + 1, tour.end());
  return tour;
}

std::string format_tour(const InstanceBatch& instances, const SolutionBatch& solutions,
                        const SolveSummary& summary) {
  if (solutions.size() != 1 || instances[0].problem != ProblemKind::kTsp) {
    throw OutputRefused("a .tour file holds one TSP tour; use json, ndjson, npy or npz");
  }
  const std::string cost = number_text(solutions[0].objective);
  std::string name;
  for (const char c : instances[0].id.empty() ? "tour" : instances[0].id)
    name += c == '\n' || c == '\r' ? ' ' : c;
  std::string out = "NAME : " + name + "." + cost + ".tour\nCOMMENT : Length = " + cost +
                    "\nCOMMENT : Found by pointsman " + summary.version +
                    "\nTYPE : TOUR\nDIMENSION : " + std::to_string(solutions[0].order.size()) +
                    "\nTOUR_SECTION\n";
  for (const int32_t city : normal_form(solutions[0].order)) out += std::to_string(city + 1) + "\n";
  return out + "-1\nEOF\n";
}

void check_one_size(const InstanceBatch& instances) {
  for (const Instance& instance : instances) {
    if (instance.n() != instances[0].n() || instance.problem != instances[0].problem) {
      throw OutputRefused("an array holds instances of one problem and one size; use json or ndjson");
    }
  }
  if (instances.empty()) throw OutputRefused("an array cannot be empty; use json or ndjson");
}

bool is_knapsack(const InstanceBatch& instances) { return instances[0].problem == ProblemKind::kKnapsack; }

std::string format_npy(const InstanceBatch& instances, const SolutionBatch& solutions) {
  check_one_size(instances);
  const auto n = static_cast<size_t>(instances[0].n());
  const bool knapsack = is_knapsack(instances);
  std::string out = npy_header(knapsack ? "|u1" : "<i4", {solutions.size(), n});
  for (const Solution& solution : solutions) {
    if (knapsack) {
      std::string taken(n, '\0');
      for (const int32_t item : solution.order) taken.at(static_cast<size_t>(item)) = '\1';
      out += taken;
    } else {
      for (const int32_t city : solution.order) append_bytes(out, city);
    }
  }
  return out;
}

std::string format_npz(const InstanceBatch& instances, const SolutionBatch& solutions) {
  const std::string orders = format_npy(instances, solutions);
  std::string costs = npy_header("<f8", {solutions.size()});
  for (const Solution& solution : solutions) append_bytes(costs, solution.objective);
  return zip_stored(
      {{is_knapsack(instances) ? "selections.npy" : "tours.npy", orders}, {"costs.npy", costs}});
}

std::string text_row(const char* index, const std::string& id, const char* n, const std::string& cost,
                     const std::string& second, const std::string& gap, const char* status) {
  std::array<char, 256> line;
  std::snprintf(line.data(), line.size(), "%6s  %-20.40s %6s %16s %16s %9s  %s", index, id.c_str(), n,
                cost.c_str(), second.c_str(), gap.c_str(), status);
  return std::string(line.data()) + "\n";
}

std::string percent(double gap) {
  if (!std::isfinite(gap)) return "-";
  std::array<char, 32> text;
  std::snprintf(text.data(), text.size(), "%.3g%%", 100.0 * gap);
  return text.data();
}

std::string short_number(double value) {
  std::array<char, 40> text;
  std::snprintf(text.data(), text.size(), "%.10g", value);
  return text.data();
}

// For a person: control bytes of an id must not reach the terminal.
std::string visible(const std::string& id) {
  std::string out;
  for (const char c : id) out += static_cast<unsigned char>(c) < 0x20 || c == 0x7F ? '?' : c;
  return out.empty() ? "-" : out;
}

std::string format_text(const InstanceBatch& instances, const SolutionBatch& solutions,
                        const std::vector<double>& gaps, const SolveSummary& summary) {
  std::string out = text_row("index", "id", "n", "cost or value", "float or weight", "gap", "status");
  for (size_t i = 0; i < solutions.size(); ++i) {
    const bool knapsack = instances[i].problem == ProblemKind::kKnapsack;
    out += text_row(std::to_string(i).c_str(), visible(instances[i].id),
                    std::to_string(instances[i].n()).c_str(), short_number(solutions[i].objective),
                    short_number(knapsack ? solutions[i].weight : solutions[i].unrounded),
                    percent(gap_of(gaps, i)), status_name(solutions[i].status));
  }
  out += std::to_string(summary.instances) + " solved, mean " + short_number(summary.mean_cost) +
         (std::isfinite(summary.mean_network_cost)
              ? " (the network alone " + short_number(summary.mean_network_cost) + ")"
              : "") +
         ", gap " + percent(summary.gap) + ", mode " + summary.mode + ", " + std::to_string(summary.samples) +
         " samples, augment " + std::to_string(summary.augment) + ", shuffle " +
         (summary.shuffle ? "on" : "off") + ", improve " + (summary.improve ? "on" : "off") + ", model " +
         summary.model + ", seed " + std::to_string(summary.seed) + "\n";
  return out;
}

}  // namespace

std::optional<OutputFormat> parse_output_format(std::string_view name) {
  if (name == "json") return OutputFormat::kJson;
  if (name == "ndjson") return OutputFormat::kNdjson;
  if (name == "tour") return OutputFormat::kTour;
  if (name == "npy") return OutputFormat::kNpy;
  if (name == "npz") return OutputFormat::kNpz;
  if (name == "text") return OutputFormat::kText;
  return std::nullopt;
}

std::optional<OutputFormat> output_format_of(const std::string& path) {
  const std::string suffix = file_suffix(path);
  if (suffix == ".jsonl") return OutputFormat::kNdjson;
  if (suffix == ".txt") return OutputFormat::kText;
  return suffix.empty() ? std::nullopt : parse_output_format(suffix.substr(1));
}

std::string solution_json(int64_t index, const Instance& instance, const Solution& solution, double gap) {
  const bool tsp = instance.problem == ProblemKind::kTsp;
  std::string out = "{\"index\":" + std::to_string(index) + ",\"id\":" + json_text(instance.id) +
                    ",\"problem\":" + (tsp ? "\"tsp\"" : "\"knapsack\"") +
                    ",\"n\":" + std::to_string(instance.n()) + ",\"status\":\"" +
                    status_name(solution.status) + "\"";
  if (tsp) {
    out += ",\"cost\":" + number_text(solution.objective) +
           ",\"cost_euclidean\":" + number_text(solution.unrounded);
  } else {
    out += ",\"value\":" + number_text(solution.objective) + ",\"weight\":" + number_text(solution.weight);
  }
  out += ",\"gap\":" + number_text(gap) + ",\"log_prob\":" + number_text(solution.log_prob);
  if (std::isfinite(solution.network_objective))
    out += ",\"network_cost\":" + number_text(solution.network_objective);
  out += tsp ? ",\"tour\":[" : ",\"items\":[";
  for (size_t i = 0; i < solution.order.size(); ++i) {
    if (i > 0) out += ',';
    out += std::to_string(solution.order[i]);
  }
  return out + "]}";
}

std::string error_json(int code, const std::string& message, const std::string& file, int64_t line,
                       int64_t index) {
  std::string out = "{";
  if (index >= 0) out += "\"index\":" + std::to_string(index) + ",";
  out += "\"code\":" + std::to_string(code) + ",\"error\":" + json_text(message);
  if (!file.empty()) out += ",\"file\":" + json_text(file);
  if (line > 0) out += ",\"line\":" + std::to_string(line);
  return out + "}";
}

std::string error_json(const InputError& error, int64_t index) {
  return error_json(kInputErrorCode, error.what(), error.file(), error.line(), index);
}

std::string format_solutions(OutputFormat format, const InstanceBatch& instances,
                             const SolutionBatch& solutions, const std::vector<double>& gaps,
                             const SolveSummary& summary) {
  switch (format) {
    case OutputFormat::kJson:
      return format_json(instances, solutions, gaps, summary);
    case OutputFormat::kNdjson:
      return format_ndjson(instances, solutions, gaps);
    case OutputFormat::kTour:
      return format_tour(instances, solutions, summary);
    case OutputFormat::kNpy:
      return format_npy(instances, solutions);
    case OutputFormat::kNpz:
      return format_npz(instances, solutions);
    case OutputFormat::kText:
      return format_text(instances, solutions, gaps, summary);
  }
  return "";
}

}  // namespace pointsman
