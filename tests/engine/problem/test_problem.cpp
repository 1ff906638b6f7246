// SPDX-License-Identifier: Apache-2.0
// Problem rules, metrics, validation and what the network is shown of an instance.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <iostream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "kernels/common/knapsack.h"
#include "kernels/common/tsp.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

Instance tsp(std::vector<double> values, Metric metric = Metric::kEuclidean) {
  Instance instance;
  instance.metric = metric;
  instance.values = std::move(values);
  return instance;
}

Instance knapsack(double capacity, std::vector<double> values) {
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  instance.capacity = capacity;
  instance.values = std::move(values);
  return instance;
}

Solution with_order(std::vector<int32_t> order) {
  Solution solution;
  solution.order = std::move(order);
  return solution;
}

// The decode loop with the choice of position left to the caller.
template <typename Rules, typename Choose>
std::vector<int32_t> decode(Rules rules, int n, Choose choose) {
  std::vector<int32_t> remaining(n), order;
  int count = initial_remaining(rules, remaining.data(), n);
  while (count > 0) {
    const int position = choose(count);
    const int32_t item = remaining[position];
    if (rules.ends(item)) break;
    order.push_back(item);
    rules.step(item);
    count = remove_and_filter(rules, remaining.data(), count, position);
  }
  return order;
}

// Length of the shortest tour by dynamic programming over sets of cities (Held and Karp 1962). n <= 16.
double shortest_tour(const Instance& instance) {
  const int last = instance.n() - 1;  // the start; the others are 0 .. last - 1
  const double infinity = std::numeric_limits<double>::infinity();
  std::vector<std::vector<double>> best(size_t{1} << last, std::vector<double>(last, infinity));
  for (int i = 0; i < last; ++i) best[size_t{1} << i][i] = city_distance(instance, last, i);
  for (size_t set = 1; set < best.size(); ++set) {
    for (int i = 0; i < last; ++i) {
      for (int j = 0; j < last && best[set][i] < infinity; ++j) {
        if (set >> j & 1) continue;
        double& entry = best[set | size_t{1} << j][j];
        entry = std::min(entry, best[set][i] + city_distance(instance, i, j));
      }
    }
  }
  double shortest = infinity;
  for (int i = 0; i < last; ++i)
    shortest = std::min(shortest, best.back()[i] + city_distance(instance, i, last));
  return shortest;
}

}  // namespace

TEST_CASE("the chosen city is swapped with the last") {
  const TspRules rules;
  std::vector<int32_t> remaining(5);
  int count = initial_remaining(rules, remaining.data(), 5);
  REQUIRE(count == 5);
  count = remove_and_filter(rules, remaining.data(), count, 1);
  CHECK(count == 4);
  CHECK(remaining == std::vector<int32_t>{0, 4, 2, 3, 1});
  CHECK(decode(rules, 5, [](int left) { return left / 2; }) == std::vector<int32_t>{2, 4, 1, 3, 0});
}

TEST_CASE("items that no longer fit leave the list by swaps with the last") {
  const std::vector<double> weights{4, 1, 9, 5, 11, 2};
  KnapsackRules rules{weights.data(), 10.0};
  std::vector<int32_t> remaining(6);
  int count = initial_remaining(rules, remaining.data(), 6);
  CHECK(count == 5);  // item 4 never fits
  CHECK(remaining == std::vector<int32_t>{0, 1, 2, 3, 5, 4});
  rules.step(3);
  count = remove_and_filter(rules, remaining.data(), count, 3);  // 0 1 2 5 | 3, then item 2 gives way to 5
  CHECK(count == 3);
  CHECK(remaining == std::vector<int32_t>{0, 1, 5, 2, 3, 4});
  CHECK(rules.capacity_left == 5.0);
  CHECK(rules.fits(3));  // an item may fill the knapsack exactly
}

TEST_CASE("the literal rule masks nothing and drops the item that ends the packing") {
  const std::vector<double> weights{4, 7, 1};
  const KnapsackRules literal{weights.data(), 6.0, true}, masked{weights.data(), 6.0};
  const auto in_order = [](int) { return 0; };  // the list becomes 2, 1 after 0 was chosen
  CHECK(decode(literal, 3, in_order) == std::vector<int32_t>{0, 2});
  const auto second = [](int count) { return count > 1 ? 1 : 0; };
  CHECK(decode(literal, 3, second).empty());  // item 1 does not fit
  CHECK(decode(masked, 3, second) == std::vector<int32_t>{2, 0});
  CHECK(literal.feasible(1));
  CHECK_FALSE(masked.feasible(1));
}

