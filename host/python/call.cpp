// SPDX-License-Identifier: Apache-2.0
#include "host/python/call.h"

#include <nanobind/stl/string.h>

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <new>
#include <thread>
#include <utility>

#include "engine/engine.h"
#include "host/command/log.h"
#include "host/run/failure.h"

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
  const nb::object error = nb::module_::import_("pointsman._errors")
                               .attr("make")(failure.code, failure.message, failure.file, failure.line);
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

SignalWatch::SignalWatch() : is_watching_(is_main_thread()) {}

bool SignalWatch::stopped() {
  const auto now = std::chrono::steady_clock::now();
  if (!is_watching_ || stopped_ || now < next_) return stopped_;
  next_ = now + kInterval;
  const nb::gil_scoped_acquire lock;
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
    const nb::gil_scoped_release unlocked;
    work([] { return false; });
    return;
  }
  Errand errand;
  {
    const nb::gil_scoped_release unlocked;
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
    const nb::gil_scoped_acquire lock;
    const InHandler inside;
    nb::module_::import_("logging").attr("getLogger")("pointsman").attr(level)("%s", message);
  });
}

}  // namespace pointsman
