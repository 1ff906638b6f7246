// SPDX-License-Identifier: Apache-2.0
// The calls that compute.
#include <algorithm>
#include <memory>
#include <numeric>

#include "host/library/call_watch.h"
#include "host/library/handles.h"
#include "host/library/solve_request.h"
#include "host/run/solve_rules.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

void check_instances(const SolveOptions& options, const InstanceBatch& instances) {
  for (const Instance& instance : instances) {
    const auto [code, message] = check_instance(options, instance);
    if (code != kExitDone) throw std::invalid_argument(message);
  }
}

// The run as if it were a new one, but for the models that it has read.
void begin(SolveRun& run, const pointsman_solve_options& options) {
  run.models.request(text_or_empty(options.model), options.untrained != 0);
  run.used = {};
  run.report = {};
}

int solve(pointsman_solver& solver, const InstanceBatch& instances, const pointsman_solve_options& given,
          pointsman_answers& answers) {
  CallWatch watch(given, instances.size());
  SolveRun& run = solver.ready_run();
  SolveOptions options = engine_options(given);
  check_instances(options, instances);
  begin(run, given);
  std::vector<uint64_t> rows(instances.size());
  std::iota(rows.begin(), rows.end(), given.first_row);
  if (given.progress != nullptr)
    options.on_step = [&](const ActiveSearchProgress& at) { watch.tell_step(at.step); };
  answers.solutions.resize(instances.size());
  SolveTotals totals;
  run.solve(instances, rows, options, watch.control(), [&](size_t i, Solution&& found) {
    totals.add(instances[i], found, kNoNumber);
    answers.solutions[i] = std::move(found);
    watch.count_answer();
  });
  answers.summary = summarise(run, totals, given.seed, 0.0);
  const bool is_cancelled = totals.is_cut_short() && watch.was_cancelled();
  return answers.summary.code = is_cancelled ? POINTSMAN_CANCELLED : POINTSMAN_OK;
}

int score(pointsman_solver& solver, const InstanceBatch& instances, const SolutionBatch& solutions,
          const pointsman_solve_options& given, double* log_probs) {
  CallWatch watch(given, instances.size());
  SolveRun& run = solver.ready_run();
  check_score_options(given);
  for (const Instance& instance : instances) {
    if (!instance.has_coordinates())
      throw std::invalid_argument("score: an instance has no coordinates, only distances");
  }
  if (solutions.size() != instances.size())
    throw std::invalid_argument("score: expected one answer for each instance");
  begin(run, given);
  try {
    const auto scores = run.score(instances, solutions, static_cast<float>(given.temperature),
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
