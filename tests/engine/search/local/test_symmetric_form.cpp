// SPDX-License-Identifier: Apache-2.0
// Local search of what is no plain TSP: ways that differ from those back, open paths, forced and forbidden
// edges.
#include <algorithm>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "engine/problem/fixed_edges.h"
#include "engine/problem/generate.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/symmetric_form.h"
#include "engine/search/local/tour_search.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

using Order = std::vector<int32_t>;
using Draw = Instance (*)(std::mt19937&, int);

int drawn(std::mt19937& random, int below) {
  return static_cast<int>(random() % static_cast<uint32_t>(below));
}

// Ways 0 .. 9, so that many are equal and some are 0.
void draw_matrix(std::mt19937& random, int n, bool symmetric, Instance& instance) {
  DistanceMatrix matrix{n, {}};
  for (int i = 0; i < n * (n - 1) / 2; ++i) {
    matrix.above.push_back(drawn(random, 10));
    if (!symmetric) matrix.back.push_back(drawn(random, 10));
  }
  instance.metric = Metric::kExplicit;
  instance.matrix = std::make_shared<const DistanceMatrix>(std::move(matrix));
}

void draw_points(std::mt19937& random, int n, Instance& instance) {
  constexpr Metric kMetrics[] = {Metric::kEuclidean, Metric::kEuc2d, Metric::kCeil2d, Metric::kMan2d};
  instance.metric = kMetrics[drawn(random, 4)];
  for (int i = 0; i < 2 * n; ++i) instance.values.push_back(drawn(random, 30));
}

Instance draw_atsp(std::mt19937& random, int n) {
  Instance instance;
  instance.problem = ProblemKind::kAtsp;
  draw_matrix(random, n, drawn(random, 8) == 0, instance);
  return instance;
}

Instance draw_path(std::mt19937& random, int n) {
  Instance instance;
  instance.problem = ProblemKind::kPath;
  if (drawn(random, 2) == 0) {
    draw_points(random, n, instance);
  } else {
    draw_matrix(random, n, drawn(random, 2) == 0, instance);
  }
  if (drawn(random, 2) == 0) instance.start = drawn(random, n);
  if (drawn(random, 2) == 0) instance.end = drawn(random, n);
  if (instance.start == instance.end) instance.end = -1;
  return instance;
}

// Forced edges are some of a random tour's.
Instance draw_forced(std::mt19937& random, int n) {
  Instance instance;
  drawn(random, 2) == 0 ? draw_points(random, n, instance) : draw_matrix(random, n, true, instance);
  Order tour(static_cast<size_t>(n));
  std::iota(tour.begin(), tour.end(), 0);
  std::shuffle(tour.begin(), tour.end(), random);
  const int share = 1 + drawn(random, 4);
  for (int i = 0; i < n && n > 2; ++i) {
    if (drawn(random, 4) < share) instance.forced.push_back({tour[i], tour[(i + 1) % n]});
  }
  return instance;
}

// Half of the ways are forbidden, in the matrix or beside the points, of a tour some of what is left forced.
Instance draw_forbidden(std::mt19937& random, int n) {
  constexpr Draw kDraws[] = {draw_atsp, draw_path, draw_forced};
  Instance instance = kDraws[drawn(random, 3)](random, n);
  const auto is_forced = [&](int32_t a, int32_t b) {
    return std::ranges::find(instance.forced, std::array{a, b}) != instance.forced.end() ||
           std::ranges::find(instance.forced, std::array{b, a}) != instance.forced.end();
  };
  DistanceMatrix matrix = instance.matrix ? *instance.matrix : DistanceMatrix();
  for (int32_t a = 0; a < n; ++a) {
    for (int32_t b = a + 1; b < n; ++b) {
      if (drawn(random, 2) == 0 || is_forced(a, b)) continue;
      if (!instance.matrix) {
        instance.forbidden.push_back({a, b});
      } else if (matrix.is_symmetric() || drawn(random, 2) == 0) {
        matrix.above[matrix.place(a, b)] = INFINITY;
      } else {
        matrix.back[matrix.place(a, b)] = INFINITY;
      }
    }
  }
  if (instance.matrix) instance.matrix = std::make_shared<const DistanceMatrix>(std::move(matrix));
  return instance;
}

