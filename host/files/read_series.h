// SPDX-License-Identifier: Apache-2.0
// Rows of numbers out of the program's own files, for `plot`. All throw InputError.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/problem/instance.h"
#include "host/files/input_error.h"
#include "host/files/svg_axes.h"

namespace pointsman {

struct RatioRow {
  ProblemKind problem{};
  std::vector<double> ratios;  // objective / reference; 1 is as good as the reference
  int64_t failed = 0;          // lines of NDJSON that tell an error instead of a solution
};

// Of each solution in an answer of `solve --ref`, JSON or NDJSON; at least one, all of one problem, and of
// `expected` where that is given.
RatioRow read_ratios(const std::string& path, std::optional<ProblemKind> expected);

// A logarithmic axis has no place for what is not above 0: of x it is an error, and of y such lines are
// passed over, with all that are not above `least`.
struct SeriesColumn {
  std::string name;
  bool is_logarithmic = false;
  double least = 0;
};

struct LogCurve {
  std::vector<ChartPoint> points;  // at least one; lines whose y is null have none
  bool is_cut = false;   // the last line is not whole and was passed over: its writer may still be at work
  int64_t unplaced = 0;  // lines that a logarithmic y has no place for
};

// Columns x and y of a training log (docs/file-formats.md).
LogCurve read_log_curve(const std::string& path, const SeriesColumn& x, const SeriesColumn& y);

// All that an eval row says of where its answers came from, but how many samples they took.
struct EvalStrategy {
  std::string mode, model;  // model: empty where no network answers
  int augment = 1;
  bool shuffle = false, improve = false;
  double temperature = 1;
  std::string set, device, model_sha256;

  bool operator==(const EvalStrategy&) const = default;
};

struct EvalRow {
  EvalStrategy strategy;
  ChartPoint point;  // its error bar is the 95% confidence interval, where the row has one
};

struct EvalRows {
  ProblemKind problem{};
  std::vector<EvalRow> rows;  // at least one; lines whose y is null have none
  bool is_cut = false;        // both as in LogCurve
  int64_t unplaced = 0;
};

// Columns x and y of the rows of `eval --format ndjson`, all of one problem, and of `expected` where that is
// given.
EvalRows read_eval_rows(const std::string& path, const SeriesColumn& x, const SeriesColumn& y,
                        std::optional<ProblemKind> expected);

}  // namespace pointsman
