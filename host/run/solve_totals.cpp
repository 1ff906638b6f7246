// SPDX-License-Identifier: Apache-2.0
#include "host/run/solve_totals.h"

namespace pointsman {

std::string device_text(const DeviceInfo& device) { return device.name + " (" + device.detail + ")"; }

SolveSummary summarise(const SolveRun& run, const SolveTotals& totals, uint64_t seed, double loading_ms) {
  SolveSummary summary;
  summary.instances = totals.instances;
  summary.unsolved = totals.unsolved;
  summary.mean_cost = totals.mean_objective();
  summary.gap = totals.mean_gap();
  if (run.report.improve) summary.mean_network_cost = totals.mean_network_objective();
  summary.loading_ms = loading_ms;
  summary.solving_ms = run.report.solving_ms;
  summary.mode = info_of(run.report.mode).name;
  summary.start = totals.start;
  summary.kicks = totals.kicks;
  summary.samples = run.report.samples;
  summary.augment = run.report.augment;
  summary.shuffle = run.report.shuffle;
  summary.improve = run.report.improve;
  summary.model = run.used.names;
  summary.model_sha256 = run.used.sha256;
  summary.device = device_text(run.engine.device());
  summary.seed = seed;
  summary.version = POINTSMAN_VERSION;
  return summary;
}

}  // namespace pointsman
