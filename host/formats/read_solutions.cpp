// SPDX-License-Identifier: Apache-2.0
#include "host/formats/read_solutions.h"

#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/npy_array.h"
#include "models/tools/json_text.h"

namespace pointsman {
namespace {

std::vector<double> read_number_lines(std::string_view bytes, const std::string& file) {
  std::vector<double> out;
  TextReader lines(bytes, file);
  std::string_view line;
  while (lines.next_row(line)) {
    if (!parse_number(trim(line), out.emplace_back()))
      lines.fail("expected a number, found " + shown(trim(line)));
  }
  return out;
}

// The costs that the file lists; nothing if it holds solutions.
std::optional<std::vector<double>> listed_costs(const std::string& bytes, const std::string& file) {
  std::vector<double> costs;
  if (bytes.starts_with(kNpyMagic)) {
    const NpyArray array(bytes, file);
    if (array.shape().size() != 1 || !array.header().is_float()) return std::nullopt;
    for (size_t i = 0; i < array.header().count; ++i) costs.push_back(array.number(i));
  } else if (bytes.starts_with('{') && !is_ndjson(bytes, file)) {
    const JsonDocument document(bytes, file);
    const std::optional<JsonValue> list = document.root().find("costs");
    if (!list) return std::nullopt;
    for (const JsonValue& cost : list->elements()) costs.push_back(cost.number());
  } else if (!bytes.empty() && bytes.front() >= '0' && bytes.front() <= '9') {
    costs = read_number_lines(bytes, file);
  } else {
    return std::nullopt;
  }
  return costs;
}

}  // namespace

SolutionBatch parse_solutions(std::string_view bytes, const std::string& file,
                              const InstanceBatch& instances) {
  if (instances.empty()) return {};
  const AnswerFormat* format = format_by_magic(answer_formats(), bytes);
  if (!format) {
    const std::string_view text = trim(bytes.substr(0, bytes.find('\n')));
    const bool is_tour = !text.empty() && text.front() >= 'A' && text.front() <= 'Z';
    format = &format_of_kind(answer_formats(), is_tour ? OutputFormat::kTour : OutputFormat::kJson);
  }
  return format->parse(bytes, file, instances);
}

SolutionBatch read_solutions(const std::string& path, const InstanceBatch& instances) {
  return parse_solutions(read_file(path), path, instances);
}

void check_solutions(SolutionBatch& solutions, const InstanceBatch& instances, const std::string& path) {
  for (size_t i = 0; i < solutions.size(); ++i) {
    const std::string wrong = validate_solution(instances[i], solutions[i]);
    if (!wrong.empty()) throw InputError(path, 0, "solution " + std::to_string(i) + ": " + wrong);
  }
}

std::optional<double> reference_number(const std::string& what) {
  double value = 0.0;
  if (!parse_number(what, value)) return std::nullopt;
  if (value < 0.0) throw std::invalid_argument("--ref " + what + ": expected a cost of 0 or more");
  return value;
}

std::vector<double> read_reference(const std::string& what, const InstanceBatch& instances) {
  if (const auto number = reference_number(what)) return std::vector<double>(instances.size(), *number);
  const std::string bytes = read_file(what);
  std::vector<double> costs;
  if (std::optional<std::vector<double>> listed = listed_costs(bytes, what)) {
    costs = std::move(*listed);
    check_count(costs.size(), instances, what);
  } else {
    SolutionBatch solutions = parse_solutions(bytes, what, instances);
    check_solutions(solutions, instances, what);
    for (const Solution& solution : solutions) costs.push_back(solution.objective);
  }
  for (size_t i = 0; i < costs.size(); ++i) {
    if (costs[i] >= 0.0) continue;  // false for NaN
    throw InputError(
        what, 0,
        "cost " + std::to_string(i) + ": expected a number of 0 or more, found " + number_text(costs[i]));
  }
  return costs;
}

}  // namespace pointsman
