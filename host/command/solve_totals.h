// SPDX-License-Identifier: Apache-2.0
// Running sums over the answers of a run.
#pragma once

#include <cmath>
#include <cstdint>

#include "engine/problem/instance.h"

namespace pointsman {

struct SolveTotals {
  int64_t instances = 0, failed = 0;  // failed: lines of a stream that were no instance
  double objective = 0, gap = 0, network_objective = 0;
  int64_t with_gap = 0, with_network = 0;
  std::optional<ProblemKind> problem;  // of all answers; none: several
  bool interrupted = false, time_limit = false;

  void add(const Instance& instance, const Solution& solution, double solution_gap) {
    ++instances;
    problem = instances == 1 || problem == instance.problem ? std::optional(instance.problem) : std::nullopt;
    objective += solution.objective;
    if (!std::isnan(solution_gap)) gap += solution_gap, ++with_gap;
    if (!std::isnan(solution.network_objective))
      network_objective += solution.network_objective, ++with_network;
    interrupted |= solution.status == Status::kInterrupted;
    time_limit |= solution.status == Status::kTimeLimit;
  }

  // NaN when there is nothing to average, and for a mix of lengths and values.
  double mean_objective() const {
    return problem ? objective / static_cast<double>(instances) : std::nan("");
  }
  double mean_gap() const { return with_gap > 0 ? gap / static_cast<double>(with_gap) : std::nan(""); }
  double mean_network_objective() const {
    return problem && with_network == instances ? network_objective / static_cast<double>(instances)
                                                : std::nan("");
  }
};

}  // namespace pointsman
