// SPDX-License-Identifier: Apache-2.0
// Solutions as text. OutputFile writes it to files.
#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "engine/problem/instance.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

enum class OutputFormat { kJson, kNdjson, kTour, kRoutes, kNpy, kNpz, kText };

inline constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();  // written as null

// The part of a run that is of one problem, size, mode and model.
struct SummaryGroup {
  std::string problem;  // empty, with n = 0: all problems and sizes that have no group of their own
  int n = 0;
  std::string mode, model;  // model: empty: none, or several
  int64_t instances = 0;
  double mean_cost = kNoNumber, gap = kNoNumber;
};

// "summary" of the JSON answer (docs/file-formats.md).
struct SolveSummary {
  int code = 0;  // the exit code: 0, or 128 + the signal that ended the run
  int64_t instances = 0, unsolved = 0, infeasible = 0;  // the latter two: without a solution, in no mean
  double mean_cost = kNoNumber;
  double mean_network_cost = kNoNumber;  // before any improvement, if known
  double gap = kNoNumber;                // the mean over the instances, as a fraction
  double loading_ms = 0.0, solving_ms = 0.0;
  std::string mode;
  std::string start;  // what the answers began with; "mixed": not all with the same; empty: not told
  int64_t kicks = 0;  // of all instances
  std::optional<int64_t> samples = 0;  // none: parts of the run differ in it
  std::optional<int> augment = 1;      // likewise
  bool shuffle = false, improve = false;
  std::string model, model_sha256, device;
  uint64_t seed = 0;
  std::string version;
  std::vector<SummaryGroup> groups;  // in order of their first instances
};

// For people, without what is not known: "3 solved, mean 3.84, gap 0.1%, mode sample, 1280 samples", and
// "tsp n=20: 3 instances, mean 3.84, gap 0.1%, model tsp20".
std::string summary_text(const SolveSummary& summary);
std::string group_text(const SummaryGroup& group);

// An object on one line, without the newline.
std::string summary_json(const SolveSummary& summary);

// The objective as an integer, where the instance's metric makes it one and 64 bits hold it.
std::optional<int64_t> integer_objective(const Instance& instance, double objective);
// All digits of an integer objective, else the shortest decimal that parses to the same number.
std::string objective_text(const Instance& instance, double objective);
// All digits of an integer objective, else ten digits.
std::string short_objective_text(const Instance& instance, double objective);

// An element of "solutions": a JSON object on one line, without the newline. gap: a fraction, or kNoNumber.
std::string solution_json(int64_t index, const Instance& instance, const Solution& solution, double gap);

// The same as a line of NDJSON, with the newline and, after "n", the instance_hash() in hexadecimal as
// "instance".
std::string solution_line(int64_t index, const Instance& instance, const Solution& solution, double gap);

// The start of that line, which identifies the instance:
// {"index":0,"id":"a","problem":"tsp","n":20,"instance":"0123456789abcdef" and a comma.
std::string solution_line_start(int64_t index, const Instance& instance);

// {"code":3,"error":..,"file":..,"line":..} without the newline. index >= 0 is the row of an NDJSON stream.
std::string error_json(int code, const std::string& message, const std::string& file = "", int64_t line = 0,
                       int64_t index = -1);

}  // namespace pointsman