TEST_CASE("any choices make a valid and maximal packing") {
  std::mt19937 random(1);
  for (int trial = 0; trial < 200; ++trial) {
    const int n = 1 + trial % 40;
    std::vector<double> values(2 * n), weights(n);
    for (double& value : values) value = random() / 4294967296.0;
    for (int i = 0; i < n; ++i) weights[i] = values[2 * i];
    const Instance instance = knapsack(0.1 * n, values);
    const auto order = decode(KnapsackRules{weights.data(), instance.capacity}, n,
                              [&](int count) { return static_cast<int>(random() % count); });
    Solution solution = with_order(order);
    REQUIRE(validate_solution(instance, solution) == "");
    for (int i = 0; i < n; ++i) {
      if (std::count(order.begin(), order.end(), i) == 0)
        CHECK(solution.weight + weights[i] > instance.capacity);
    }
  }
}

TEST_CASE("costs are summed in double") {
  const float square[] = {0, 0, 1, 1, 1, 0, 0, 1};
  const int32_t around[] = {0, 2, 1, 3}, crossed[] = {0, 1, 2, 3}, one[] = {0};
  CHECK(tour_length(square, around, 4) == 4.0);
  CHECK(TspRules{}.cost(square, crossed, 4) == 2.0 + 2.0 * std::sqrt(2.0));
  CHECK(tour_length(square, one, 1) == 0.0);
  const float items[] = {9, 1, 9, 0x1p-40f, 9, 4};
  const int32_t two[] = {0, 1, -1}, all[] = {2, 0, 1};
  CHECK(packed_value(items, two, 3) == 1.0 + 0x1p-40);  // a float sum would lose it
  CHECK(KnapsackRules::cost(items, all, 3) == -(5.0 + 0x1p-40));
}

TEST_CASE("TSPLIB distances") {
  const auto distance = [](Metric metric, double dx, double dy) {
    return city_distance(tsp({3, 4, 3 + dx, 4 + dy}, metric), 0, 1);
  };
  CHECK(distance(Metric::kEuclidean, 1, 1) == std::sqrt(2.0));
  CHECK(distance(Metric::kEuc2d, 1, 1) == 1);    // 1.41
  CHECK(distance(Metric::kEuc2d, 1.5, 0) == 2);  // a half goes up
  CHECK(distance(Metric::kEuc2d, 1.5, 2) == 3);  // also from an even 2
  CHECK(distance(Metric::kCeil2d, 1, 1) == 2);
  CHECK(distance(Metric::kCeil2d, 3, 4) == 5);                       // whole already
  CHECK(distance(Metric::kAtt, 10, 0) == 4);                         // sqrt(10) = 3.16 is rounded up
  CHECK(distance(Metric::kAtt, 100, 30) == 34);                      // sqrt(1090) = 33.02
  CHECK(distance(Metric::kAtt, 20, 60) == 20);                       // sqrt(400)
  CHECK(city_distance(tsp({5, 5, 5, 5}, Metric::kGeo), 0, 1) == 1);  // as the formula has it
  CHECK(city_distance(tsp({5, 5, 5, 5}, Metric::kGeo), 0, 0) == 0);
}

TEST_CASE("TSPLIB distances along the axes") {
  const auto distance = [](Metric metric, double dx, double dy) {
    return city_distance(tsp({3, 4, 3 + dx, 4 + dy}, metric), 0, 1);
  };
  CHECK(distance(Metric::kMan2d, -3, 4) == 7);
  CHECK(distance(Metric::kMan2d, 0.25, -0.25) == 1);  // the sum is rounded, a half goes up
  CHECK(distance(Metric::kMan2d, 0.25, 0.125) == 0);
  CHECK(distance(Metric::kMax2d, -3, 4) == 4);
  CHECK(distance(Metric::kMax2d, -5, 4) == 5);
  CHECK(distance(Metric::kMax2d, 2.5, 1) == 3);
  CHECK(distance(Metric::kMax2d, 0.25, -0.25) == 0);
}

