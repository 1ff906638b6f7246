// SPDX-License-Identifier: Apache-2.0
// Tours with time windows: rules, validator, generator, the exact search and the local one.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "engine/search/exact/timed_tours.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/local_search.h"
#include "kernels/common/rules.h"
#include "kernels/common/tsptw.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

using Order = std::vector<int32_t>;
constexpr double kNever = std::numeric_limits<double>::infinity();

struct Place {
  double x, y, opens, closes, visit;
};

Instance timed(const std::vector<Place>& places) {
  Instance instance;
  instance.problem = ProblemKind::kTsptw;
  for (const Place& p : places)
    instance.values.insert(instance.values.end(), {p.x, p.y, p.opens, p.closes, p.visit});
  return instance;
}

// The depot at 0 of a line, places at 10, 20 and 30.
Instance line(double closes_10, double closes_20, double opens_30, double home = 1000.0) {
  return timed(
      {{0, 0, 5, home, 0}, {10, 0, 0, closes_10, 2}, {20, 0, 0, closes_20, 0}, {30, 0, opens_30, 1000, 0}});
}

Solution verdict(const Instance& instance, Order order, std::string* wrong = nullptr) {
  Solution solution;
  solution.order = std::move(order);
  const std::string found = validate_solution(instance, solution);
  if (wrong != nullptr) *wrong = found;
  return solution;
}

// In plain words of the problem: all orders, by the distance of the instance's metric.
struct Best {
  double length = kNever, delay = kNever;
};
Best exhaustive(const Instance& instance) {
  const int n = instance.n();
  Order order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  Best best;
  do {
    double now = instance.item(0)[2], length = 0.0, delay = 0.0;
    for (int i = 0; i < n; ++i) {
      const int32_t to = order[i + 1 < n ? i + 1 : 0];
      const double* const from = instance.item(order[i]);
      now = std::max(now, from[2]) + from[4] + city_distance(instance, order[i], to);
      length += city_distance(instance, order[i], to);
      if (now > instance.item(to)[3] + 1e-9) delay += now - instance.item(to)[3];
    }
    best.delay = std::min(best.delay, delay);
    if (delay <= 0.0) best.length = std::min(best.length, length);
  } while (std::next_permutation(order.begin() + 1, order.end()));
  return best;
}

// Windows that some tours keep, and sometimes none does.
Instance random_windows(int n, std::mt19937& random) {
  const auto uniform = [&] { return static_cast<double>(random() >> 8) * 0x1p-24; };
  Instance instance;
  instance.problem = ProblemKind::kTsptw;
  constexpr Metric kMetrics[] = {Metric::kEuclidean, Metric::kFloor2d, Metric::kEuc2d, Metric::kMan2d};
  instance.metric = kMetrics[random() % 4];
  const double horizon = 52.0 * n, width = horizon * (0.1 + 0.5 * uniform());
  for (int i = 0; i < n; ++i) {
    const double opens = i == 0 ? 10.0 * uniform() : std::floor(horizon * uniform());
    const double closes = random() % 4 == 0 ? kNever : std::floor(opens + width * uniform());
    const double visit = random() % 3 == 0 ? std::floor(20.0 * uniform()) : 0.0;
    instance.values.insert(instance.values.end(),
                           {std::floor(100.0 * uniform()), std::floor(100.0 * uniform()), opens,
                            i == 0 ? 2.0 * horizon : closes, visit});
  }
  return instance;
}

