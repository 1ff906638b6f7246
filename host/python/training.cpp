// SPDX-License-Identifier: Apache-2.0
#include "host/python/training.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <thread>

#include "engine/engine.h"
#include "host/python/call.h"
#include "host/run/log.h"
#include "host/run/train_setup.h"

namespace nb = nanobind;

namespace pointsman {

namespace {

nb::object number_or_none(double value) { return std::isnan(value) ? nb::none() : nb::cast(value); }

// As the line of --log has it.
nb::dict dict_of(const TrainProgress& line) {
  nb::dict dict;
  dict["step"] = line.step;
  dict["tours"] = line.tours;
  dict["seconds"] = line.seconds;
  dict["tours_per_second"] = line.tours_per_second;
  dict["train_cost"] = line.train_cost;
  dict["val_cost"] = number_or_none(line.val_cost);
  dict["baseline_loss"] = line.baseline_loss;
  dict["grad_norm"] = line.grad_norm;
  dict["entropy"] = line.entropy;
  dict["mean_logit"] = line.mean_logit;
  dict["saturated"] = line.saturated;
  dict["learning_rate"] = line.learning_rate;
  if (!std::isnan(line.cross_entropy)) dict["cross_entropy"] = line.cross_entropy;
  return dict;
}

// A training in Python's own thread: so its callback may do what only that thread can.
class Training {
 public:
  Training(const Keywords& keywords, const nb::object& callback) : keywords_(keywords), callback_(callback) {}

  std::string run() {
    std::string summary;
    {
      const Unlocked unlocked;
      summary = train_unlocked();
    }
    if (thrown_) throw *std::exchange(thrown_, std::nullopt);
    watch_.rethrow();
    return summary;
  }

 private:
  std::string train_unlocked() {
    const PreparedTraining training = prepared_training(keywords_);
    const TrainOptions& options = training.request.options;
    Engine engine(training.device);
    const TrainResult result = train(
        engine.backend(), {options, training.initial, training.request.resume, control(training.time_limit),
                           [this](const TrainProgress& line) { tell(line); }});
    return train_summary(options, result, engine.device()).dump();
  }

  SearchControl control(double time_limit) {
    SearchControl control = within_limits(Clock::now(), time_limit);
    // Asked by worker threads too, for whom Python's signals are not.
    control.interrupted = [this] {
      if (std::this_thread::get_id() == caller_ && watch_.stopped()) stop_ = true;
      if (!watch_.is_watching() && are_calls_ending()) stop_ = true;
      return stop_.load();
    };
    control.warn = log_warning;
    return control;
  }

  void tell(const TrainProgress& line) {
    if (stop_) return;
    run_locked([&] {
      if (callback_.is_none()) return;
      try {
        callback_(dict_of(line));
      } catch (nb::python_error& error) {
        thrown_.emplace(std::move(error));
        stop_ = true;
      }
    });
  }

  const Keywords& keywords_;
  const nb::object& callback_;
  const std::thread::id caller_ = std::this_thread::get_id();
  SignalWatch watch_;
  std::atomic<bool> stop_{false};
  std::optional<nb::python_error> thrown_;
};

}  // namespace

std::string run_training(const Keywords& keywords, const nb::object& callback) {
  return Training(keywords, callback).run();
}

}  // namespace pointsman
