// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/problem.h"

#include <cmath>
#include <stdexcept>

namespace pointsman {

extern const Problem kTspProblem;       // tsp.cpp
extern const Problem kKnapsackProblem;  // knapsack.cpp

const Problem& problem_of(ProblemKind kind) {
  switch (kind) {
    case ProblemKind::kTsp:
      return kTspProblem;
    case ProblemKind::kKnapsack:
      return kKnapsackProblem;
  }
  throw std::logic_error("problem_of: no such problem");
}

bool is_better(ProblemKind kind, double a, double b) {
  return problem_of(kind).sense == Sense::kMinimise ? a < b : a > b;
}

double gap(ProblemKind kind, double objective, double reference) {
  constexpr double kLargestRatio = 1e100;  // what every reader of numbers takes
  if (objective == reference) return 0.0;  // also when both are 0
  const double ratio = objective / reference;
  if (!(ratio <= kLargestRatio)) return std::nan("");
  return problem_of(kind).sense == Sense::kMinimise ? ratio - 1.0 : 1.0 - ratio;
}

}  // namespace pointsman
