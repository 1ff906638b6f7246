// SPDX-License-Identifier: Apache-2.0
// A batch that is all there, solved by a run: what the libraries' calls do.
#pragma once

#include <functional>

#include "host/formats/write_solutions.h"
#include "host/run/solve_run.h"

namespace pointsman {

struct SolvedBatch {
  SolutionBatch solutions;  // one for each instance, in their order
  SolveSummary summary;     // of these; the code is left 0
  bool is_cut_short = false;
};

// The job needs no sink. The run's models are those of its request; what it used and reported before is
// forgotten. `on_answer` may be empty; it is called once an answer, in input order, by any thread of the
// host, by one at a time. Throws std::invalid_argument where the options cannot solve an instance.
SolvedBatch solve_batch(SolveRun& run, SolveJob job, const std::function<void()>& on_answer = {});

}  // namespace pointsman
