// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "engine/problem/validate.h"
#include "engine/schedule/parallel.h"
#include "engine/schedule/schedule.h"
#include "tests/catch.h"
#include "tests/engine/fake_backend.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

InstanceBatch mixed_instances() {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 30; ++i) instances.push_back(random_tsp(i % 3 == 0 ? 12 : i % 3 == 1 ? 20 : 3, i));
  instances[7].has_id = true;
  instances[7].id = "seven";
  return instances;
}

SolvePlan sampling_plan(int64_t samples, bool improve) {
  SolvePlan plan;
  plan.sampling.samples = samples;
  plan.sampling.augment = 8;
  plan.sampling.shuffle = true;
  plan.sampling.keep = improve ? 16 : 1;
  plan.improve = improve;
  return plan;
}

SolutionBatch solve(FakeBackend& backend, const SolvePlan& plan, const InstanceBatch& instances,
                    const SearchControl& control = {}, uint64_t first_row = 0) {
  PolicyStatistics statistics;
  std::vector<size_t> reported;
  const SolutionBatch solutions =
      solve_instances(backend, ModelConfig(), plan, instances, first_row, control, statistics,
                      [&](size_t place, const Solution& solution) {
                        CHECK(solution.order.size() == static_cast<size_t>(instances[place].n()));
                        reported.push_back(place);
                      });
  std::vector<size_t> expected(instances.size());
  std::iota(expected.begin(), expected.end(), 0);
  CHECK(reported == expected);
  CHECK(statistics.steps > 0);
  for (size_t i = 0; i < instances.size(); ++i) {
    Solution again = solutions[i];
    REQUIRE(validate_solution(instances[i], again).empty());
    CHECK(again.cost == solutions[i].cost);
  }
  return solutions;
}

std::vector<std::vector<int32_t>> orders_of(const SolutionBatch& solutions) {
  std::vector<std::vector<int32_t>> orders;
  for (const Solution& solution : solutions) orders.push_back(solution.order);
  return orders;
}

}  // namespace

TEST_CASE("a mixed batch is answered in input order, the same for every batch size") {
  const InstanceBatch instances = mixed_instances();
  for (const bool improve : {false, true}) {
    SolvePlan plan = sampling_plan(40, improve);
    FakeBackend backend;
    const auto expected = orders_of(solve(backend, plan, instances));
    CHECK(backend.rollout_calls == 3);  // one for each size
    for (const int batch_size : {1, 4, 1000}) {
      plan.batch_size = batch_size;
      CHECK(orders_of(solve(backend, plan, instances)) == expected);
    }
    // An instance alone, at its own row.
    const InstanceBatch alone = {instances[11]};
    CHECK(solve(backend, plan, alone, {}, 11)[0].order == expected[11]);
    // The draws of an instance with an id do not depend on its row.
    const InstanceBatch named = {instances[7]};
    CHECK(solve(backend, plan, named, {}, 999)[0].order == expected[7]);
  }
}

TEST_CASE("improvement says what the network alone reached and is never worse") {
  const InstanceBatch instances = mixed_instances();
  FakeBackend backend;
  const SolutionBatch plain = solve(backend, sampling_plan(40, false), instances);
  const SolutionBatch improved = solve(backend, sampling_plan(40, true), instances);
  int shorter = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    CHECK(improved[i].network_cost == plain[i].cost);
    CHECK(improved[i].cost <= plain[i].cost);
    CHECK(plain[i].network_cost == plain[i].cost);
    if (improved[i].cost < plain[i].cost) ++shorter;
  }
  CHECK(shorter == 20);  // all but those of three cities
}

TEST_CASE("KnapSack goes through the schedule without improvement") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 5; ++i) instances.push_back(random_knapsack(10, i, 2.0));
  SolvePlan plan = sampling_plan(50, true);
  plan.sampling.augment = 1;
  FakeBackend backend;
  PolicyStatistics statistics;
  ModelConfig config;
  config.problem = "knapsack";
  config.capacity = 2.0;
  for (const Solution& solution : solve_instances(backend, config, plan, instances, 0, {}, statistics)) {
    CHECK(solution.cost > 0.0);
    CHECK(solution.weight <= 2.0);
    CHECK(solution.network_cost == solution.cost);
  }
}

