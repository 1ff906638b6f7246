// SPDX-License-Identifier: Apache-2.0
// What the answers of a run come to.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>

#include "engine/problem/problem.h"
#include "host/formats/write_solutions.h"
#include "host/run/solve_run.h"

namespace pointsman {

// Running sums over the answers of a run.
struct SolveTotals {
  int64_t instances = 0, unsolved = 0;  // of all instances, unsolved ones included
  int64_t cut_short = 0;                // whose status is not done
  int64_t failed = 0;                   // lines of a stream that were no instance
  double objective = 0, gap = 0, network_objective = 0;
  int64_t with_gap = 0, with_network = 0;
  int64_t kicks = 0;
  std::string start;                   // as SolveSummary has it
  std::optional<ProblemKind> problem;  // of all answers; none: several

  void add(const Instance& instance, const Solution& solution, double solution_gap) {
    ++instances;
    problem = instances == 1 || problem == instance.problem ? std::optional(instance.problem) : std::nullopt;
    cut_short += solution.status != Status::kDone;
    if (solution.status == Status::kUnsolved) {
      ++unsolved;
      return;
    }
    objective += solution.objective;
    kicks += solution.kicks;
    start = solved() == 1 || start == name_of(solution.start) ? name_of(solution.start) : "mixed";
    if (!std::isnan(solution_gap)) gap += solution_gap, ++with_gap;
    if (!std::isnan(solution.network_objective))
      network_objective += solution.network_objective, ++with_network;
  }

  int64_t solved() const { return instances - unsolved; }
  // A limit or a signal left less than was asked for.
  bool is_cut_short() const { return cut_short > 0; }

  // NaN when there is nothing to average, and for a mix of lengths and values.
  double mean_objective() const {
    return problem && solved() > 0 ? objective / static_cast<double>(solved()) : std::nan("");
  }
  double mean_gap() const { return with_gap > 0 ? gap / static_cast<double>(with_gap) : std::nan(""); }
  double mean_network_objective() const {
    return problem && with_network == solved() && solved() > 0
               ? network_objective / static_cast<double>(solved())
               : std::nan("");
  }
};

// "cpu (AVX-512, 2 threads)".
std::string device_text(const DeviceInfo& device);

// Of a run that answered so; the code is left 0.
SolveSummary summarise(const SolveRun& run, const SolveTotals& totals, uint64_t seed, double loading_ms);

}  // namespace pointsman
