// SPDX-License-Identifier: Apache-2.0
// Vehicle routes: rules, validator, generators, the order that supervised learning teaches, savings.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/routes.h"
#include "kernels/common/cvrp.h"
#include "kernels/common/rules.h"
#include "tests/catch.h"
#include "tests/engine/shortest_routes.h"

using namespace pointsman;

namespace {

using Order = std::vector<int32_t>;

// The depot in the middle of a square, whose corners want as much as `demands` says.
Instance square(std::vector<double> demands, double capacity) {
  Instance instance;
  instance.problem = ProblemKind::kCvrp;
  instance.capacity = capacity;
  const double places[][2] = {{0.5, 0.5}, {0.0, 0.0}, {1.0, 0.0}, {1.0, 1.0}, {0.0, 1.0}};
  for (size_t i = 0; i < 5; ++i)
    instance.values.insert(instance.values.end(),
                           {places[i][0], places[i][1], i == 0 ? 0.0 : demands[i - 1]});
  return instance;
}

std::string verdict(const Instance& instance, Order order, double* length = nullptr) {
  Solution solution;
  solution.order = std::move(order);
  const std::string wrong = validate_solution(instance, solution);
  if (length != nullptr) *length = solution.objective;
  return wrong;
}

}  // namespace

TEST_CASE("the rules let customers through that fit, and the depot between two routes") {
  const double demands[] = {0, 3, 4, 5};
  CvrpRules rules = CvrpRules::make({demands, 7.0, false, 4});
  uint32_t words[1] = {};
  rules.use_words(words);
  int32_t list[4];
  const auto listed = [&] { return Order(list, list + list_feasible(rules, list, 4)); };
  float left = 0.0f;
  CHECK(listed() == Order{1, 2, 3});  // nobody ends a route that has not begun
  rules.step(1);
  rules.context(&left);
  CHECK(left == 4.0f / 7.0f);
  CHECK(listed() == Order{0, 2});
  rules.step(2);
  CHECK(listed() == Order{0});
  CHECK_FALSE(rules.complete(2, 4));
  rules.step(0);
  CHECK(listed() == Order{3});
  rules.step(3);
  CHECK(listed().empty());
  CHECK(rules.complete(4, 4));
}

TEST_CASE("routes are valid when all customers are served within the capacity") {
  const Instance instance = square({2, 2, 2, 2}, 4);
  double length = 0.0;
  CHECK(verdict(instance, {1, 2, 0, 3, 4}, &length).empty());
  CHECK(length == Approx(2 * (1 + std::sqrt(2.0))));
  CHECK(verdict(instance, {0, 2, 1, 0, 0, 4, 3, 0}, &length).empty());  // empty routes are none
  CHECK(length == Approx(2 * (1 + std::sqrt(2.0))));
  CHECK(verdict(instance, {1, 2, 3, 0, 4}) == "route 1 carries more than the capacity");
  CHECK(verdict(instance, {1, 2, 0, 3}) == "the routes serve 3 of 4 customers");
  CHECK(verdict(instance, {1, 2, 0, 3, 4, 1}) == "customer 1 occurs twice");
  CHECK(verdict(instance, {1, 2, 0, 3, 5}) == "customer 5 does not exist: there are 4");
  CHECK(verdict(square({0.1, 0.2, 0.3, 0.3}, 0.3), {1, 2, 0, 3, 0, 4}).empty());  // decimals are exact
  Instance rounded = instance;
  rounded.metric = Metric::kEuc2d;
  CHECK(verdict(rounded, {1, 2, 0, 3, 4}, &length).empty());
  CHECK(length == 6.0);  // edges 0.7, 1, 0.7, rounded
}

TEST_CASE("the same routes have one length and one canonical order") {
  const Problem& problem = problem_of(ProblemKind::kCvrp);
  for (const Order& order : {Order{1, 2, 0, 3, 4}, Order{2, 1, 0, 4, 3}, Order{4, 3, 0, 1, 2}})
    CHECK(problem.canonical(order) == Order{1, 2, 0, 3, 4});
}

TEST_CASE("the example of routes: counter-clockwise around the depot, each counter-clockwise") {
  const Instance instance = square({2, 2, 2, 2}, 4);
  const std::vector<float> features = problem_of(instance).features(instance, 4.0);
  Order order{3, 2, 0, 1, 4};
  order.resize(CvrpRules::max_steps(5), -1);
  problem_of(instance).make_example(5, features.data(), order.data());
  // Customers 2 (1, 0) and 3 (1, 1) lie at angle 0; 4 (0, 1) and 1 (0, 0) at pi.
  Order expected{2, 3, 0, 4, 1};
  expected.resize(order.size(), -1);
  CHECK(order == expected);
}

