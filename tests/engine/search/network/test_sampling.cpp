// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <new>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/search.h"
#include "tests/catch.h"
#include "tests/engine/fake_backend.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

ModelConfig config_of(const Instance& instance) {
  ModelConfig config;
  config.problem = instance.problem;
  config.capacity = instance.capacity;
  return config;
}

// Of each instance the best answers, best first. Instance i has the key first_key + i.
std::vector<std::vector<Solution>> sample(FakeBackend& backend, const std::vector<Instance>& instances,
                                          const SamplingOptions& options, const SearchControl& control = {},
                                          uint64_t first_key = 10) {
  std::vector<uint64_t> keys(instances.size());
  std::iota(keys.begin(), keys.end(), first_key);
  const RolloutCall rollout = [&](const RolloutRequest& request, RolloutResult& result) {
    backend.rollout(request, result);
  };
  return run_search(rollout, config_of(instances[0]), {pointers_to(instances), keys}, options, control)
      .candidates;
}

// Samples of the instance with this key.
int64_t drawn_of(const FakeBackend& backend, uint64_t key) {
  return std::count_if(backend.drawn.begin(), backend.drawn.end(),
                       [&](const auto& entry) { return entry.first.first == key; });
}

bool same_draws(const FakeBackend& a, const FakeBackend& b) {
  const auto same = [](const auto& x, const auto& y) {
    return x.first == y.first && x.second.features == y.second.features && x.second.path == y.second.path;
  };
  return a.drawn.size() == b.drawn.size() &&
         std::equal(a.drawn.begin(), a.drawn.end(), b.drawn.begin(), same);
}

// A tour whatever its start and direction.
std::set<std::pair<int, int>> edges_of(const std::vector<int32_t>& order) {
  std::set<std::pair<int, int>> edges;
  for (size_t i = 0; i < order.size(); ++i) {
    edges.insert(std::minmax<int>(order[i], order[(i + 1) % order.size()]));
  }
  return edges;
}

}  // namespace

TEST_CASE("samples are the same however they are cut into chunks, batches and calls") {
  for (const bool knapsack : {false, true}) {
    std::vector<Instance> instances;
    for (uint32_t i = 0; i < 3; ++i) {
      instances.push_back(knapsack ? random_knapsack(9, i, 2.0) : random_tsp(9, i));
    }
    for (const int augment : {1, 8}) {
      if (knapsack && augment == 8) continue;
      for (const bool shuffle : {false, true}) {
        SamplingOptions options;
        options.samples = 700;
        options.augment = augment;
        options.shuffle = shuffle;
        FakeBackend whole, chunks, single, limited;
        const auto answers = sample(whole, instances, options);
        REQUIRE(whole.drawn.size() == 3 * 700);
        // Chunks of all sizes, each a run of its own.
        std::vector<double> best(3, knapsack ? -1.0 : 1e9);
        SamplingOptions part = options;
        for (int64_t at = 0, size = 1; at < 700; at += size, size = size * 2 + 1) {
          part.first_sample = at;
          part.samples = std::min<int64_t>(size, 700 - at);
          const auto piece = sample(chunks, instances, part);
          for (int i = 0; i < 3; ++i) {
            if (is_better(instances[i].problem, piece[i][0].objective, best[i]))
              best[i] = piece[i][0].objective;
          }
        }
        CHECK(same_draws(whole, chunks));
        for (int i = 0; i < 3; ++i) {
          CHECK(answers[i][0].objective == Approx(best[i]).epsilon(1e-12));
          const auto alone = sample(single, {instances[i]}, options, {}, 10 + i);
          CHECK(alone[0][0].order == answers[i][0].order);
          CHECK(alone[0][0].log_prob == answers[i][0].log_prob);
        }
        CHECK(same_draws(whole, single));
        // A deadline far away changes the sizes of the calls and the order of the samples only.
        const auto paced = sample(limited, instances, options, {Clock::now() + std::chrono::hours(1), {}});
        CHECK(same_draws(whole, limited));
        for (int i = 0; i < 3; ++i) {
          CHECK(paced[i][0].order == answers[i][0].order);
          CHECK(drawn_of(limited, 10 + i) == 700);
        }
        for (const auto& entry : whole.drawn) REQUIRE(entry.second.times == 1);
      }
    }
  }
}

