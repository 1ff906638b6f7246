// SPDX-License-Identifier: Apache-2.0
// The modes of `pointsman eval`: what one row of its table measures.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace pointsman {

struct EvalMode {
  std::string name;  // as typed
  SolveOptions options;
  double temperature = 1.0;  // options.policy.temperature as typed
};

// Comma-separated modes; empty: the usual of the problem. `samples` are those of the modes that sample and
// name no number. Throws UsageError.
std::vector<EvalMode> parse_eval_modes(const std::string& list, ProblemKind problem, int64_t samples,
                                       uint64_t seed);

}  // namespace pointsman