void check_against_all_orders(int count, uint32_t seed) {
  std::mt19937 random(seed);
  int late = 0, by_local = 0;
  for (int i = 0; i < count; ++i) {
    const int n = 1 + static_cast<int>(random() % 7);
    const Instance instance = random_windows(n, random);
    const Best best = exhaustive(instance);
    Solution exact = exact_timed_tour(instance, {});
    CAPTURE(i, n, best.length, best.delay);
    Solution local = local_search(instance, {.kicks = 20}, {});
    if (std::isinf(best.length)) {
      ++late;
      REQUIRE(exact.violation == Approx(best.delay).margin(1e-9));
      REQUIRE(local.violation >= best.delay - 1e-9);
      by_local += local.violation <= best.delay + 1e-9;
    } else {
      REQUIRE(exact.violation == 0.0);
      REQUIRE(exact.objective == Approx(best.length).epsilon(1e-12));
      REQUIRE((local.violation > 0.0 || local.objective >= best.length * (1.0 - 1e-12)));
      by_local += local.objective <= best.length * (1.0 + 1e-12);
    }
    const Solution again = verdict(instance, exact.order);
    REQUIRE(again.violation == exact.violation);
  }
  CHECK(late > count / 20);
  CHECK(late < count / 2);
  CHECK(by_local >= count - count / 100);  // the local search proves nothing
}

}  // namespace

TEST_CASE("the rules let through what leaves time for all others, and all where nothing does") {
  const Instance instance = line(20, 60, 0);
  const InstanceRules made(instance);
  RuleInputs inputs = made.inputs();
  const auto listed = [&](const Order& before) {
    TsptwRules rules = TsptwRules::make(inputs);
    uint32_t words[1] = {};
    rules.use_words(words);
    for (const int32_t item : before) rules.step(item);
    Order list(4);
    list.resize(static_cast<size_t>(list_feasible(rules, list.data(), 4)));
    return list;
  };
  CHECK(listed({}) == Order{0});
  CHECK(listed({0}) == Order{1});        // by way of another the place at 10 has closed
  CHECK(listed({0, 1}) == Order{2, 3});  // 17 + 20, back at 20 at 47
  CHECK(listed({0, 2}) == Order{1, 3});  // at 25: the place at 10 is lost
  CHECK(listed({0, 1, 3, 2}).empty());
  inputs.masks = false;
  CHECK(listed({0}) == Order{1, 2, 3});
}

TEST_CASE("the state of the rules: time, waiting, visits, delay") {
  const Instance instance = line(20, 60, 100);
  const InstanceRules made(instance);
  TsptwRules rules = TsptwRules::make(made.inputs());
  uint32_t words[1] = {};
  rules.use_words(words);
  rules.step(0);
  CHECK(rules.now == 5.0);
  rules.step(1);
  CHECK(rules.now == 17.0);  // 10 away, 2 there
  float priors[TsptwRules::kPriors];
  rules.priors({}, {}, 3, priors);
  const double unit = made.inputs().capacity;
  CHECK(unit == Approx(30.0));
  CHECK(priors[0] == Approx(-20.0 / unit));
  CHECK(priors[1] == Approx(-63.0 / unit));
  CHECK(priors[2] == -4.0f);                 // far
  CHECK(priors[3] == Approx(-50.0 / unit));  // the place at 20 would be reached at 110
  rules.step(3);
  CHECK(rules.now == 100.0);  // it opens then
  float context = 0.0f;
  rules.context(&context);
  CHECK(context == Approx(95.0 / unit / 2.0));
  const Order order{0, 1, 3, 2};
  const TimedTour tour = timed_tour(rules.places, order.data());
  CHECK(tour.length == 60.0);
  CHECK(tour.late == Approx(50.0));
  CHECK(tour.first_late == 2);
  rules.penalty = 7.0;
  CHECK(rules.cost(nullptr, order.data(), 4) == Approx(60.0 / unit + 7.0 * (50.0 / unit + 1.0)));
}

