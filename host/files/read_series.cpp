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

void add_ratio(const JsonValue& solution, std::optional<ProblemKind>& problem, RatioRow& row) {
  if (!solution.is_object()) solution.fail_expected("a solution (an object)");
  const JsonValue name = solution.get("problem");
  if (name.text() != "tsp" && name.text() != "knapsack") name.fail_expected("\"tsp\" or \"knapsack\"");
  const ProblemKind kind = name.text() == "tsp" ? ProblemKind::kTsp : ProblemKind::kKnapsack;
  if (problem && kind != *problem) name.fail_expected("the same problem throughout");
  problem = row.problem = kind;
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

void add_point(std::string_view line, const std::string& path, int64_t number, const LogColumns& columns,
               LogCurve& curve) {
  const JsonDocument document(line, path, number);
  const JsonValue root = document.root();
  if (!root.is_object()) root.fail_expected("a line of a training log (an object)");
  const JsonValue x = root.get(columns.x), y = root.get(columns.y);
  if (columns.positive && bounded_number(x) < kSmallestPositive)
    x.fail_expected("a number above 0 (--log-x)");
  const double x_number = bounded_number(x);
  if (y.kind() != JsonValue::Kind::kNull) curve.points.push_back({x_number, bounded_number(y)});
}

}  // namespace

LogCurve read_log_curve(const std::string& path, const LogColumns& columns) {
  const std::string bytes = read_file(path);
  LogCurve curve;
  LineScanner lines(bytes);
  std::string_view line;
  while (lines.next(line)) {
    if (trim(line).empty()) continue;
    try {
      add_point(line, path, lines.number(), columns, curve);
    } catch (const InputError&) {
      if (lines.last_line_whole()) throw;
      curve.is_cut = true;
    }
  }
  if (curve.points.empty()) {
    throw InputError(path, 0, "expected at least one line with a number in " + columns.y + ", found none");
  }
  return curve;
}

}  // namespace pointsman
