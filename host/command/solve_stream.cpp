// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <condition_variable>
#include <deque>
#include <exception>
#include <fstream>
#include <limits>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string_view>
#include <thread>
#include <utility>

#include "engine/problem/problem.h"
#include "host/command/solve.h"
#include "host/formats/read_files.h"
#include "host/formats/text_scan.h"
#include "host/run/log.h"

namespace pointsman {

namespace {

// Of a stream that runs ahead of the search as many lines are taken at once as a second is enough for: the
// more, the more of them have the same size. The first ones tell the speed.
constexpr size_t kFirstLines = 64, kFewestLines = 16, kMostLines = 16384;
constexpr double kSecondsAtOnce = 1.0;
constexpr size_t kItemsAhead = size_t{1} << 22;  // read and not yet taken: 64 MB

size_t lines_for(size_t lines, double seconds) {
  const double most = kSecondsAtOnce / std::max(seconds, 1e-3) * static_cast<double>(lines);
  return static_cast<size_t>(std::clamp(most, double{kFewestLines}, double{kMostLines}));
}

// Lines read by a thread of its own, so that a search never waits for lines that have not come yet and a
// producer that pauses still gets its answers at once.
class LineQueue {
 public:
  // capacity: lines read ahead, as far as their items allow. The wait for a line that is late ends with the
  // queue.
  LineQueue(const std::string& path, ReadOptions options, size_t capacity, const SearchControl& control)
      : control_(control), capacity_(capacity) {
    options.stop = [this] { return stop_.stop_requested(); };
    input_ = std::make_unique<InstanceInput>(path, options);
    if (input_->is_stream()) reader_ = std::jthread([this] { read(); });
  }
  ~LineQueue() { stop_.request_stop(); }

  // What is not a stream is for its caller to read.
  InstanceInput& input() { return *input_; }

  // Waits for a line, then takes all that have come, at most `limit`. Empty at the end of the stream and when
  // `control` says stop. Rethrows what the reader threw.
  std::vector<InstanceLine> take(size_t limit) {
    std::unique_lock lock(mutex_);
    while (lines_.empty() && !ended_ && control_.check() == Status::kDone) {
      changed_.wait_for(lock, std::chrono::milliseconds(20));
    }
    std::vector<InstanceLine> taken;
    if (control_.interrupted && control_.interrupted()) return taken;
    while (!lines_.empty() && taken.size() < limit) {
      taken.push_back(std::move(lines_.front()));
      lines_.pop_front();
      items_ -= items_of(taken.back());
    }
    changed_.notify_all();
    if (taken.empty() && error_) std::rethrow_exception(error_);
    return taken;
  }

 private:
  static size_t items_of(const InstanceLine& line) {
    return line.instance ? static_cast<size_t>(line.instance->n()) : 0;
  }

  void read() {
    std::exception_ptr thrown;
    try {
      while (auto line = input_->next_line()) {
        std::unique_lock lock(mutex_);
        const auto has_room = [&] { return lines_.size() < capacity_ && items_ < kItemsAhead; };
        changed_.wait(lock, stop_.get_token(), has_room);
        if (stop_.stop_requested()) break;
        items_ += items_of(*line);
        lines_.push_back(std::move(*line));
        changed_.notify_all();
      }
    } catch (const InputStopped&) {
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    error_ = thrown;
    ended_ = true;
    changed_.notify_all();
  }

  const SearchControl& control_;
  const size_t capacity_;
  std::unique_ptr<InstanceInput> input_;
  std::stop_source stop_;
  std::mutex mutex_;
  std::condition_variable_any changed_;
  std::deque<InstanceLine> lines_;
  size_t items_ = 0;  // of these
  std::exception_ptr error_;
  bool ended_ = false;
  std::jthread reader_;  // the last: it ends before what it uses
};

// The output of --resume has other lines than the answers of this run. It is left as it is.
class ResumeRefused : public InputError {
 public:
  using InputError::InputError;
};

// What an earlier run left in the output of --resume: the answers that stay are, in order, all whole lines
// before the first that a limit or a signal cut short. A last line that is torn does not stay. Holds one line
// at a time. Throws ResumeRefused for a file of other lines.
class AnsweredLines {
 public:
  // first: index of the run's first instance. keeps_limited: answers at a time limit stay, since every
  // instance has a limit of its own. A file that is not there has no answers.
  AnsweredLines(std::string path, int64_t first, bool keeps_limited)
      : path_(std::move(path)), first_(first), keeps_limited_(keeps_limited), file_(path_, std::ios::binary) {
    if (file_.is_open()) read();
  }

  bool has_next() const { return !next_.empty(); }  // also one that does not stay
  int64_t count() const { return count_; }          // of those taken
  uint64_t bytes() const { return bytes_; }         // that these have in the file