TEST_CASE("sample s reads dihedral copy s mod 8, in an order of its block's own when shuffled") {
  const Instance instance = random_tsp(6, 1);
  const std::vector<float> input = network_features(instance, 0.0);
  for (const bool greedy : {false, true}) {
    SamplingOptions options;
    options.augment = 8;
    options.samples = 300;
    options.greedy = greedy;
    options.shuffle = true;
    options.seed = 77;
    FakeBackend backend;
    sample(backend, {instance}, options);
    REQUIRE(backend.drawn.size() == 300);
    for (const auto& [key, drawn] : backend.drawn) {
      const uint32_t copy = key.second % 8;
      const uint32_t block = key.second / 8 / (greedy ? 1 : 16);
      const std::vector<int32_t> order = input_order(77, 10, block * 8 + copy, 6);
      std::vector<float> expected;
      for (const int32_t item : order) {
        float point[2] = {input[2 * item], input[2 * item + 1]};
        apply_dihedral(static_cast<int>(copy), point);
        expected.insert(expected.end(), point, point + 2);
      }
      REQUIRE(drawn.features == expected);
    }
  }
}

TEST_CASE("an answer is in the instance's own numbering and units") {
  Instance instance = random_tsp(7, 2, 500.0);
  instance.metric = Metric::kEuc2d;
  SamplingOptions options;
  options.samples = 64;
  options.augment = 8;
  options.shuffle = true;
  options.candidates = 64;
  FakeBackend backend;
  const auto answers = sample(backend, {instance}, options);
  double least = 1e9, most = 0.0;
  for (const auto& entry : backend.drawn) {
    least = std::min(least, entry.second.cost);
    most = std::max(most, entry.second.cost);
  }
  const std::vector<Solution>& best = answers[0];
  for (size_t i = 0; i < best.size(); ++i) {
    Solution again = best[i];
    REQUIRE(validate_solution(instance, again).empty());
    CHECK(again.objective == best[i].objective);
    CHECK(best[i].network_objective == best[i].objective);
    if (i > 0) CHECK(best[i].objective >= best[i - 1].objective);
  }
  // Network units differ from the user's by one factor: the ratio of extremes is the same, up to float
  // coordinates.
  CHECK(best.back().unrounded / best.front().unrounded == Approx(most / least).epsilon(1e-3));
}

TEST_CASE("the best distinct answers are kept, best first") {
  const Instance instance = random_tsp(6, 4);
  SamplingOptions options;
  options.samples = 3000;
  options.candidates = 1000;
  FakeBackend backend;
  const auto all = sample(backend, {instance}, options)[0];
  CHECK(all.size() == 60);  // 5! / 2 tours of six cities, each drawn some 50 times
  std::set<std::set<std::pair<int, int>>> distinct;
  for (const Solution& solution : all) distinct.insert(edges_of(solution.order));
  CHECK(distinct.size() == 60);
  options.candidates = 5;
  const auto few = sample(backend, {instance}, options)[0];
  REQUIRE(few.size() == 5);
  for (size_t i = 0; i < few.size(); ++i) CHECK(few[i].order == all[i].order);

  const Instance knapsack = random_knapsack(6, 4, 1.0);
  const auto packings = sample(backend, {knapsack}, options)[0];
  std::set<std::set<int>> sets;
  for (const Solution& solution : packings) sets.insert({solution.order.begin(), solution.order.end()});
  CHECK(sets.size() == packings.size());
}

