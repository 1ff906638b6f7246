// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace pointsman {

// Which problem a batch holds. The rules of each live in tsp.h and knapsack.h.
enum class ProblemKind { kTsp, kKnapsack };

}  // namespace pointsman
