// SPDX-License-Identifier: Apache-2.0
// Problems of the caller's own: what they are made of, their trainings, models and answers.
#include <algorithm>
#include <array>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <memory>
#include <utility>

#include "host/formats/formats.h"
#include "host/formats/text_scan.h"
#include "host/library/calls.h"
#include "host/options/call_options.h"
#include "models/parameter_file.h"

namespace pointsman {

namespace {

constexpr pointsman_problem_options kPlainProblem = [] {
  pointsman_problem_options all = {};
  all.weight = -1;
  all.first = all.last = POINTSMAN_NO_ITEM;
  return all;
}();

constexpr pointsman_train_options kTrainDefaults = [] {
  pointsman_train_options all = {};
  all.minutes = 2.0;
  return all;
}();

void refuse_unless(bool is_right, const std::string& message) {
  if (!is_right) throw UsageError(message);
}

void check_result(int result) {
  if (result != 0) throw CallStopped();
}

OwnProblem::Cost cost_of(const pointsman_problem_options& options) {
  return [cost = options.cost, user = options.user](
             const std::vector<double>& items, const std::vector<int64_t>& orders, int64_t count, int n) {
    const auto each = static_cast<size_t>(n);
    std::vector<double> costs(static_cast<size_t>(count), std::nan(""));
    check_result(cost(user, items.data(), orders.data(), costs.size(), each, costs.data()));
    const auto wrong = std::ranges::find_if_not(costs, [](double found) { return std::isfinite(found); });
    if (wrong == costs.end()) return costs;
    const auto order = orders.begin() + (wrong - costs.begin()) * n;
    std::vector<std::string> places;
    std::transform(order, order + n, std::back_inserter(places),
                   [](int64_t item) { return std::to_string(item); });
    throw InputError(
        "cost", 0,
        "expected finite numbers, found " + number_text(*wrong) + " for the order " + joined(places, ", "));
  };
}

// Throws InputError naming the first number of [count][n][width] that is not finite.
void require_finite(const double* numbers, std::array<size_t, 3> shape, const char* name) {
  const auto [count, n, width] = shape;
  const double* const end = numbers + count * n * width;
  const double* const wrong =
      std::find_if_not(numbers, end, [](double number) { return std::isfinite(number); });
  if (wrong == end) return;
  const auto place = static_cast<size_t>(wrong - numbers);
  throw InputError(name, 0,
                   "[" + std::to_string(place / (n * width)) + "][" + std::to_string(place / width % n) +
                       "][" + std::to_string(place % width) + "]: expected a finite number, found " +
                       number_text(*wrong));
}

OwnProblem::Draw draw_of(const pointsman_problem_options& options) {
  if (options.draw == nullptr) return {};
  return [draw = options.draw, user = options.user, width = options.width](uint64_t seed, uint64_t first,
                                                                           int count, int n) {
    const auto rows = static_cast<size_t>(count), each = static_cast<size_t>(n);
    std::vector<double> items(rows * each * width, std::nan(""));
    check_result(draw(user, seed, first, rows, each, items.data()));
    require_finite(items.data(), {rows, each, width}, "instances");
    return items;
  };
}

OwnDefinition definition_of(const pointsman_problem_options& options) {
  required(options.cost, "cost");
  refuse_unless(options.width >= 1 && options.width <= kMostOwnFeatures,
                "width: expected 1 to " + std::to_string(kMostOwnFeatures) + " numbers an item, found " +
                    std::to_string(options.width));
  refuse_unless(options.weight >= -1 && options.weight < static_cast<int64_t>(options.width),
                "weight: expected one of " + std::to_string(options.width) +
                    " numbers of an item, or -1, found " + std::to_string(options.weight));
  refuse_unless(std::isfinite(options.capacity), "capacity: expected a finite number");
  refuse_unless(options.weight >= 0 || options.capacity == 0.0, "capacity: needs a weight");
  refuse_unless(options.pairs <= kLargestSize, "pairs: expected at most " + std::to_string(kLargestSize));
  refuse_unless(options.weight < 0 || options.last == POINTSMAN_NO_ITEM,
                "last: does not go with a weight, where nobody knows which item fits last");
  refuse_unless(options.maximise == 0 || options.maximise == 1,
                "maximise: expected 0 or 1, found " + std::to_string(options.maximise));
  OwnDefinition definition{static_cast<int>(options.width), {}, cost_of(options), draw_of(options)};
  OwnDeclarations& declared = definition.declarations;
  declared.maximise = options.maximise == 1;
  if (options.first != POINTSMAN_NO_ITEM) declared.first = options.first;
  if (options.last != POINTSMAN_NO_ITEM) declared.last = options.last;
  declared.weight = options.weight;
  declared.capacity = options.capacity;
  if (options.pairs > 0) {
    std::vector<std::array<int32_t, 2>> pairs(options.pairs);
    const int32_t* const given = required(options.before, "before");
    for (size_t i = 0; i < pairs.size(); ++i) pairs[i] = {given[2 * i], given[2 * i + 1]};
    declared.before = [pairs = std::move(pairs)](int) { return pairs; };
  }
  return definition;
}

int checked_size(size_t n) {
  refuse_unless(n >= 1 && n <= kLargestSize,
                "n: expected 1 to " + std::to_string(kLargestSize) + " items, found " + std::to_string(n));
  return static_cast<int>(n);
}

pointsman_training training_of(const TrainProgress& line, int64_t orders, double callback_seconds) {
  pointsman_training training = {};
  training.size = sizeof training;
  training.step = line.step;
  training.orders = orders;
  training.seconds = line.seconds;
  training.train_cost = line.train_cost;
  training.val_cost = line.val_cost;
  training.learning_rate = line.learning_rate;
  training.callback_seconds = callback_seconds;
  return training;
}

void set_train_options(const pointsman_solver& solver, const pointsman_train_options& given,
                       OwnTraining& training) {
  training.options.set("threads", solver.threads);
  const auto known = own_train_options();
  bool has_steps = false;
  for (const char* const* at = given.options; at != nullptr && at[0] != nullptr; at += 2) {
    const std::string name = at[0];
    refuse_unless(at[1] != nullptr, "options: expected a value of " + name + ", found the end");
    refuse_unless(std::ranges::count(known, name) > 0,
                  "options: expected one of " + joined(known, ", ") + ", found " + shown(name));
    has_steps = has_steps || name == "steps";
    training.options.set(name, std::string(at[1]));
  }
  if (!has_steps) training.options.set("minutes", given.minutes);
}

// work(), then what one of the problem's functions threw, which is the reason of any other end.
template <typename Work>
int with_functions(OwnCall& call, const Work& work) {
  try {
    const int status = work();
    call.rethrow();
    return status;
  } catch (const CallStopped&) {
    call.rethrow();
    return POINTSMAN_CANCELLED;
  } catch (...) {
    call.rethrow();
    throw;
  }
}

int train(pointsman_solver& solver, const OwnDefinition& definition, int n,
          const pointsman_train_options& given, pointsman_model** model) {
  refuse_unless(definition.draw != nullptr, "the problem has no instances to train on: its draw is NULL");
  OwnCall call(definition);
  OwnTraining training;
  set_train_options(solver, given, training);
  training.options.set("size", int64_t{n});
  std::atomic<bool> cancelled = false;
  training.interrupted = [&] { return cancelled.load(); };
  training.warn = solver.log.warn;
  int64_t before = 0;
  if (given.init != nullptr) {
    training.init = &given.init->model;
    before = training.init->config.training_tours;
    refuse_unless(training.init->config.own.width() == definition.width,
                  "init: expected a model of " + std::to_string(definition.width) +
                      " numbers an item, found " + std::to_string(training.init->config.own.width()));
  }
  if (given.progress != nullptr) {
    training.tell = [&](const TrainProgress& line) {
      const pointsman_training told = training_of(line, before + line.tours, 0.0);
      if (given.progress(given.progress_user, &told) != 0) cancelled = true;
    };
  }
  return with_functions(call, [&] {
    training.sample = call.problem()->draw(training.request.options.seed, 0, kScalingInstances, n);
    OwnTrained trained = train_own(call, training);
    TrainResult& result = trained.result;
    const pointsman_training last =
        training_of(result.last, result.config.training_tours, trained.callback_seconds);
    *model = new pointsman_model{{result.config, std::move(result.parameters), "", "", true}, last};
    return result.status == Status::kInterrupted ? POINTSMAN_CANCELLED : POINTSMAN_OK;
  });
}

// work(call, instances) with instances of a problem of the caller's own.
template <typename Work>
int with_instances(const OwnDefinition& definition, const OwnScaling* scaling, const double* items,
                   size_t count, size_t n, const Work& work) {
  const int size = checked_size(n);
  const auto width = static_cast<size_t>(definition.width), each = n * width;
  refuse_unless(count <= PTRDIFF_MAX / sizeof(double) / each, "count: more instances than memory has places");
  if (count > 0) require_finite(required(items, "items"), {count, n, width}, "items");
  refuse_unless(scaling == nullptr || scaling->width() == definition.width,
                "model: expected one of " + std::to_string(definition.width) + " numbers an item");
  OwnCall call(definition);
  InstanceBatch instances;
  add_own_instances(scaling == nullptr ? call.problem() : call.problem(*scaling), {items, count * each}, size,
                    instances);
  return with_functions(call, [&] {
    const int status = work(call, instances);
    return call.stopped() ? POINTSMAN_CANCELLED : status;
  });
}

SolutionBatch solutions_of(const int32_t* orders, size_t count, size_t n) {
  SolutionBatch solutions(count);
  if (count > 0) required(orders, "orders");
  for (size_t i = 0; i < count; ++i) {
    const int32_t* const order = orders + i * n;
    solutions[i].order.assign(order, std::find_if(order, order + n, [](int32_t item) { return item < 0; }));
  }
  return solutions;
}

// Without a mode, by the numbers that are given.
SolveRequest own_request(pointsman_solver& solver, pointsman_solve_options given) {
  const auto has = [&](const char* name, int64_t number) {
    return number > 0 || solver.settings.contains(name);
  };
  if (!has("mode", given.mode != nullptr ? 1 : 0))
    given.mode = has("steps", given.steps) ? "active" : has("samples", given.samples) ? "sample" : "greedy";
  const SolveRequest request = solve_request(solver, given);
  const Mode mode = request.options.mode;
  refuse_unless(mode == Mode::kGreedy || mode == Mode::kSample || mode == Mode::kActive,
                std::string("--mode: expected greedy, sample or active, found ") + info_of(mode).name);
  return request;
}

int solve(pointsman_solver& solver, OwnCall& call, const Model& model, const InstanceBatch& instances,
          const pointsman_solve_options& given, pointsman_answers& answers) {
  CallWatch watch{given, instances.size()};
  SolveRequest request = own_request(solver, given);
  SolveOptions& options = request.options;
  const bool improves = std::exchange(options.improve, std::nullopt).value_or(false);
  const std::optional<int64_t> kicks = std::exchange(options.kicks, std::nullopt);
  options.on_step = [&](const ActiveSearchProgress& at) { watch.step = at.step; };
  SolveJob job(instances, given.first_row, std::move(options),
               within_limits(watch.start, request.time_limit, request.limit_each));
  job.control.interrupted = [&] { return watch.is_cancelled(); };
  job.control.report.warn = solver.log.warn;
  job.sink = [&](size_t, Solution&&) { ++watch.answered; };
  check_instances(job.options, job.instances);
  answers.solutions = solve_own(call, solver.cpu_engine(), model, instances, std::move(job),
                                improves ? std::optional(kicks.value_or(0)) : std::nullopt);
  const bool is_cut_short = std::ranges::any_of(
      answers.solutions, [](const Solution& solution) { return solution.status != Status::kDone; });
  return is_cut_short && watch.cancelled ? POINTSMAN_CANCELLED : POINTSMAN_OK;
}

}  // namespace

}  // namespace pointsman

