// SPDX-License-Identifier: Apache-2.0
// What the Backend promises of rollouts, on whichever device is linked.
#include <algorithm>
#include <atomic>
#include <cmath>
#include <ctime>
#include <limits>
#include <map>
#include <numeric>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/engine/backend/backend_under_test.h"
#include "tests/engine/random_batch.h"
#include "tests/kernels/lone_search.h"

namespace pointsman {
namespace {

constexpr int kSamples = 4;

// Greedy and kSamples samples of every sequence, made in batches of `size` sequences.
RolloutResult in_batches(Backend& backend, const RandomBatch& all, int size, Decode decode) {
  const std::vector<int32_t> counts(all.count, decode == Decode::kSample ? kSamples : 1);
  RolloutResult joined;
  for (int first = 0; first < all.count; first += size) {
    const int taken = std::min(size, all.count - first);
    RolloutRequest request;
    request.sequences = all.batch(first, taken);
    request.decode = decode;
    request.counts = counts.data();
    request.instance_keys = all.keys.data() + first;
    const RolloutResult part = roll_out(backend, request);
    append(part, all.steps(), 0, part.costs.size(), joined);
  }
  return joined;
}

// ---------------------------------------------------------------------------------------- 2-opt and Or-opt

TwoOptResult search_tours(Backend& backend, const RandomBatch& all, int first, int count, int kicks,
                          const StopToken& stop = {}) {
  TwoOptRequest request;
  request.sequences = all.batch(first, count);
  request.instance_keys = all.keys.data() + first;
  request.kicks = kicks;
  request.stop = stop;
  TwoOptResult result;
  backend.two_opt_device()->two_opt(request, result);
  return result;
}

TEST_CASE("tours without a network are those of one thread, in batches of any size") {
  const int n = 30, count = fewer(40, 5), kicks = 10;
  const RandomBatch all(ProblemKind::kTsp, n, count, 18);
  const auto backend = backend_under_test(3);  // not configured
  std::vector<int32_t> expected;
  for (int s = 0; s < count; ++s) {
    const float* const xy = all.batch().features_of(s);
    const std::vector<uint16_t> neighbours = neighbours_of(xy, n);
    LoneSearch lone({xy, neighbours.data(), n});
    lone.search.search(kicks, kDefaultSeed, all.keys[s], kNeverStops);
    const std::vector<int32_t> order = lone.best();
    expected.insert(expected.end(), order.begin(), order.end());
  }
  for (const int size : {1, 3, count}) {
    std::vector<int32_t> found;
    for (int first = 0; first < count; first += size) {
      const TwoOptResult part = search_tours(*backend, all, first, std::min(size, count - first), kicks);
      found.insert(found.end(), part.orders.begin(), part.orders.end());
      CHECK(std::count(part.kicks.begin(), part.kicks.end(), kicks) == std::min(size, count - first));
    }
    CHECK(found == expected);
  }
  CHECK(search_tours(*backend, all, 0, 0, kicks).orders.empty());
}

TEST_CASE("tours without a network that a stop cuts short are tours, or missing and said to be") {
  const int n = 40, count = 8;
  const RandomBatch all(ProblemKind::kTsp, n, count, 19);
  const auto backend = backend_under_test(2);
  const bool hears = kFewer == 1;  // an emulated device hears of a stop between launches only
  const int kicks = hears ? 1 << 30 : 100;
  std::vector<int32_t> all_cities(n);
  std::iota(all_cities.begin(), all_cities.end(), 0);
  for (const int answered : {0, 1, 3, 12}) {
    std::atomic<int> questions = 0;
    const TwoOptResult part =
        search_tours(*backend, all, 0, count, kicks, StopToken([&] { return questions++ >= answered; }));
    for (int s = 0; s < count; ++s) {
      std::vector<int32_t> order(part.orders.begin() + s * n, part.orders.begin() + (s + 1) * n);
      std::sort(order.begin(), order.end());
      CHECK((part.kicks[s] < kicks || !hears));
      CHECK(order == (part.kicks[s] == kNotBegun ? std::vector<int32_t>(n, -1) : all_cities));
      if (answered == 0) CHECK(part.kicks[s] == kNotBegun);
    }
  }
  CHECK(search_tours(*backend, all, 0, count, 1).kicks == std::vector<int32_t>(count, 1));
}

TEST_CASE("tours without a network need a TSP of enough cities and not too many") {
  const auto backend = backend_under_test(1);
  const auto refuses = [&](ProblemKind problem, int n, int kicks) {
    const RandomBatch one(problem, n, 1, 1);
    CHECK_THROWS_AS(search_tours(*backend, one, 0, 1, kicks), std::invalid_argument);
  };
  refuses(ProblemKind::kKnapsack, 20, 0);
  refuses(ProblemKind::kTsp, kFewestTourCities - 1, 0);
  refuses(ProblemKind::kTsp, kMostTourCities + 1, 0);
  refuses(ProblemKind::kTsp, 20, -1);
}

// ------------------------------------------------------------------------------------------------ stops

TEST_CASE("a stop keeps the rollouts that were made, as they are without it") {
  const int n = fewer(60, 12), count = fewer(40, 6);
  for (const bool attention : {false, true}) {
    const ModelConfig plain = config_for(ProblemKind::kTsp, n);
    const ModelConfig config = attention ? with_attention(plain) : plain;
    const RandomBatch all(ProblemKind::kTsp, n, count, 8);
    const std::vector<int32_t> counts(all.count, kSamples);
    const auto backend = backend_with(config, scaled_parameters(config, 3.0f), attention ? 3 : 1);
    const RolloutResult whole = sample(*backend, all, counts);
    CHECK(whole.finished.empty());
    RolloutRequest request;
    request.sequences = all.batch();
    request.decode = Decode::kSample;
    request.counts = counts.data();
    request.instance_keys = all.keys.data();
    for (const int answered : {0, 1, 5, 50, 200}) {
      std::atomic<int> questions = 0;
      request.stop = StopToken([&] { return questions++ >= answered; });
      const RolloutResult part = roll_out(*backend, request);
      if (part.finished.empty()) continue;  // it was over before
      CHECK((answered > 0 || std::count(part.finished.begin(), part.finished.end(), 0) == all.count));
      for (size_t r = 0; r < whole.costs.size(); ++r) {
        if (std::isnan(part.costs[r])) continue;
        CHECK(part.costs[r] == whole.costs[r]);
        CHECK(items_of(part, n, r) == items_of(whole, n, r));
      }
      for (int s = 0; s < all.count; ++s) {
        const auto cost = part.costs.begin() + s * kSamples;
        CHECK(part.finished[s] == std::count_if(cost, cost + kSamples, [](double c) { return c == c; }));
      }
    }
  }
}

TEST_CASE("a stop with best_only, on a tape and in a gradient") {
  const int n = fewer(40, 12);
  const ModelConfig config = with_attention(config_for(ProblemKind::kKnapsack, n));
  const RandomBatch all(ProblemKind::kKnapsack, n, 20, 9);
  const auto backend = backend_with(config, scaled_parameters(config, 3.0f));
  RolloutRequest request;
  request.sequences = all.batch();
  request.stop = StopToken([] { return true; });
  request.best_only = true;
  const RolloutResult none = roll_out(*backend, request);
  CHECK(none.winners == std::vector<int32_t>(all.count, -1));
  CHECK(none.finished == std::vector<int32_t>(all.count, 0));
  request.best_only = false;
  request.stop = {};
  Tape tape;
  request.tape = &tape;
  const RolloutResult made = roll_out(*backend, request);
  const std::vector<float> weights(all.count, 1.0f);
  GradientRequest gradient = gradient_of(request, made, weights);
  gradient.tape = &tape;
  gradient.stop = StopToken([] { return true; });
  if (kIsCpuBackend) CHECK_THROWS_AS(backend->gradient(gradient), CallStopped);
}

TEST_CASE("a stopped gradient leaves nothing in the next") {
  if (!kIsCpuBackend) return;  // on CUDA a stop comes between chunks
  const int n = 12;
  const ModelConfig config = with_attention(config_for(ProblemKind::kTsp, n));
  const std::vector<float> parameters = scaled_parameters(config, 3.0f);
  const RandomBatch all(ProblemKind::kTsp, n, 40, 12);  // three tiles
  const auto backend = backend_with(config, parameters);
  RolloutRequest request;
  request.sequences = all.batch();
  const RolloutResult made = roll_out(*backend, request);
  const std::vector<float> weights(all.count, 1.0f);
  GradientRequest gradient = gradient_of(request, made, weights);
  const auto fresh_gradient = [&] {
    backend->load_parameters(0, parameters);  // zeroes the gradient
    backend->gradient(gradient);
    std::vector<float> found(parameters.size());
    backend->read_gradient(0, found);
    return found;
  };
  const std::vector<float> whole = fresh_gradient();
  for (int looks = 0;; ++looks) {
    std::atomic<int> left = looks;
    gradient.stop = StopToken([&] { return left-- <= 0; });
    const bool stopped = [&] {
      try {
        backend->gradient(gradient);
        return false;
      } catch (const CallStopped&) {
        return true;
      }
    }();
    gradient.stop = {};
    const bool same = fresh_gradient() == whole;  // nobody reads so many numbers
    CHECK(same);
    if (!stopped) {
      CHECK(looks > 10);
      break;
    }
  }
}

TEST_CASE("a gradient that no memory can hold is refused with the number") {
  if (!kIsCpuBackend) return;
  const int n = 200'000;  // activations are quadratic in n: terabytes
  const RandomBatch all(ProblemKind::kTsp, n, 1, 11);
  const ModelConfig config = with_attention(config_for(ProblemKind::kTsp, n));
  const auto backend = backend_with(config, scaled_parameters(config, 1.0f));
  RolloutRequest request;
  request.sequences = all.batch();
  Tape tape;
  request.tape = &tape;
  CHECK_THROWS_WITH(roll_out(*backend, request),
                    Catch::Contains("a gradient at n = 200000 needs ") && Catch::Contains(" GiB of memory"));
}

// The longest time between two questions of a rollout and its gradient, in seconds of the processor's time:
// others may need the machine.
double longest_between_questions(Backend& backend, const RandomBatch& all) {
  std::vector<double> seconds;
  const auto now = [start = std::clock()] {
    return static_cast<double>(std::clock() - start) / CLOCKS_PER_SEC;
  };
  const StopToken never([&] { return seconds.push_back(now()), false; });
  RolloutRequest request;
  request.sequences = all.batch();
  request.stop = never;
  Tape tape;
  request.tape = &tape;
  const RolloutResult made = roll_out(backend, request);
  const float weight = 1.0f;
  backend.gradient({request.sequences, nullptr, made.orders.data(), &weight, {}, &tape, never});
  seconds.push_back(now());
  double last = 0.0, longest = 0.0;
  for (const double at : seconds) longest = std::max(longest, at - std::exchange(last, at));
  return longest;
}

TEST_CASE("long calls ask often whether they should stop") {
  if (!kIsCpuBackend) return;
  const int n = 1500;
  const RandomBatch all(ProblemKind::kTsp, n, 1, 10);
  for (const bool attention : {false, true}) {
    const ModelConfig plain = config_for(ProblemKind::kTsp, n);
    const ModelConfig config = attention ? with_attention(plain, 3) : plain;
    const auto backend = backend_with(config, scaled_parameters(config, 1.0f));
    // The best of three: a virtual processor's time includes what its host took of it.
    double longest = INFINITY;
    for (int attempt = 0; attempt < 3 && longest > 0.05; ++attempt) {
      longest = std::min(longest, longest_between_questions(*backend, all));
    }
    CHECK(longest <= 0.05);  // 20 ms on a machine that is not busy
  }
}

// ------------------------------------------------------------------------------------------- the same bits

TEST_CASE("batches of 1, 7, 64 and all, with 1, 2 and 3 threads, give the same bits") {
  for (ProblemKind problem : all_problems()) {
    const int n = kIsCpuBackend ? 20 : 12;
    const RandomBatch all(problem, n, fewer(90), 1);
    const ModelConfig config = config_for(problem, n);
    const std::vector<float> parameters = scaled_parameters(config, 3.0f);
    for (Decode decode : {Decode::kGreedy, Decode::kSample}) {
      const RolloutResult expected = in_batches(*backend_with(config, parameters), all, all.count, decode);
      for (int threads = 1; threads <= (kIsCpuBackend ? 3 : 1); ++threads) {
        auto backend = backend_with(config, parameters, threads);
        for (int size : {1, 7, 64, all.count}) {
          INFO(name_of(problem) << ", batches of " << size << ", " << threads << " threads");
          CHECK(same_answers(in_batches(*backend, all, size, decode), expected));
        }
      }
    }
  }
}

TEST_CASE("instances in another order, with their keys, give the same bits") {
  for (ProblemKind problem : all_problems()) {
    const RandomBatch all(problem, 17, fewer(61), 2);
    std::vector<int> order(all.count);
    std::iota(order.begin(), order.end(), 0);
    std::shuffle(order.begin(), order.end(), std::mt19937(5));
    const ModelConfig config = config_for(problem, 17, 2);
    auto backend = backend_with(config, scaled_parameters(config, 3.0f), 2);
    const RolloutResult expected = in_batches(*backend, all, all.count, Decode::kSample);
    const RolloutResult shuffled = in_batches(*backend, all.permuted(order), all.count, Decode::kSample);
    RolloutResult picked;
    for (int row : order)
      append(expected, all.steps(), static_cast<size_t>(row) * kSamples, kSamples, picked);
    CHECK(same_answers(shuffled, picked));
    CHECK(!same_answers(shuffled, expected));
  }
}

TEST_CASE("samples in ten chunks, in strides and one by one give the same bits as at once") {
  const int kMany = fewer(300, 40);
  for (ProblemKind problem : all_problems()) {
    const RandomBatch all(problem, 12, 3, 3);
    const ModelConfig config = config_for(problem, 12);
    // The prefixes of a network that decides coincide for long; those of a fresh one part at once.
    for (float scale : {1.0f, 6.0f}) {
      auto backend = backend_with(config, scaled_parameters(config, scale), 2);
      RolloutRequest request;
      request.sequences = all.batch();
      request.decode = Decode::kSample;
      request.instance_keys = all.keys.data();
      std::vector<uint32_t> firsts(all.count);
      request.first_samples = firsts.data();
      const auto run = [&](uint32_t first, int count, uint32_t stride) {
        const std::vector<int32_t> counts(all.count, count);
        std::fill(firsts.begin(), firsts.end(), first);
        request.counts = counts.data();
        request.sample_stride = stride;
        return roll_out(*backend, request);
      };
      const RolloutResult together = run(0, kMany, 1);
      const auto check_part = [&](uint32_t first, int count, uint32_t stride) {
        const RolloutResult part = run(first, count, stride);
        RolloutResult expected;
        for (int s = 0; s < all.count; ++s) {
          for (int j = 0; j < count; ++j)
            append(together, all.steps(), s * kMany + first + j * stride, 1, expected);
        }
        return same_answers(part, expected);
      };
      int wrong = 0;
      for (int chunk = 0; chunk < 10; ++chunk) wrong += !check_part(chunk * kMany / 10, kMany / 10, 1);
      for (uint32_t replica = 0; replica < 7; ++replica) wrong += !check_part(replica, (kMany - 6) / 7, 7);
      for (int j = 0; j < kMany; j += kFewer) wrong += !check_part(j, 1, 1);
      CHECK(wrong == 0);
    }
  }
}

TEST_CASE("samples that share a prefix share its evaluation, however many and on any threads") {
  if (!kIsCpuBackend) return;
  const RandomBatch one(ProblemKind::kTsp, 12, 1, 3);
  const ModelConfig config = config_for(ProblemKind::kTsp, 12);
  const auto parameters = scaled_parameters(config, 6.0f);
  const PolicyStatistics alone = sample(*backend_with(config, parameters), one, {1}).statistics;
  CHECK(alone.steps == 12);
  CHECK(alone.evaluations == 11);  // the last city needs none
  for (const int samples : {200, 6000}) {
    const RolloutResult many = sample(*backend_with(config, parameters), one, {samples});
    CHECK(many.statistics.steps == samples * 12);
    std::map<std::vector<int>, int> prefixes;
    for (int r = 0; r < samples; ++r) {
      std::vector<int> items = items_of(many, 12, r);
      for (items.pop_back(); !items.empty(); items.pop_back()) ++prefixes[items];
    }
    // Without the ones that leave one city, and with the empty prefix.
    const auto distinct =
        std::count_if(prefixes.begin(), prefixes.end(), [](const auto& p) { return p.first.size() < 11; });
    CHECK(many.statistics.evaluations == distinct + 1);
    CHECK(many.statistics.evaluations < samples * 11);
    for (const int threads : {2, 5}) {
      auto backend = backend_with(config, parameters, threads);
      for (int repetition = 0; repetition < 10; ++repetition) {  // who takes which branch is chance
        const RolloutResult shared = sample(*backend, one, {samples});
        CHECK(same_answers(shared, many));
        CHECK(shared.statistics.evaluations == many.statistics.evaluations);
        CHECK(shared.statistics.steps == many.statistics.steps);
      }
    }
  }
}

TEST_CASE("seed, key and sample index each change the draws") {
  RandomBatch twins(ProblemKind::kTsp, 15, 2, 4);
  std::copy_n(twins.features.begin(), 30, twins.features.begin() + 30);
  const ModelConfig config = config_for(ProblemKind::kTsp, 15);
  auto backend = backend_with(config, scaled_parameters(config, 1.0f));
  RolloutRequest request;
  request.sequences = twins.batch();
  request.decode = Decode::kSample;
  request.instance_keys = twins.keys.data();
  const RolloutResult base = roll_out(*backend, request);
  CHECK(items_of(base, 15, 0) != items_of(base, 15, 1));
  request.seed = 99;
  CHECK(roll_out(*backend, request).orders != base.orders);
  request.seed = 1234;
  twins.keys[1] = twins.keys[0];
  const RolloutResult equal = roll_out(*backend, request);
  CHECK(items_of(equal, 15, 0) == items_of(equal, 15, 1));
  const std::vector<uint32_t> firsts{0, 1};
  request.first_samples = firsts.data();
  const RolloutResult next = roll_out(*backend, request);
  CHECK(items_of(next, 15, 0) != items_of(next, 15, 1));
}

TEST_CASE("each sequence is decoded with its own parameter set") {
  const RandomBatch all(ProblemKind::kTsp, 13, 9, 6);
  const ModelConfig config = config_for(ProblemKind::kTsp, 13);
  const std::vector<int32_t> sets{0, 0, 0, 1, 2, 2, 2, 2, 3};
  auto many = backend_under_test(2);
  many->configure(config, 4);
  for (int set = 0; set < 4; ++set) many->load_parameters(set, scaled_parameters(config, 3.0f, 10 + set));
  RolloutRequest request;
  request.sequences = all.batch();
  request.sequences.parameter_sets = sets.data();
  const RolloutResult found = roll_out(*many, request);
  RolloutResult expected;
  for (int s = 0; s < all.count; ++s) {
    auto single = backend_with(config, scaled_parameters(config, 3.0f, 10 + sets[s]));
    append(in_batches(*single, all, all.count, Decode::kGreedy), all.n, s, 1, expected);
  }
  CHECK(same_answers(found, expected));
}

// ------------------------------------------------------------------------------------------- decoding

TEST_CASE("greedy ties go to the lowest index, and a uniform policy says so") {
  const RandomBatch all(ProblemKind::kTsp, 9, 2, 7);
  const ModelConfig config = config_for(ProblemKind::kTsp, 9);
  auto backend = backend_with(config, std::vector<float>(ParameterLayout(config).size, 0.0f));
  const RolloutResult result = in_batches(*backend, all, 2, Decode::kGreedy);
  for (int s = 0; s < 2; ++s) {
    CHECK(items_of(result, 9, s) == std::vector<int>{0, 1, 2, 3, 4, 5, 6, 7, 8});
    CHECK(result.log_probs[s] == Approx(-std::lgamma(10.0)).epsilon(1e-7));  // 1 / 9!
  }
  Tape tape;
  const RolloutResult sampled = sample(*backend, all, {50, 50}, &tape);
  CHECK(sampled.statistics.entropy == Approx(100.0 * std::lgamma(10.0)).epsilon(1e-6));
  CHECK(sample(*backend, all, {50, 50}).statistics.entropy == 0.0);
  CHECK(sampled.statistics.mean_logit == 0.0);
  CHECK(sampled.statistics.saturated == 0.0);
  CHECK(sampled.statistics.direct_rows == 0);
  CHECK(sampled.statistics.steps == 900);
}

TEST_CASE("greedy takes what the reference takes") {
  for (ProblemKind problem : all_problems()) {
    for (int glimpses : {0, 1, 2}) {
      const RandomBatch all(problem, 10, 6, 8);
      const ModelConfig config = config_for(problem, 10, glimpses);
      const std::vector<float> parameters = scaled_parameters(config, 3.0f);
      const reference::Network network(config, parameters);
      auto backend = backend_with(config, parameters);
      for (bool literal : {false, true}) {
        RolloutRequest request;
        request.sequences = all.batch();
        request.policy.stop_at_first_misfit = literal;
        const RolloutResult result = roll_out(*backend, request);
        for (int s = 0; s < all.count; ++s) {
          const reference::Rollout expected =
              reference::greedy(network, all.sequence(s), {1.0, 0.0, literal});
          INFO(name_of(problem) << ", " << glimpses << " glimpses" << (literal ? ", literal rule" : ""));
          CHECK(items_of(result, all.steps(), s) == expected.order);
          CHECK(result.log_probs[s] == Approx(expected.log_prob).epsilon(1e-4));
        }
      }
    }
  }
}

TEST_CASE("samples follow the probabilities that their log p tells") {
  const RandomBatch one(ProblemKind::kTsp, 4, 1, 9);
  const ModelConfig config = config_for(ProblemKind::kTsp, 4);
  auto backend = backend_with(config, scaled_parameters(config, 4.0f));
  const int kDraws = fewer(24000);
  const RolloutResult result = sample(*backend, one, {kDraws});
  std::map<std::vector<int>, std::pair<double, int>> tours;
  for (int r = 0; r < kDraws; ++r) {
    auto& [p, times] = tours[items_of(result, 4, r)];
    p = std::exp(result.log_probs[r]);
    ++times;
  }
  double squared = 0.0, total = 0.0;
  int classes = 0;
  for (const auto& [tour, seen] : tours) {
    total += seen.first;
    if (seen.first * kDraws < 5.0) continue;
    squared += std::pow(seen.second - seen.first * kDraws, 2) / (seen.first * kDraws);
    ++classes;
  }
  CHECK(classes > 5);
  CHECK(total == Approx(1.0).margin(0.01));  // a tour that was never drawn is a rare one
  // Chi square with at most 23 degrees of freedom exceeds 60 once in 30,000.
  CHECK(squared < 60.0);
}

TEST_CASE("noise takes an item as often as its logit is the largest, and little of it leaves greedy tours") {
  const RandomBatch two(ProblemKind::kTsp, 2, 1, 9), many(ProblemKind::kTsp, 12, 20, 5);
  const ModelConfig config = config_for(ProblemKind::kTsp, 12);
  auto backend = cpu_with(config, scaled_parameters(config, 4.0f));
  const int kDraws = 24000;
  RolloutRequest request;
  request.sequences = two.batch();
  request.decode = Decode::kSample;
  request.counts = &kDraws;
  request.instance_keys = two.keys.data();
  request.policy.noise = 0.5f;
  const RolloutResult noisy = roll_out(*backend, request);
  int first = 0;
  std::map<int, double> log_p;
  for (int r = 0; r < kDraws; ++r) {
    const int item = items_of(noisy, 2, r)[0];
    log_p[item] = noisy.log_probs[r];
    first += item == 0;
  }
  REQUIRE(log_p.size() == 2);
  // The difference of two normal numbers of deviation s has deviation s sqrt(2).
  const double expected = 0.5 * std::erfc(-(log_p[0] - log_p[1]) / 0.5 / 2.0);
  CHECK(std::abs(expected - 0.5) > 0.02);
  CHECK(first == Approx(expected * kDraws).margin(5 * std::sqrt(0.25 * kDraws)));

  const std::vector<int32_t> counts(many.count, 3);
  request.sequences = many.batch();
  request.counts = counts.data();
  request.instance_keys = many.keys.data();
  request.policy.noise = 1e-9f;
  const RolloutResult quiet = roll_out(*backend, request);
  request.policy.noise = 0.5f;
  const RolloutResult loud = roll_out(*backend, request);
  request.decode = Decode::kGreedy;
  const RolloutResult greedy = roll_out(*backend, request);
  CHECK(quiet.orders == greedy.orders);
  CHECK(loud.orders != greedy.orders);
}

TEST_CASE("sequences of one, two and three items") {
  for (ProblemKind problem : all_problems()) {
    for (int n : {1, 2, 3}) {
      INFO(name_of(problem) << ", n = " << n);
      const RandomBatch all(problem, n, 20, 10 + n, 0.9);
      const ModelConfig config = config_for(problem, n);
      const std::vector<float> parameters = scaled_parameters(config, 3.0f);
      const reference::Network network(config, parameters);
      auto backend = backend_with(config, parameters, 2);
      const RolloutResult greedy = in_batches(*backend, all, 20, Decode::kGreedy);
      const RolloutResult samples = in_batches(*backend, all, 20, Decode::kSample);
      for (int s = 0; s < all.count; ++s) {
        CHECK(items_of(greedy, all.steps(), s) == reference::greedy(network, all.sequence(s)).order);
        for (int j = 0; j < kSamples; ++j) {
          const std::vector<int> items = items_of(samples, all.steps(), s * kSamples + j);
          const double expected = reference::forced(network, all.sequence(s), items).log_prob;
          CHECK(std::abs(samples.log_probs[s * kSamples + j] - expected) <= 1e-5);
        }
      }
    }
  }
}

TEST_CASE("an empty request gives an empty answer") {
  const RandomBatch all(ProblemKind::kTsp, 5, 3, 1);
  const ModelConfig config = config_for(ProblemKind::kTsp, 5);
  auto backend = backend_with(config, scaled_parameters(config, 1.0f), 2);
  RolloutRequest request;
  request.sequences = all.batch(0, 0);
  CHECK(roll_out(*backend, request).orders.empty());
  const RolloutResult some = sample(*backend, all, {0, 3, 0});
  CHECK(some.costs.size() == 3);
  CHECK(items_of(some, 5, 2).size() == 5);
}

// ------------------------------------------------------------------------------------------- the best of
// each

// Compares a best_only answer with what is picked by hand from all rollouts. Returns how many sequences had a
// rollout that cost as much as their best.
int check_best(Backend& backend, RolloutRequest request) {
  const int steps = request.sequences.steps();
  request.best_only = false;
  const RolloutResult all = roll_out(backend, request);
  CHECK(all.winners.empty());
  request.best_only = true;
  const RolloutResult best = roll_out(backend, request);
  REQUIRE(best.winners.size() == static_cast<size_t>(request.sequences.count));
  REQUIRE(best.costs.size() == best.winners.size());
  REQUIRE(best.log_probs.size() == best.winners.size());
  REQUIRE(best.orders.size() == best.winners.size() * steps);
  CHECK(best.statistics.steps == all.statistics.steps);
  CHECK(best.statistics.mean_logit == all.statistics.mean_logit);
  int ties = 0, first = 0;
  for (int s = 0; s < request.sequences.count; ++s) {
    const int count = request.counts == nullptr ? 1 : request.counts[s];
    int winner = -1, equal = 0;
    for (int j = 0; j < count; ++j) {
      if (winner < 0 || all.costs[first + j] < all.costs[first + winner]) winner = j;
    }
    for (int j = 0; j < count; ++j) equal += all.costs[first + j] == all.costs[first + winner];
    ties += equal > 1;
    INFO("sequence " << s << ", " << count << " rollouts");
    CHECK(best.winners[s] == winner);
    RolloutResult expected, found;
    append(best, steps, s, 1, found);
    if (winner >= 0) {
      append(all, steps, first + winner, 1, expected);
      CHECK(same_answers(found, expected));
    } else {
      CHECK(items_of(best, steps, s).empty());
      CHECK(std::isnan(best.costs[s]));
      CHECK(std::isnan(best.log_probs[s]));
    }
    first += count;
  }
  return ties;
}

TEST_CASE("the best rollout of each sequence is the one picked by hand") {
  const std::vector<int32_t> counts{1, 70, 0, 3, 1, 33, 0};
  for (ProblemKind problem : all_problems()) {
    for (int n : {1, 9, 12}) {
      const RandomBatch all(problem, n, 7, 41);
      const ModelConfig config = config_for(problem, n);
      auto backend = backend_with(config, scaled_parameters(config, 1.0f), 2);
      RolloutRequest request;
      request.sequences = all.batch();
      request.instance_keys = all.keys.data();
      INFO(name_of(problem) << ", n = " << n);
      check_best(*backend, request);
      request.decode = Decode::kSample;
      request.counts = counts.data();
      check_best(*backend, request);
    }
  }
}

TEST_CASE("of rollouts that cost the same the first is the best") {
  const std::vector<int32_t> counts{40, 5, 1};
  for (ProblemKind problem : all_problems()) {
    RandomBatch equal(problem, 8, 3, 42);
    std::fill(equal.features.begin(), equal.features.end(), 0.25f);
    std::fill(equal.weights.begin(), equal.weights.end(), 0.25);
    const ModelConfig config = config_for(problem, 8);
    auto backend = backend_with(config, scaled_parameters(config, 1.0f), 2);
    RolloutRequest request;
    request.sequences = equal.batch();
    request.decode = Decode::kSample;
    request.counts = counts.data();
    request.instance_keys = equal.keys.data();
    CHECK(check_best(*backend, request) == 2);
    request.best_only = true;
    CHECK(roll_out(*backend, request).winners == std::vector<int32_t>{0, 0, 0});
  }
}

TEST_CASE("the best rollouts go neither with forced orders nor with a tape") {
  const RandomBatch all(ProblemKind::kTsp, 3, 1, 43);
  const ModelConfig config = config_for(ProblemKind::kTsp, 3);
  auto backend = backend_with(config, scaled_parameters(config, 1.0f));
  const std::vector<int32_t> forced{0, 1, 2};
  RolloutRequest request;
  request.sequences = all.batch();
  Tape tape;
  request.best_only = true;
  request.tape = &tape;
  CHECK_THROWS_AS(roll_out(*backend, request), std::invalid_argument);
  request.tape = nullptr;
  request.decode = Decode::kForced;
  request.forced = forced.data();
  CHECK_THROWS_AS(roll_out(*backend, request), std::invalid_argument);
}

// ------------------------------------------------------------------------------------------- KnapSack

RolloutResult greedy_knapsack(const RandomBatch& batch, bool literal = false) {
  const ModelConfig config = config_for(ProblemKind::kKnapsack, batch.n);
  auto backend = backend_with(config, scaled_parameters(config, 3.0f));
  RolloutRequest request;
  request.sequences = batch.batch();
  request.policy.stop_at_first_misfit = literal;
  return roll_out(*backend, request);
}

TEST_CASE("KnapSack: capacity 0, all fit, none fit") {
  RandomBatch batch(ProblemKind::kKnapsack, 7, 3, 11, 1.0);
  for (double& w : batch.weights) w = 0.25 + w;
  batch.capacities = {0.0, 100.0, 0.2};
  for (bool literal : {false, true}) {
    const RolloutResult result = greedy_knapsack(batch, literal);
    for (int s : {0, 2}) {
      CHECK(items_of(result, 7, s).empty());
      CHECK(result.costs[s] == 0.0);
      if (!literal) CHECK(result.log_probs[s] == 0.0);
    }
    std::vector<int> all = items_of(result, 7, 1);
    std::sort(all.begin(), all.end());
    CHECK(all == std::vector<int>{0, 1, 2, 3, 4, 5, 6});
  }
  batch.weights[3] = 0.0;  // the one that costs nothing fits into nothing
  CHECK(items_of(greedy_knapsack(batch), 7, 0) == std::vector<int>{3});
}

TEST_CASE("KnapSack: an instance in which nothing fits changes nothing for those behind it") {
  RandomBatch batch(ProblemKind::kKnapsack, 9, 5, 11);
  batch.capacities[0] = batch.capacities[2] = 0.0;
  const ModelConfig config = config_for(ProblemKind::kKnapsack, 9);
  auto backend = backend_with(config, scaled_parameters(config, 3.0f));
  for (Decode decode : {Decode::kGreedy, Decode::kSample}) {
    CHECK(same_answers(in_batches(*backend, batch, 5, decode), in_batches(*backend, batch, 1, decode)));
  }
}

TEST_CASE("KnapSack: what fits is decided in double") {
  RandomBatch batch(ProblemKind::kKnapsack, 3, 3, 12, 1.0);
  // As floats three tenths fill 0.3 exactly; as doubles the third is too much by 3e-17, unless 0.1 lie in
  // 0.30000001.
  batch.weights = {0.1, 0.1, 0.1, 0.1, 0.1, 0.1, 0.5, 0.5, 1e-12};
  batch.capacities = {0.3, 0.30000001, 1.0};
  const RolloutResult result = greedy_knapsack(batch);
  CHECK(items_of(result, 3, 0).size() == 2);
  CHECK(items_of(result, 3, 1).size() == 3);
  CHECK(items_of(result, 3, 2).size() == 2);
}

TEST_CASE("KnapSack: samples stay within the capacity and stop only when nothing fits") {
  const int samples = fewer(20, 4);
  const RandomBatch batch(ProblemKind::kKnapsack, 23, 10, 13);
  const ModelConfig config = config_for(ProblemKind::kKnapsack, 23);
  auto backend = backend_with(config, scaled_parameters(config, 2.0f), 2);
  const RolloutResult result = sample(*backend, batch, std::vector<int32_t>(10, samples));
  for (int r = 0; r < 10 * samples; ++r) {
    const double* weights = batch.weights.data() + r / samples * 23;
    std::vector<bool> taken(23, false);
    double left = batch.capacities[r / samples];
    for (int item : items_of(result, 23, r)) {
      REQUIRE(!taken[item]);
      taken[item] = true;
      REQUIRE(weights[item] <= left);
      left -= weights[item];
    }
    for (int i = 0; i < 23; ++i) REQUIRE((taken[i] || weights[i] > left));
  }
}

TEST_CASE("KnapSack, literal rule: the first misfit ends the packing and is neither kept nor counted") {
  const RandomBatch batch(ProblemKind::kKnapsack, 11, 6, 14);
  const ModelConfig config = config_for(ProblemKind::kKnapsack, 11);
  const std::vector<float> parameters = scaled_parameters(config, 3.0f);
  auto backend = backend_with(config, parameters);
  const reference::Network network(config, parameters);
  const std::vector<int32_t> counts(6, 20);
  RolloutRequest request;
  request.sequences = batch.batch();
  request.decode = Decode::kSample;
  request.counts = counts.data();
  request.instance_keys = batch.keys.data();
  request.policy.stop_at_first_misfit = true;
  const RolloutResult result = roll_out(*backend, request);
  int ended_early = 0;
  for (int r = 0; r < 120; ++r) {
    const reference::Sequence sequence = batch.sequence(r / 20);
    const std::vector<int> items = items_of(result, 11, r);
    double left = sequence.capacity;
    for (int item : items) left -= sequence.weights[item];
    REQUIRE(left >= 0.0);
    for (int i = 0; i < 11; ++i) {
      ended_early += std::find(items.begin(), items.end(), i) == items.end() && sequence.weights[i] <= left;
    }
    const double expected = reference::forced(network, sequence, items, {1.0, 0.0, true}).log_prob;
    CHECK(std::abs(result.log_probs[r] - expected) <= 1e-4);
  }
  CHECK(ended_early > 0);
}

// ------------------------------------------------------------------------------------------- scoring

RolloutRequest forced_request(const RandomBatch& batch, const std::vector<int32_t>& orders) {
  RolloutRequest request;
  request.sequences = batch.batch();
  request.decode = Decode::kForced;
  request.forced = orders.data();
  return request;
}

TEST_CASE("scoring sampled orders gives their log p and costs again, bit for bit") {
  for (ProblemKind problem : all_problems()) {
    for (int glimpses : {0, 1, 2}) {
      for (bool literal : {false, true}) {
        const RandomBatch all(problem, 16, 12, 15);
        const ModelConfig config = config_for(problem, 16, glimpses, glimpses != 1);
        auto backend = backend_with(config, scaled_parameters(config, 3.0f), 2);
        const std::vector<int32_t> counts{1,        2,        3,        4,         fewer(5),  fewer(6),
                                          fewer(7), fewer(8), fewer(9), fewer(10), fewer(40), fewer(12)};
        RolloutRequest request;
        request.sequences = all.batch();
        request.decode = Decode::kSample;
        request.counts = counts.data();
        request.instance_keys = all.keys.data();
        request.policy.temperature = 1.5f;
        request.policy.clip = 7.0f;
        request.policy.stop_at_first_misfit = literal;
        const RolloutResult sampled = roll_out(*backend, request);
        request.decode = Decode::kForced;
        request.forced = sampled.orders.data();
        INFO(name_of(problem) << ", " << glimpses << " glimpses" << (literal ? ", literal rule" : ""));
        CHECK(same_answers(roll_out(*backend, request), sampled));
      }
    }
  }
}

TEST_CASE("an order that cannot be has log p NaN, and harms no other") {
  const RandomBatch tsp(ProblemKind::kTsp, 4, 6, 16);
  const std::vector<int32_t> orders{0, 1, 2, 3, 0, 1, 1,  3,  0,       1, 2, 4,
                                    3, 2, 1, 0, 2, 1, -1, -1, 1000000, 1, 2, 3};
  const ModelConfig config = config_for(ProblemKind::kTsp, 4);
  auto backend = backend_with(config, scaled_parameters(config, 3.0f));
  const RolloutResult result = roll_out(*backend, forced_request(tsp, orders));
  for (int r : {0, 3}) {
    CHECK(result.log_probs[r] < 0.0);
    CHECK(result.costs[r] == Approx(reference::cost(tsp.sequence(r), items_of(result, 4, r))));
  }
  // A city twice, one that is not there, a tour that ends too early.
  for (int r : {1, 2, 4, 5}) {
    INFO("rollout " << r);
    CHECK(std::isnan(result.log_probs[r]));
    CHECK(std::isnan(result.costs[r]));
  }
  RandomBatch packing(ProblemKind::kKnapsack, 4, 2, 16, 1.0);
  packing.weights = {0.6, 0.6, 0.3, 0.2, 0.6, 0.6, 0.3, 0.2};
  const std::vector<int32_t> items{0, 1, -1, -1, 0, 2, -1, -1};
  auto knapsack = backend_with(config_for(ProblemKind::kKnapsack, 4), scaled_parameters(config, 3.0f));
  const RolloutResult packed = roll_out(*knapsack, forced_request(packing, items));
  CHECK(std::isnan(packed.log_probs[0]));
  CHECK(packed.log_probs[1] < 0.0);
}

TEST_CASE("routes that end early, repeat a customer or carry too much have log p NaN") {
  RandomBatch routes(ProblemKind::kCvrp, 4, 5, 16, 1.0);
  routes.weights.clear();
  for (int s = 0; s < 5; ++s) routes.weights.insert(routes.weights.end(), {0.0, 9.0, 7.0, 8.0});  // of 16
  const int steps = routes.steps();
  std::vector<int32_t> orders;
  for (std::vector<int32_t> order :
       {std::vector<int32_t>{1, 2, 0, 3}, {1, 2}, {1, 3}, {1, 0, 1}, {0, 1, 2}}) {
    order.resize(steps, -1);
    orders.insert(orders.end(), order.begin(), order.end());
  }
  const ModelConfig config = config_for(ProblemKind::kCvrp, 4);
  auto backend = backend_with(config, scaled_parameters(config, 3.0f));
  const RolloutResult result = roll_out(*backend, forced_request(routes, orders));
  CHECK(result.log_probs[0] < 0.0);
  CHECK(result.costs[0] == Approx(reference::cost(routes.sequence(0), {1, 2, 0, 3})));
  for (int r = 1; r < 5; ++r) {
    INFO("rollout " << r);
    CHECK(std::isnan(result.log_probs[r]));
    CHECK(std::isnan(result.costs[r]));
  }
}

TEST_CASE("costs are those of a double recomputation") {
  std::vector<ProblemKind> problems = all_problems();
  problems.push_back(ProblemKind::kPath);
  for (ProblemKind problem : problems) {
    const RandomBatch all(problem, 19, 30, 17);
    const ModelConfig config = config_for(problem, 19);
    auto backend = backend_with(config, scaled_parameters(config, 1.0f), 2);
    const RolloutResult result = in_batches(*backend, all, 30, Decode::kSample);
    for (size_t r = 0; r < result.costs.size(); ++r) {
      const double expected =
          reference::cost(all.sequence(static_cast<int>(r) / kSamples), items_of(result, all.steps(), r));
      CHECK(std::abs(result.costs[r] - expected) <=
            19 * 4 * std::numeric_limits<double>::epsilon() * std::max(std::abs(expected), 1.0));
    }
  }
}

// ------------------------------------------------------------------------------------------- attention
// encoder

// An attention encoder and its prior: all n whatever the batch, the threads and the order of its instances.
TEST_CASE("an attention encoder's rollouts are the reference's, alone and in a batch, on any threads") {
  for (ProblemKind problem : all_problems()) {
    for (int n : {1, 2, 20, 33}) {
      const RandomBatch all(problem, n, 9, 4);
      const ModelConfig config = with_attention(config_for(problem, n));
      const std::vector<float> parameters = scaled_parameters(config, 1.5f);
      const reference::Network network(config, parameters);
      auto backend = backend_with(config, parameters, 3);
      const std::vector<int32_t> counts(9, 5);
      const RolloutResult together = sample(*backend, all, counts);
      auto other = backend_with(config, parameters, 1);
      RolloutResult apart;
      for (int s = 0; s < all.count; ++s) {
        RandomBatch one = all.permuted({s, s, s, s, s, s, s, s, s});
        one.count = 1;
        append(sample(*other, one, {5}), all.steps(), 0, 5, apart);
      }
      CHECK(same_answers(together, apart));
      for (int s = 0; s < all.count; s += 4) {
        const double expected =
            reference::forced(network, all.sequence(s), items_of(together, all.steps(), s * 5)).log_prob;
        CHECK(std::abs(together.log_probs[s * 5] - expected) <= 1e-5 * std::max(1.0, std::abs(expected)));
        RolloutRequest greedy;
        greedy.sequences = all.batch(s, 1);
        CHECK(items_of(roll_out(*backend, greedy), all.steps(), 0) ==
              reference::greedy(network, all.sequence(s)).order);
      }
    }
  }
}

// ------------------------------------------------------------------------------------------- accuracy

TEST_CASE("log p at the initialisation is within 1e-5 of double") {
  for (ProblemKind problem : all_problems()) {
    for (int glimpses : {0, 1, 2}) {
      for (bool centre : {true, false}) {
        const RandomBatch all(problem, 25, 2, 18);
        const ModelConfig config = config_for(problem, 25, glimpses, centre);
        const std::vector<float> parameters = initial_parameters(config, 3);
        const reference::Network network(config, parameters);
        auto backend = backend_with(config, parameters);
        for (float temperature : {1.0f, 2.5f}) {
          RolloutRequest request;
          request.sequences = all.batch();
          request.decode = Decode::kSample;
          request.instance_keys = all.keys.data();
          request.policy.temperature = temperature;
          if (temperature != 1.0f) request.policy.clip = 5.0f;
          const RolloutResult result = roll_out(*backend, request);
          for (int s = 0; s < all.count; ++s) {
            const double expected =
                reference::forced(network, all.sequence(s), items_of(result, all.steps(), s),
                                  {temperature, request.policy.clip.value_or(0.0f)})
                    .log_prob;
            CHECK(std::abs(result.log_probs[s] / expected - 1.0) <= 1e-5);
          }
        }
      }
    }
  }
}

// The network of the paper in plain single precision, one glimpse, centred: what a straightforward program
// computes.
class NaiveFloat {
 public:
  NaiveFloat(const ModelConfig& config, const std::vector<float>& parameters)
      : layout_(config), p_(parameters.data()) {}

