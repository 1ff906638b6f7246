// SPDX-License-Identifier: Apache-2.0
// The sums of a run and of its groups.
#include <cmath>

#include "engine/problem/generate.h"
#include "host/run/solve_totals.h"
#include "tests/catch.h"

namespace pointsman {
namespace {

Solution solution_of(double objective) {
  Solution solution;
  solution.objective = objective;
  return solution;
}

Instance instance_of(ProblemKind problem, int n) { return generate_instances(problem, n, 1, 0, 1).at(0); }

}  // namespace

TEST_CASE("each problem and size has its sums, in the order of the first instances") {
  const Instance map = instance_of(ProblemKind::kTsp, 9), sack = instance_of(ProblemKind::kKnapsack, 9);
  SolveTotals totals;
  totals.add(sack, solution_of(5.0), kNoNumber);
  totals.add(map, solution_of(3.0), 0.5);
  totals.add(sack, unsolved(), kNoNumber);
  totals.add(map, solution_of(4.0), kNoNumber);
  CHECK(std::isnan(totals.mean_objective()));
  CHECK(totals.mean_gap() == 0.5);
  const std::vector<SolutionSums>& groups = totals.groups;
  REQUIRE(groups.size() == 2);
  CHECK((groups[0].problem == ProblemKind::kKnapsack && groups[0].n == 9 && groups[0].instances == 2));
  CHECK(groups[0].mean_objective() == 5.0);
  CHECK(std::isnan(groups[0].mean_gap()));
  CHECK((groups[1].problem == ProblemKind::kTsp && groups[1].mean_objective() == 3.5));
  CHECK(groups[1].mean_gap() == 0.5);
}

TEST_CASE("beyond 64 sizes all others are one group") {
  SolveTotals totals;
  for (int turn = 0; turn < 2; ++turn) {
    for (int n = 3; n < 203; ++n) totals.add(instance_of(ProblemKind::kTsp, n), solution_of(n), kNoNumber);
  }
  const std::vector<SolutionSums>& groups = totals.groups;
  REQUIRE(groups.size() == 65);
  for (size_t i = 0; i < 64; ++i) CHECK((groups[i].n == static_cast<int>(i) + 3 && groups[i].instances == 2));
  CHECK((groups[64].n == 0 && groups[64].instances == 2 * 136));
  CHECK(groups[64].mean_objective() == (67 + 202) / 2.0);
}

}  // namespace pointsman
