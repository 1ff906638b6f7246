// SPDX-License-Identifier: Apache-2.0
// Totals over a run, its summary, and a batch solved as a whole.
#pragma once

#include <cmath>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/problem/problem.h"
#include "host/formats/write_solutions.h"
#include "host/run/solve_run.h"

namespace pointsman {

// Sums over the solutions of some instances.
struct SolutionSums {
  int64_t instances = 0, unsolved = 0, infeasible = 0;  // of all instances, these included
  double objective = 0, gap = 0;
  int64_t with_gap = 0;
  std::optional<ProblemKind> problem;  // of all; none: several
  int n = 0;                           // of all in a group of SolveTotals; 0: several

  void add(const Instance& instance, const Solution& solution, double solution_gap) {
    ++instances;
    problem = instances == 1 || problem == instance.problem ? std::optional(instance.problem) : std::nullopt;
    if (solution.status == Status::kUnsolved) return void(++unsolved);
    if (solution.status == Status::kInfeasible) return void(++infeasible);
    objective += solution.objective;
    if (!std::isnan(solution_gap)) gap += solution_gap, ++with_gap;
  }

  int64_t solved() const { return instances - unsolved - infeasible; }
  // NaN when there is nothing to average, and for a mix of lengths and values.
  double mean_objective() const {
    return problem && solved() > 0 ? objective / static_cast<double>(solved()) : std::nan("");
  }
  double mean_gap() const { return with_gap > 0 ? gap / static_cast<double>(with_gap) : std::nan(""); }
};

// Running sums over the solutions of a run.
struct SolveTotals : SolutionSums {
  static constexpr size_t kMostGroups = 64;

  int64_t cut_short = 0;  // whose status is not done
  int64_t failed = 0;     // lines of a stream that were no instance
  double network_objective = 0;
  int64_t with_network = 0, kicks = 0;
  std::string start;  // as SolveSummary has it
  // Of a problem and size each, in order of their first instances; beyond kMostGroups one of all others.
  std::vector<SolutionSums> groups;

  void add(const Instance& instance, const Solution& solution, double solution_gap);

  // A limit or a signal left less than was asked for.
  bool is_cut_short() const { return cut_short > 0; }

  double mean_network_objective() const {
    return problem && with_network == solved() && solved() > 0
               ? network_objective / static_cast<double>(solved())
               : std::nan("");
  }

 private:
  SolutionSums& group_of(const Instance& instance);
};

// "cpu (AVX-512, 2 threads)".
std::string device_text(const DeviceInfo& device);

// Why `auto` took the CPU: information where a CUDA driver is there and does not work, else a detail.
void tell_device_note(const Engine& engine, const RunLog& log);

// Of a run with these options; the code is left 0.
SolveSummary summarise(SolveRun& run, const SolveTotals& totals, const SolveOptions& options,
                       double loading_ms);
// Of answers that no run gave.
SolveSummary summary_of_given(const InstanceBatch& instances, const SolutionBatch& solutions);

// A batch that is all there, solved by a run: what the libraries' calls do.
struct SolvedBatch {
  SolutionBatch solutions;  // one for each instance, in their order
  SolveSummary summary;     // of these; the code is left 0
  bool is_cut_short = false;
};

// The job needs no sink. The run's models are those of its request; what it used and reported before is
// forgotten. `on_answer` may be empty; it is called once an answer, in input order, by any thread of the
// host, by one at a time. incumbents: of a warm start, measured; empty: none. Throws std::invalid_argument
// where the options cannot solve an instance.
SolvedBatch solve_batch(SolveRun& run, SolveJob job, const std::function<void()>& on_answer = {},
                        SolutionBatch incumbents = {});

}  // namespace pointsman