  double log_prob(const float* features, const std::vector<int>& order) {
    const int n = static_cast<int>(order.size());
    std::vector<float> h(kH, 0.0f), c(kH, 0.0f);
    std::vector<std::vector<float>> references;
    for (int i = 0; i < n; ++i) {
      lstm(layout_.encoder, embed(features + 2 * i), h, c);
      references.push_back(h);
    }
    std::vector<int> left(n);
    std::iota(left.begin(), left.end(), 0);
    std::vector<float> input(p_ + layout_.decoder.start, p_ + layout_.decoder.start + kH);
    float total = 0.0f;
    for (int item : order) {
      lstm(layout_.decoder, input, h, c);
      std::vector<float> u = scores(layout_.glimpse, references, left, h), g(kH, 0.0f);
      const std::vector<float> log_p = log_softmax(u);
      for (size_t j = 0; j < left.size(); ++j) {
        for (int d = 0; d < kH; ++d) g[d] += std::exp(log_p[j]) * references[left[j]][d];
      }
      u = scores(layout_.pointer, references, left, g);
      const float mean = std::accumulate(u.begin(), u.end(), 0.0f) / static_cast<float>(u.size());
      for (float& x : u) x = 10.0f * std::tanh(x - mean);
      const auto at = std::find(left.begin(), left.end(), item);
      total += log_softmax(u)[at - left.begin()];
      left.erase(at);
      input = embed(features + 2 * item);
    }
    return total;
  }

