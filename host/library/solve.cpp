// SPDX-License-Identifier: Apache-2.0
// The calls that compute.
#include <algorithm>
#include <memory>
#include <utility>

#include "host/library/call_watch.h"
#include "host/library/handles.h"
#include "host/library/solve_request.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

int solve(pointsman_solver& solver, const InstanceBatch& instances, const pointsman_solve_options& given,
          pointsman_answers& answers) {
  CallWatch watch(given, instances.size());
  SolveRun& run = solver.ready_run();
  SolveRequest request = solve_request(solver, given);
  run.models.request(request.model, request.options.untrained);
  SolveJob job(instances, given.first_row, std::move(request.options), watch.control(request));
  if (given.progress != nullptr)
    job.options.on_step = [&](const ActiveSearchProgress& at) { watch.tell_step(at.step); };
  SolvedBatch solved = solve_batch(run, std::move(job), [&] { watch.count_answer(); });
  answers = {std::move(solved.solutions), std::move(solved.summary)};
  const bool is_cancelled = solved.is_cut_short && watch.was_cancelled();
  return answers.summary.code = is_cancelled ? POINTSMAN_CANCELLED : POINTSMAN_OK;
}

int score(pointsman_solver& solver, const InstanceBatch& instances, const SolutionBatch& solutions,
          const pointsman_solve_options& given, double* log_probs) {
  CallWatch watch(given, instances.size());
  SolveRun& run = solver.ready_run();
  const SolveRequest request = score_request(solver, given);
  for (const Instance& instance : instances) {
    if (!instance.has_coordinates())
      throw std::invalid_argument("score: an instance has no coordinates, only distances");
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

int pointsman_set_option(pointsman_solver* solver, const char* name, const char* value) {
  return call_with(solver, [&] {
    if (value == nullptr) {
      solver->settings.erase(required(name, "name"));
    } else {
      solver->ready_calls().begin().set(required(name, "name"), std::string(value));
      solver->settings.insert_or_assign(name, value);
    }
    return POINTSMAN_OK;
  });
}

int pointsman_solve(pointsman_solver* solver, const pointsman_instances* instances,
                    const pointsman_solve_options* options, pointsman_answers** answers) {
  return call_with(solver, [&] {
    required(answers, "answers");
    auto found = std::make_unique<pointsman_answers>();
    const int status =
        solve(*solver, required(instances, "instances")->batch, solve_options_of(options), *found);
    *answers = found.release();
    return status;
  });
}

int pointsman_score(pointsman_solver* solver, const pointsman_instances* instances,
                    const pointsman_answers* answers, const pointsman_solve_options* options,
                    double* log_probs) {
  return call_with(solver, [&] {
    return score(*solver, required(instances, "instances")->batch, required(answers, "answers")->solutions,
                 solve_options_of(options), required(log_probs, "log_probs"));
  });
}
}
