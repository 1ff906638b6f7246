// SPDX-License-Identifier: Apache-2.0
// Local search on routes: against all routes, at limits, and the rings that it changes.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <random>
#include <set>
#include <stdexcept>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/local_search.h"
#include "engine/search/local/route_rings.h"
#include "engine/search/local/route_search.h"
#include "engine/search/local/routes.h"
#include "tests/catch.h"
#include "tests/engine/shortest_routes.h"

using namespace pointsman;

namespace {

using Order = std::vector<int32_t>;

constexpr Metric kMetrics[] = {Metric::kEuclidean, Metric::kEuc2d, Metric::kCeil2d, Metric::kGeo,
                               Metric::kAtt,       Metric::kMan2d, Metric::kMax2d};

// Places of which some are the same, demands of 0 to 5 units, and vehicles that carry little more than the
// largest; a unit is 1 or 0.1, whose sums are not exact in doubles.
Instance random_routes(int n, uint32_t seed, Metric metric, double side = 80.0) {
  std::mt19937 random(seed);
  const double units_in_one = seed % 2 == 0 ? 1.0 : 10.0;
  Instance instance;
  instance.problem = ProblemKind::kCvrp;
  instance.metric = metric;
  int most = 0;
  for (int i = 0; i < n; ++i) {
    const double x = side * (random() / 4294967296.0), y = side * (random() / 4294967296.0);
    const int twin = i > 0 && random() % 5 == 0 ? static_cast<int>(random() % i) : i;
    const int units = i == 0 ? 0 : static_cast<int>(random() % 6);
    instance.values.insert(instance.values.end(), {x, y, units / units_in_one});
    std::copy_n(instance.item(twin), 2, instance.values.end() - 3);
    most = std::max(most, units);
  }
  instance.capacity = std::max(most + static_cast<int>(random() % 4), 1) / units_in_one;
  for (size_t i = 0; i < static_cast<size_t>(n); ++i) REQUIRE(wrong_demand(instance, i).empty());
  return instance;
}

Instance generated(int n, uint64_t seed = 1) {
  return generate_instances(ProblemKind::kCvrp, n, seed, 0, 1)[0];
}

Solution checked(const Instance& instance, Order order) {
  Solution solution;
  solution.order = std::move(order);
  REQUIRE(validate_solution(instance, solution).empty());
  return solution;
}

// Each customer alone in a route.
Order apart(int n) {
  Order order;
  for (int32_t customer = 1; customer < n; ++customer) {
    if (customer > 1) order.push_back(0);
    order.push_back(customer);
  }
  return order;
}

}  // namespace

TEST_CASE(
    "the search reaches the shortest routes of every small instance, from savings and from any routes") {
  for (int n = 1; n <= 8; ++n) {
    const uint32_t count = n < 7 ? 35 : n == 7 ? 14 : 3;
    for (uint32_t seed = 0; seed < count; ++seed) {
      const Instance instance = random_routes(n, 100 * n + seed, kMetrics[seed % 7]);
      INFO("n " << n << ", seed " << seed);
      const double optimum = shortest_routes(instance);
      for (const Solution& start : {savings_routes(instance, {}), checked(instance, apart(n))}) {
        Solution descended = start, found = start;
        improve_solution(instance, descended, {.kicks = 0}, {});
        CHECK(checked(instance, descended.order).objective == descended.objective);
        CHECK(descended.objective <= start.objective);
        CHECK(descended.objective >= optimum * (1 - 1e-12));
        improve_solution(instance, found, {.kicks = 2000}, {});
        CHECK(checked(instance, found.order).objective == found.objective);
        CHECK(found.objective == Approx(optimum).epsilon(1e-12));
      }
    }
  }
}

TEST_CASE("no kick makes routes longer than those it began with") {
  for (uint32_t seed = 0; seed < 21; ++seed) {
    const Instance instance = random_routes(40, seed, kMetrics[seed % 7]);
    const Solution start = quick_answer(instance);
    for (const int64_t kicks : {0, 1, 2, 10, 100}) {
      Solution found = start;
      improve_solution(instance, found, {.kicks = kicks, .seed = seed}, {});
      CHECK(checked(instance, found.order).objective == found.objective);
      CHECK(found.objective <= start.objective);
      CHECK(found.kicks == kicks);
    }
  }
}

TEST_CASE("without kicks each route is shortened alone") {
  const Instance instance = generated(13);
  Instance loose = instance;
  loose.capacity = 1000.0;
  Solution tour = quick_answer(loose);
  const double before = tour.objective;
  REQUIRE(routes_of(tour.order).size() == 1);
  improve_solution(loose, tour, {.kicks = 0}, {});
  CHECK(tour.objective < before);
  CHECK(routes_of(tour.order).size() == 1);
  Solution routes = quick_answer(instance);
  const auto sorted = [](const Order& order) {
    std::set<Order> sets;
    for (Order route : routes_of(order)) {
      std::sort(route.begin(), route.end());
      sets.insert(route);
    }
    return sets;
  };
  const auto customers = sorted(routes.order);
  REQUIRE(customers.size() > 1);
  improve_solution(instance, routes, {.kicks = 0}, {});
  CHECK(sorted(routes.order) == customers);
}

