// SPDX-License-Identifier: Apache-2.0
#include "host/files/read_series.h"

#include <algorithm>

#include "host/files/formats.h"
#include "host/files/svg_axes.h"

namespace pointsman {
namespace {

// The object's problem, which must be `problem` where that is set, and sets it.
ProblemKind read_same_problem(const JsonValue& object, std::optional<ProblemKind>& problem) {
  const ProblemKind kind = read_problem(object);
  if (problem && kind != *problem) object.get("problem").fail_expected("the same problem throughout");
  problem = kind;
  return kind;
}

void add_ratio(const JsonValue& solution, std::optional<ProblemKind>& problem, RatioRow& row) {
  if (!solution.is_object()) solution.fail_expected("a solution (an object)");
  row.problem = read_same_problem(solution, problem);
  const JsonValue gap = solution.get("gap");
  if (!gap.is_number()) gap.fail_expected("a number (of solve --ref)");
  row.ratios.push_back(1 + sign_of(problem_of(row.problem)) * gap.bounded_number());
}

double positive_number(const JsonValue& value) {
  const double number = value.bounded_number();
  if (number < kSmallestLogarithmic) value.fail_expected("a number above 0 (the axis is logarithmic)");
  return number;
}

double read_x(const JsonValue& value, const SeriesColumn& column) {
  return column.is_logarithmic ? positive_number(value) : value.bounded_number();
}

// Nothing, and one more unplaced, where the axis has no place for it.
std::optional<double> placed_number(const JsonValue& value, const SeriesColumn& column, int64_t& unplaced) {
  const double number = value.bounded_number();
  if (!column.is_logarithmic || number > std::max(column.least, kSmallestLogarithmic)) return number;
  ++unplaced;
  return std::nullopt;
}

bool is_null(const JsonValue& value) { return value.kind() == JsonValue::Kind::kNull; }

// Null, as a strategy without a network has it, becomes an empty text.
std::string text_or_null(const JsonValue& value) { return is_null(value) ? "" : value.text(); }

EvalStrategy read_strategy(const JsonValue& row) {
  EvalStrategy strategy;
  strategy.mode = row.get("mode").text();
  strategy.model = text_or_null(row.get("model"));
  strategy.augment = row.get("augment").index();
  strategy.shuffle = row.get("shuffle").boolean();
  strategy.improve = row.get("improve").boolean();
  strategy.temperature = row.get("temperature").bounded_number();
  strategy.set = row.get("set").text();
  strategy.device = text_or_null(row.get("device"));
  strategy.model_sha256 = text_or_null(row.get("model_sha256"));
  return strategy;
}

// Half the width of the interval of a column's mean; 0 where the row tells none.
double read_ci95(const JsonValue& row, const std::string& column) {
  const std::string key = column + "_ci95";
  if (!row.has(key) || is_null(row.get(key))) return 0;
  const JsonValue value = row.get(key);
  if (value.bounded_number() < 0) value.fail_expected("a number of 0 or more");
  return value.bounded_number();
}

[[noreturn]] void fail_without(const SeriesColumn& y, const std::string& path) {
  throw InputError(path, 0,
                   std::string("expected at least one line with a number") +
                       (y.is_logarithmic ? " above 0" : "") + " in " + y.name + ", found none");
}

}  // namespace

RatioRow read_ratios(const std::string& path, std::optional<ProblemKind> expected) {
  const std::string bytes = read_file(path);
  RatioRow row;
  if (is_ndjson(bytes, path)) {
    for_each_json_line(bytes, path, [&](const JsonValue& line) {
      if (line.is_object() && line.has("error")) {
        ++row.failed;
      } else {
        add_ratio(line, expected, row);
      }
    });
  } else {
    const JsonDocument document(bytes, path);
    const JsonValue root = document.root();
    if (!root.is_object()) root.fail_expected("{\"solutions\":[..]}");
    for (const JsonValue& solution : root.get("solutions").elements()) add_ratio(solution, expected, row);
  }
  if (row.ratios.empty()) throw InputError(path, 0, "expected at least one solution, found none");
  return row;
}

LogCurve read_log_curve(const std::string& path, const SeriesColumn& x, const SeriesColumn& y) {
  LogCurve curve;
  const auto add = [&](const JsonValue& line) {
    if (!line.is_object()) line.fail_expected("a line of a training log (an object)");
    const JsonValue y_value = line.get(y.name);
    const double at = read_x(line.get(x.name), x);
    if (is_null(y_value)) return;
    if (const auto number = placed_number(y_value, y, curve.unplaced)) curve.points.push_back({at, *number});
  };
  curve.is_cut = for_each_json_line(read_file(path), path, add, true);
  if (curve.points.empty()) fail_without(y, path);
  return curve;
}

EvalRows read_eval_rows(const std::string& path, const SeriesColumn& x, const SeriesColumn& y,
                        std::optional<ProblemKind> expected) {
  EvalRows rows;
  const auto add = [&](const JsonValue& line) {
    if (!line.is_object()) line.fail_expected("a row of eval --format ndjson (an object)");
    rows.problem = read_same_problem(line, expected);
    const JsonValue y_value = line.get(y.name);
    if (is_null(y_value)) return;
    const EvalStrategy strategy = read_strategy(line);
    const double at = read_x(line.get(x.name), x), error = read_ci95(line, y.name);
    if (const auto number = placed_number(y_value, y, rows.unplaced))
      rows.rows.push_back({strategy, {at, *number, error}});
  };
  rows.is_cut = for_each_json_line(read_file(path), path, add, true);
  if (rows.rows.empty()) fail_without(y, path);
  return rows;
}

}  // namespace pointsman