TEST_CASE("generated routes: demands from 1 to 9, all equally often, and the depot's 0") {
  const InstanceBatch batch = generate_instances(ProblemKind::kCvrp, 21, 1, 0, 500);
  std::vector<int> times(10, 0);
  for (const Instance& instance : batch) {
    REQUIRE(instance.n() == 21);
    CHECK(instance.capacity == 30.0);
    CHECK(instance.values[2] == 0.0);
    for (int item = 1; item < 21; ++item) {
      const double demand = instance.values[3 * item + 2];
      REQUIRE(demand == std::floor(demand));
      ++times.at(static_cast<size_t>(demand));
    }
  }
  CHECK(times[0] == 0);
  // 10,000 / 9 times each, give or take five standard deviations of 31.4.
  for (int demand = 1; demand <= 9; ++demand) CHECK(std::abs(times[demand] - 1111.1) < 157.0);
  // What training reads is the instance.
  std::vector<float> features(3 * 21);
  generate_features(ProblemKind::kCvrp, 21, 30.0, 1, 7, features.data());
  CHECK(features == problem_of(ProblemKind::kCvrp).features(batch[7], 30.0));
}

TEST_CASE("demands in training are never more than the user's, and less by little") {
  const Problem& problem = problem_of(ProblemKind::kCvrp);
  std::mt19937 random(5);
  for (const double capacity : {30.0, 40.0, 33.3, 1.0, 1e6}) {
    for (int i = 0; i < 1000; ++i) {
      const double own = 1.0 + random() % 1000, demand = own * (i == 0 ? 1.0 : random() % 1001 / 1000.0);
      const float features[] = {0.0f, 0.0f, static_cast<float>(demand / own)};
      double weight = 0.0;
      problem.trained_numbers(1, features, capacity, &weight);
      const double exact = demand / own * capacity;
      CHECK(weight <= exact);
      CHECK(weight >= exact * (1.0 - 0x1p-21) - 0x1p-16);
    }
  }
}

TEST_CASE("an input order that keeps the depot permutes the customers") {
  std::vector<int> firsts(6, 0);
  for (uint32_t replica = 0; replica < 300; ++replica) {
    std::vector<int32_t> order = input_order(1, 2, replica, 6, 1);
    CHECK(order[0] == 0);
    ++firsts[order[1]];
    std::sort(order.begin(), order.end());
    CHECK(order == std::vector<int32_t>{0, 1, 2, 3, 4, 5});
  }
  for (int customer = 1; customer < 6; ++customer) CHECK(firsts[customer] > 25);  // 60 +- 7
}

TEST_CASE("like numpy: routes as numpy's generator makes them") {
  // numpy.random.seed(1234); uniform(size=(3, 2)), uniform(size=(3, 5, 2)), randint(1, 10, size=(3, 5))
  const InstanceBatch batch = generate_like_numpy(ProblemKind::kCvrp, 6, 1234, 3);
  const auto number = [&](size_t b, size_t item, size_t field) { return batch[b].values[3 * item + field]; };
  CHECK(number(1, 0, 0) == Approx(0.43772774));
  CHECK(number(1, 0, 1) == Approx(0.78535858));
  CHECK(number(1, 2, 0) == Approx(0.77282662));
  CHECK(number(1, 5, 1) == Approx(0.65137814));
  const int demands[3][5] = {{2, 6, 5, 1, 9}, {9, 7, 9, 7, 4}, {2, 3, 6, 3, 6}};
  for (size_t b = 0; b < 3; ++b) {
    for (size_t i = 0; i < 5; ++i) CHECK(number(b, i + 1, 2) == demands[b][i]);
  }
}

TEST_CASE("any choices under the rules make valid routes, which the rules can reach") {
  std::mt19937 random(3);
  for (const Instance& instance : generate_instances(ProblemKind::kCvrp, 40, 2, 0, 50)) {
    const RuleNumbers numbers = rule_numbers(instance);
    CvrpRules rules = CvrpRules::make({numbers.weights.data(), numbers.capacity, false, 40});
    std::vector<uint32_t> words(CvrpRules::words(40));
    rules.use_words(words.data());
    std::vector<int32_t> list(40);
    Solution solution;
    while (const int count = list_feasible(rules, list.data(), 40)) {
      solution.order.push_back(list[random() % count]);
      rules.step(solution.order.back());
    }
    CHECK(rules.complete(static_cast<int>(solution.order.size()), 40));
    CHECK(solution.order.size() <= static_cast<size_t>(CvrpRules::max_steps(40)));
    CHECK(is_reachable(instance, solution));
    CHECK(verdict(instance, solution.order).empty());
  }
}

TEST_CASE("savings, random and quick routes are valid, and savings come near the shortest") {
  double savings = 0.0, shortest = 0.0;
  for (const Instance& instance : generate_instances(ProblemKind::kCvrp, 6, 4, 0, 30)) {
    Instance tight = instance;
    tight.capacity = 12.0;
    const double best = shortest_routes(tight), found = savings_routes(tight, {}).objective;
    CHECK(found >= best - 1e-12);
    CHECK(random_search(tight, 0, 20, 1, {}).objective >= best - 1e-12);
    CHECK(quick_answer(tight).objective >= best - 1e-12);
    savings += found;
    shortest += best;
  }
  CHECK(savings <= 1.1 * shortest);
  CHECK_THROWS_AS(savings_routes(generate_instances(ProblemKind::kTsp, 7, 4, 0, 1)[0], {}),
                  std::invalid_argument);
}
