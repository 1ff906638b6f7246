// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <set>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "kernels/tools/worker_threads.h"
#include "tests/catch.h"

using pointsman::WorkerThreads;

TEST_CASE("every item is done once, by a worker of the pool") {
  for (int threads : {1, 2, 3, 8}) {
    WorkerThreads workers(threads);
    CHECK(workers.count() == threads);
    for (int items : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> done(items);
      std::atomic<int> strangers{0};
      workers.for_each(items, [&](int64_t item, int worker) {
        ++done[item];
        strangers += worker < 0 || worker >= threads;
      });
      int once = 0;
      for (const auto& times : done) once += times == 1;
      CHECK(once == items);
      CHECK(strangers == 0);
    }
  }
}

TEST_CASE("no two items run on one worker at a time") {
  WorkerThreads workers(4);
  std::vector<std::atomic<int>> inside(4);
  std::atomic<int> clashes{0};
  workers.for_each(100, [&](int64_t, int worker) {
    clashes += inside[worker]++ != 0;
    std::this_thread::sleep_for(std::chrono::microseconds(200));  // also one core shows them overlap
    --inside[worker];
  });
  CHECK(clashes == 0);
}

TEST_CASE("for_each returns only when everything is done, round after round") {
  WorkerThreads workers(3);
  std::vector<int> values(64);  // each item writes its own, the caller reads them all: no atomics
  for (int round = 1; round <= 500; ++round) {
    workers.for_each(64, [&](int64_t item, int worker) {
      if (worker != 0 && round % 10 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
      ++values[item];
    });
    int right = 0;
    for (int value : values) right += value == round;
    if (right != 64) FAIL("round " << round << ": " << right << " of 64 items done");
  }
  SUCCEED();
}

TEST_CASE("an item's exception is thrown again by for_each, and the pool lives on") {
  for (int threads : {1, 3}) {
    WorkerThreads workers(threads);
    for (int round = 0; round < 50; ++round) {
      std::string message;
      try {
        workers.for_each(100, [](int64_t item, int) {
          if (item == 13) throw std::runtime_error("thirteen");
        });
      } catch (const std::runtime_error& error) {
        message = error.what();
      }
      REQUIRE(message == "thirteen");
      std::atomic<int> done{0};
      workers.for_each(100, [&](int64_t, int) { ++done; });
      REQUIRE(done == 100);
    }
  }
}

TEST_CASE("items not yet begun are dropped after an exception") {
  WorkerThreads alone(1);
  std::set<int64_t> begun;
  CHECK_THROWS_AS(alone.for_each(100,
                                 [&](int64_t item, int) {
                                   begun.insert(item);
                                   if (item == 5) throw std::logic_error("five");
                                 }),
                  std::logic_error);
  CHECK(begun == std::set<int64_t>{0, 1, 2, 3, 4, 5});

  // The other worker stops too: it would need 500 ms for the items that are left.
  WorkerThreads two(2);
  std::atomic<bool> thrown{false};
  std::atomic<int> after{0};
  CHECK_THROWS_AS(two.for_each(500,
                               [&](int64_t item, int) {
                                 if (item == 0) {
                                   thrown = true;
                                   throw std::logic_error("first");
                                 }
                                 while (!thrown) std::this_thread::yield();
                                 ++after;
                                 std::this_thread::sleep_for(std::chrono::milliseconds(1));
                               }),
                  std::logic_error);
  CHECK(after < 499);
}

TEST_CASE("a pool that was never used, and one that threw everywhere, end cleanly") {
  { WorkerThreads unused(4); }
  WorkerThreads workers(4);
  CHECK_THROWS_AS(workers.for_each(1000, [](int64_t, int) { throw 1; }), int);
}
