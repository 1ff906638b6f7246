// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_stream.h"

#include <pthread.h>
#include <signal.h>

#include <condition_variable>
#include <exception>
#include <mutex>
#include <thread>

#include "host/command/log.h"
#include "host/command/options.h"
#include "host/files/write_solutions.h"

namespace pointsman {

namespace {

constexpr size_t kLinesAtOnce = 1024;  // when the stream runs ahead of the search
constexpr size_t kFlushBytes = 1 << 16;
constexpr auto kFlushAfter = std::chrono::milliseconds(100);

// Wakes the reader from a blocking read(2), which then returns EINTR. The handler has nothing to do.
constexpr int kWakeSignal = SIGUSR1;
constexpr int kWakeTries = 20;
constexpr auto kWakeEvery = std::chrono::milliseconds(10);

void install_wake_handler() {
  struct sigaction action = {};
  action.sa_handler = [](int) {};
  sigemptyset(&action.sa_mask);
  sigaction(kWakeSignal, &action, nullptr);
}

// What the reading thread and its queue share.
struct Reader {
  std::unique_ptr<InstanceInput> input;
  const size_t capacity;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<InstanceLine> lines;
  std::exception_ptr error;
  bool ended = false, stopped = false;
  std::thread thread;

  void read() {
    std::exception_ptr thrown;
    try {
      while (auto line = input->next_line()) {
        std::unique_lock<std::mutex> lock(mutex);
        changed.wait(lock, [&] { return stopped || lines.size() < capacity; });
        if (stopped) break;
        lines.push_back(std::move(*line));
        changed.notify_all();
      }
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex);
    error = thrown;
    ended = true;
    changed.notify_all();
  }
};

// Lines read by a thread of its own, so that a search never waits for lines that have not come yet and a
// producer that pauses still gets its answers at once.
class LineQueue {
 public:
  // capacity: lines read ahead.
  LineQueue(std::unique_ptr<InstanceInput> input, size_t capacity)
      : state_(std::make_shared<Reader>(std::move(input), capacity)) {
    install_wake_handler();
    state_->thread = std::thread([state = state_] { state->read(); });
  }
  LineQueue(const LineQueue&) = delete;
  LineQueue& operator=(const LineQueue&) = delete;
  ~LineQueue() {
    std::unique_lock<std::mutex> lock(state_->mutex);
    state_->stopped = true;
    state_->changed.notify_all();
    // The signal may arrive just before the read begins, so it is sent until the reader is seen to have
    // ended. A file stream (a FIFO by name) reads on after EINTR: such a reader is left behind, and the
    // process ends without it.
    for (int i = 0; i < kWakeTries && !state_->ended; ++i) {
      pthread_kill(state_->thread.native_handle(), kWakeSignal);
      state_->changed.wait_for(lock, kWakeEvery);
    }
    const bool ended = state_->ended;
    lock.unlock();
    ended ? state_->thread.join() : state_->thread.detach();
  }

  // Waits for a line, then takes all that have come, at most `limit`. Empty at the end of the stream and when
  // `control` says stop. Rethrows what the reader threw.
  std::vector<InstanceLine> take(size_t limit, const SearchControl& control) {
    Reader& state = *state_;
    std::unique_lock<std::mutex> lock(state.mutex);
    while (state.lines.empty() && !state.ended && control.check() == Status::kDone) {
      state.changed.wait_for(lock, std::chrono::milliseconds(20));
    }
    std::vector<InstanceLine> taken;
    if (control.interrupted && control.interrupted()) return taken;
    while (!state.lines.empty() && taken.size() < limit) {
      taken.push_back(std::move(state.lines.front()));
      state.lines.pop_front();
    }
    state.changed.notify_all();
    if (taken.empty() && state.error) std::rethrow_exception(state.error);
    return taken;
  }

 private:
  // The thread's too: it may have to be left behind in a read that never returns.
  std::shared_ptr<Reader> state_;
};

}  // namespace

bool SolveStream::stopped() const { return control_.check() != Status::kDone; }

void SolveStream::solve_file(const std::string& path, const ReadOptions& options) {
  next_row_ = 0;
  try {
    auto input = std::make_unique<InstanceInput>(path, options);
    if (!input->is_stream()) {
      InstanceFile whole = input->read_all();
      for (const std::string& warning : whole.warnings) log_warning(warning);
      std::vector<InstanceLine> lines;
      for (Instance& instance : whole.instances) lines.push_back({0, std::move(instance), std::nullopt});
      solve_lines(std::move(lines));
      return;
    }
    const auto& batch_size = flags_.options.batch_size;
    const size_t at_once = batch_size ? static_cast<size_t>(*batch_size) : kLinesAtOnce;
    LineQueue queue(std::move(input), 2 * at_once);
    for (;;) {
      std::vector<InstanceLine> lines = queue.take(at_once, control_);
      if (lines.empty()) return;
      solve_lines(std::move(lines));
    }
  } catch (const InputError& error) {
    write_error(kExitInput, error.what(), error.file(), error.line(), next_index_++);
    write_errors_before(next_index_);
    flush();
  }
}

std::pair<int, std::string> SolveStream::check(const Instance& instance) {
  try {
    if (info_of(flags_.options.mode).has_network) run_.models.get(instance.problem, instance.n());
  } catch (const ModelFileError& error) {
    return {kExitInput, error.what()};
  }
  return check_instance(flags_.options, instance);
}

void SolveStream::solve_lines(std::vector<InstanceLine> lines) {
  InstanceBatch instances;
  std::vector<uint64_t> rows;
  std::vector<int64_t> indices;
  for (InstanceLine& line : lines) {
    const int64_t index = next_index_++;
    const uint64_t row = next_row_++;
    if (line.error) {
      write_error(kExitInput, line.error->what(), line.error->file(), line.error->line(), index);
      continue;
    }
    const auto [code, message] = check(*line.instance);
    if (code != 0) {
      write_error(code, message, "", line.line, index);
      continue;
    }
    instances.push_back(std::move(*line.instance));
    rows.push_back(row);
    indices.push_back(index);
  }
  run_.solve(instances, rows, flags_.options, control_, [&](size_t i, Solution&& solution) {
    write_errors_before(indices[i]);
    const double gap_found =
        std::isnan(reference_) ? reference_ : gap(instances[i].problem, solution.objective, reference_);
    pending_ += solution_json(indices[i], instances[i], solution, gap_found) + "\n";
    totals_.add(instances[i], solution, gap_found);
    if (pending_.size() >= kFlushBytes || Clock::now() - flushed_ >= kFlushAfter) flush();
  });
  write_errors_before(next_index_);
  flush();
}

void SolveStream::write_error(int code, const std::string& message, const std::string& file, int64_t line,
                              int64_t index) {
  log_warning(message);
  ++totals_.failed;
  errors_.emplace_back(index, error_json(code, message, file, line, index) + "\n");
}

void SolveStream::write_errors_before(int64_t index) {
  for (; !errors_.empty() && errors_.front().first < index; errors_.pop_front())
    pending_ += errors_.front().second;
}

void SolveStream::flush() {
  if (!pending_.empty()) file_.write(pending_);
  pending_.clear();
  flushed_ = Clock::now();
}

}  // namespace pointsman
