// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "host/library/include/pointsman.h"
#include "host/options/solve_options.h"

namespace pointsman {

// The caller's options, and for what they do not say the defaults. Throws std::invalid_argument.
pointsman_solve_options solve_options_of(const pointsman_solve_options* given);

// The same as the engine has them: what pointsman_set_option() set, then what the caller's struct sets
// otherwise than by default. Throws UsageError for numbers and combinations that mean nothing.
SolveRequest solve_request(pointsman_solver& solver, const pointsman_solve_options& given);

// Of these only what scoring reads: the model and the temperature.
SolveRequest score_request(pointsman_solver& solver, const pointsman_solve_options& given);

}  // namespace pointsman
