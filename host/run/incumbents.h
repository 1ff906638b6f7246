// SPDX-License-Identifier: Apache-2.0
// A warm start: solutions given for all instances, than which no solution of the run is worse.
#pragma once

#include "engine/schedule/solve_job.h"

namespace pointsman {

// Where the options improve, local search improves the given solutions, which must be measured. Reports
// their objectives.
void improve_incumbents(SolutionBatch& incumbents, const SolveJob& job);

// Replaces a found solution that is worse or missing.
void keep_incumbent(const Instance& instance, Solution&& incumbent, const SearchControl& control,
                    Solution& found);

}  // namespace pointsman