// Infinite where the order is no answer.
double cost_of(const Instance& instance, const Order& order) {
  const int n = instance.n();
  double cost = 0.0;
  for (int i = 1; i < n; ++i) cost += city_distance(instance, order[i - 1], order[i]);
  if (instance.problem == ProblemKind::kPath) {
    const bool fits = (instance.start < 0 || instance.start == order.front()) &&
                      (instance.end < 0 || instance.end == order.back());
    return fits ? cost : INFINITY;
  }
  for (const auto& [a, b] : instance.forced) {
    const auto is_joined = [&, a = a, b = b](int i) {
      const int32_t from = order[i], to = order[(i + 1) % n];
      return (from == a && to == b) || (from == b && to == a);
    };
    bool found = false;
    for (int i = 0; i < n; ++i) found = found || is_joined(i);
    if (!found) return INFINITY;
  }
  return cost + city_distance(instance, order[n - 1], order[0]);
}

// Of the orders that are answers but for forbidden ways, the fewest of these.
double fewest_forbidden(const Instance& instance) {
  Order order(static_cast<size_t>(instance.n()));
  std::iota(order.begin(), order.end(), 0);
  double fewest = instance.n() + 1;
  do {
    Solution solution;
    solution.order = order;
    const bool is_valid = validate_solution(instance, solution).empty() || solution.violation > 0;
    if (is_valid) fewest = std::min(fewest, solution.violation);
  } while (std::next_permutation(order.begin(), order.end()));
  return fewest;
}

double shortest_of_all(const Instance& instance) {
  Order order(static_cast<size_t>(instance.n()));
  std::iota(order.begin(), order.end(), 0);
  double best = INFINITY;
  do best = std::min(best, cost_of(instance, order));
  while (std::next_permutation(order.begin(), order.end()));
  return best;
}

constexpr std::pair<const char*, Draw> kKinds[] = {
    {"atsp", draw_atsp}, {"path", draw_path}, {"forced", draw_forced}};

}  // namespace

TEST_CASE("few cities: the answer with kicks is the shortest of all orders, for every kind of instance") {
  std::mt19937 random(1);
  for (const auto& [name, draw] : kKinds) {
    for (int i = 0; i < 300; ++i) {
      const int n = 1 + i % 7;
      const Instance instance = draw(random, n);
      INFO(name << " " << i << ", n = " << n);
      const Solution found = local_search(instance, {.kicks = 1}, {});
      CHECK(found.objective == Approx(cost_of(instance, found.order)).epsilon(1e-12));
      CHECK(found.objective == Approx(shortest_of_all(instance)).epsilon(1e-12));
      CHECK(local_search(instance, {.kicks = 0}, {}).objective >= found.objective - 1e-9);
      CHECK(std::isfinite(cost_of(instance, quick_answer(instance).order)));
      CHECK(std::isfinite(cost_of(instance, random_search(instance, 0, 5, 1, {}).order)));
    }
  }
}

TEST_CASE("few cities: the answer takes as few forbidden ways as any order, and none if that can be") {
  std::mt19937 random(4);
  int infeasible = 0;
  for (int i = 0; i < 1500; ++i) {
    const int n = 1 + i % 7;
    const Instance instance = draw_forbidden(random, n);
    INFO(i << ", n = " << n);
    const Solution found = local_search(instance, {.kicks = 1}, {});
    const double shortest = shortest_of_all(instance);
    CHECK(found.violation == fewest_forbidden(instance));
    CHECK((found.violation > 0) == std::isinf(shortest));
    CHECK((found.violation > 0 || found.objective == Approx(shortest).epsilon(1e-12)));
    infeasible += found.violation > 0 ? 1 : 0;
    CHECK(local_search(instance, {.kicks = 0}, {}).violation >= found.violation);
    quick_answer(instance);
    random_search(instance, 0, 5, 1, {});
  }
  CHECK(infeasible > 100);
  CHECK(infeasible < 1400);
}

