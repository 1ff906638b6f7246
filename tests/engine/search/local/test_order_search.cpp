// SPDX-License-Identifier: Apache-2.0
// The local search of a user's own problem, against exhaustive search.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/search/local/order_search.h"
#include "tests/catch.h"

namespace pointsman {
namespace {

// Weighted tardiness: processing time, weight, due date.
std::vector<double> tardiness(const std::vector<double>& items, const std::vector<int64_t>& orders,
                              int64_t count, int n) {
  std::vector<double> costs(static_cast<size_t>(count), 0.0);
  for (int64_t row = 0; row < count; ++row) {
    double time = 0.0;
    for (int place = 0; place < n && orders[row * n + place] >= 0; ++place) {
      const double* job = &items[(row * n + orders[row * n + place]) * 3];
      time += job[0];
      costs[row] += job[1] * std::max(0.0, time - job[2]);
    }
  }
  return costs;
}

InstanceBatch jobs(const OwnDeclarations& declarations, int count, int n) {
  const OwnScaling scaling{{0.0, 0.0, 0.0}, {1.0, 1.0, 1.0}};
  const auto problem = std::make_shared<const OwnProblem>(scaling, declarations, tardiness);
  std::mt19937 random(1);
  InstanceBatch instances(count);
  for (Instance& instance : instances) {
    instance.problem = ProblemKind::kOwn;
    instance.own = problem;
    for (int i = 0; i < n; ++i) {
      instance.values.push_back(1 + random() % 100);
      instance.values.push_back(1 + random() % 10);
      instance.values.push_back(static_cast<double>(random() % (20 * n)));
    }
  }
  return instances;
}

std::vector<int32_t> upward(int n) {
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  return order;
}

double optimum(const Instance& instance) {
  double best = std::numeric_limits<double>::infinity();
  std::vector<int32_t> order = upward(instance.n());
  do {
    if (is_allowed(instance, order)) best = std::min(best, problem_of(instance).objective(instance, order));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

SolutionBatch improved(const InstanceBatch& instances, int64_t kicks, const SearchControl& control = {}) {
  SolutionBatch solutions;
  std::vector<uint64_t> keys;
  for (const Instance& instance : instances) {
    keys.push_back(solutions.size());
    Solution& solution = solutions.emplace_back();
    solution.order = feasible_order(instance, upward(instance.n()));
    REQUIRE(validate_solution(instance, solution).empty());
  }
  improve_orders(instances, keys, solutions, {kicks, 1}, control);
  return solutions;
}

std::vector<OwnDeclarations> declarations() {
  OwnDeclarations pairs, ends;
  pairs.before = [](int) { return std::vector<std::array<int32_t, 2>>{{4, 0}, {3, 0}, {2, 3}}; };
  ends.first = 3;
  ends.last = 1;
  return {{}, pairs, ends};
}

TEST_CASE("kicks reach the optimum of small instances, and never a worse order than before") {
  for (const OwnDeclarations& declared : declarations()) {
    const InstanceBatch instances = jobs(declared, 20, 7);
    const SolutionBatch some = improved(instances, 0), best = improved(instances, 60);
    for (size_t i = 0; i < instances.size(); ++i) {
      CHECK(is_allowed(instances[i], best[i].order));
      CHECK(best[i].objective == optimum(instances[i]));
      CHECK(best[i].objective <= some[i].objective);
      CHECK(best[i].kicks == 60);
    }
  }
}

TEST_CASE("an order's search depends on no other instance") {
  const InstanceBatch instances = jobs({}, 5, 12);
  const SolutionBatch together = improved(instances, 5);
  for (size_t i = 0; i < instances.size(); ++i) {
    Solution alone;
    alone.order = upward(12);
    REQUIRE(validate_solution(instances[i], alone).empty());
    const std::vector<uint64_t> key = {i};
    improve_orders({&instances[i], 1}, key, {&alone, 1}, {5, 1}, {});
    CHECK(alone.order == together[i].order);
  }
}

TEST_CASE("a stop keeps the order that was there, and says so") {
  const InstanceBatch instances = jobs({}, 2, 12);
  SearchControl control;
  control.interrupted = [] { return true; };
  for (const Solution& solution : improved(instances, 1000, control)) {
    CHECK(solution.order == upward(12));
    CHECK(solution.status == Status::kInterrupted);
  }
}

}  // namespace
}  // namespace pointsman
