// SPDX-License-Identifier: Apache-2.0
#include "host/run/rank_messages.h"

#include <chrono>
#include <optional>

#include "engine/backend/ranks/cluster_backend.h"
#include "host/options/solve_options.h"

namespace pointsman {

namespace {

std::optional<double> seconds_until(const std::optional<Clock::time_point>& when) {
  if (!when) return std::nullopt;
  return std::chrono::duration<double>(*when - Clock::now()).count();
}

std::optional<Clock::time_point> in_seconds(const std::optional<double>& seconds) {
  if (!seconds) return std::nullopt;
  return Clock::now() + duration_of(*seconds);
}

}  // namespace

MessageWriter& put(MessageWriter& message, const BackendOptions& options) {
  return message.put(options.device).put(options.threads).put(options.precision);
}

BackendOptions take_backend_options(MessageReader& message) {
  BackendOptions options;
  message.get(options.device).get(options.threads).get(options.precision);
  return options;
}

MessageWriter& put(MessageWriter& message, const Model& model) {
  put(message, model.config);
  return message.put(model.parameters).put(model.name);
}

Model take_model(MessageReader& message) {
  Model model;
  model.config = take_config(message);
  message.get(model.parameters).get(model.name);
  return model;
}

MessageWriter& put(MessageWriter& message, const SolveOptions& options) {
  SolveOptions own = options;
  OptionSet set;
  add_engine_options(set, own);
  for (const Option& option : set.all()) message.put(option.text());
  return message.put(own.fills_limit).put(own.network).put(own.untrained).put(own.seed);
}

SolveOptions take_solve_options(MessageReader& message) {
  SolveOptions options;
  OptionSet set;
  add_engine_options(set, options);
  for (Option& option : set.all()) {
    if (const auto text = message.next<std::string>(); !text.empty()) option.set_text(text);
  }
  message.get(options.fills_limit).get(options.network).get(options.untrained).get(options.seed);
  return options;
}

MessageWriter& put(MessageWriter& message, const SearchControl& control) {
  return message.put(seconds_until(control.deadline)).put(seconds_until(control.end)).put(control.each);
}

SearchControl take_limits(MessageReader& message) {
  SearchControl control;
  control.deadline = in_seconds(message.next<std::optional<double>>());
  control.end = in_seconds(message.next<std::optional<double>>());
  message.get(control.each);
  return control;
}

MessageWriter& put(MessageWriter& message, const Instance& instance) {
  message.put(instance.id).put(instance.has_id).put(instance.problem).put(instance.metric);
  message.put(instance.capacity)
      .put(instance.values)
      .put(instance.forced)
      .put(instance.forbidden)
      .put(instance.start)
      .put(instance.end)
      .put(instance.first_city);
  message.put(instance.matrix ? instance.matrix->n : -1);
  return instance.matrix ? message.put(instance.matrix->above).put(instance.matrix->back) : message;
}

Instance take_instance(MessageReader& message) {
  Instance instance;
  message.get(instance.id).get(instance.has_id).get(instance.problem).get(instance.metric);
  message.get(instance.capacity)
      .get(instance.values)
      .get(instance.forced)
      .get(instance.forbidden)
      .get(instance.start)
      .get(instance.end)
      .get(instance.first_city);
  if (const int n = message.next<int>(); n >= 0) {
    DistanceMatrix matrix{n, {}};
    message.get(matrix.above).get(matrix.back);
    instance.matrix = std::make_shared<const DistanceMatrix>(std::move(matrix));
  }
  return instance;
}

MessageWriter& put(MessageWriter& message, const Solution& solution) {
  message.put(solution.order).put(solution.objective).put(solution.unrounded).put(solution.weight);
  message.put(solution.violation);
  message.put(solution.log_prob).put(solution.network_objective).put(solution.bound);
  return message.put(solution.status).put(solution.start).put(solution.kicks).put(solution.redrawn);
}

Solution take_solution(MessageReader& message) {
  Solution solution;
  message.get(solution.order).get(solution.objective).get(solution.unrounded).get(solution.weight);
  message.get(solution.violation);
  message.get(solution.log_prob).get(solution.network_objective).get(solution.bound);
  message.get(solution.status).get(solution.start).get(solution.kicks).get(solution.redrawn);
  return solution;
}

}  // namespace pointsman
