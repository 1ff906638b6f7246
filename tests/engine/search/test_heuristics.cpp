// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <fstream>
#include <random>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/exact/branch_and_bound.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/tour_search.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

SearchControl expired() { return {Clock::now() - std::chrono::seconds(1), {}}; }

// Weights and values in whole steps: many ties, many packings of exactly the capacity, weights and values of
// 0. In steps of 0.1 the sums round, each order of adding in its own way.
Instance stepped_knapsack(int n, uint32_t seed, double step) {
  std::mt19937 random(seed);
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  for (int i = 0; i < 2 * n; ++i) instance.values.push_back(step * static_cast<double>(random() % 8));
  instance.capacity = step * static_cast<double>(random() % (2 * n));
  return instance;
}

double brute_force_optimum(const Instance& instance) {
  double best = 0.0;
  for (uint32_t set = 0; set < 1u << instance.n(); ++set) {
    Solution solution;
    for (int item = 0; item < instance.n(); ++item) {
      if (set >> item & 1) solution.order.push_back(item);
    }
    if (validate_solution(instance, solution).empty()) best = std::max(best, solution.objective);
  }
  return best;
}

void check_packing(const Instance& instance, const Solution& solution) {
  Solution again = solution;
  CHECK(validate_solution(instance, again).empty());
  CHECK(again.objective == solution.objective);
  CHECK(std::isnan(solution.log_prob));
  CHECK(solution.status == Status::kDone);
}

void check_exact(const Instance& instance) {
  const Solution exact = exact_packing(instance, {}), ratio = ratio_packing(instance);
  INFO("n " << instance.n() << ", capacity " << instance.capacity);
  check_packing(instance, exact);
  check_packing(instance, ratio);
  CHECK(exact.objective == Approx(brute_force_optimum(instance)).epsilon(1e-14));
  CHECK(ratio.objective <= exact.objective);
}

std::vector<double> read_numbers(const std::string& path) {
  std::ifstream file(path);
  REQUIRE(file);
  std::vector<double> numbers;
  for (double number; file >> number;) numbers.push_back(number);
  return numbers;
}

}  // namespace

TEST_CASE("local search from greedy edges says when a limit cut it short") {
  const Instance instance = random_tsp(30, 2);
  const Solution done = local_search(instance, {8, 20, 1}, {});
  CHECK(done.status == Status::kDone);
  CHECK(done.kicks == 20);
  CHECK(done.objective < quick_answer(instance).objective);
  CHECK(std::isnan(done.log_prob));
  const Solution stopped = local_search(instance, {8, 20, 1}, expired());
  CHECK(stopped.status == Status::kTimeLimit);
  CHECK(stopped.kicks == 0);
  CHECK(stopped.objective > done.objective);
  const Instance large = random_tsp(3000, 2);
  CHECK(local_search(large, {8, 20, 1}, expired()).order == quick_answer(large).order);
  CHECK_THROWS_AS(local_search(random_knapsack(5, 1, 1.0), {}, {}), std::invalid_argument);
}

TEST_CASE("exact packings are those of brute force, ratio packings never better") {
  for (uint32_t seed = 0; seed < 120; ++seed) {
    const int n = 1 + static_cast<int>(seed % 11);
    check_exact(random_knapsack(n, seed, 0.04 * (seed % 7) * n));
    check_exact(stepped_knapsack(n, seed, 1.0));
    check_exact(stepped_knapsack(n, seed, 0.1));
  }
  for (uint32_t seed = 0; seed < 4; ++seed) {
    check_exact(random_knapsack(15, seed, 3.0));
    check_exact(stepped_knapsack(15, seed, 0.1));
  }
}

TEST_CASE("a weight that only the validator's tolerance lets through is packed") {
  // Added up 0.1 and 0.2 are more than 0.3, which the validator takes for rounding.
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  instance.capacity = 0.3;
  instance.values = {0.1, 1.0, 0.2, 1.0, 0.3, 1.5};
  REQUIRE(0.1 + 0.2 > 0.3);
  CHECK(exact_packing(instance, {}).objective == 2.0);
  instance.capacity = 0.3 - 1e-9;
  CHECK(exact_packing(instance, {}).objective == 1.0);
}

TEST_CASE("exact packings reach the known optima") {
  struct Set {
    int n;
    const char* optima;
  };
  for (const Set& set : {Set{50, "knap50"}, Set{200, "knap200"}}) {
    const InstanceBatch instances = generate_like_numpy(ProblemKind::kKnapsack, set.n, 1234, 1000);
    const std::vector<double> optima =
        read_numbers(std::string(POINTSMAN_SOURCE_DIR) + "/tests/data/" + set.optima + "_first100.opt.txt");
    REQUIRE(optima.size() == 100);
    for (size_t i = 0; i < optima.size(); ++i) {
      INFO(set.optima << ", row " << i);
      CHECK(exact_packing(instances[i], {}).objective == Approx(optima[i]).epsilon(1e-13));
    }
  }
}

