// SPDX-License-Identifier: Apache-2.0
// The modes of `pointsman eval`: what one row of its table measures.
#pragma once

#include <string>
#include <vector>

#include "engine/engine.h"

namespace pointsman {

// Ways to an answer without a network (engine/search/classical.h).
enum class Rival { kNone, kLocal, kRandom, kRatio, kExact };

struct EvalMode {
  std::string name;      // as typed
  std::string strategy;  // its first word
  Rival rival = Rival::kNone;
  SolveOptions options;  // of a rival only the seed, and as samples the kicks of local, the orders of random
  double temperature = 1.0;  // options.temperature as typed
};

// Comma-separated modes; empty: the usual of the problem. `samples` are those of the modes that sample and
// name no number. Throws UsageError.
std::vector<EvalMode> parse_eval_modes(const std::string& list, ProblemKind problem, int64_t samples,
                                       uint64_t seed);

}  // namespace pointsman