// The samples of one copy come before those of the next, so a lower sample may come after a higher one.
TEST_CASE("of samples that cost the same the lowest wins, whichever copy it reads") {
  Instance line;  // in network units all distances are quarters: many tours cost the same, to the bit
  for (int i = 0; i < 5; ++i) line.values.insert(line.values.end(), {static_cast<double>(i), 0.0});
  FakeBackend backend;
  int behind_another_copy = 0;
  for (uint64_t key = 0; key < 20; ++key) {
    SamplingOptions options;
    options.augment = 8;
    options.samples = 1;
    Solution lowest;
    int64_t winner = 0;
    for (int64_t s = 0; s < 16; ++s) {
      options.first_sample = s;
      Solution one = sample(backend, {line}, options, {}, key)[0][0];
      if (s > 0 && !is_better(line.problem, one.objective, lowest.objective)) continue;
      lowest = std::move(one);
      winner = s;
    }
    options.first_sample = 0;
    options.samples = 16;
    CHECK(sample(backend, {line}, options, {}, key)[0][0].order == lowest.order);
    behind_another_copy += winner % 8 > 0;
  }
  CHECK(behind_another_copy > 0);
}

TEST_CASE("greedy makes one rollout for each sequence that differs") {
  const Instance instance = random_tsp(8, 5);
  SamplingOptions options;
  options.greedy = true;
  options.samples = 100;
  FakeBackend plain, copies, orders;
  sample(plain, {instance}, options);
  CHECK(plain.drawn.size() == 1);
  options.augment = 8;
  sample(copies, {instance}, options);
  CHECK(copies.drawn.size() == 8);
  options.augment = 1;
  options.shuffle = true;
  sample(orders, {instance}, options);
  CHECK(orders.drawn.size() == 100);
  std::set<std::vector<float>> inputs;
  for (const auto& entry : orders.drawn) inputs.insert(entry.second.features);
  CHECK(inputs.size() > 95);  // of 8! orders
}

TEST_CASE("calls are bounded in size and instances of many samples are cut") {
  FakeBackend backend;
  SamplingOptions options;
  options.samples = 20000;
  options.shuffle = true;
  sample(backend, {random_tsp(3, 1), random_tsp(3, 2)}, options);
  CHECK(backend.largest_call <= 16384);
  CHECK(backend.rollout_calls <= 5);  // the first one small
  CHECK(drawn_of(backend, 11) == 20000);
}

TEST_CASE("a signal in a long run leaves every instance with an answer") {
  FakeBackend backend;
  SamplingOptions options;
  options.samples = 1'000'000;
  const SearchControl control = {{}, [&] { return backend.rollout_calls > 1; }};
  for (const auto& answer : sample(backend, {random_tsp(10, 1), random_tsp(10, 2)}, options, control)) {
    CHECK(answer[0].status == Status::kInterrupted);
    CHECK(answer[0].order.size() == 10);
  }
  CHECK(backend.drawn.size() < 1000);
}

TEST_CASE("a limit that strikes early leaves instances unsolved, a part's limit with a sample each") {
  std::vector<Instance> instances;
  for (uint32_t i = 0; i < 40; ++i) instances.push_back(random_tsp(10, i));
  SamplingOptions options;
  options.samples = 1000;
  FakeBackend backend;
  const SearchControl late = {Clock::now() - std::chrono::seconds(1), {}},
                      interrupted = {{}, [] { return true; }};
  for (const SearchControl& control : {late, interrupted}) {
    for (const auto& answer : sample(backend, instances, options, control)) {
      REQUIRE(answer.size() == 1);
      CHECK(answer[0].status == Status::kUnsolved);
      CHECK(answer[0].order.empty());
      CHECK(std::isnan(answer[0].objective));
    }
    CHECK(backend.drawn.empty());
  }
  // The end of a part of the run is not the run's.
  FakeBackend shared;
  SearchControl part = late;
  part.end = Clock::now() + std::chrono::hours(1);
  for (const auto& answer : sample(shared, instances, options, part))
    CHECK(answer[0].status == Status::kTimeLimit);
  CHECK(shared.drawn.size() == 40);
  // Halfway: at 20 us a rollout the 40,000 take 0.8 s.
  FakeBackend slow;
  slow.time_per_rollout = std::chrono::microseconds(20);
  const auto halfway = sample(slow, instances, options, {Clock::now() + std::chrono::milliseconds(100), {}});
  int64_t drawn = 0;
  for (size_t i = 0; i < halfway.size(); ++i) {
    const int64_t samples = drawn_of(slow, 10 + i);
    REQUIRE(!halfway[i].empty());
    drawn += samples;
    CHECK(halfway[i][0].status == (samples == 1000 ? Status::kDone : Status::kTimeLimit));
  }
  CHECK(drawn > 40);
  CHECK(drawn < 40000);
}

