// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "engine/engine.h"
#include "host/python/call.h"
#include "host/python/solver.h"
#include "host/run/log.h"
#include "host/run/train_setup.h"

namespace nb = nanobind;

namespace pointsman {

nb::dict dict_of(const TrainProgress& line) {
  nb::dict dict;
  dict["step"] = line.step;
  dict["tours"] = line.tours;
  dict["seconds"] = line.seconds;
  dict["tours_per_second"] = line.tours_per_second;
  dict["train_cost"] = line.train_cost;
  dict["val_cost"] = std::isnan(line.val_cost) ? nb::none() : nb::cast(line.val_cost);
  dict["baseline_loss"] = line.baseline_loss;
  dict["grad_norm"] = line.grad_norm;
  dict["entropy"] = line.entropy;
  dict["mean_logit"] = line.mean_logit;
  dict["saturated"] = line.saturated;
  dict["learning_rate"] = line.learning_rate;
  if (!std::isnan(line.cross_entropy)) dict["cross_entropy"] = line.cross_entropy;
  return dict;
}

void run_training(const nb::object& callback, const TrainingWork& work, const std::function<void()>& done) {
  const std::thread::id caller = std::this_thread::get_id();
  SignalWatch watch;
  std::atomic<bool> stop{false};
  std::optional<nb::python_error> thrown;
  std::exception_ptr stopped_early;  // before there was a result
  // Asked by worker threads too, for whom Python's signals are not.
  const auto interrupted = [&] {
    if (std::this_thread::get_id() == caller && watch.stopped()) stop = true;
    if (!watch.is_watching() && are_calls_ending()) stop = true;
    return stop.load();
  };
  const auto tell = [&](const TrainProgress& line) {
    if (stop || callback.is_none()) return;
    run_locked([&] {
      try {
        callback(dict_of(line));
      } catch (nb::python_error& error) {
        thrown.emplace(std::move(error));
        stop = true;
      }
    });
  };
  {
    const Unlocked unlocked;
    try {
      work(interrupted, tell);
    } catch (const CallStopped&) {
      stopped_early = std::current_exception();
    }
  }
  if (stopped_early) {
    watch.rethrow();
    std::rethrow_exception(stopped_early);
  }
  done();
  if (thrown) throw *std::exchange(thrown, std::nullopt);
  watch.rethrow();
}

std::string train_by_options(const Keywords& keywords, const nb::object& callback) {
  std::string summary;
  const auto work = [&](const std::function<bool()>& interrupted, const auto& tell) {
    const PreparedTraining training = prepared_training(keywords);
    const TrainOptions& options = training.request.options;
    Engine engine(training.device);
    SearchControl control = within_limits(Clock::now(), training.time_limit);
    control.interrupted = interrupted;
    control.report.warn = log_warning;
    const TrainResult result =
        train(engine.backend(), {options, training.initial, training.request.resume, control, tell});
    summary = train_summary(options, result, engine.device()).dump();
  };
  run_training(callback, work, [] {});
  return summary;
}

}  // namespace pointsman