TEST_CASE("a matrix serves both ways, and its tours cost the sums of its numbers") {
  const auto shared = std::make_shared<const DistanceMatrix>(DistanceMatrix{4, {1, 2, 3, 4, 5, 6}});
  Instance instance;
  instance.metric = Metric::kExplicit;
  instance.matrix = shared;
  CHECK(instance.n() == 4);
  CHECK_FALSE(instance.has_coordinates());
  CHECK(tsp({0, 0}).has_coordinates());
  const double expected[4][4] = {{0, 1, 2, 3}, {1, 0, 4, 5}, {2, 4, 0, 6}, {3, 5, 6, 0}};
  for (int a = 0; a < 4; ++a) {
    for (int b = 0; b < 4; ++b) CHECK(city_distance(instance, a, b) == expected[a][b]);
  }
  const Instance copy = instance;
  CHECK(copy.matrix.get() == shared.get());
  Solution solution = with_order({2, 0, 3, 1});
  CHECK(validate_solution(instance, solution) == "");
  CHECK(solution.objective == 2 + 3 + 5 + 4);
  CHECK(solution.unrounded == solution.objective);
  CHECK(problem_of(instance).objective(instance, solution.order) == 14);
  CHECK(is_reachable(instance, solution));
  CHECK(shortest_tour(instance) == 14);
  Solution twice = with_order({0, 1, 1, 2});
  CHECK(validate_solution(instance, twice) == "city 1 occurs twice");
  CHECK_THROWS_AS(problem_of(instance).features(instance, 0.0), std::invalid_argument);
}

TEST_CASE("integer distances: every metric that rounds, and a matrix of integers") {
  for (const Metric metric :
       {Metric::kEuc2d, Metric::kCeil2d, Metric::kGeo, Metric::kAtt, Metric::kMan2d, Metric::kMax2d})
    CHECK(has_integer_distances(tsp({0, 0.5}, metric)));
  CHECK_FALSE(has_integer_distances(tsp({0, 0})));
  Instance matrix;
  matrix.metric = Metric::kExplicit;
  matrix.matrix = std::make_shared<const DistanceMatrix>(DistanceMatrix{3, {1, 0, 9e9}});
  CHECK(has_integer_distances(matrix));
  matrix.matrix = std::make_shared<const DistanceMatrix>(DistanceMatrix{3, {1, 0, 0.5}});
  CHECK_FALSE(has_integer_distances(matrix));
}

TEST_CASE("burma14 has its published optimum") {
  const Instance burma14 =
      tsp({16.47, 96.10, 16.47, 94.44, 20.09, 92.54, 22.39, 93.37, 25.23, 97.24, 22.00, 96.05, 20.47, 97.02,
           17.20, 96.29, 16.30, 97.38, 14.05, 98.12, 16.53, 97.38, 21.52, 95.59, 19.41, 97.13, 20.09, 94.55},
          Metric::kGeo);
  CHECK(shortest_tour(burma14) == 3323);
}

TEST_CASE("pcb442 visited in file order has its published length") {
  const char* folder = std::getenv("POINTSMAN_BENCHMARK_DATA");
  if (folder == nullptr) {
    std::cout << "skipped: no benchmark data\n";
    return;
  }
  std::ifstream file(std::string(folder) + "/tsplib/pcb442.tsp");
  Instance instance = tsp({}, Metric::kEuc2d);
  for (std::string line; std::getline(file, line);) {
    std::istringstream fields(line);
    double index, x, y;
    if (fields >> index >> x >> y) instance.values.insert(instance.values.end(), {x, y});
  }
  REQUIRE(instance.n() == 442);
  Solution solution = with_order(std::vector<int32_t>(442));
  std::iota(solution.order.begin(), solution.order.end(), 0);
  CHECK(validate_solution(instance, solution) == "");
  CHECK(solution.objective == 221440);  // TSPLIB95's own check value
}

