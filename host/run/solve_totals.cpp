// SPDX-License-Identifier: Apache-2.0
#include "host/run/solve_totals.h"

#include <algorithm>
#include <utility>

#include "host/options/solve_options.h"
#include "host/run/incumbents.h"

namespace pointsman {

std::string device_text(const DeviceInfo& device) { return device.name + " (" + device.detail + ")"; }

void tell_device_note(const Engine& engine, const RunLog& log) {
  if (!engine.device_note().empty()) (has_cuda_driver() ? log.info : log.debug)(engine.device_note());
}

SolutionSums& SolveTotals::group_of(const Instance& instance) {
  const auto found = std::find_if(groups.begin(), groups.end(), [&](const SolutionSums& group) {
    return group.n == instance.n() && group.problem == instance.problem;
  });
  if (found != groups.end()) return *found;
  const bool is_of_all_others = groups.size() >= kMostGroups;
  if (groups.size() <= kMostGroups) groups.emplace_back().n = is_of_all_others ? 0 : instance.n();
  return groups.back();
}

void SolveTotals::add(const Instance& instance, const Solution& solution, double solution_gap) {
  SolutionSums::add(instance, solution, solution_gap);
  group_of(instance).add(instance, solution, solution_gap);
  cut_short += solution.status != Status::kDone && solution.status != Status::kInfeasible;
  if (!has_answer(solution)) return;
  kicks += solution.kicks;
  start = solved() == 1 || start == name_of(solution.start) ? name_of(solution.start) : "mixed";
  if (!std::isnan(solution.network_objective))
    network_objective += solution.network_objective, ++with_network;
}

SolveSummary summarise(SolveRun& run, const SolveTotals& totals, const SolveOptions& options,
                       double loading_ms) {
  SolveSummary summary;
  summary.instances = totals.instances;
  summary.unsolved = totals.unsolved;
  summary.infeasible = totals.infeasible;
  summary.mean_cost = totals.mean_objective();
  summary.gap = totals.mean_gap();
  if (run.report.improve) summary.mean_network_cost = totals.mean_network_objective();
  summary.loading_ms = loading_ms;
  summary.solving_ms = run.report.solving_ms;
  summary.mode = info_of(options.mode).name;
  summary.start = totals.start;
  summary.kicks = totals.kicks;
  summary.samples = run.report.samples;
  summary.augment = run.report.augment;
  summary.shuffle = run.report.shuffle;
  summary.improve = run.report.improve;
  summary.model = run.used.names;
  summary.model_sha256 = run.used.sha256;
  summary.device = device_text(run.engine.device());
  summary.seed = options.seed;
  summary.version = POINTSMAN_VERSION;
  for (const SolutionSums& group : totals.groups) {
    summary.groups.push_back(
        {{}, group.n, summary.mode, {}, group.instances, group.mean_objective(), group.mean_gap()});
    if (group.n == 0) continue;
    const Model* const model = run.model_for(*group.problem, group.n, options);
    summary.groups.back().problem = name_of(*group.problem);
    if (model != nullptr) summary.groups.back().model = model->name;
  }
  return summary;
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

SolvedBatch solve_batch(SolveRun& run, SolveJob job, const std::function<void()>& on_answer,
                        SolutionBatch incumbents) {
  check_instances(job.options, job.instances);
  improve_incumbents(incumbents, job);
  run.used = {};
  run.report = {};
  SolvedBatch solved;
  solved.solutions.resize(job.size());
  SolveTotals totals;
  job.sink = [&](size_t i, Solution&& found) {
    if (!incumbents.empty()) keep_incumbent(*job.instances[i], std::move(incumbents[i]), job.control, found);
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
