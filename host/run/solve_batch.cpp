// SPDX-License-Identifier: Apache-2.0
#include "host/run/solve_batch.h"

#include <numeric>
#include <utility>

#include "host/options/solve_options.h"
#include "host/run/solve_totals.h"

namespace pointsman {

SolvedBatch solve_batch(SolveRun& run, const InstanceBatch& instances, uint64_t first_row,
                        const SolveOptions& options, const SearchControl& control,
                        const std::function<void()>& on_answer) {
  check_instances(options, instances);
  run.used = {};
  run.report = {};
  std::vector<uint64_t> rows(instances.size());
  std::iota(rows.begin(), rows.end(), first_row);
  SolvedBatch solved;
  solved.solutions.resize(instances.size());
  SolveTotals totals;
  run.solve(instances, rows, options, control, [&](size_t i, Solution&& found) {
    totals.add(instances[i], found, kNoNumber);
    solved.solutions[i] = std::move(found);
    if (on_answer) on_answer();
  });
  solved.summary = summarise(run, totals, options.seed, 0.0);
  solved.is_cut_short = totals.is_cut_short();
  return solved;
}

}  // namespace pointsman
