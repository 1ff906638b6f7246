// SPDX-License-Identifier: Apache-2.0
#include "host/python/call.h"

#include <cxxabi.h>
#include <nanobind/stl/string.h>
#include <pthread.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
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

// What a thread does for another that waits for it.
struct Errand {
  std::mutex mutex;
  std::condition_variable ended;
  bool has_ended = false;
  std::exception_ptr error;

  void run(const std::function<void()>& work) {
    std::exception_ptr thrown;
    try {
      work();
    } catch (...) {
      thrown = std::current_exception();
    }
    const std::lock_guard lock(mutex);
    error = thrown;
    has_ended = true;
    ended.notify_one();
  }
  bool wait(std::chrono::milliseconds longest) {
    std::unique_lock lock(mutex);
    return ended.wait_for(lock, longest, [this] { return has_ended; });
  }
};

void raise(const Failure& failure) {
  const nb::object error =
      nb::module_::import_("pointsman._errors")
          .attr("make")(failure.code,
                        failure.code == kExitUsage ? in_library_names(failure.message) : failure.message,
                        failure.file, failure.line);
  PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(error.ptr())), error.ptr());
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
    raise(failure_of(error));
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

void end_calls() {
  constexpr std::chrono::seconds kLongest{1};
  ending_thread = std::this_thread::get_id();
  is_ending = true;
  const nb::gil_scoped_release unlocked;
  const auto begin = std::chrono::steady_clock::now();
  while (unlocked_calls > 0 && std::chrono::steady_clock::now() - begin < kLongest)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

void forget_calls() { unlocked_calls = 0; }

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
  Errand errand;
  {
    const Unlocked unlocked;
    std::atomic<bool> stop{false};
    std::thread thread([&] { errand.run([&] { work([&stop] { return stop.load(); }); }); });
    while (!errand.wait(SignalWatch::kInterval)) {
      if (watch.stopped()) stop = true;
    }
    thread.join();
  }
  watch.rethrow();
  if (errand.error) std::rethrow_exception(errand.error);
}

bool is_in_handler() { return handlers > 0; }

void translate_exceptions() { nb::register_exception_translator(translate); }

void log_to_python() {
  set_log_sink([](const char* level, const std::string& message) {
    run_locked([&] {
      const InHandler inside;
      nb::module_::import_("logging").attr("getLogger")("pointsman").attr(level)("%s", message);
    });
  });
}

}  // namespace pointsman