TEST_CASE("an exact packing that a limit cut short is no worse than by ratio") {
  // Values a constant above the weights: strongly correlated, hard for branch and bound.
  Instance hard = random_knapsack(400, 7, 60.0);
  for (int i = 0; i < hard.n(); ++i) hard.values[2 * i + 1] = hard.first(i) + 0.1;
  int asked = 0;
  const Solution stopped = exact_packing(hard, {{}, [&] { return ++asked > 3; }});
  CHECK(asked == 4);
  CHECK(stopped.status == Status::kInterrupted);
  CHECK(stopped.objective >= ratio_packing(hard).objective);
  Solution again = stopped;
  CHECK(validate_solution(hard, again).empty());
  // Thousands of items that promise more than the last and do not fit.
  Instance late = random_knapsack(3001, 1, 5.0);
  for (int i = 0; i < 3000; ++i) late.values[2 * i] = 10.0, late.values[2 * i + 1] = 100.0;
  late.values[6000] = late.values[6001] = 1.0;
  CHECK(exact_packing(late, expired()).order == std::vector<int32_t>{3000});
}

TEST_CASE("a random search of TSP is the best of its input orders") {
  for (const int n : {1, 2, 7, 1001}) {
    const Instance instance = random_tsp(n, 4, 100.0, Metric::kCeil2d);
    double best = INFINITY;
    for (uint32_t sample = 0; sample < 70; ++sample) {
      Solution solution;
      solution.order = input_order(9, 5, sample, n);
      REQUIRE(validate_solution(instance, solution).empty());
      best = std::min(best, solution.objective);
    }
    const Solution found = random_search(instance, 5, 70, 9, {});
    CHECK(found.objective == best);
    check_packing(instance, found);
  }
}

TEST_CASE("a random search of KnapSack packs its orders, passing over misfits") {
  const Instance instance = random_knapsack(12, 3, 2.0);
  double best = 0.0;
  for (uint32_t sample = 0; sample < 5; ++sample) {
    double left = instance.capacity, value = 0.0;
    for (const int item : input_order(1, 77, sample, 12)) {
      if (instance.first(item) <= left) left -= instance.first(item), value += instance.second(item);
    }
    best = std::max(best, value);
  }
  const Solution found = random_search(instance, 77, 5, 1, {});
  CHECK(found.objective == Approx(best).epsilon(1e-14));
  check_packing(instance, found);
  CHECK(random_search(instance, 77, 5000, 1, {}).objective ==
        Approx(exact_packing(instance, {}).objective).epsilon(1e-14));
}

TEST_CASE("a random search stops at a limit, but not before a sample") {
  const Instance instance = random_tsp(10, 6);
  const Solution stopped = random_search(instance, 0, 1000, 1, expired());
  CHECK(stopped.status == Status::kTimeLimit);
  CHECK(stopped.order == random_search(instance, 0, 64, 1, {}).order);
  CHECK_THROWS_AS(random_search(instance, 0, 0, 1, {}), std::invalid_argument);
  CHECK_THROWS_AS(random_search(instance, 0, int64_t{1} << 32, 1, {}), std::invalid_argument);
  CHECK_THROWS_AS(exact_packing(instance, {}), std::invalid_argument);
  CHECK_THROWS_AS(ratio_packing(instance), std::invalid_argument);
}

TEST_CASE("a quick answer runs through the cities along a curve, and takes items by ratio") {
  for (const int n : {1, 2, 3, 1000, 100'000}) {
    const Instance instance = random_tsp(n, 7);
    const Solution tour = quick_answer(instance);
    CHECK(tour.order.size() == static_cast<size_t>(n));
    // Tours along Hilbert's curve are some 0.99 sqrt(n A) long, optimal ones 0.7124, random ones 0.52 n.
    if (n >= 1000) CHECK(tour.objective < 1.05 * std::sqrt(static_cast<double>(n)));
  }
  Instance point = random_tsp(5, 1);
  std::fill(point.values.begin(), point.values.end(), 0.25);
  CHECK(quick_answer(point).objective == 0.0);
  const Instance knapsack = random_knapsack(50, 3, 10.0);
  CHECK(quick_answer(knapsack).order == ratio_packing(knapsack).order);
}
