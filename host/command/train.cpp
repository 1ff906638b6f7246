// SPDX-License-Identifier: Apache-2.0
// `pointsman train`: a model from random instances made on the fly, or from given answers.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "host/command/command.h"
#include "host/command/process.h"
#include "host/formats/text_scan.h"
#include "host/run/log.h"
#include "host/run/ranks.h"
#include "host/run/solve_totals.h"
#include "host/run/train_setup.h"

namespace pointsman {

namespace {

constexpr const char* kTrainExamples = R"(Examples:
  pointsman train tsp -n 20 -o my20.safetensors
  pointsman train knapsack -n 50 --steps 20000 --log knap50.jsonl
  pointsman train tsp -n 50 --init tsp20                              start from a shipped model
  pointsman train tsp -n 20 --init tsp20 --instances set.npy          your own instances
  pointsman train tsp -n 20 --instances set.npy --solutions tours.npy learn from given tours
  pointsman train tsp -n 20 --checkpoint my20.ckpt                    and after a stop:
  pointsman train tsp -n 20 --checkpoint my20.ckpt --resume my20.ckpt
The model is written to -o at each checkpoint and at the end (Ctrl-C included); the answer on stdout is a summary.)";

std::string clock_text(double seconds) {
  const auto total = static_cast<long long>(std::min(std::max(seconds, 0.0), 1e9));
  return printed("%lld:%02lld:%02lld", total / 3600, total / 60 % 60, total % 60);
}

std::string describe(const TrainProgress& progress, int64_t steps) {
  const std::string text = printed(
      "step %lld/%lld  %.0f tours/s  train %.4f  |grad| %.3g  entropy %.3f  mean u %.2f  saturated %.0f%%",
      static_cast<long long>(progress.step), static_cast<long long>(steps), progress.tours_per_second,
      progress.train_cost, progress.grad_norm, progress.entropy, progress.mean_logit,
      100 * progress.saturated);
  const std::string late =
      std::isnan(progress.infeasible) ? "" : printed("  late %.1f%%", 100 * progress.infeasible);
  return text + (std::isnan(progress.val_cost) ? "" : printed("  val %.4f", progress.val_cost)) + late +
         "  ETA " + clock_text(progress.eta_seconds);
}

// What the log says that the training is.
std::string method_of(const TrainRequest& request) {
  const TrainOptions& options = request.options;
  if (options.is_supervised()) return std::to_string(options.examples->count()) + " answers to learn from";
  const std::string method = std::string(name_of(options.baseline)) + " baseline";
  return !options.examples ? method
                           : printed("%s, %zu instances to train on, %zu to validate", method.c_str(),
                                     options.examples->count(), options.validation->count());
}

int run_train(TrainRequest& request, const OptionSet& set, CommonOptions& common) {
  request.output = common.output;
  request.force = common.force;
  const std::vector<float> initial = prepare_training(request, set, common.device, common.seed);
  const TrainOptions& options = request.options;
  RankedTraining training =
      ranked_training(process_ranks(), common.device, request.asynchronous ? &options : nullptr);
  const DeviceInfo device = training.engine.device();
  tell_device_note(training.engine, run_log());
  log_info(printed(
      "training %s n = %d, %s, %lld steps of %d instances, seed %llu, on %s (%s)", request.problem.c_str(),
      options.model.n, method_of(request).c_str(), static_cast<long long>(options.steps), options.batch,
      static_cast<unsigned long long>(options.seed), device.name.c_str(), device.detail.c_str()));
  TrainResult result;
  {
    ProgressLine line(30.0);
    const auto tell = [&](const TrainProgress& progress) {
      if (std::isnan(progress.val_cost) && std::isnan(progress.infeasible)) {
        if (line.due()) line.update(describe(progress, options.steps));
      } else {
        log_info(describe(progress, options.steps));
      }
    };
    result = train(training.engine.backend(),
                   {options, initial, request.resume, search_control(common), tell, training.shared});
  }
  const int code = interrupt_exit_code();
  log_info("model written to " + options.output.string());
  const auto json = train_summary(options, result, device);
  OutputFile file = open_output(common);
  write_answer(file, common, json_of({{"code", code}, {"summary", json}}), as_text(json));
  return code;
}

}  // namespace

Command train_command() {
  auto request = std::make_shared<TrainRequest>();
  Command command{"train", "Train a model by policy gradient, or on given answers", kTrainExamples};
  command.common->answer_on_stdout = true;
  add_train_options(*command.options, *request);
  command.options->add(
      "--asynchronous", request->asynchronous,
      "Several MPI ranks: each makes steps of its own and waits for nobody (Mnih et al. 2016). "
      "No two runs have the same bits");
  add_common_options(*command.options, *command.common, {"json", "text"});
  command.run = [=](const Command& self, const Words&) {
    return run_train(*request, *self.options, *self.common);
  };
  return command;
}

}  // namespace pointsman