 private:
  static constexpr int kH = kHidden;

  std::vector<float> multiply(size_t matrix, int rows, int columns, const std::vector<float>& x) const {
    std::vector<float> y(rows, 0.0f);
    for (int r = 0; r < rows; ++r) {
      for (int k = 0; k < columns; ++k) y[r] += p_[matrix + static_cast<size_t>(r) * columns + k] * x[k];
    }
    return y;
  }

  std::vector<float> embed(const float* xy) const {
    return multiply(layout_.encoder.embedding, kH, 2, {xy[0], xy[1]});
  }

  void lstm(const LstmOffsets& offsets, const std::vector<float>& input, std::vector<float>& h,
            std::vector<float>& c) const {
    std::vector<float> gates = multiply(offsets.weight_ih, 4 * kH, kH, input);
    const std::vector<float> recurrent = multiply(offsets.weight_hh, 4 * kH, kH, h);
    for (int j = 0; j < 4 * kH; ++j) gates[j] += recurrent[j] + p_[offsets.bias + j];
    const auto sigmoid = [](float x) { return 1.0f / (1.0f + std::exp(-x)); };
    for (int d = 0; d < kH; ++d) {
      c[d] = sigmoid(gates[kH + d]) * c[d] + sigmoid(gates[d]) * std::tanh(gates[2 * kH + d]);
      h[d] = sigmoid(gates[3 * kH + d]) * std::tanh(c[d]);
    }
  }

