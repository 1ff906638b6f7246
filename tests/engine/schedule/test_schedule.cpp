// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <set>
#include <utility>
#include <variant>
#include <vector>

#include "engine/problem/validate.h"
#include "engine/schedule/schedule.h"
#include "engine/search/classical.h"
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

SamplingOptions sampling_options(int64_t samples, bool improve) {
  SamplingOptions options;
  options.samples = samples;
  options.augment = 8;
  options.shuffle = true;
  options.candidates = improve ? 16 : 1;
  return options;
}

SolvePlan sampling_plan(int64_t samples, bool improve) {
  SolvePlan plan;
  plan.search = sampling_options(samples, improve);
  if (improve) plan.improve.emplace();
  return plan;
}

SolutionBatch solve(FakeBackend& backend, const SolvePlan& plan, const InstanceBatch& instances,
                    const SearchControl& control = {}, uint64_t first_row = 0,
                    const ModelConfig& config = {}) {
  SolutionBatch solutions;
  const PolicyStatistics statistics = solve_instances(backend, config, plan, instances, first_row, control,
                                                      [&](size_t place, Solution&& solution) {
                                                        CHECK(place == solutions.size());
                                                        solutions.push_back(std::move(solution));
                                                      });
  CHECK(solutions.size() == instances.size());
  if (std::holds_alternative<InstanceSearch>(plan.search)) CHECK(statistics.steps == 0);
  for (size_t i = 0; i < instances.size(); ++i) {
    if (solutions[i].status == Status::kUnsolved) {
      CHECK(solutions[i].order.empty());
      continue;
    }
    CHECK((statistics.steps > 0) == !std::holds_alternative<InstanceSearch>(plan.search));
    Solution again = solutions[i];
    REQUIRE(validate_solution(instances[i], again).empty());
    CHECK(again.objective == solutions[i].objective);
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
    CHECK(improved[i].network_objective == plain[i].objective);
    CHECK(improved[i].objective <= plain[i].objective);
    CHECK(plain[i].network_objective == plain[i].objective);
    if (improved[i].objective < plain[i].objective) ++shorter;
  }
  CHECK(shorter == 20);  // all but those of three cities
}

TEST_CASE("KnapSack goes through the schedule without improvement") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 5; ++i) instances.push_back(random_knapsack(10, i, 2.0));
  SolvePlan plan = sampling_plan(50, true);
  std::get<SamplingOptions>(plan.search).augment = 1;
  FakeBackend backend;
  ModelConfig config;
  config.problem = ProblemKind::kKnapsack;
  config.capacity = 2.0;
  for (const Solution& solution : solve(backend, plan, instances, {}, 0, config)) {
    CHECK(solution.objective > 0.0);
    CHECK(solution.weight <= 2.0);
    CHECK(solution.network_objective == solution.objective);
  }
}

TEST_CASE("active search is scheduled by size too") {
  const InstanceBatch instances = mixed_instances();
  const ModelConfig config;
  const std::vector<float> initial(ParameterLayout(config).size, 0.5f);
  ActiveSearchOptions active;
  active.initial = initial;
  active.steps = 3;
  active.replicas = 4;
  std::vector<int> steps(instances.size(), 0);
  active.on_step = [&](const ActiveSearchProgress& progress) { ++steps.at(progress.instance); };
  SolvePlan plan;
  plan.search = active;
  FakeBackend backend;
  const auto expected = orders_of(solve(backend, plan, instances));
  CHECK(steps == std::vector<int>(instances.size(), 3));
  plan.batch_size = 3;
  CHECK(orders_of(solve(backend, plan, instances)) == expected);
  plan.improve.emplace();
  const SolutionBatch improved = solve(backend, plan, instances);
  for (const Solution& solution : improved) CHECK(solution.objective <= solution.network_objective);
}

TEST_CASE("limits leave valid answers with their status, and the rest unsolved") {
  const InstanceBatch instances = mixed_instances();
  FakeBackend backend;
  for (const bool improve : {false, true}) {
    const SolvePlan plan = sampling_plan(1000, improve);
    const SearchControl late = {Clock::now() - std::chrono::seconds(1), {}},
                        interrupted = {{}, [] { return true; }};
    for (const SearchControl& control : {late, interrupted}) {
      for (const Solution& solution : solve(backend, plan, instances, control))
        CHECK(solution.status == Status::kUnsolved);
    }
    CHECK(backend.drawn.empty());
    CHECK(solve(backend, plan, {instances[0]}, late)[0].status == Status::kTimeLimit);
    backend.drawn.clear();
  }
  // A limit within the run: what came before it is solved, what comes after it is not, and it is soon.
  FakeBackend long_run;
  long_run.time_per_rollout = std::chrono::microseconds(100);
  InstanceBatch many;
  for (uint32_t i = 0; i < 20000; ++i) many.push_back(random_tsp(5, i));
  const Clock::time_point start = Clock::now();
  std::map<Status, int> statuses;
  SolvePlan greedy = sampling_plan(1, false);
  for (const Solution& solution : solve(long_run, greedy, many, {start + std::chrono::milliseconds(300), {}}))
    ++statuses[solution.status];
  CHECK(Clock::now() - start < std::chrono::milliseconds(800));
  CHECK(statuses[Status::kDone] > 0);
  CHECK(statuses[Status::kUnsolved] > 10000);
  // All samples drawn, but no time left: only the best is improved.
  FakeBackend late;
  late.time_per_rollout = std::chrono::milliseconds(2);
  const SolutionBatch hurried = solve(late, sampling_plan(16, true), {random_tsp(20, 1)},
                                      {Clock::now() + std::chrono::milliseconds(5), {}});
  CHECK(hurried[0].status == Status::kTimeLimit);
  CHECK(hurried[0].objective < hurried[0].network_objective);
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
  endless.improve->kicks = 1'000'000'000;
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

TEST_CASE("batches of active search share the time: each has steps of its own") {
  const ModelConfig config;
  const std::vector<float> initial(ParameterLayout(config).size, 0.5f);
  ActiveSearchOptions active;
  active.initial = initial;
  active.steps = 1'000'000;
  active.replicas = 5;
  std::set<int64_t> reported;
  active.on_step = [&](const ActiveSearchProgress& progress) { reported.insert(progress.instance); };
  SolvePlan plan;
  plan.search = active;
  plan.batch_size = 1;
  InstanceBatch instances;
  for (uint32_t i = 0; i < 4; ++i) instances.push_back(random_tsp(10, i));
  FakeBackend backend;
  backend.time_per_rollout = std::chrono::microseconds(100);
  for (const Solution& solution :
       solve(backend, plan, instances, {Clock::now() + std::chrono::milliseconds(300), {}})) {
    CHECK(solution.status == Status::kTimeLimit);
  }
  CHECK(reported.size() == 4);
}

TEST_CASE("a search without a network answers each instance once, with its own key") {
  const InstanceBatch instances = mixed_instances();
  SolvePlan plan;
  plan.search = [](const Instance& instance, uint64_t key, const SearchControl& control) {
    return random_search(instance, key, 3, 1, control);
  };
  FakeBackend backend;
  const SolutionBatch solutions = solve(backend, plan, instances, {}, 5);
  CHECK(backend.rollout_calls == 0);
  for (size_t i = 0; i < instances.size(); ++i) {
    CHECK(solutions[i].order ==
          random_search(instances[i], instance_key(instances[i], 5 + i), 3, 1, {}).order);
  }
}