  // Takes the next answer, which must begin with `expected`, of the instance that stands at `place`. False
  // where there is none that stays: then none of those behind it does.
  bool take(const std::string& expected, const std::string& place) {
    if (!has_next()) return false;
    if (!next_.starts_with(is_whole_ ? expected : expected.substr(0, next_.size()))) {
      const auto parted = std::mismatch(expected.begin(), expected.end(), next_.begin(), next_.end()).first;
      const auto at = static_cast<size_t>(parted - expected.begin());
      const size_t from = at + kAfter <= kShown ? 0 : at - kBefore;
      const std::string dots = from > 0 ? ".." : "";
      const bool is_old = next_.find(",\"instance\":\"") == std::string::npos;
      refuse("found " + dots + printable(std::string_view(next_).substr(from, kShown)) +
             ".., expected the answer to " + place + ", " + dots +
             printable(std::string_view(expected).substr(from, kShown)) + ".." +
             (is_old ? "; lines of an earlier version do not tell their instance: solve into another file"
                     : ""));
    }
    if (!is_whole_ || is_cut_short()) {
      next_.clear();
      return false;
    }
    bytes_ += next_.size();
    ++count_;
    read();
    return true;
  }

  // At the next answer.
  [[noreturn]] void refuse(const std::string& message) const {
    throw ResumeRefused(path_, count_ + 1, message);
  }

 private:
  // Of both lines so many bytes are shown, from shortly before where they part.
  static constexpr size_t kShown = 100, kBefore = 40, kAfter = 20;

  // By its status. Within a string the quotes would be escaped.
  bool is_cut_short() const {
    const auto has = [&](Status status) {
      return next_.find(std::string(",\"status\":\"") + name_of(status) + "\",") != std::string::npos;
    };
    return has(Status::kUnsolved) || has(Status::kInterrupted) ||
           (has(Status::kTimeLimit) && !keeps_limited_);
  }

  void read() {
    next_.clear();
    is_whole_ = static_cast<bool>(std::getline(file_, next_)) && !file_.eof();
    if (next_.empty() && !is_whole_) return;
    const std::string start = "{\"index\":" + std::to_string(first_ + count_) + ",";
    const bool is_answer = is_whole_ ? next_.starts_with(start) && next_.ends_with('}')
                                     : next_.starts_with(start.substr(0, next_.size()));
    if (!is_answer) {
      refuse("expected an answer of solve --format ndjson, " + shown(start) + ".., found " + shown(next_));
    }
    if (is_whole_) next_ += '\n';
  }

  std::string path_;
  int64_t first_;
  bool keeps_limited_;
  std::ifstream file_;
  std::string next_;       // with its newline, where it has one; empty: there is none
  bool is_whole_ = false;  // has it one?
  int64_t count_ = 0;
  uint64_t bytes_ = 0;
};

// As many as the stream's indices will be: lines that are no instance count too, and so does a bad file.
int64_t count_instances(const SolveFlags& flags) {
  int64_t count = 0;
  for (const std::string& path : flags.files) {
    try {
      InstanceInput input(path, read_options(flags.input));
      if (!input.is_stream()) {
        count += static_cast<int64_t>(input.read_all().instances.size());
        continue;
      }
      while (input.next_line()) ++count;
    } catch (const InputError&) {
      ++count;
    }
  }
  return count;
}

class SolveStream {
 public:
  SolveStream(SolveRun& run, const SolveFlags& flags, const CommonOptions& common,
              const SearchControl& control, OutputFile& file)
      : run_(run), flags_(flags), control_(control), file_(file) {
    if (!flags.request.init.empty() && !flags.request.options.untrained)
      throw UsageError("--init FILE: needs --format json");
    if (!flags.ref.empty()) {
      const auto number = reference_number(flags.ref);
      if (!number) throw UsageError("--ref " + flags.ref + ": a stream takes a number; use --format json");
      reference_ = *number;
    }
    if (!flags.shard.is_all()) {
      const int64_t count = count_instances(flags);
      first_ = flags.shard.begin(count), last_ = flags.shard.end(count);
    }
    if (flags.resume) answered_.emplace(common.output, first_, control.each.has_value());
  }

  SolveTotals solve_files() {
    for (const std::string& path : flags_.files) {
      solve_file(path);
      if (is_stopped() || is_past_part()) break;
    }
    finish();
    return totals_;
  }

 private:
  bool is_stopped() const { return control_.check() != Status::kDone; }
  bool is_past_part() const { return next_index_ >= last_; }
  bool is_in_part(int64_t index) const { return index >= first_ && index < last_; }

  void solve_file(const std::string& path) {
    path_ = path == "-" ? "stdin" : path;
    try {
      solve_input(path);
    } catch (const InputStopped&) {  // the exit code tells it
    } catch (const ResumeRefused&) {
      throw;
    } catch (const InputError& error) {
      const int64_t index = next_index_++;
      if (is_in_part(index)) write_error({kExitInput, error.what(), error.file(), error.line()}, index);
      write_errors_before(next_index_);
    }
  }

