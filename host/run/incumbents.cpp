// SPDX-License-Identifier: Apache-2.0
#include "host/run/incumbents.h"

#include <utility>

#include "engine/engine.h"
#include "engine/problem/problem.h"
#include "host/options/solve_options.h"

namespace pointsman {

void improve_incumbents(SolutionBatch& incumbents, const SolveJob& job) {
  const ImproveOptions options{.kicks = job.options.kicks.value_or(0), .seed = job.options.seed};
  for (size_t i = 0; i < incumbents.size(); ++i) {
    if (improves(job.options)) improve_solution(*job.instances[i], incumbents[i], options, job.control);
    if (job.control.report.on_best) job.control.report.on_best(incumbents[i].objective);
  }
}

void keep_incumbent(const Instance& instance, Solution&& incumbent, const SearchControl& control,
                    Solution& found) {
  const bool is_solved = has_answer(found);
  if (is_solved && !is_better(instance.problem, incumbent.objective, found.objective)) return;
  incumbent.status = is_solved ? found.status : control.check();
  incumbent.network_objective = found.network_objective;
  found = std::move(incumbent);
}

}  // namespace pointsman
