// SPDX-License-Identifier: Apache-2.0
// The log: one line an event on stderr, as text or as JSON, and a progress line that overwrites itself on a
// terminal.
#pragma once

#include <chrono>
#include <functional>
#include <string>

#include "engine/search/limits.h"

namespace pointsman {

// -q silences everything but errors.
void configure_log(bool quiet, bool verbose, bool json);

// In place of stderr, of a library: takes every line but the progress line, from any thread. level: "debug",
// "info", "warning" or "error".
void set_log_sink(std::function<void(const char* level, const std::string& message)> sink);

// When the process started, for --time-limit and the times that are reported.
Clock::time_point process_start();
double milliseconds_since(Clock::time_point start);
double seconds_now();  // since the program began

// Who is told, a line at a time, what a run does.
struct RunLog {
  static void nobody(const std::string&) {}
  std::function<void(const std::string&)> info = nobody, debug = nobody, warn = nobody;
};

void log_debug(const std::string& message);  // only with -v
void log_info(const std::string& message);
void log_warning(const std::string& message);
void log_error(const std::string& message);  // never silenced
RunLog run_log();                            // of these

// Told without taking memory, also from a terminate handler.
inline constexpr const char* kOutOfMemory = "out of memory; try a smaller --batch-size";
void log_out_of_memory() noexcept;

// Whether a person sees the log as it is written.
bool is_log_on_terminal();

// Progress of a long run. On a terminal one line is rewritten ten times a second; elsewhere there is a line
// every `interval` seconds, none for 0.
class ProgressLine {
 public:
  explicit ProgressLine(double interval = 0.0);
  ~ProgressLine();  // wipes the line
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  bool due() const;  // whether update() would show anything now: ask before composing the text
  void update(const std::string& text);

 private:
  bool terminal_, shown_;
  std::chrono::milliseconds interval_;
  Clock::time_point next_;
};

}  // namespace pointsman