TEST_CASE("a tour is valid when it is in time, from the depot") {
  std::string wrong;
  Solution found = verdict(line(20, 60, 0), {0, 1, 2, 3}, &wrong);
  CHECK(wrong.empty());
  CHECK(found.objective == 60.0);
  found = verdict(line(20, 60, 0), {3, 0, 1, 2}, &wrong);  // the same round trip
  CHECK(wrong.empty());
  CHECK(found.order == Order{0, 1, 2, 3});
  found = verdict(line(20, 60, 100), {0, 1, 3, 2}, &wrong);
  CHECK(wrong == "the tour comes to place 2 after it has closed");
  CHECK(found.violation == Approx(50.0));
  CHECK(std::isinf(found.objective));
  found = verdict(line(20, 60, 0, 60), {0, 1, 2, 3}, &wrong);
  CHECK(wrong == "the tour comes to place 0 after it has closed");
  CHECK(found.violation == Approx(7.0));
  verdict(line(20, 60, 0), {0, 1, 2}, &wrong);
  CHECK(wrong == "the tour visits 3 of 4 places");
  verdict(line(20, 60, 0), {0, 1, 2, 2}, &wrong);
  CHECK(wrong == "place 2 occurs twice");
  // 0.1 + 0.2 in doubles is more than 0.3.
  verdict(timed({{0, 0, 0.1, 9, 0}, {0, 0.2, 0, 0.3, 0}}), {0, 1}, &wrong);
  CHECK(wrong.empty());
  verdict(timed({{0, 0, 0.1, 9, 0}, {0, 0.2, 0, 0.3 - 1e-12, 0}}), {0, 1}, &wrong);
  CHECK_FALSE(wrong.empty());
}

TEST_CASE("a place that closes in a million years widens no other window") {
  std::string wrong;
  for (const double closes : {1e15, 1e100, kNever}) {
    verdict(timed({{0, 0, 0, 9, 0}, {0, 2, 0, 1.999, 0}, {0, 3, 0, closes, 0}}), {0, 1, 2}, &wrong);
    CHECK(wrong == "the tour comes to place 1 after it has closed");
  }
  // Before time 0 sums round as well.
  verdict(timed({{0, 0, -0.3, kNever, 0}, {0, 0.1, -1, kNever, 0}, {0, 0.3, -1, 0, 0}}), {0, 1, 2}, &wrong);
  CHECK(wrong.empty());
}

TEST_CASE("thousands of places have an answer soon, and a limit ends their search") {
  const Instance instance = generate_instances(ProblemKind::kTsptw, 2000, 1, 0, 1)[0];
  CHECK(quick_answer(instance).order.size() == 2000);
  SearchControl control;
  control.deadline = Clock::now() + std::chrono::milliseconds(200);
  const auto begin = Clock::now();
  const Solution found = local_search(instance, {.kicks = 1 << 30}, control);
  CHECK(found.order.size() == 2000);
  CHECK(found.status == Status::kTimeLimit);
  CHECK(Clock::now() - begin < std::chrono::seconds(5));  // a debug build measures 4 million ways first
}

TEST_CASE("the random orders' least delay is told") {
  Instance instance = line(20, 60, 100);  // the place at 30 opens so late that some place is missed
  instance.values[5 * 1 + 3] = 6.0;       // and the place at 10 always
  double least = kNever;
  for (uint64_t sample = 0; sample < 8; ++sample)
    least = std::min(least, random_search(instance, 1, 1, sample, {}).violation);
  CHECK(random_search(instance, 1, 200, 1, {}).violation <= least);
}

TEST_CASE("distances rounded down make a tour shorter and earlier") {
  Instance instance = timed({{0, 0, 0, 9, 0}, {1.9, 0, 0, 1, 0}});
  std::string wrong;
  CHECK(verdict(instance, {0, 1}, &wrong).violation == Approx(0.9));
  instance.metric = Metric::kFloor2d;
  const Solution found = verdict(instance, {0, 1}, &wrong);
  CHECK(wrong.empty());
  CHECK(found.objective == 2.0);
  CHECK(found.unrounded == Approx(3.8));
}

