// SPDX-License-Identifier: Apache-2.0
// The options of a call, judged as the command line judges its flags.
#include "host/library/solve_request.h"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <utility>

#include "host/library/handles.h"
#include "host/run/solve_rules.h"
#include "models/tools/json_text.h"

namespace pointsman {

namespace {

constexpr int32_t kOwnChoice = -1;  // of a switch

constexpr pointsman_solve_options kDefaults = {.size = sizeof(pointsman_solve_options),
                                               .mode = nullptr,
                                               .model = nullptr,
                                               .time_limit = 0.0,
                                               .limit_each = 0.0,
                                               .seed = kDefaultSeed,
                                               .first_row = 0,
                                               .samples = 0,
                                               .first_sample = 0,
                                               .kicks = -1,
                                               .steps = 0,
                                               .temperature = 1.0,
                                               .clip = 0.0,
                                               .learning_rate = 0.0,
                                               .entropy = -1.0,
                                               .replicas = 0,
                                               .batch_size = 0,
                                               .augment = 0,
                                               .shuffle = kOwnChoice,
                                               .improve = kOwnChoice,
                                               .untrained = 0,
                                               .stop_at_first_misfit = 0,
                                               .learn = 0,
                                               .progress = nullptr,
                                               .progress_user = nullptr};

template <typename Number>
void check(const char* name, Number value, Number low, Number high) {
  if (value >= low && value <= high) return;
  throw std::invalid_argument(std::string(name) + ": expected a number from " + number_text(low) + " to " +
                              number_text(high) + ", found " + number_text(value));
}

template <typename Number>
void check(const char* name, Number value, const ranges::Range<Number>& range) {
  check(name, value, range.low, range.high);
}

void check_numbers(const pointsman_solve_options& options) {
  check("time_limit", options.time_limit, ranges::kSeconds);
  check("limit_each", options.limit_each, ranges::kSeconds);
  check("samples", options.samples, ranges::kSamples);
  check("first_sample", options.first_sample, ranges::kSamples);
  check("kicks", options.kicks, ranges::kKicks);
  check("steps", options.steps, ranges::kSteps);
  check("temperature", options.temperature, ranges::kTemperature);
  check("clip", options.clip, ranges::kClip);
  check("learning_rate", options.learning_rate, ranges::kLearningRate);
  check("entropy", options.entropy, ranges::kEntropy);
  if (options.replicas != 0) check("replicas", options.replicas, ranges::kReplicas);
  check("batch_size", options.batch_size, ranges::kBatchSize);
  if (options.augment != 0 && options.augment != 1) check("augment", options.augment, 8, 8);
  check("shuffle", options.shuffle, kOwnChoice, 1);
  check("improve", options.improve, kOwnChoice, 1);
  check("untrained", options.untrained, 0, 1);
  check("learn", options.learn, 0, 2);
  check("stop_at_first_misfit", options.stop_at_first_misfit, 0, 1);
}

bool is_given(const pointsman_solve_options& options, std::string_view flag) {
  const std::pair<std::string_view, bool> given[] = {
      {"--model", options.model != nullptr},
      {"--samples", options.samples != kDefaults.samples},
      {"--first-sample", options.first_sample != kDefaults.first_sample},
      {"--shuffle", options.shuffle != kDefaults.shuffle},
      {"--augment", options.augment != kDefaults.augment},
      {"--temperature", options.temperature != kDefaults.temperature},
      {"--clip", options.clip != kDefaults.clip},
      {"--improve", options.improve != kDefaults.improve},
      {"--stop-at-first-misfit", options.stop_at_first_misfit != kDefaults.stop_at_first_misfit},
      {"--kicks", options.kicks != kDefaults.kicks},
      {"--steps", options.steps != kDefaults.steps},
      {"--replicas", options.replicas != kDefaults.replicas},
      {"--learn", options.learn != kDefaults.learn},
      {"--learning-rate", options.learning_rate != kDefaults.learning_rate},
      {"--entropy", options.entropy != kDefaults.entropy}};
  return std::find(std::begin(given), std::end(given), std::pair(flag, true)) != std::end(given);
}

Mode mode_of(const char* name) {
  if (name == nullptr) return Mode::kAuto;
  const ModeInfo* const mode = find_mode(name);
  if (mode != nullptr && !mode->only_rival) return mode->mode;
  std::string known;
  for (const ModeInfo& info : all_modes()) {
    if (!info.only_rival) known += (known.empty() ? "" : ", ") + std::string(info.name);
  }
  throw std::invalid_argument("mode: expected one of " + known + ", found \"" + name + "\"");
}

template <typename To, typename From>
void set_unless(std::optional<To>& to, From given, From unset) {
  if (given != unset) to = static_cast<To>(given);
}

}  // namespace

pointsman_solve_options solve_options_of(const pointsman_solve_options* given) {
  return taken(given, kDefaults);
}

SolveOptions engine_options(const pointsman_solve_options& options) {
  check_numbers(options);
  SolveOptions own;
  own.mode = mode_of(options.mode);
  own.seed = options.seed;
  own.first_sample = options.first_sample;
  own.policy.temperature = static_cast<float>(options.temperature);
  own.policy.stop_at_first_misfit = options.stop_at_first_misfit != 0;
  set_unless(own.policy.clip, options.clip, kDefaults.clip);
  set_unless(own.samples, options.samples, kDefaults.samples);
  set_unless(own.kicks, options.kicks, kDefaults.kicks);
  set_unless(own.steps, options.steps, kDefaults.steps);
  set_unless(own.learning_rate, options.learning_rate, kDefaults.learning_rate);
  set_unless(own.entropy, options.entropy, kDefaults.entropy);
  set_unless(own.replicas, options.replicas, kDefaults.replicas);
  set_unless(own.batch_size, options.batch_size, kDefaults.batch_size);
  set_unless(own.augment, options.augment, kDefaults.augment);
  set_unless(own.shuffle, options.shuffle, kDefaults.shuffle);
  set_unless(own.improve, options.improve, kDefaults.improve);
  if (options.learn != 0) own.learned = options.learn == 1 ? Learned::kAll : Learned::kAttention;
  own.untrained = options.untrained != 0;
  const auto given = [&](const char* flag) { return is_given(options, flag); };
  own.network = asks_for_network(given);
  refuse_combinations(own, given);
  return own;
}

void check_score_options(const pointsman_solve_options& options) {
  check("temperature", options.temperature, ranges::kTemperature);
}

}  // namespace pointsman

extern "C" int pointsman_solve_options_init(pointsman_solve_options* options, size_t size) {
  return pointsman::give(pointsman::kDefaults, options, size);
}
