// SPDX-License-Identifier: Apache-2.0
#include "host/run/log.h"

#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <utility>

#include "host/formats/text_scan.h"
#include "models/tools/atomic_file.h"
#include "models/tools/json_text.h"

namespace pointsman {

namespace {

// As near to the start of the process as the program itself can get: static initialisation.
const Clock::time_point kProcessStart = Clock::now();

enum class Level { kDebug, kInfo, kWarning, kError };

struct LogState {
  bool quiet = false, verbose = false, json = false;
  std::function<void(const char*, const std::string&)> sink;  // empty: stderr
} log_state;

// A progress line stands on the terminal and must be wiped before any other, whichever thread writes it.
std::atomic<bool> progress_shown{false};

bool stderr_is_terminal() { return isatty(STDERR_FILENO) != 0; }

bool coloured() {
  const char* no_color = std::getenv("NO_COLOR");
  const char* term = std::getenv("TERM");
  return stderr_is_terminal() && !(no_color && *no_color) && !(term && std::strcmp(term, "dumb") == 0);
}

void wipe_progress() {
  if (progress_shown.exchange(false)) std::fputs("\r\033[K", stderr);
}

constexpr const char* kNames[] = {"debug", "info", "warning", "error"};

const char* name_of(Level level) { return kNames[static_cast<int>(level)]; }

// stderr has no buffer, so this takes no memory.
void write_text(Level level, const char* message) {
  if (level < Level::kWarning) {
    std::fprintf(stderr, "%s\n", message);
  } else if (coloured()) {
    std::fprintf(stderr, "\033[1;%dmpointsman: %s:\033[0m %s\n", level == Level::kError ? 31 : 33,
                 name_of(level), message);
  } else {
    std::fprintf(stderr, "pointsman: %s: %s\n", name_of(level), message);
  }
}

void write_line(Level level, const std::string& message) {
  if (log_state.sink) return log_state.sink(name_of(level), printable(message));
  if (level < Level::kError && (log_state.quiet || (level == Level::kDebug && !log_state.verbose))) return;
  if (!reader_takes(STDERR_FILENO)) return;
  wipe_progress();
  if (log_state.json) {
    const std::string line =
        json_object({{"time", seconds_now()}, {"level", name_of(level)}, {"message", message}}).text;
    std::fprintf(stderr, "%s\n", line.c_str());
  } else {
    write_text(level, printable(message).c_str());
  }
}

}  // namespace

void configure_log(bool quiet, bool verbose, bool json) {
  log_state = {quiet, verbose, json, log_state.sink};
}

void set_log_sink(std::function<void(const char*, const std::string&)> sink) {
  log_state.sink = std::move(sink);
}

Clock::time_point process_start() { return kProcessStart; }

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

double seconds_now() { return milliseconds_since(process_start()) / 1000; }

void log_debug(const std::string& message) { write_line(Level::kDebug, message); }
void log_info(const std::string& message) { write_line(Level::kInfo, message); }
void log_warning(const std::string& message) { write_line(Level::kWarning, message); }
void log_error(const std::string& message) { write_line(Level::kError, message); }

RunLog run_log() { return {log_info, log_debug, log_warning}; }

void log_out_of_memory() noexcept {
  if (!reader_takes(STDERR_FILENO)) return;
  wipe_progress();
  if (log_state.json) {
    std::fprintf(stderr, "{\"time\":%.6f,\"level\":\"error\",\"message\":\"%s\"}\n", seconds_now(),
                 kOutOfMemory);
  } else {
    write_text(Level::kError, kOutOfMemory);
  }
}

bool is_log_on_terminal() { return stderr_is_terminal() && !log_state.json && !log_state.quiet; }

ProgressLine::ProgressLine(double interval)
    : terminal_(stderr_is_terminal() && !log_state.json),
      shown_(!log_state.sink && (terminal_ || interval > 0.0)),
      interval_(terminal_ ? 100 : static_cast<int>(interval * 1000)),
      next_(Clock::now() + std::chrono::milliseconds(500)) {}

ProgressLine::~ProgressLine() { wipe_progress(); }

bool ProgressLine::due() const { return shown_ && !log_state.quiet && Clock::now() >= next_; }

void ProgressLine::update(const std::string& text) {
  if (!due()) return;
  next_ = Clock::now() + interval_;
  if (terminal_) {
    std::fprintf(stderr, "\r%s\033[K", printable(text).c_str());
    std::fflush(stderr);
    progress_shown = true;
  } else {
    log_info(text);
  }
}

}  // namespace pointsman