TEST_CASE("generated windows: a tour keeps them, and none is wider than 60") {
  for (const int n : {1, 2, 8, 20, 40}) {
    const InstanceBatch batch = generate_instances(ProblemKind::kTsptw, n, 3, 0, 50);
    double widest = 0.0, narrowest = 100.0;
    for (const Instance& instance : batch) {
      CHECK(instance.item(0)[2] == 0.0);
      for (int place = 1; place < n; ++place) {
        const double* const item = instance.item(place);
        CHECK((item[0] >= 0.0 && item[0] < 100.0 && item[1] >= 0.0 && item[1] < 100.0));
        CHECK(item[4] == 0.0);
        widest = std::max(widest, item[3] - item[2]);
        if (item[2] > 0.0) narrowest = std::min(narrowest, item[3] - item[2]);
      }
      if (n > kMostExactPlaces) continue;
      const Solution best = exact_timed_tour(instance, {});
      CHECK(best.violation == 0.0);
    }
    CHECK(widest <= 60.0 + 1e-9);
    CHECK(narrowest >= 20.0 - 1e-9);
  }
}

TEST_CASE("features: the square's side and the tour's time are about 1") {
  const Instance instance = generate_instances(ProblemKind::kTsptw, 20, 1, 0, 1)[0];
  const std::vector<float> features = problem_of(instance).features(instance, 0.0);
  REQUIRE(features.size() == 80);
  float last = 0.0f;
  for (int place = 1; place < 20; ++place) last = std::max(last, features[4 * place + 3]);
  CHECK(last > 0.5f);
  CHECK(last < 2.0f);
  CHECK(features[2] == 0.0f);
  // In any unit, at any time and place, and with a limit that nobody reaches instead of none.
  Instance moved = instance;
  for (int place = 0; place < 20; ++place) {
    double* const item = &moved.values[5 * place];
    item[0] = 3.0 * item[0] + 70.0;
    item[1] = 3.0 * item[1] - 20.0;
    item[2] = 3.0 * item[2] + 1000.0;
    item[3] = 3.0 * item[3] + 1000.0;
  }
  const std::vector<float> same = problem_of(moved).features(moved, 0.0);
  for (size_t i = 0; i < same.size(); ++i) CHECK(same[i] == Approx(features[i]).margin(1e-5));
  moved.values[3] = kNever;
  for (const float feature : problem_of(moved).features(moved, 0.0)) CHECK(std::isfinite(feature));
}

TEST_CASE("of all orders of small instances the exact search finds the best") {
  check_against_all_orders(1000, 1);
}

TEST_CASE("of all orders of 100,000 small instances the exact search finds the best", "[.long]") {
  check_against_all_orders(100'000, 2);
}

TEST_CASE("one pass and random orders make whole tours from the depot, late or not") {
  std::mt19937 random(6);
  for (int i = 0; i < 50; ++i) {
    const Instance instance = random_windows(1 + i % 9, random);
    for (const Solution& made : {quick_answer(instance), random_search(instance, i, 20, 1, {})}) {
      CHECK(made.order.size() == static_cast<size_t>(instance.n()));
      CHECK(made.order[0] == 0);
      CHECK(verdict(instance, made.order).violation == made.violation);
    }
  }
}

TEST_CASE("without windows the exact tour is the shortest one") {
  Instance instance = generate_instances(ProblemKind::kTsptw, 10, 4, 0, 1)[0];
  Instance tour;
  for (int place = 0; place < 10; ++place) {
    double* const item = &instance.values[5 * place];
    item[2] = 0.0;
    item[3] = kNever;
    tour.values.insert(tour.values.end(), {item[0], item[1]});
  }
  const Solution timed = exact_timed_tour(instance, {}), plain = local_search(tour, {}, {});
  CHECK(timed.objective == Approx(plain.objective).epsilon(1e-12));
}

TEST_CASE("the local search of generated windows ends in time, near the best") {
  double sum = 0.0, best = 0.0;
  for (const Instance& instance : generate_instances(ProblemKind::kTsptw, 20, 9, 0, 20)) {
    const Solution local = local_search(instance, {.kicks = 500}, {});
    REQUIRE(local.violation == 0.0);
    sum += local.objective;
    best += exact_timed_tour(instance, {}).objective;
  }
  CHECK(sum <= best * 1.002);
}
