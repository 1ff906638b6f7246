// SPDX-License-Identifier: Apache-2.0
#include "host/run/given_answers.h"

#include <utility>

#include "host/formats/read_files.h"
#include "host/run/solve_totals.h"

namespace pointsman {

Solution without_network(Solution solution) {
  solution.log_prob = solution.network_objective = kNoNumber;
  return solution;
}

SolutionBatch measured_answers(SolutionBatch solutions, const InstanceBatch& instances,
                               const std::string& file) {
  check_solutions(solutions, instances, file);
  for (Solution& solution : solutions) solution = without_network(std::move(solution));
  return solutions;
}

SolveSummary summary_of_given(const InstanceBatch& instances, const SolutionBatch& solutions) {
  SolveTotals totals;
  for (size_t i = 0; i < instances.size(); ++i) totals.add(instances[i], solutions[i], kNoNumber);
  SolveSummary summary;
  summary.instances = totals.instances;
  summary.mean_cost = totals.mean_objective();
  summary.version = POINTSMAN_VERSION;
  return summary;
}

}  // namespace pointsman
