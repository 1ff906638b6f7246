// SPDX-License-Identifier: Apache-2.0
#include "host/files/read_series.h"

#include <cmath>

#include "host/files/formats.h"
#include "host/files/text_scan.h"

namespace pointsman {

namespace {

constexpr double kSmallestPositive = 1e-90;

double bounded_number(const JsonValue& value) {
  const double number = value.number();
  if (std::fabs(number) > kLargestNumber) value.fail_expected("a number within +-1e100");
  return number;
}

// The object's problem, which must be `problem` where that is set, and sets it.
ProblemKind read_problem(const JsonValue& object, std::optional<ProblemKind>& problem) {
  const JsonValue name = object.get("problem");
  if (name.text() != "tsp" && name.text() != "knapsack") name.fail_expected("\"tsp\" or \"knapsack\"");
  const ProblemKind kind = name.text() == "tsp" ? ProblemKind::kTsp : ProblemKind::kKnapsack;
  if (problem && kind != *problem) name.fail_expected("the same problem throughout");
  problem = kind;
  return kind;
}

void add_ratio(const JsonValue& solution, std::optional<ProblemKind>& problem, RatioRow& row) {
  if (!solution.is_object()) solution.fail_expected("a solution (an object)");
  const ProblemKind kind = row.problem = read_problem(solution, problem);
  const JsonValue gap = solution.get("gap");
  if (!gap.is_number()) gap.fail_expected("a number (of solve --ref)");
  row.ratios.push_back(kind == ProblemKind::kTsp ? 1 + bounded_number(gap) : 1 - bounded_number(gap));
}

}  // namespace

RatioRow read_ratios(const std::string& path, std::optional<ProblemKind> expected) {
  const std::string bytes = read_file(path);
  RatioRow row;
  if (is_ndjson(bytes, path)) {
    LineScanner lines(bytes);
    std::string_view line;
    while (lines.next(line)) {
      if (trim(line).empty()) continue;
      const JsonDocument document(line, path, lines.number());
      if (document.root().is_object() && document.root().has("error")) {
        ++row.failed;
      } else {
        add_ratio(document.root(), expected, row);
      }
    }
  } else {
    const JsonDocument document(bytes, path);
    const JsonValue root = document.root();
    if (!root.is_object()) root.fail_expected("{\"solutions\":[..]}");
    for (const JsonValue& solution : root.get("solutions").elements()) add_ratio(solution, expected, row);
  }
  if (row.ratios.empty()) throw InputError(path, 0, "expected at least one solution, found none");
  return row;
}

namespace {

// Calls add(root of the line) for each line with something on it. True when the last is not whole and was
// passed over: its writer may still be at work.
template <typename Add>
bool for_each_json_line(const std::string& path, Add add) {
  const std::string bytes = read_file(path);
  LineScanner lines(bytes);
  std::string_view line;
  bool is_cut = false;
  while (lines.next(line)) {
    if (trim(line).empty()) continue;
    try {
      const JsonDocument document(line, path, lines.number());
      add(document.root());
    } catch (const InputError&) {
      if (lines.last_line_whole()) throw;
      is_cut = true;
    }
  }
  return is_cut;
}

double positive_number(const JsonValue& value) {
  const double number = bounded_number(value);
  if (number < kSmallestPositive) value.fail_expected("a number above 0 (the axis is logarithmic)");
  return number;
}

bool is_null(const JsonValue& value) { return value.kind() == JsonValue::Kind::kNull; }

[[noreturn]] void fail_without(const std::string& column, const std::string& path) {
  throw InputError(path, 0, "expected at least one line with a number in " + column + ", found none");
}

}  // namespace

LogCurve read_log_curve(const std::string& path, const LogColumns& columns) {
  LogCurve curve;
  curve.is_cut = for_each_json_line(path, [&](const JsonValue& line) {
    if (!line.is_object()) line.fail_expected("a line of a training log (an object)");
    const JsonValue x = line.get(columns.x), y = line.get(columns.y);
    const double x_number = columns.positive ? positive_number(x) : bounded_number(x);
    if (!is_null(y)) curve.points.push_back({x_number, bounded_number(y)});
  });
  if (curve.points.empty()) fail_without(columns.y, path);
  return curve;
}

namespace {

// Null, as a strategy without a network has it, becomes an empty text.
std::string text_or_null(const JsonValue& value) { return is_null(value) ? "" : value.text(); }

EvalStrategy read_strategy(const JsonValue& row) {
  EvalStrategy strategy;
  strategy.mode = row.get("mode").text();
  strategy.model = text_or_null(row.get("model"));
  strategy.augment = row.get("augment").index();
  strategy.shuffle = row.get("shuffle").boolean();
  strategy.improve = row.get("improve").boolean();
  strategy.temperature = bounded_number(row.get("temperature"));
  strategy.set = row.get("set").text();
  strategy.device = text_or_null(row.get("device"));
  strategy.model_sha256 = text_or_null(row.get("model_sha256"));
  return strategy;
}

}  // namespace

EvalRows read_eval_rows(const std::string& path, const std::string& x, const std::string& y,
                        std::optional<ProblemKind> expected) {
  EvalRows rows;
  rows.is_cut = for_each_json_line(path, [&](const JsonValue& line) {
    if (!line.is_object()) line.fail_expected("a row of eval --format ndjson (an object)");
    rows.problem = read_problem(line, expected);
    const JsonValue y_value = line.get(y);
    if (is_null(y_value)) return;
    rows.rows.push_back({read_strategy(line), positive_number(line.get(x)), bounded_number(y_value)});
  });
  if (rows.rows.empty()) fail_without(y, path);
  return rows;
}

}  // namespace pointsman
