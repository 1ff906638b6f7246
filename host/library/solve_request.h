// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>

#include "host/library/include/pointsman.h"
#include "host/options/solve_options.h"

namespace pointsman {

// The caller's options, and for what they do not say the defaults. Throws std::invalid_argument.
pointsman_solve_options solve_options_of(const pointsman_solve_options* given);

// What pointsman_set_option() set: values by name.
using Settings = std::map<std::string, std::string>;

// The same as the engine has them: `settings`, then what the caller's struct sets otherwise than by default.
// Throws UsageError for numbers and combinations that mean nothing.
SolveRequest solve_request(const pointsman_solve_options& given, const Settings& settings);

// Of these only what scoring reads: the model and the temperature.
SolveRequest score_request(const pointsman_solve_options& given, const Settings& settings);

// Throws UsageError where one of them is no option or has a value that the option does not take.
void check_settings(const Settings& settings);

}  // namespace pointsman
