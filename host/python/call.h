// SPDX-License-Identifier: Apache-2.0
// How a call from Python runs: without the interpreter's lock, stopped by Ctrl-C, and its failures as
// Python's exceptions.
#pragma once

#include <nanobind/nanobind.h>

#include <chrono>
#include <functional>
#include <optional>

namespace pointsman {

// While it lives this thread is without the interpreter's lock. Where Python ends meanwhile, which would
// unwind a thread that takes the lock through frames of C++ and so abort the process, the thread rests until
// the process is gone.
class Unlocked {
 public:
  Unlocked();
  ~Unlocked();
  Unlocked(const Unlocked&) = delete;
  Unlocked& operator=(const Unlocked&) = delete;

 private:
  PyThreadState* state_;
};

// Runs `work` with the interpreter's lock, which this thread need not have; rests as Unlocked.
void run_locked(const std::function<void()>& work);

// Whether Python's exit has begun: a call of another thread than the main one must stop.
bool are_calls_ending();

// Lets Python run its handlers of signals. Only its main thread does so; elsewhere nothing ever stops a call.
class SignalWatch {
 public:
  static constexpr std::chrono::milliseconds kInterval{20};

  // Call it with the interpreter's lock.
  SignalWatch();

  bool is_watching() const { return is_watching_; }
  // Takes the lock, at most once an interval: call it without, in the thread that made this. Once true it
  // stays so.
  bool stopped();
  // What a handler threw, unless it was KeyboardInterrupt: that has been obeyed. Call it with the lock.
  void rethrow();

 private:
  bool is_watching_;
  bool stopped_ = false;
  std::chrono::steady_clock::time_point next_{};
  std::optional<nanobind::python_error> thrown_;
};

// Runs `work` without the lock. From Python's main thread it runs in a thread of its own, so that this one
// can look for signals however long the engine keeps silent; `work` asks the function that it is given
// whether to stop.
void run_stoppable(const std::function<void(const std::function<bool()>& stopped)>& work);

// Whether this thread runs a handler of Python's, of signals or of log lines, inside a call.
bool is_in_handler();

// The module calls it once. C++ exceptions become those of pointsman._errors, log lines go to Python's logger
// "pointsman". At Python's exit, in its main thread, calls of other threads stop, and end as far as they do
// so within a second.
void prepare_calls();

}  // namespace pointsman