TEST_CASE("the one sample past a limit is the first of its chunk") {
  SamplingOptions options;
  options.first_sample = 5;
  options.samples = 100;
  FakeBackend backend;
  SearchControl part = {Clock::now() - std::chrono::seconds(1), {}};
  part.end = Clock::now() + std::chrono::hours(1);
  sample(backend, {random_tsp(10, 1)}, options, part, 10);
  REQUIRE(backend.drawn.size() == 1);
  CHECK(backend.drawn.begin()->first == std::pair<uint64_t, uint32_t>(10, 5));
}

TEST_CASE("where memory runs out calls are halved, and the answers stay") {
  class Small final : public FakeBackend {
    void rollout(const RolloutRequest& request, RolloutResult& result) override {
      if (count_rollouts(request) > 40) throw std::bad_alloc();
      FakeBackend::rollout(request, result);
    }
  } small;
  FakeBackend large;
  std::vector<Instance> instances;
  for (uint32_t i = 0; i < 20; ++i) instances.push_back(random_tsp(10, i));
  SamplingOptions options;
  options.samples = 100;
  options.shuffle = true;
  options.candidates = 3;
  const auto expected = sample(large, instances, options), found = sample(small, instances, options);
  CHECK(large.rollout_calls == 1);
  CHECK(small.rollout_calls > 50);
  for (size_t i = 0; i < instances.size(); ++i) {
    for (size_t k = 0; k < 3; ++k) CHECK(found[i][k].order == expected[i][k].order);
  }
  options.shuffle = false;  // a sequence of 100 samples cannot be halved
  CHECK_THROWS_AS(sample(small, instances, options), std::bad_alloc);
}

TEST_CASE("what makes no sense is refused, an invalid answer is a defect") {
  FakeBackend backend;
  const Instance tsp = random_tsp(5, 1);
  const auto with = [](auto change) {
    SamplingOptions options;
    options.samples = 4;
    change(options);
    return options;
  };
  CHECK_THROWS_AS(sample(backend, {tsp}, with([](auto& o) { o.samples = 0; })), std::invalid_argument);
  CHECK_THROWS_AS(sample(backend, {tsp}, with([](auto& o) { o.augment = 4; })), std::invalid_argument);
  CHECK_THROWS_AS(sample(backend, {tsp}, with([](auto& o) { o.first_sample = -1; })), std::invalid_argument);
  CHECK_THROWS_AS(sample(backend, {tsp}, with([](auto& o) { o.first_sample = 4294967293; })),
                  std::invalid_argument);
  CHECK_THROWS_AS(sample(backend, {tsp}, with([](auto& o) { o.policy.temperature = 0.0f; })),
                  std::invalid_argument);
  CHECK_THROWS_AS(sample(backend, {random_knapsack(5, 1, 1.0)}, with([](auto& o) { o.augment = 8; })),
                  std::invalid_argument);
  CHECK_THROWS_AS(sample(backend, {tsp, random_tsp(6, 1)}, with([](auto&) {})), std::invalid_argument);
  CHECK(sample(backend, {random_tsp(1, 1)}, with([](auto&) {}))[0][0].order == std::vector<int32_t>{0});
  backend.corrupt = true;
  CHECK_THROWS_AS(sample(backend, {tsp}, with([](auto&) {})), std::logic_error);
}