// A random tour is all that is left, or nearly.
TEST_CASE("more cities: kicks find the only tour whose ways are not forbidden") {
  std::mt19937 random(5);
  for (const bool is_open : {false, true}) {
    for (int i = 0; i < 5; ++i) {
      constexpr int n = 30;
      Instance instance = generate_instances(is_open ? ProblemKind::kPath : ProblemKind::kTsp, n, i, 0, 1)[0];
      Order ring(static_cast<size_t>(n));
      std::iota(ring.begin(), ring.end(), 0);
      std::shuffle(ring.begin(), ring.end(), random);
      std::vector<int32_t> place(ring.size());
      for (int at = 0; at < n; ++at) place[ring[at]] = at;
      for (int32_t a = 0; a < n; ++a) {
        for (int32_t b = a + 1; b < n; ++b) {
          const int apart = std::abs(place[a] - place[b]);
          const bool is_of_ring = apart == 1 || (apart == n - 1 && !is_open);
          if (!is_of_ring && drawn(random, 4) > 0) instance.forbidden.push_back({a, b});
        }
      }
      std::vector<double> reports;
      SearchControl control;
      control.report.on_best = [&](double best) { reports.push_back(best); };
      const Solution found = local_search(instance, {.kicks = 3000}, control);
      INFO(is_open << " " << i);
      CHECK(found.violation == 0);
      REQUIRE_FALSE(reports.empty());
      CHECK(std::ranges::all_of(reports, [](double best) { return best < 1.5 * n; }));
      CHECK(reports.back() == Approx(found.objective).epsilon(1e-12));
    }
  }
}

// The nearest of each end are cities amid its own path.
TEST_CASE("ends of long forced paths find each other where the shortest way is forbidden") {
  Instance instance;
  for (int32_t city = 0; city < 26; ++city) {
    instance.values.insert(instance.values.end(), {1.0 * city, 0.0});
    if (city != 0 && city != 13) instance.forced.push_back({city - 1, city});
  }
  instance.forbidden = {{0, 25}};
  const Solution found = local_search(instance, {.kicks = 100}, {});
  CHECK(found.violation == 0);
  CHECK(found.objective == 24 + 13 + 13);
}

TEST_CASE("an order with a forbidden way is never reported as the best so far") {
  Instance instance = generate_instances(ProblemKind::kTsp, 30, 1, 0, 1)[0];
  for (int32_t city = 2; city < 30; ++city) instance.forbidden.push_back({0, city});  // one way to city 0
  SearchControl control;
  int reports = 0;
  control.report.on_best = [&](double) { ++reports; };
  CHECK(local_search(instance, {.kicks = 300}, control).violation == 1);
  CHECK(reports == 0);
}

// Beyond the sizes that are solved exactly. One way along a ring is short: the tour along it is the shortest,
// and every other is longer by the tenths of its ways.
TEST_CASE("more cities: kicks find a ring that is hidden in the numbers") {
  std::mt19937 random(2);
  constexpr int kCities = 40;
  for (const auto& [name, draw] : kKinds) {
    for (int i = 0; i < 5; ++i) {
      Order ring(kCities);
      std::iota(ring.begin(), ring.end(), 0);
      std::shuffle(ring.begin(), ring.end(), random);
      Instance instance;
      const bool both_ways = std::string(name) == "forced";
      instance.problem = both_ways ? ProblemKind::kTsp : draw(random, 3).problem;
      std::vector<std::vector<double>> ways(kCities, std::vector<double>(kCities));
      for (auto& row : ways)
        for (double& way : row) way = 4.0 + drawn(random, 10);
      for (int at = 0; at < kCities; ++at) {
        ways[ring[at]][ring[(at + 1) % kCities]] = 1.0;
        if (both_ways) ways[ring[(at + 1) % kCities]][ring[at]] = 1.0;
      }
      DistanceMatrix matrix{kCities, {}};
      for (int a = 0; a < kCities; ++a) {
        for (int b = a + 1; b < kCities; ++b) {
          matrix.above.push_back(ways[a][b]);
          if (!both_ways) matrix.back.push_back(ways[b][a]);
        }
      }
      instance.metric = Metric::kExplicit;
      instance.matrix = std::make_shared<const DistanceMatrix>(std::move(matrix));
      if (both_ways) {
        for (int at = 0; at < kCities; at += 3)
          instance.forced.push_back({ring[at], ring[(at + 1) % kCities]});
      }
      INFO(name << " " << i);
      const Solution found = local_search(instance, {.kicks = 20000}, {});
      CHECK(found.objective == kCities - (instance.problem == ProblemKind::kPath ? 1 : 0));
    }
  }
}