TEST_CASE("active search is scheduled by size too") {
  const InstanceBatch instances = mixed_instances();
  const ModelConfig config;
  const std::vector<float> initial(ParameterLayout(config).size, 0.5f);
  SolvePlan plan;
  plan.active = true;
  plan.initial = initial;
  plan.active_search.steps = 3;
  plan.active_search.batch = 4;
  FakeBackend backend;
  const auto expected = orders_of(solve(backend, plan, instances));
  plan.batch_size = 3;
  CHECK(orders_of(solve(backend, plan, instances)) == expected);
  plan.improve = true;
  const SolutionBatch improved = solve(backend, plan, instances);
  for (const Solution& solution : improved) CHECK(solution.cost <= solution.network_cost);
}

TEST_CASE("limits leave every instance with a valid answer and its status") {
  const InstanceBatch instances = mixed_instances();
  FakeBackend backend;
  for (const bool improve : {false, true}) {
    const SolvePlan plan = sampling_plan(1000, improve);
    for (const Solution& solution :
         solve(backend, plan, instances, {Clock::now() - std::chrono::seconds(1), {}})) {
      CHECK(solution.status == Status::kTimeLimit);
    }
    for (const Solution& solution : solve(backend, plan, instances, {{}, [] { return true; }})) {
      CHECK(solution.status == Status::kInterrupted);
    }
  }
  // All samples drawn, but no time left: only the best is improved.
  FakeBackend late;
  late.time_per_rollout = std::chrono::milliseconds(2);
  const SolutionBatch hurried = solve(late, sampling_plan(16, true), {random_tsp(20, 1)},
                                      {Clock::now() + std::chrono::milliseconds(5), {}});
  CHECK(hurried[0].status == Status::kTimeLimit);
  CHECK(hurried[0].cost < hurried[0].network_cost);
  CHECK(solve(late, sampling_plan(1, true), {random_tsp(20, 1)},
              {Clock::now() + std::chrono::milliseconds(1), {}})[0]
            .status == Status::kDone);
  // 12 cities at place 0, 20 at place 1: 10,000 rollouts of 40 us each. The sizes share 300 ms, so the first
  // does not leave the second with one sample each.
  FakeBackend slow;
  slow.time_per_rollout = std::chrono::microseconds(40);
  solve(slow, sampling_plan(1000, false), instances, {Clock::now() + std::chrono::milliseconds(300), {}});
  CHECK(slow.drawn.size() < 25000);
  CHECK(slow.drawn.count({0, 1}) == 1);
  CHECK(slow.drawn.count({1, 1}) == 1);
}

TEST_CASE("the last size has all the time that is left") {
  const SolvePlan endless = sampling_plan(1'000'000'000, false);
  FakeBackend backend;
  backend.time_per_rollout = std::chrono::microseconds(20);
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(200);
  const InstanceBatch sizes = {random_tsp(10, 1), random_tsp(11, 2), random_tsp(12, 3)};
  solve(backend, endless, sizes, {deadline, {}});
  CHECK(Clock::now() >= deadline);  // a third of what is left for each of the three would be 70% of it
}

TEST_CASE("a search leaves time for the improvement of what it found") {
  SolvePlan endless = sampling_plan(1'000'000'000, true);
  endless.improvement.kicks = 1'000'000'000;
  // A tenth of 200 ms; a busy machine may take that away, but not five times. Where a search uses all the
  // time, the last question in time is its own.
  int questions = 0;  // asked before the deadline and after the last rollout
  for (int attempt = 0; attempt < 5 && questions < 2; ++attempt) {
    FakeBackend backend;
    backend.time_per_rollout = std::chrono::microseconds(20);
    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(200);
    int calls = 0;
    const auto never = [&] {
      if (backend.rollout_calls != calls) questions = 0;
      calls = backend.rollout_calls;
      questions += Clock::now() < deadline;
      return false;
    };
    solve(backend, endless, {random_tsp(40, 1)}, {deadline, never});
  }
  CHECK(questions >= 2);
}

TEST_CASE("parallel_for does each piece once and passes an exception on") {
  for (const int threads : {0, 1, 3, 50}) {
    std::vector<std::atomic<int>> done(20);
    parallel_for(done.size(), threads, [&](size_t i) { ++done[i]; });
    for (const auto& count : done) CHECK(count == 1);
    CHECK_THROWS_AS(parallel_for(20, threads,
                                 [](size_t i) {
                                   if (i == 5) throw std::runtime_error("five");
                                 }),
                    std::runtime_error);
  }
  parallel_for(0, 4, [](size_t) { FAIL("no work"); });
}