TEST_CASE("a tour of tiny edges has its length too") {
  for (const double side : {1e-100, 1e-150, 1e-200, 1e-300}) {
    Instance instance;
    instance.values = {0, 0, side, 0, side, side};
    Solution solution;
    solution.order = {0, 1, 2};
    CHECK(validate_solution(instance, solution).empty());
    CHECK(solution.objective == Approx((2 + std::sqrt(2.0)) * side).epsilon(1e-12));
    CHECK(problem_of(instance).objective(instance, solution.order) ==
          Approx(solution.objective).epsilon(1e-12));
  }
}

TEST_CASE("a tour is valid when it is a permutation") {
  const Instance square = tsp({0, 0, 0, 2, 2, 2, 2, 0}, Metric::kAtt);
  Solution solution = with_order({0, 1, 2, 3});
  CHECK(validate_solution(square, solution) == "");
  CHECK(solution.unrounded == 8.0);
  CHECK(solution.objective == 4.0);  // four times sqrt(0.4), rounded up
  const auto complaint = [&](std::vector<int32_t> order) {
    Solution wrong = with_order(std::move(order));
    return validate_solution(square, wrong);
  };
  CHECK(complaint({0, 1, 2}) == "the tour visits 3 of 4 cities");
  CHECK(complaint({0, 1, 2, 1}) == "city 1 occurs twice");
  CHECK(complaint({0, 1, 2, 4}) == "city 4 does not exist: there are 4");
  CHECK(complaint({0, -1, 2, 3}) == "city -1 does not exist: there are 4");
  Solution empty;
  CHECK(validate_solution(tsp({}), empty) == "");
  CHECK(empty.objective == 0.0);
  Solution single = with_order({0});
  CHECK(validate_solution(tsp({7, 7}, Metric::kGeo), single) == "");
  CHECK(single.objective == 0.0);
}

TEST_CASE("a tour costs the same bits both ways round") {
  std::mt19937 random(3);
  for (int trial = 0; trial < 20; ++trial) {
    std::vector<double> values(2 * 30);
    for (double& value : values) value = random() / 4294967296.0;
    const Instance instance = tsp(values);
    Solution there = with_order(std::vector<int32_t>(30));
    std::iota(there.order.begin(), there.order.end(), 0);
    Solution back = there;
    std::reverse(back.order.begin(), back.order.end());
    REQUIRE(validate_solution(instance, there) == "");
    REQUIRE(validate_solution(instance, back) == "");
    CHECK(there.objective == back.objective);
    CHECK(there.unrounded == back.unrounded);
  }
}

TEST_CASE("a packing is valid within the capacity") {
  const Instance instance = knapsack(10, {4, 1, 6, 2, 0.5, 3});
  Solution solution = with_order({1, 0});
  CHECK(validate_solution(instance, solution) == "");
  CHECK(solution.objective == 3.0);
  CHECK(solution.weight == 10.0);
  Solution heavy = with_order({0, 1, 2});
  CHECK(validate_solution(instance, heavy).find("more than the capacity") != std::string::npos);
  Solution twice = with_order({2, 2});
  CHECK(validate_solution(instance, twice) == "item 2 occurs twice");
  Solution none;
  CHECK(validate_solution(knapsack(0, {1, 1}), none) == "");
  // 0.1 + 0.2 rounds to a little over 0.3: forgiven, but not a billionth.
  Solution both = with_order({0, 1});
  CHECK(validate_solution(knapsack(0.3, {0.1, 1, 0.2, 1}), both) == "");
  CHECK(validate_solution(knapsack(0.3, {0.1, 1, 0.2 + 1e-9, 1}), both) != "");
}

TEST_CASE("better and gap follow the problem's sense") {
  const ProblemKind tour = ProblemKind::kTsp, packing = ProblemKind::kKnapsack;
  CHECK(is_better(tour, 3, 4));
  CHECK_FALSE(is_better(tour, 4, 4));
  CHECK(is_better(packing, 4, 3));
  CHECK_FALSE(is_better(packing, 4, 4));
  CHECK(gap(tour, 11, 10) == Approx(0.1));
  CHECK(gap(packing, 9, 10) == Approx(0.1));
  CHECK(gap(tour, 0, 0) == 0.0);
  CHECK(gap(packing, 0, 0) == 0.0);
  CHECK(gap(packing, 0, 10) == 1.0);
}

