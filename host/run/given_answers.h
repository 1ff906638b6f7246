// SPDX-License-Identifier: Apache-2.0
// Answers that no run gave: those of a file, and a caller's own.
#pragma once

#include <string>

#include "host/formats/write_solutions.h"

namespace pointsman {

// They have no numbers of a network.
Solution without_network(Solution solution);

// Those of a file, measured. Throws InputError, naming it, for the first that is no answer.
SolutionBatch measured_answers(SolutionBatch solutions, const InstanceBatch& instances,
                               const std::string& file);

SolveSummary summary_of_given(const InstanceBatch& instances, const SolutionBatch& solutions);

}  // namespace pointsman