  void finish() {
    if (answered_ && answered_->has_next()) {
      if (is_stopped()) return;  // the output stays as it is
      answered_->refuse("found an answer, expected none: the input has only " + std::to_string(next_index_) +
                        " instances");
    }
    if (answered_) end_of_answered();
    file_.commit();
  }

  void solve_input(const std::string& path) {
    const auto& batch_size = flags_.request.options.batch_size;
    size_t at_once = batch_size ? static_cast<size_t>(*batch_size) : kFirstLines;
    LineQueue queue(path, read_options(flags_.input), 2 * (batch_size ? at_once : kMostLines), control_);
    if (!queue.input().is_stream()) {
      InstanceFile whole = queue.input().read_all();
      for (const std::string& warning : whole.warnings) log_warning(warning);
      std::vector<InstanceLine> lines;
      for (Instance& instance : whole.instances) lines.push_back({0, std::move(instance), std::nullopt});
      return solve_lines(std::move(lines), false);
    }
    for (;;) {
      std::vector<InstanceLine> lines = queue.take(at_once);
      if (lines.empty() || is_past_part()) return;
      const size_t count = lines.size();
      const Clock::time_point start = Clock::now();
      solve_lines(std::move(lines), true);
      if (!batch_size) at_once = lines_for(count, milliseconds_since(start) / 1000);
    }
  }

  // Why it cannot be solved with these flags; code 0: it can.
  Failure check(const InstanceLine& line) {
    if (line.error) return {kExitInput, line.error->what(), line.error->file(), line.error->line()};
    const Instance& instance = *line.instance;
    try {
      if (needs_network(flags_.request.options)) run_.models.get(instance.problem, instance.n());
    } catch (const ModelFileError& error) {
      return {kExitInput, error.what(), "", line.line};
    }
    const std::string wrong = wrong_options(flags_.request.options, instance);
    return {wrong.empty() ? kExitDone : kExitUsage, wrong, "", line.line};
  }

  // more: may other lines follow?
  void solve_lines(std::vector<InstanceLine> lines, bool more) {
    InstanceBatch instances;
    std::vector<int64_t> indices;
    for (InstanceLine& line : lines) {
      if (!line.warning.empty()) log_warning(line.warning);
      const int64_t index = next_index_++;
      if (!is_in_part(index)) continue;
      if (const Failure failure = check(line); failure.code != kExitDone) {
        write_error(failure, index);
        continue;
      }
      if (answered_ && is_answered(solution_line_start(index, *line.instance), index, line.line)) continue;
      instances.push_back(std::move(*line.instance));
      indices.push_back(index);
    }
    SolveJob job(instances, 0, flags_.request.options, control_);
    job.rows.assign(indices.begin(), indices.end());
    job.options.fills_limit = !more || control_.each;
    job.sink = [&](size_t i, Solution&& solution) {
      write_errors_before(indices[i]);
      const double gap_found =
          std::isnan(reference_) ? reference_ : gap(instances[i].problem, solution.objective, reference_);
      file_.write(solution_line(indices[i], instances[i], solution, gap_found));
      totals_.add(instances[i], solution, gap_found);
      show_progress();
    };
    run_.solve(job);
    write_errors_before(next_index_);
  }

  void write_error(const Failure& failure, int64_t index) {
    ++totals_.failed;
    std::string text = error_json(failure.code, failure.message, failure.file, failure.line, index) + "\n";
    if (answered_ && is_answered(text, index, failure.line)) return;
    log_warning(failure.message);
    errors_.emplace_back(index, std::move(text));
  }

  void write_errors_before(int64_t index) {
    for (; !errors_.empty() && errors_.front().first < index; errors_.pop_front())
      file_.write(errors_.front().second);
  }

  // Whether the output of an earlier run has the answer, which begins with `expected`.
  bool is_answered(const std::string& expected, int64_t index, int64_t line) {
    const std::string at =
        path_ + (line > 0 ? ":" + std::to_string(line) : ", instance " + std::to_string(index));
    if (answered_->take(expected, at)) return true;
    end_of_answered();
    return false;
  }

  // What is written from now on comes behind them.
  void end_of_answered() {
    log_info("--resume: " + std::to_string(answered_->count()) + " answers stay");
    file_.keep(answered_->bytes());
    answered_.reset();
  }

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
  double reference_ = kNoNumber;  // the cost to compare every answer with
  SolveTotals totals_;
  int64_t next_index_ = 0;                                          // of all lines of all files
  int64_t first_ = 0, last_ = std::numeric_limits<int64_t>::max();  // of the part to be answered
  std::string path_;                                                // of the file in work
  std::optional<AnsweredLines> answered_;                           // what is still to be passed over
  ProgressLine line_;
  std::deque<std::pair<int64_t, std::string>> errors_;  // of the lines in work, by index
};

}  // namespace

SolveTotals solve_stream(SolveRun& run, const SolveFlags& flags, const CommonOptions& common,
                         const SearchControl& control, OutputFile& file) {
  return SolveStream(run, flags, common, control, file).solve_files();
}

}  // namespace pointsman
