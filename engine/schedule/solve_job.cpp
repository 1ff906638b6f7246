// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/solve_job.h"

#include <numeric>
#include <utility>

namespace pointsman {

SolveJob::SolveJob(std::span<const Instance> batch, uint64_t first_row, SolveOptions how, SearchControl until,
                   SolutionSink to)
    : instances(pointers_to(batch)),
      rows(batch.size()),
      options(std::move(how)),
      control(std::move(until)),
      sink(std::move(to)) {
  std::iota(rows.begin(), rows.end(), first_row);
}

SolveJob SolveJob::part(const std::vector<size_t>& places) const {
  SolveJob some;
  for (const size_t place : places) {
    some.instances.push_back(instances[place]);
    some.rows.push_back(rows[place]);
  }
  some.options = options;
  some.options.on_step = report_places(options.on_step, places);
  some.control = control;
  return some;
}

}  // namespace pointsman