using namespace pointsman;

extern "C" {

int pointsman_problem_options_init(pointsman_problem_options* options, size_t size) {
  return give(kPlainProblem, options, size);
}

int pointsman_train_options_init(pointsman_train_options* options, size_t size) {
  return give(kTrainDefaults, options, size);
}

int pointsman_training_init(pointsman_training* training, size_t size) {
  return give(pointsman_training{}, training, size);
}

int pointsman_problem_create(pointsman_solver* solver, const pointsman_problem_options* options,
                             pointsman_problem** problem) {
  return call_with(solver, [&] {
    required(problem, "problem");
    *problem = new pointsman_problem{definition_of(taken(required(options, "options"), kPlainProblem))};
  });
}

void pointsman_problem_free(pointsman_problem* problem) { delete problem; }

int pointsman_problem_train(pointsman_solver* solver, const pointsman_problem* problem, size_t n,
                            const pointsman_train_options* options, pointsman_model** model) {
  return call_with(solver, [&] {
    *required(model, "model") = nullptr;
    return train(*solver, required(problem, "problem")->definition, checked_size(n),
                 taken(options, kTrainDefaults), model);
  });
}

int pointsman_model_read(pointsman_solver* solver, const char* path, pointsman_model** model) {
  return call_with(solver, [&] {
    required(model, "model");
    Model read = read_own_model(required(path, "path"));
    TrainProgress none;
    none.train_cost = none.val_cost = std::nan("");
    const pointsman_training training = training_of(none, read.config.training_tours, 0.0);
    *model = new pointsman_model{std::move(read), training};
  });
}

int pointsman_model_write(pointsman_solver* solver, const pointsman_model* model, const char* path,
                          int replace) {
  return call_with(solver, [&] {
    const Model& own = required(model, "model")->model;
    const std::string to = required(path, "path");
    write_output(to, replace != 0, [&] { return model_bytes(own.config, own.parameters, to); });
  });
}

void pointsman_model_free(pointsman_model* model) { delete model; }

int pointsman_model_training(const pointsman_model* model, pointsman_training* training) {
  if (model == nullptr || training == nullptr) return POINTSMAN_USAGE;
  return give(model->training, training, training->size);
}

int pointsman_problem_solve(pointsman_solver* solver, const pointsman_problem* problem,
                            const pointsman_model* model, const double* items, size_t count, size_t n,
                            const pointsman_solve_options* options, pointsman_answers** answers) {
  return call_with(solver, [&] {
    required(answers, "answers");
    const Model& network = required(model, "model")->model;
    auto found = std::make_unique<pointsman_answers>();
    const int status = with_instances(required(problem, "problem")->definition, &network.config.own, items,
                                      count, n, [&](OwnCall& call, const InstanceBatch& instances) {
                                        return solve(*solver, call, network, instances,
                                                     taken(options, kSolveDefaults), *found);
                                      });
    *answers = found.release();
    return status;
  });
}

int pointsman_problem_costs(pointsman_solver* solver, const pointsman_problem* problem, const double* items,
                            const int32_t* orders, size_t count, size_t n, double* costs) {
  return call_with(solver, [&] {
    required(costs, "costs");
    return with_instances(required(problem, "problem")->definition, nullptr, items, count, n,
                          [&](OwnCall& call, const InstanceBatch& instances) {
                            std::ranges::copy(own_costs(call, instances, solutions_of(orders, count, n), {}),
                                              costs);
                            return POINTSMAN_OK;
                          });
  });
}

int pointsman_problem_score(pointsman_solver* solver, const pointsman_problem* problem,
                            const pointsman_model* model, const double* items, const int32_t* orders,
                            size_t count, size_t n, const pointsman_solve_options* options,
                            double* log_probs) {
  return call_with(solver, [&] {
    required(log_probs, "log_probs");
    const Model& network = required(model, "model")->model;
    const pointsman_solve_options given = taken(options, kSolveDefaults);
    return with_instances(
        required(problem, "problem")->definition, &network.config.own, items, count, n,
        [&](OwnCall& call, const InstanceBatch& instances) {
          CallWatch watch{given, instances.size()};
          const float temperature = score_request(*solver, given).options.policy.temperature;
          const StopToken stop([&] { return watch.is_cancelled() || call.stopped(); });
          std::ranges::copy(solver->cpu_engine().score(network, instances, solutions_of(orders, count, n),
                                                       temperature, stop),
                            log_probs);
          return POINTSMAN_OK;
        });
  });
}
}