TEST_CASE("there is no gap to a reference that is 0 or nearly 0") {
  for (const ProblemKind kind : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    for (const double reference : {0.0, 5e-324, 1e-300}) CHECK(std::isnan(gap(kind, 1, reference)));
    CHECK(std::abs(gap(kind, 1, 1e-99)) == Approx(1e99));
  }
}

TEST_CASE("an instance's key is its row or the FNV-1a hash of its own id") {
  Instance instance;
  CHECK(instance_key(instance, 17) == 17);
  instance.has_id = true;
  CHECK(instance_key(instance, 17) == 0xcbf29ce484222325);
  instance.id = "foobar";  // a published FNV-1a test value
  CHECK(instance_key(instance, 17) == 0x85944171f73967e8);
}

TEST_CASE("a tour instance is shown inside the unit square") {
  CHECK(network_features(tsp({0.25, 0.5, 1, 0}), 0) == std::vector<float>{0.25f, 0.5f, 1, 0});
  // One scale for both axes, the corner of the bounding box at 0.
  CHECK(network_features(tsp({10, 5, 14, 7, 12, 6}), 0) == std::vector<float>{0, 0, 1, 0.5f, 0.5f, 0.25f});
  CHECK(network_features(tsp({7, 7, 7, 7}), 0) == std::vector<float>{0, 0, 0, 0});
  CHECK(network_features(tsp({}), 0).empty());
  const double huge = std::numeric_limits<double>::max();
  CHECK(network_features(tsp({-huge, -huge, huge, 0}), 0) == std::vector<float>{0, 0, 1, 0.5f});
  CHECK(network_features(tsp({0, 0, 3e-310, 4e-310, -1e-320, 0}), 0)[3] == 1.0f);
}

TEST_CASE("a packing instance is shown in the trained capacity's units") {
  CHECK(network_features(knapsack(50, {20, 0.5, 40, 0.25}), 12.5) == std::vector<float>{5, 0.5f, 10, 0.25f});
  CHECK(network_features(knapsack(12.5, {0.1, 0.3}), 12.5) == std::vector<float>{0.1f, 0.3f});
  CHECK(network_features(knapsack(10, {5, 8, 5, 2}), 10) == std::vector<float>{5, 1, 5, 0.25f});
  // What can never be taken stays finite, whatever the capacity.
  CHECK(network_features(knapsack(0, {0, 1, 1e300, 1}), 12.5) == std::vector<float>{0, 1, 12.5f, 1});
}

TEST_CASE("the eight copies are distinct and keep all distances") {
  const float points[] = {0.125f, 0.25f, 0.75f, 0.5f};
  const int32_t order[] = {0, 1};
  std::set<std::pair<float, float>> images;
  for (int copy = 0; copy < 8; ++copy) {
    float moved[] = {points[0], points[1], points[2], points[3]};
    apply_dihedral(copy, moved);
    apply_dihedral(copy, moved + 2);
    images.insert({moved[0], moved[1]});
    CHECK(tour_length(moved, order, 2) == tour_length(points, order, 2));
    if (copy == 0) CHECK(std::equal(moved, moved + 4, points));
  }
  CHECK(images.size() == 8);
}

TEST_CASE("input orders are uniform permutations, a function of their key only") {
  CHECK(input_order(1, 2, 3, 50) == input_order(1, 2, 3, 50));
  std::set<std::vector<int32_t>> distinct{input_order(1, 2, 3, 50), input_order(2, 2, 3, 50),
                                          input_order(1, 3, 3, 50), input_order(1, 2, 4, 50)};
  CHECK(distinct.size() == 4);
  CHECK(input_order(1, 2, 3, 0).empty());
  CHECK(input_order(1, 2, 3, 1) == std::vector<int32_t>{0});
  constexpr int kOrders = 24000;
  std::map<std::vector<int32_t>, int> counts;
  for (int replica = 0; replica < kOrders; ++replica) ++counts[input_order(1234, 0, replica, 4)];
  REQUIRE(counts.size() == 24);
  double chi_squared = 0.0;
  for (const auto& [order, count] : counts) chi_squared += std::pow(count - 1000.0, 2) / 1000.0;
  CHECK(chi_squared < 60.0);  // 23 degrees of freedom: exceeded once in 27,000
}
