// SPDX-License-Identifier: Apache-2.0
#include "host/run/solve_batch.h"

#include <utility>

#include "host/options/solve_options.h"
#include "host/run/solve_totals.h"

namespace pointsman {

SolvedBatch solve_batch(SolveRun& run, SolveJob job, const std::function<void()>& on_answer) {
  check_instances(job.options, job.instances);
  run.used = {};
  run.report = {};
  SolvedBatch solved;
  solved.solutions.resize(job.size());
  SolveTotals totals;
  job.sink = [&](size_t i, Solution&& found) {
    totals.add(*job.instances[i], found, kNoNumber);
    solved.solutions[i] = std::move(found);
    if (on_answer) on_answer();
  };
  run.solve(job);
  solved.summary = summarise(run, totals, job.options, 0.0);
  solved.is_cut_short = totals.is_cut_short();
  return solved;
}

}  // namespace pointsman