  std::vector<float> scores(const AttentionOffsets& offsets,
                            const std::vector<std::vector<float>>& references, const std::vector<int>& left,
                            const std::vector<float>& query) const {
    const std::vector<float> q = multiply(offsets.w_q, kH, kH, query);
    std::vector<float> u;
    for (int item : left) {
      const std::vector<float> a = multiply(offsets.w_ref, kH, kH, references[item]);
      float sum = 0.0f;
      for (int d = 0; d < kH; ++d) sum += p_[offsets.v + d] * std::tanh(a[d] + q[d]);
      u.push_back(sum);
    }
    return u;
  }

  static std::vector<float> log_softmax(std::vector<float> u) {
    const float most = *std::max_element(u.begin(), u.end());
    float total = 0.0f;
    for (float x : u) total += std::exp(x - most);
    for (float& x : u) x = x - most - std::log(total);
    return u;
  }

  const ParameterLayout layout_;
  const float* const p_;
};

TEST_CASE("log p of large weights is at most twice as far from double as naive single precision") {
  const RandomBatch all(ProblemKind::kTsp, 20, 16, 19);
  const ModelConfig config = config_for(ProblemKind::kTsp, 20);
  for (float scale : {3.0f, 8.0f}) {
    const std::vector<float> parameters = scaled_parameters(config, scale, 5);
    const reference::Network network(config, parameters);
    NaiveFloat naive(config, parameters);
    auto backend = backend_with(config, parameters);
    const RolloutResult result = sample(*backend, all, std::vector<int32_t>(all.count, 1));
    double engine_squares = 0.0, naive_squares = 0.0;
    for (int s = 0; s < all.count; ++s) {
      const std::vector<int> order = items_of(result, 20, s);
      const double exact = reference::forced(network, all.sequence(s), order).log_prob;
      engine_squares += std::pow(result.log_probs[s] - exact, 2);
      naive_squares += std::pow(naive.log_prob(all.features.data() + s * 40, order) - exact, 2);
    }
    INFO("scale " << scale << ": engine " << std::sqrt(engine_squares / all.count) << ", naive "
                  << std::sqrt(naive_squares / all.count) << " (root mean square distance from double)");
    CHECK(std::sqrt(engine_squares) <= 2.0 * std::sqrt(naive_squares));
  }
}

TEST_CASE("rows outside the factored range are counted, finite and right") {
  const RandomBatch all(ProblemKind::kTsp, 12, 4, 20);
  const ModelConfig config = config_for(ProblemKind::kTsp, 12);
  std::vector<float> parameters = scaled_parameters(config, 3.0f);
  const ParameterLayout layout(config);
  for (size_t i = layout.glimpse.w_ref; i < layout.glimpse.w_ref + 2 * kHidden * kHidden; ++i)
    parameters[i] *= 40.0f;
  const reference::Network network(config, parameters);
  auto backend = backend_with(config, parameters);
  const RolloutResult result = in_batches(*backend, all, 4, Decode::kGreedy);
  for (int s = 0; s < all.count; ++s) {
    const double expected = reference::forced(network, all.sequence(s), items_of(result, 12, s)).log_prob;
    // Arguments of some hundred keep 2^-24 of themselves; what is compared is that no range is taken for
    // another.
    CHECK(result.log_probs[s] == Approx(expected).epsilon(2e-3));
  }
  RolloutRequest request;
  request.sequences = all.batch();
  CHECK(roll_out(*backend, request).statistics.direct_rows > 0);
}

}  // namespace
}  // namespace pointsman
