// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/engine.h"
#include "host/library/include/pointsman.h"

namespace pointsman {

// The caller's options, and for what they do not say the defaults. Throws std::invalid_argument.
pointsman_solve_options solve_options_of(const pointsman_solve_options* given);

// The same as the engine has them. Throws std::invalid_argument for numbers and combinations that mean
// nothing.
SolveOptions engine_options(const pointsman_solve_options& options);

// Of the numbers only those that scoring reads.
void check_score_options(const pointsman_solve_options& options);

}  // namespace pointsman
