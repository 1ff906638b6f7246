// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_stream.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "host/command/options.h"
#include "host/command/output.h"
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
    options.stop = [this] { return stopped_.load(); };
    input_ = std::make_unique<InstanceInput>(path, options);
  }
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;
  ~LineQueue() {
    {
      const std::lock_guard<std::mutex> lock(mutex_);
      stopped_ = true;
    }
    changed_.notify_all();
    if (thread_.joinable()) thread_.join();
  }

  // What is not a stream is for its caller to read.
  InstanceInput& input() { return *input_; }
  void start() {
    thread_ = std::thread([this] { read(); });
  }

  // Waits for a line, then takes all that have come, at most `limit`. Empty at the end of the stream and when
  // `control` says stop. Rethrows what the reader threw.
  std::vector<InstanceLine> take(size_t limit) {
    std::unique_lock<std::mutex> lock(mutex_);
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
        std::unique_lock<std::mutex> lock(mutex_);
        changed_.wait(lock, [&] { return stopped_ || (lines_.size() < capacity_ && items_ < kItemsAhead); });
        if (stopped_) break;
        items_ += items_of(*line);
        lines_.push_back(std::move(*line));
        changed_.notify_all();
      }
    } catch (const InputStopped&) {
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    error_ = thrown;
    ended_ = true;
    changed_.notify_all();
  }

  const SearchControl& control_;
  const size_t capacity_;
  std::unique_ptr<InstanceInput> input_;
  std::atomic<bool> stopped_{false};
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<InstanceLine> lines_;
  size_t items_ = 0;  // of these
  std::exception_ptr error_;
  bool ended_ = false;
  std::thread thread_;
};

}  // namespace

bool SolveStream::stopped() const { return control_.check() != Status::kDone; }

bool SolveStream::is_answered(const std::string& expected, int64_t index, int64_t line) {
  const std::string at =
      path_ + (line > 0 ? ":" + std::to_string(line) : ", instance " + std::to_string(index));
  if (answered_->take(expected, at)) return true;
  end_of_answered();
  return false;
}

// What is written from now on comes behind them.
void SolveStream::end_of_answered() {
  log_info("--resume: " + std::to_string(answered_->count()) + " answers stay");
  file_.keep(answered_->bytes());
  answered_.reset();
}

void SolveStream::finish() {
  if (answered_ && answered_->has_next()) {
    if (stopped()) return;  // the output stays as it is
    answered_->refuse("found an answer, expected none: the input has only " + std::to_string(next_index_) +
                      " instances");
  }
  if (answered_) end_of_answered();
  file_.commit();
}

void SolveStream::solve_file(const std::string& path, const ReadOptions& options) {
  path_ = path == "-" ? "stdin" : path;
  try {
    const auto& batch_size = flags_.request.options.batch_size;
    size_t at_once = batch_size ? static_cast<size_t>(*batch_size) : kFirstLines;
    LineQueue queue(path, options, 2 * (batch_size ? at_once : kMostLines), control_);
    if (!queue.input().is_stream()) {
      InstanceFile whole = queue.input().read_all();
      for (const std::string& warning : whole.warnings) log_warning(warning);
      std::vector<InstanceLine> lines;
      for (Instance& instance : whole.instances) lines.push_back({0, std::move(instance), std::nullopt});
      solve_lines(std::move(lines), false);
      return;
    }
    queue.start();
    for (;;) {
      std::vector<InstanceLine> lines = queue.take(at_once);
      if (lines.empty() || is_past_part()) return;
      const size_t count = lines.size();
      const Clock::time_point start = Clock::now();
      solve_lines(std::move(lines), true);
      if (!batch_size) at_once = lines_for(count, milliseconds_since(start) / 1000);
    }
  } catch (const InputStopped&) {  // the exit code tells it
  } catch (const ResumeRefused&) {
    throw;
  } catch (const InputError& error) {
    const int64_t index = next_index_++;
    if (is_in_part(index)) write_error(kExitInput, error.what(), error.file(), error.line(), index);
    write_errors_before(next_index_);
  }
}

std::pair<int, std::string> SolveStream::check(const Instance& instance) {
  try {
    if (needs_network(flags_.request.options)) run_.models.get(instance.problem, instance.n());
  } catch (const ModelFileError& error) {
    return {kExitInput, error.what()};
  }
  const std::string wrong = wrong_options(flags_.request.options, instance);
  return {wrong.empty() ? kExitDone : kExitUsage, wrong};
}

void SolveStream::solve_lines(std::vector<InstanceLine> lines, bool more) {
  InstanceBatch instances;
  std::vector<int64_t> indices;
  for (InstanceLine& line : lines) {
    const int64_t index = next_index_++;
    if (!is_in_part(index)) continue;
    if (line.error) {
      write_error(kExitInput, line.error->what(), line.error->file(), line.error->line(), index);
      continue;
    }
    const auto [code, message] = check(*line.instance);
    if (code != 0) {
      write_error(code, message, "", line.line, index);
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

void SolveStream::write_error(int code, const std::string& message, const std::string& file, int64_t line,
                              int64_t index) {
  ++totals_.failed;
  std::string text = error_json(code, message, file, line, index) + "\n";
  if (answered_ && is_answered(text, index, line)) return;
  log_warning(message);
  errors_.emplace_back(index, std::move(text));
}

void SolveStream::write_errors_before(int64_t index) {
  for (; !errors_.empty() && errors_.front().first < index; errors_.pop_front())
    file_.write(errors_.front().second);
}

}  // namespace pointsman
