// SPDX-License-Identifier: Apache-2.0
// The calls that compute, and their options, by the table that the command line has.
#include <algorithm>
#include <memory>
#include <mutex>
#include <utility>

#include "host/library/calls.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

using Given = pointsman_solve_options;

void set_all(const Given& given, OptionSet& options) {
  const auto set = [&](const char* name, auto member) {
    const auto value = given.*member;
    if (value == kSolveDefaults.*member) return;
    if constexpr (std::is_same_v<decltype(value), const int32_t>) {
      options.set(name, int64_t{value});
    } else {
      options.set(name, value);
    }
  };
  set("mode", &Given::mode);
  set("model", &Given::model);
  set("seed", &Given::seed);
  set("samples", &Given::samples);
  set("first_sample", &Given::first_sample);
  set("kicks", &Given::kicks);
  set("steps", &Given::steps);
  set("time_limit", &Given::time_limit);
  set("limit_each", &Given::limit_each);
  set("temperature", &Given::temperature);
  set("clip", &Given::clip);
  set("learning_rate", &Given::learning_rate);
  set("entropy", &Given::entropy);
  set("replicas", &Given::replicas);
  set("batch_size", &Given::batch_size);
  set("augment", &Given::augment);
  set("shuffle", &Given::shuffle);
  set("improve", &Given::improve);
  set("stop_at_first_misfit", &Given::stop_at_first_misfit);
  if (given.untrained != 0) {
    if (given.untrained != 1)
      throw UsageError("--untrained: expected 0 or 1, found " + std::to_string(given.untrained));
    options.set("init", "random");
  }
  if (given.learn != 0) {
    const std::vector<std::string>& words = options.find("learn")->row().choices;
    if (given.learn < 0 || static_cast<size_t>(given.learn) > words.size())
      throw UsageError("--learn: expected 0, 1 or 2, found " + std::to_string(given.learn));
    options.set("learn", words[static_cast<size_t>(given.learn) - 1]);
  }
}

}  // namespace

SolveRequest solve_request(pointsman_solver& solver, const Given& given) {
  OptionSet& options = solver.begin_call();
  for (const auto& [name, value] : solver.settings) options.set(name, value);
  set_all(given, options);
  const std::string& init = solver.calls->request().init;
  if (!init.empty() && init != "random")
    throw UsageError("--init: expected \"random\", found \"" + init + "\"");
  return solver.calls->finish();
}

SolveRequest score_request(pointsman_solver& solver, const Given& given) {
  OptionSet& options = solver.begin_call();
  for (const char* name : {"model", "temperature"}) {
    if (const auto found = solver.settings.find(name); found != solver.settings.end())
      options.set(name, found->second);
  }
  if (given.model != nullptr) options.set("model", given.model);
  if (given.temperature != kSolveDefaults.temperature) options.set("temperature", given.temperature);
  return solver.calls->request();
}

namespace {

int solve(pointsman_solver& solver, const InstanceBatch& instances, const Given& given,
          pointsman_answers& answers) {
  CallWatch watch{given, instances.size()};
  SolveRun& run = solver.ready_run();
  SolveRequest request = solve_request(solver, given);
  run.models.request(request.model, request.options.untrained);
  SolveJob job(instances, given.first_row, std::move(request.options),
               within_limits(watch.start, request.time_limit, request.limit_each));
  if (given.progress != nullptr) {
    job.control.interrupted = [&] { return watch.is_cancelled(); };
    job.options.on_step = [&](const ActiveSearchProgress& at) { watch.step = at.step; };
  }
  SolvedBatch solved = solve_batch(run, std::move(job), [&] { ++watch.answered; });
  answers = {std::move(solved.solutions), std::move(solved.summary)};
  const bool is_cancelled = solved.is_cut_short && watch.cancelled;
  return answers.summary.code = is_cancelled ? POINTSMAN_CANCELLED : POINTSMAN_OK;
}

int score(pointsman_solver& solver, const InstanceBatch& instances, const SolutionBatch& solutions,
          const Given& given, double* log_probs) {
  CallWatch watch{given, instances.size()};
  SolveRun& run = solver.ready_run();
  const SolveRequest request = score_request(solver, given);
  for (const Instance& instance : instances) {
    if (!instance.suits_networks())
      throw std::invalid_argument(std::string("score: an instance has ") + instance.beyond_networks());
  }
  require_answers_to(instances, solutions);
  run.models.request(request.model, given.untrained != 0);
  try {
    const auto scores = run.score(instances, solutions, request.options.policy.temperature,
                                  StopToken([&] { return watch.is_cancelled(); }));
    std::copy(scores.begin(), scores.end(), log_probs);
    return POINTSMAN_OK;
  } catch (const CallStopped&) {
    return POINTSMAN_CANCELLED;
  }
}

}  // namespace

}  // namespace pointsman

using namespace pointsman;

extern "C" {

int pointsman_solve_options_init(pointsman_solve_options* options, size_t size) {
  return give(kSolveDefaults, options, size);
}

int pointsman_set_option(pointsman_solver* solver, const char* name, const char* value) {
  return call_with(solver, [&] {
    required(name, "name");
    if (value == nullptr) {
      solver->settings.erase(name);
    } else {
      solver->begin_call().set(name, std::string(value));
      solver->settings.insert_or_assign(name, value);
    }
  });
}

int pointsman_solve(pointsman_solver* solver, const pointsman_instances* instances,
                    const pointsman_solve_options* options, pointsman_answers** answers) {
  return call_with(solver, [&] {
    required(answers, "answers");
    auto found = std::make_unique<pointsman_answers>();
    const int status =
        solve(*solver, required(instances, "instances")->batch, taken(options, kSolveDefaults), *found);
    *answers = found.release();
    return status;
  });
}

int pointsman_score(pointsman_solver* solver, const pointsman_instances* instances,
                    const pointsman_answers* answers, const pointsman_solve_options* options,
                    double* log_probs) {
  return call_with(solver, [&] {
    return score(*solver, required(instances, "instances")->batch, required(answers, "answers")->solutions,
                 taken(options, kSolveDefaults), required(log_probs, "log_probs"));
  });
}
}
