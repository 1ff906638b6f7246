// SPDX-License-Identifier: Apache-2.0
// NDJSON answers: a solution or an error a line, in input order, written as they become final.
#pragma once

#include <cmath>
#include <cstdint>
#include <deque>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include "host/command/answered_lines.h"
#include "host/command/solve_flags.h"
#include "host/formats/read_files.h"
#include "host/run/log.h"
#include "host/run/solve_run.h"
#include "host/run/solve_totals.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

class SolveStream {
 public:
  // reference: the cost to compare every answer with; NaN: none.
  SolveStream(SolveRun& run, const SolveFlags& flags, const SearchControl& control, OutputFile& file,
              double reference)
      : run_(run), flags_(flags), control_(control), file_(file), reference_(reference) {}

  // Answers only instances first .. last - 1 of all files; the others are passed over.
  void take_part(int64_t first, int64_t last) { first_ = first, last_ = last; }

  // After take_part(). Goes on behind what an earlier run left in `output`, which the file writes.
  // ResumeRefused for other lines than answers.
  void resume(const std::string& output) { answered_.emplace(output, first_, control_.each.has_value()); }

  // Solves one file or stream. Bad lines, or a bad file, are answered with their code and the run goes on.
  // ResumeRefused where the output has an answer to another instance.
  void solve_file(const std::string& path, const ReadOptions& options);

  // After the last file. ResumeRefused where the output has answers to more instances than the input has.
  void finish();

  const SolveTotals& totals() const { return totals_; }
  bool stopped() const;  // a limit or a signal ended the run
  bool is_past_part() const { return next_index_ >= last_; }

 private:
  // Why an instance cannot be solved with these flags, as an exit code and a message; code 0: it can.
  std::pair<int, std::string> check(const Instance& instance);
  // more: may other lines follow?
  void solve_lines(std::vector<InstanceLine> lines, bool more);
  void write_error(int code, const std::string& message, const std::string& file, int64_t line,
                   int64_t index);
  void write_errors_before(int64_t index);
  bool is_in_part(int64_t index) const { return index >= first_ && index < last_; }
  // Whether the output of an earlier run has the answer, which begins with `expected`.
  bool is_answered(const std::string& expected, int64_t index, int64_t line);
  void end_of_answered();
  // Not where the answers themselves appear.
  void show_progress() {
    if (file_.is_terminal() || !line_.due()) return;
    const double mean = totals_.mean_objective();
    line_.update(std::to_string(totals_.solved()) + " solved" +
                 (std::isnan(mean) ? "" : ", mean cost " + std::to_string(mean)));
  }

  SolveRun& run_;
  const SolveFlags& flags_;
  const SearchControl& control_;
  OutputFile& file_;
  double reference_;
  SolveTotals totals_;
  int64_t next_index_ = 0;  // of all lines of all files
  int64_t first_ = 0, last_ = std::numeric_limits<int64_t>::max();
  std::string path_;                       // of the file in work
  std::optional<AnsweredLines> answered_;  // what is still to be passed over
  ProgressLine line_;
  std::deque<std::pair<int64_t, std::string>> errors_;  // of the lines in work, by index
};

}  // namespace pointsman
