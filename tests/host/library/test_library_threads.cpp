// SPDX-License-Identifier: Apache-2.0
// Solvers on several threads at once. Under ThreadSanitizer (cmake --preset tsan) it must be silent.
#include <atomic>
#include <string>
#include <thread>
#include <vector>

#include "host/library/include/pointsman.h"
#include "tests/catch.h"

namespace {

constexpr int kThreads = 8, kHandles = 8;

// Of the instances in every mode, as NDJSON; "" where a call failed.
std::string solve_all(pointsman_solver* solver, const pointsman_instances* instances) {
  std::string text;
  for (const char* mode : {"auto", "greedy", "sample", "local", "active"}) {
    pointsman_solve_options options;
    pointsman_solve_options_init(&options, sizeof options);
    options.mode = mode;
    if (mode == std::string("sample")) options.samples = 8;
    if (mode == std::string("active")) options.steps = 1, options.replicas = 4;
    options.progress = [](void* user, const pointsman_progress*) {
      ++*static_cast<std::atomic<int>*>(user);
      return 0;
    };
    std::atomic<int> asked{0};
    options.progress_user = &asked;
    pointsman_answers* answers = nullptr;
    const void* bytes = nullptr;
    size_t size = 0;
    if (pointsman_solve(solver, instances, &options, &answers) != POINTSMAN_OK) return "";
    const int status = pointsman_format_answers(solver, instances, answers, "ndjson", &bytes, &size);
    if (status == POINTSMAN_OK) text.append(static_cast<const char*>(bytes), size);
    pointsman_answers_free(answers);
    if (status != POINTSMAN_OK) return "";
  }
  return text;
}

pointsman_solver* new_solver(int threads) {
  pointsman_solver_options options;
  pointsman_solver_options_init(&options, sizeof options);
  options.threads = threads;
  pointsman_solver* solver = nullptr;
  pointsman_solver_create(&options, &solver);
  return solver;
}

}  // namespace

TEST_CASE("eight threads with eight solvers each answer as one alone") {
  pointsman_solver* const alone = new_solver(2);
  pointsman_instances* instances = nullptr;
  REQUIRE(pointsman_instances_create(alone, &instances) == POINTSMAN_OK);
  const double items[] = {0.1, 0.2, 0.7, 0.9, 0.3, 0.4, 0.8, 0.1, 0.5, 0.6, 0.2, 0.8};
  for (const size_t n : {4, 6, 5}) {
    REQUIRE(pointsman_add_items(alone, instances, "tsp", items, n, 0, nullptr) == POINTSMAN_OK);
  }
  const std::string expected = solve_all(alone, instances);
  REQUIRE(!expected.empty());
  std::atomic<int> right{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      std::vector<pointsman_solver*> solvers;
      for (int handle = 0; handle < kHandles; ++handle) solvers.push_back(new_solver(1 + handle % 2));
      for (pointsman_solver* solver : solvers) right += solve_all(solver, instances) == expected;
      for (pointsman_solver* solver : solvers) pointsman_solver_free(solver);
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(right == kThreads * kHandles);
  pointsman_instances_free(instances);
  pointsman_solver_free(alone);
}

namespace {

// What a call from another thread answers while the solver is in use.
struct Intruder {
  pointsman_solver* solver;
  const pointsman_instances* instances;
  int status = POINTSMAN_OK;
  pointsman_answers* answers = nullptr;
};

int let_in(void* user, const pointsman_progress*) {
  auto& intruder = *static_cast<Intruder*>(user);
  std::thread([&] {
    intruder.status = pointsman_solve(intruder.solver, intruder.instances, nullptr, &intruder.answers);
  }).join();
  return 0;
}

}  // namespace

TEST_CASE("a solver in use refuses other threads, and any number of them may try") {
  pointsman_solver* const solver = new_solver(1);
  pointsman_instances* instances = nullptr;
  REQUIRE(pointsman_instances_create(solver, &instances) == POINTSMAN_OK);
  const double items[] = {0.1, 0.2, 0.7, 0.9, 0.3, 0.4, 0.8, 0.1};
  REQUIRE(pointsman_add_items(solver, instances, "tsp", items, 4, 0, nullptr) == POINTSMAN_OK);
  Intruder intruder{solver, instances};
  pointsman_solve_options options;
  pointsman_solve_options_init(&options, sizeof options);
  options.progress = let_in;
  options.progress_user = &intruder;
  pointsman_answers* found = nullptr;
  CHECK(pointsman_solve(solver, instances, &options, &found) == POINTSMAN_OK);
  pointsman_answers_free(found);
  CHECK(intruder.status == POINTSMAN_USAGE);
  CHECK(intruder.answers == nullptr);

  std::atomic<int> solved{0}, refused{0}, other{0};
  std::vector<std::thread> threads;
  for (int thread = 0; thread < kThreads; ++thread) {
    threads.emplace_back([&] {
      for (int round = 0; round < 50; ++round) {
        pointsman_answers* answers = nullptr;
        const int status = pointsman_solve(solver, instances, nullptr, &answers);
        ++(status == POINTSMAN_OK ? solved : status == POINTSMAN_USAGE ? refused : other);
        if ((status == POINTSMAN_OK) != (answers != nullptr)) ++other;
        pointsman_answers_free(answers);
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  CHECK(solved > 0);
  CHECK(other == 0);
  CHECK(solved + refused == 50 * kThreads);
  pointsman_instances_free(instances);
  pointsman_solver_free(solver);
}
