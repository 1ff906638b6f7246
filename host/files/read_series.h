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

struct LogCurve {
  std::vector<ChartPoint> points;  // at least one; lines whose y is null have none
  bool is_cut = false;  // the last line is not whole and was passed over: its writer may still be at work
};

// Columns x and y of a training log (docs/file-formats.md). x must be above 0 for a logarithmic axis.
LogCurve read_log_curve(const std::string& path, const std::string& x, const std::string& y,
                        bool is_logarithmic);

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
  double x = 0, y = 0;  // x is above 0
};

struct EvalRows {
  ProblemKind problem{};
  std::vector<EvalRow> rows;  // at least one; lines whose y is null have none
  bool is_cut = false;        // as in LogCurve
};

// Columns x and y of the rows of `eval --format ndjson`, all of one problem, and of `expected` where that is
// given.
EvalRows read_eval_rows(const std::string& path, const std::string& x, const std::string& y,
                        std::optional<ProblemKind> expected);

}  // namespace pointsman