TEST_CASE("rings: any changes can be undone, and their sum is the change of the length") {
  std::mt19937 random(1);
  for (uint32_t seed = 0; seed < 14; ++seed) {
    const Instance instance = random_routes(30, seed, kMetrics[seed % 7]);
    const Distances distances(instance, {});
    RouteRings rings(instance, distances);
    rings.load(savings_routes(instance, {}).order);
    for (int round = 0; round < 20; ++round) {
      const Order before = rings.order();
      const double length = rings.length();
      const int routes = rings.routes();
      Order out;
      for (int i = 0; i < rings.customers(); ++i) {
        if (random() % 3 == 0) out.push_back(rings.customer(i));
      }
      for (const int32_t customer : out) rings.remove(customer);
      for (const int32_t customer : out) {
        CHECK_FALSE(rings.is_served(customer));
        int32_t behind = rings.empty_route();
        for (int i = 0; i < rings.customers(); ++i) {
          const int32_t other = rings.customer(i);
          if (rings.is_served(other) && rings.has_room(rings.route_of(other), customer) && random() % 4 == 0)
            behind = random() % 2 == 0 ? other : rings.previous(other);
        }
        rings.insert(customer, behind);
      }
      const Solution changed = checked(instance, rings.order());
      CHECK(rings.length() == Approx(changed.objective).epsilon(1e-12));
      CHECK(rings.change() == Approx(rings.length() - length).margin(1e-9));
      CHECK(rings.routes() == static_cast<int>(routes_of(changed.order).size()));
      if (round % 2 == 0) {
        rings.undo();
        CHECK(rings.order() == before);
        CHECK(rings.length() == length);
        CHECK(rings.routes() == routes);
      }
      rings.keep();
      CHECK(rings.change() == 0.0);
    }
  }
}

TEST_CASE("rings: a route takes what fills it to the last unit and nothing more") {
  Instance instance;
  instance.problem = ProblemKind::kCvrp;
  instance.capacity = 0.3;
  instance.values = {0, 0, 0, 1, 0, 0.1, 2, 0, 0.2, 3, 0, 0.1, 4, 0, 0.0};
  const Distances distances(instance, {});
  RouteRings rings(instance, distances);
  rings.load(Order{1, 0, 2, 0, 3, 0, 4});
  int32_t place[5] = {};
  for (int32_t i = 0; i < 5; ++i) place[distances.city(i)] = i;
  const int32_t route = rings.route_of(place[1]);
  CHECK(rings.has_room(route, place[2]));  // 0.1 + 0.2 > 0.3 in doubles
  rings.remove(place[2]);
  rings.insert(place[2], place[1]);
  CHECK_FALSE(rings.has_room(route, place[3]));
  CHECK(rings.has_room(route, place[4]));
}

TEST_CASE("the same seed gives the same routes, another seed others") {
  const Instance instance = generated(120);
  std::set<Order> found;
  for (uint64_t seed = 1; seed <= 3; ++seed) {
    const Solution first = local_search(instance, {.kicks = 500, .seed = seed}, {});
    CHECK(local_search(instance, {.kicks = 500, .seed = seed}, {}).order == first.order);
    found.insert(first.order);
  }
  CHECK(found.size() == 3);
}

TEST_CASE("the search is far better than savings, beyond the matrix of distances too") {
  for (const int n : {101, 401}) {
    const Instance instance = generated(n);
    const double savings = savings_routes(instance, {}).objective;
    const Solution found = local_search(instance, {.kicks = 100 * n}, {});
    CHECK(found.objective < 0.97 * savings);
    CHECK(found.kicks == 100 * n);
  }
}

TEST_CASE("kicks of no number are some a customer, or as many as the time allows") {
  const Instance instance = generated(21);
  CHECK(local_search(instance, {.kicks = std::nullopt}, {}).kicks == 20 * RouteSearch::kKicksPerCustomer);
  const SearchControl control = {Clock::now() + std::chrono::milliseconds(200), {}};
  const Solution timed = local_search(instance, {.kicks = std::nullopt}, control);
  CHECK(Clock::now() >= *control.deadline);
  CHECK(timed.status == Status::kTimeLimit);
  CHECK(timed.kicks > 100);
  const SearchControl far = {Clock::now() + std::chrono::seconds(20), {}};
  const Solution some = local_search(instance, {.kicks = std::nullopt, .fills_limit = false}, far);
  CHECK(some.kicks == 20 * RouteSearch::kKicksPerCustomer);
}

TEST_CASE("routes that are cut short are the best that the search saw") {
  const Instance instance = generated(60);
  for (const int asks : {0, 1, 3, 10, 60, 200}) {
    int asked = 0;
    double best = std::numeric_limits<double>::infinity();
    SearchControl control{{}, [&] { return ++asked > asks; }};
    control.report.on_best = [&](double objective) { best = std::min(best, objective); };
    const Solution cut = local_search(instance, {.kicks = 1'000'000'000}, control);
    CHECK(cut.status == Status::kInterrupted);
    CHECK(cut.kicks < 1'000'000'000);
    CHECK(checked(instance, cut.order).objective == cut.objective);
    CHECK(cut.objective <= best * (1 + 1e-12));
  }
  const SearchControl over = {Clock::now() - std::chrono::seconds(1), {}};
  CHECK(local_search(instance, {.kicks = 100}, over).order == quick_answer(instance).order);
}

TEST_CASE("local search refuses routes that are none") {
  const Instance instance = generated(6);
  Solution wrong;
  wrong.order = {1, 2};
  CHECK_THROWS_AS(improve_solution(instance, wrong, {}, {}), std::invalid_argument);
}
