// SPDX-License-Identifier: Apache-2.0
// NDJSON answers: a solution or an error a line, in input order, written as they become final.
#pragma once

#include <deque>
#include <string>
#include <utility>

#include "host/command/solve_run.h"
#include "host/command/solve_totals.h"
#include "host/files/read_instances.h"
#include "models/atomic_file.h"

namespace pointsman {

// Why an instance cannot be solved with these flags, as an exit code and a message; code 0: it can.
using InstanceCheck = std::function<std::pair<int, std::string>(const Instance&)>;
// The gap of an answer, NaN without a reference.
using GapOf = std::function<double(const Instance&, double objective)>;

class SolveStream {
 public:
  SolveStream(SolveRun& run, const SolveOptions& options, const SearchControl& control, OutputFile& file,
              InstanceCheck check, GapOf gap_of)
      : run_(run),
        options_(options),
        control_(control),
        file_(file),
        check_(std::move(check)),
        gap_of_(std::move(gap_of)) {}

  // Solves one file or stream. Bad lines, or a bad file, are answered with their code and the run goes on.
  void solve_file(const std::string& path, const ReadOptions& options);

  const SolveTotals& totals() const { return totals_; }
  bool stopped() const;  // a limit or a signal ended the run

 private:
  void solve_lines(std::vector<InstanceLine> lines);
  void write_error(int code, const std::string& message, const std::string& file, int64_t line,
                   int64_t index);
  void write_errors_before(int64_t index);
  void flush();

  SolveRun& run_;
  const SolveOptions& options_;
  const SearchControl& control_;
  OutputFile& file_;
  InstanceCheck check_;
  GapOf gap_of_;
  SolveTotals totals_;
  int64_t next_index_ = 0;  // of all lines of all files
  uint64_t next_row_ = 0;   // of this file
  std::string pending_;     // answers not yet written
  Clock::time_point flushed_ = Clock::now();
  std::deque<std::pair<int64_t, std::string>> errors_;  // of the lines in work, by index
};

}  // namespace pointsman
