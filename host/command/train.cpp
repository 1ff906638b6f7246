// SPDX-License-Identifier: Apache-2.0
// `pointsman train`: a model from random instances made on the fly, or from given answers.
#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>

#include "engine/engine.h"
#include "host/command/command.h"
#include "host/command/interrupt.h"
#include "host/command/log.h"
#include "host/command/output.h"
#include "host/command/process_ranks.h"
#include "host/command/train_flags.h"
#include "host/formats/text_scan.h"
#include "host/run/model_lookup.h"
#include "host/run/ranks.h"
#include "host/run/solve_totals.h"
#include "models/parameter_layout.h"

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
  return text + (std::isnan(progress.val_cost) ? "" : printed("  val %.4f", progress.val_cost)) + "  ETA " +
         clock_text(progress.eta_seconds);
}

// What the log says that the training is.
std::string method_of(const TrainFlags& flags) {
  const TrainOptions& options = flags.options;
  if (options.is_supervised()) return std::to_string(options.examples->count()) + " answers to learn from";
  const std::string method = flags.baseline + " baseline";
  return !options.examples ? method
                           : printed("%s, %zu instances to train on, %zu to validate", method.c_str(),
                                     options.examples->count(), options.validation->count());
}

int run_train(TrainFlags& flags, const CLI::App& app, CommonOptions& common) {
  const std::vector<float> initial = finish_train_flags(flags, app, common);
  TrainOptions& options = flags.options;
  RankedTraining training =
      ranked_training(process_ranks(), backend_options(common), flags.asynchronous ? &options : nullptr);
  Engine& engine = training.engine;
  const DeviceInfo device = engine.device();
  if (!engine.device_note().empty()) log_info(engine.device_note());
  log_info(printed(
      "training %s n = %d, %s, %lld steps of %d instances, seed %llu, on %s (%s)", flags.problem.c_str(),
      options.model.n, method_of(flags).c_str(), static_cast<long long>(options.steps), options.batch,
      static_cast<unsigned long long>(options.seed), device.name.c_str(), device.detail.c_str()));
  TrainResult result;
  {
    ProgressLine line(30.0);
    result = train(
        engine.backend(), options, initial, flags.resume, search_control(common),
        [&](const TrainProgress& progress) {
          if (std::isnan(progress.val_cost)) {
            if (line.due()) line.update(describe(progress, options.steps));
          } else {
            log_info(describe(progress, options.steps));
          }
        },
        training.shared);
  }
  const int code = interrupt_exit_code();
  log_info("model written to " + options.output.string());
  const auto json = train_summary(options, result, device);
  OutputFile file = open_output(common);
  write_answer(file, common, json_of({{"code", code}, {"summary", json}}), as_text(json));
  return code;
}

}  // namespace

nlohmann::ordered_json train_summary(const TrainOptions& options, const TrainResult& result,
                                     const DeviceInfo& device) {
  const TrainProgress& last = result.last;
  nlohmann::ordered_json json = json_of({{"problem", name_of(result.config.problem)},
                                         {"n", result.config.n},
                                         {"status", name_of(result.status)},
                                         {"steps", last.step},
                                         {"training_tours", result.config.training_tours},
                                         {"seconds", last.seconds},
                                         {"tours_per_second", last.tours_per_second},
                                         {"train_cost", last.train_cost}});
  if (!std::isnan(last.val_cost)) json["val_cost"] = last.val_cost;
  if (!result.ages.empty()) {
    json["gradient_ages"] = std::vector(result.ages.begin(), result.ages.end() - 1);
    json["gradients_left_out"] = result.ages.back();
  }
  json["model"] = options.output.string();
  json["model_sha256"] = read_model(options.output).sha256;
  json["device"] = device_text(device);
  json["seed"] = options.seed;
  json["version"] = POINTSMAN_VERSION;
  return json;
}

Command add_train(CLI::App& parent) {
  auto flags = std::make_shared<TrainFlags>();
  auto common = std::make_shared<CommonOptions>();
  common->answer_on_stdout = true;
  CLI::App* const app = add_subcommand(
      parent, "train", "Train a model by policy gradient, or on given answers", kTrainExamples);
  add_train_flags(*app, *flags);
  add_common_options(*app, *common, {"json", "text"});
  return {app, common, [=] { return run_train(*flags, *app, *common); }};
}

}  // namespace pointsman
