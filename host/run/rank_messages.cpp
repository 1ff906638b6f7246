// SPDX-License-Identifier: Apache-2.0
#include "host/run/rank_messages.h"

#include <chrono>
#include <optional>
#include <utility>

#include "engine/backend/ranks/cluster_backend.h"
#include "host/options/solve_options.h"

namespace pointsman {

namespace {

// Every field of each, in one order for both ways.

// Beside those of the table of options.
template <typename Options, typename Field>
void each_own_field(Options& o, const Field& field) {
  field(o.fills_limit), field(o.network), field(o.untrained), field(o.seed);
}

template <typename Answer, typename Field>
void each_field_of_solution(Answer& s, const Field& field) {
  field(s.order), field(s.objective), field(s.unrounded), field(s.weight), field(s.log_prob);
  field(s.network_objective), field(s.status), field(s.start), field(s.kicks);
}

auto writes(MessageWriter& message) {
  return [&message](const auto& value) { message.put(value); };
}
auto reads(MessageReader& message) {
  return [&message](auto& value) { message.get(value); };
}

std::optional<double> seconds_until(const std::optional<Clock::time_point>& when) {
  if (!when) return std::nullopt;
  return std::chrono::duration<double>(*when - Clock::now()).count();
}

std::optional<Clock::time_point> in_seconds(const std::optional<double>& seconds) {
  if (!seconds) return std::nullopt;
  return Clock::now() + duration_of(*seconds);
}

}  // namespace

void put(MessageWriter& message, const BackendOptions& options) {
  message.put(options.device).put(options.threads).put(options.precision);
}

BackendOptions take_backend_options(MessageReader& message) {
  BackendOptions options;
  message.get(options.device).get(options.threads).get(options.precision);
  return options;
}

void put(MessageWriter& message, const Model& model) {
  put(message, model.config);
  message.put(model.parameters).put(model.name);
}

Model take_model(MessageReader& message) {
  Model model;
  model.config = take_config(message);
  message.get(model.parameters).get(model.name);
  return model;
}

void put(MessageWriter& message, const SolveOptions& options) {
  SolveOptions own = options;
  OptionSet set;
  add_engine_options(set, own);
  for (const Option& option : set.all()) message.put(option.text());
  each_own_field(options, writes(message));
}

SolveOptions take_solve_options(MessageReader& message) {
  SolveOptions options;
  OptionSet set;
  add_engine_options(set, options);
  for (Option& option : set.all()) {
    if (const auto text = message.next<std::string>(); !text.empty()) option.set_text(text);
  }
  each_own_field(options, reads(message));
  return options;
}

void put(MessageWriter& message, const SearchControl& control) {
  message.put(seconds_until(control.deadline)).put(seconds_until(control.end)).put(control.each);
}

SearchControl take_limits(MessageReader& message) {
  SearchControl control;
  control.deadline = in_seconds(message.next<std::optional<double>>());
  control.end = in_seconds(message.next<std::optional<double>>());
  message.get(control.each);
  return control;
}

void put(MessageWriter& message, const Instance& instance) {
  message.put(instance.id).put(instance.has_id).put(instance.problem).put(instance.metric);
  message.put(instance.capacity).put(instance.values).put(instance.matrix ? instance.matrix->n : -1);
  if (instance.matrix) message.put(instance.matrix->above);
}

Instance take_instance(MessageReader& message) {
  Instance instance;
  message.get(instance.id).get(instance.has_id).get(instance.problem).get(instance.metric);
  message.get(instance.capacity).get(instance.values);
  if (const int n = message.next<int>(); n >= 0)
    instance.matrix =
        std::make_shared<DistanceMatrix>(DistanceMatrix{n, message.next<std::vector<double>>()});
  return instance;
}

void put(MessageWriter& message, const Solution& solution) {
  each_field_of_solution(solution, writes(message));
}

Solution take_solution(MessageReader& message) {
  Solution solution;
  each_field_of_solution(solution, reads(message));
  return solution;
}

}  // namespace pointsman
