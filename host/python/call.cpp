// SPDX-License-Identifier: Apache-2.0
#include "host/python/call.h"

#include <cxxabi.h>
#include <nanobind/stl/string.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <exception>
#include <future>
#include <new>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "host/options/option_set.h"
#include "host/run/failure.h"
#include "host/run/log.h"

namespace nb = nanobind;

namespace pointsman {

namespace {

thread_local int handlers = 0;  // that this thread is inside of

struct InHandler {
  InHandler() { ++handlers; }
  ~InHandler() { --handlers; }
  InHandler(const InHandler&) = delete;
  InHandler& operator=(const InHandler&) = delete;
};

// Calls without the interpreter's lock, of all threads, and whether Python ends.
std::atomic<int> unlocked_calls{0};
std::atomic<bool> is_ending{false};
std::atomic<std::thread::id> ending_thread;

[[noreturn]] void rest() {
  for (;;) ::pause();
}

bool must_rest() { return is_ending && std::this_thread::get_id() != ending_thread.load(); }

bool is_main_thread() {
  const nb::object main = nb::module_::import_("threading").attr("main_thread")();
  return nb::cast<unsigned long>(main.attr("ident")) == PyThread_get_thread_ident();
}

void end_calls() {
  constexpr std::chrono::seconds kLongest{1};
  ending_thread = std::this_thread::get_id();
  is_ending = true;
  const nb::gil_scoped_release unlocked;
  const auto begin = std::chrono::steady_clock::now();
  while (unlocked_calls > 0 && std::chrono::steady_clock::now() - begin < kLongest)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void translate(const std::exception_ptr& error, void*) {
  try {
    std::rethrow_exception(error);
  } catch (const nb::python_error&) {
    throw;
  } catch (const nb::builtin_exception&) {
    throw;
  } catch (const std::bad_alloc&) {
    throw;  // MemoryError
  } catch (const CallStopped&) {
    PyErr_SetNone(PyExc_KeyboardInterrupt);
  } catch (...) {
    Failure failure = failure_of(error);
    if (failure.code == kExitUsage) failure.message = in_library_names(failure.message);
    const nb::object made = nb::module_::import_("pointsman._errors")
                                .attr("make")(failure.code, failure.message, failure.file, failure.line);
    PyErr_SetObject(made.type().ptr(), made.ptr());
  }
}

}  // namespace

// A call that begins after the end of all calls never gets as far as to compute.
Unlocked::Unlocked() : state_(PyEval_SaveThread()) {
  ++unlocked_calls;
  if (!must_rest()) return;
  --unlocked_calls;
  rest();
}

Unlocked::~Unlocked() {
  try {
    PyEval_RestoreThread(state_);
  } catch (const abi::__forced_unwind&) {  // pthread_exit(), of Python before 3.14
    --unlocked_calls;
    rest();
  }
  --unlocked_calls;
}

void run_locked(const std::function<void()>& work) {
  try {
    const nb::gil_scoped_acquire lock;
    try {
      work();
    } catch (const abi::__forced_unwind&) {  // Python code gave the lock away and wanted it back
      rest();
    }
  } catch (const abi::__forced_unwind&) {
    rest();
  }
}

bool are_calls_ending() { return is_ending; }

SignalWatch::SignalWatch() : is_watching_(is_main_thread()) {}

bool SignalWatch::stopped() {
  const auto now = std::chrono::steady_clock::now();
  if (!is_watching_ || stopped_ || now < next_) return stopped_;
  next_ = now + kInterval;
  const nb::gil_scoped_acquire lock;  // of the main thread, which ends with Python itself
  const InHandler inside;
  if (PyErr_CheckSignals() == 0) return false;
  stopped_ = true;
  if (PyErr_ExceptionMatches(PyExc_KeyboardInterrupt)) {
    PyErr_Clear();
  } else {
    thrown_.emplace();
  }
  return true;
}

void SignalWatch::rethrow() {
  if (thrown_) throw *std::exchange(thrown_, std::nullopt);
}

void run_stoppable(const std::function<void(const std::function<bool()>& stopped)>& work) {
  SignalWatch watch;
  if (!watch.is_watching()) {
    const Unlocked unlocked;
    work(are_calls_ending);
    return;
  }
  std::atomic<bool> stop{false};
  std::future<void> done;
  {
    const Unlocked unlocked;
    done = std::async(std::launch::async, work, [&stop] { return stop.load(); });
    while (done.wait_for(SignalWatch::kInterval) != std::future_status::ready) {
      if (watch.stopped()) stop = true;
    }
    done.wait();  // for its thread's end
  }
  watch.rethrow();
  done.get();
}

bool is_in_handler() { return handlers > 0; }

void prepare_calls() {
  nb::register_exception_translator(translate);
  set_log_sink([](const char* level, const std::string& message) {
    run_locked([&] {
      const InHandler inside;
      nb::module_::import_("logging").attr("getLogger")("pointsman").attr(level)("%s", message);
    });
  });
  nb::module_::import_("atexit").attr("register")(nb::cpp_function(end_calls));
  // A child that was forked has none of the other threads.
  pthread_atfork(nullptr, nullptr, [] { unlocked_calls = 0; });
}

}  // namespace pointsman