TEST_CASE("a forced edge stays though it is long, by kicks and on large tours too") {
  std::mt19937 random(3);
  for (const int n : {60, 1200}) {
    Instance instance = generate_instances(ProblemKind::kTsp, n, 5, 0, 1)[0];
    for (int i = 0; i < 10; ++i) {
      std::array<int32_t, 2> edge = {drawn(random, n), drawn(random, n)};
      size_t at = 0;
      instance.forced.push_back(edge);
      if (!wrong_edges(n, instance.forced, at).empty()) instance.forced.pop_back();
    }
    REQUIRE(instance.forced.size() > 5);
    const Solution found = local_search(instance, {.kicks = 10 * n}, {});
    CHECK(std::isfinite(cost_of(instance, found.order)));
    instance.forced.clear();
    CHECK(local_search(instance, {.kicks = 10 * n}, {}).objective < found.objective);
  }
}

TEST_CASE("an answer that lacks what was given is told") {
  Instance tsp = generate_instances(ProblemKind::kTsp, 5, 1, 0, 1)[0];
  tsp.forced = {{0, 3}, {3, 1}};
  const auto verdict = [](const Instance& instance, Order order) {
    Solution solution;
    solution.order = std::move(order);
    return validate_solution(instance, solution);
  };
  CHECK(verdict(tsp, {3, 1, 2, 4, 0}).empty());
  CHECK(verdict(tsp, {3, 1, 0, 2, 4}) == "the tour lacks the forced edge from 0 to 3");
  Instance path = generate_instances(ProblemKind::kPath, 4, 1, 0, 1)[0];
  path.start = 2;
  CHECK(verdict(path, {2, 0, 1, 3}).empty());
  CHECK(verdict(path, {3, 0, 1, 2}).empty());  // read backwards
  CHECK(verdict(path, {0, 2, 1, 3}) == "the path does not run from the given start to the given end");
  path.end = 0;
  CHECK_FALSE(verdict(path, {2, 0, 1, 3}).empty());
  CHECK(verdict(path, {0, 3, 1, 2}).empty());
}

TEST_CASE("forced edges that no tour has together are told") {
  const auto wrong = [](int n, std::vector<std::array<int32_t, 2>> edges) {
    size_t at = 0;
    const std::string text = wrong_edges(n, edges, at);
    return text.empty() ? text : std::to_string(at) + ": " + text;
  };
  CHECK(wrong(5, {{0, 1}, {1, 2}, {3, 4}}).empty());
  CHECK(wrong(3, {{0, 1}, {1, 2}, {2, 0}}).empty());  // the whole tour
  CHECK(wrong(5, {{0, 1}, {2, 2}}) == "1: two cities");
  CHECK(wrong(5, {{0, 1}, {0, 2}, {0, 3}}) == "2: at most two edges at a city");
  CHECK(wrong(4, {{0, 1}, {1, 2}, {2, 0}}) == "2: no cycle of fewer than all cities");
  CHECK(wrong(5, {{0, 1}, {1, 0}}) == "1: no cycle of fewer than all cities");
}
