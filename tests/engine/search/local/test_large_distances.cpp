// SPDX-License-Identifier: Apache-2.0
// Distances so large that doubles do not hold their sums: "no road" as 1e17 or as the largest 64-bit integer.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/lin_kernighan.h"
#include "engine/search/local/tour_search.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

__extension__ typedef __int128 Exact;
constexpr double kMaxsize = 0x1p63;  // what a double makes of the largest 64-bit integer

Instance matrix_instance(int n, std::vector<double> above) {
  Instance instance;
  instance.metric = Metric::kExplicit;
  auto matrix = std::make_shared<DistanceMatrix>();
  matrix->n = n;
  matrix->above = std::move(above);
  instance.matrix = std::move(matrix);
  return instance;
}

// Short roads of 1 to 20,000 and some entries that stand for none, of one kind or of all sizes from 1e12 on.
Instance with_large_entries(int n, std::mt19937_64& random) {
  const double share = (random() % 100) / 100.0;
  const double kinds[] = {1e12, 1e15, 1e17, 1e18, kMaxsize, 0.0};
  const double kind = kinds[random() % 6];
  std::vector<double> above;
  for (int i = 0; i < n * (n - 1) / 2; ++i) {
    const bool is_large = (random() % 1000) / 1000.0 < share;
    const double any = std::floor(std::pow(10.0, 12.0 + (random() % 6000) / 1000.0));
    above.push_back(!is_large ? 1.0 + random() % 20000 : kind > 0.0 ? kind : any);
  }
  return matrix_instance(n, std::move(above));
}

Exact length_of(const Instance& instance, const std::vector<int32_t>& tour) {
  Exact length = 0;
  for (size_t i = 0; i < tour.size(); ++i)
    length += static_cast<Exact>(instance.matrix->at(tour[i], tour[(i + 1) % tour.size()]));
  return length;
}

// Every tour from city 0 on, left as soon as it is no shorter than the best.
class AllTours {
 public:
  explicit AllTours(const Instance& instance) : n_(instance.n()), left_(n_, true) {
    for (int a = 0; a < n_; ++a) {
      for (int b = 0; b < n_; ++b) distance_[a][b] = static_cast<Exact>(instance.matrix->at(a, b));
    }
    std::vector<int32_t> order(n_);
    std::iota(order.begin(), order.end(), 0);
    best_ = length_of(instance, order);
    extend(0, 1, 0);
  }
  Exact best() const { return best_; }

 private:
  void extend(int end, int count, Exact length) {
    if (length >= best_) return;
    if (count == n_) best_ = std::min(best_, length + distance_[end][0]);
    for (int next = 1; next < n_; ++next) {
      if (!left_[next]) continue;
      left_[next] = false;
      extend(next, count + 1, length + distance_[end][next]);
      left_[next] = true;
    }
  }

  const int n_;
  std::vector<char> left_;
  Exact distance_[9][9];
  Exact best_;
};

void check_shortest(int count, uint64_t seed) {
  std::mt19937_64 random(seed);
  int longer = 0;
  for (int i = 0; i < count; ++i) {
    const Instance instance = with_large_entries(4 + static_cast<int>(random() % 6), random);
    const Solution solution = local_search(instance, {.kicks = std::nullopt}, {});
    longer += length_of(instance, solution.order) > AllTours(instance).best();
  }
  CHECK(longer == 0);
}

}  // namespace

TEST_CASE("tours with distances from 1e12 to 2^63 are the shortest") { check_shortest(3000, 1); }

TEST_CASE("100,000 tours with distances from 1e12 to 2^63 are the shortest", "[.long]") {
  check_shortest(100'000, 2);
}

// Each exchange gains exactly what it says, so the search ends; with doubles it exchanged the same edges for
// ever.
TEST_CASE("what Lin-Kernighan gains is exact, whatever the distances") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 2000; ++i) {
    const int n = 5 + static_cast<int>(random() % 20);
    const Instance instance = with_large_entries(n, random);
    const Distances distances(instance, {});
    std::vector<int32_t> places(n);
    std::iota(places.begin(), places.end(), 0);
    const NeighbourLists lists(distances, places, 8, {});
    if (!distances.is_wide()) continue;  // no large entry
    const FixedEdges none(distances.n(), {});
    LinKernighan<WideLength> tour(distances, lists, none);
    tour.load(places);
    const auto exact_length = [&] {
      std::vector<int32_t> order;
      for (const int32_t place : tour.places()) order.push_back(distances.city(place));
      return length_of(instance, order);
    };
    Exact length = exact_length();
    const auto unit = tour.length() / length;
    REQUIRE(tour.length() == length * unit);
    for (int kick = 0; kick < 20; ++kick) {
      const WideLength cost = tour.kick(random, 0, n), gained = tour.descend({});
      CHECK(gained >= 0);
      CHECK(exact_length() * unit == length * unit + cost - gained);
      length = exact_length();
    }
  }
}

TEST_CASE("searches with kicks end where most distances are 2^63 or 1e17") {
  std::mt19937_64 random(4);
  for (const int n : {13, 14, 40, 1000}) {
    const Instance instance = with_large_entries(n, random);
    const Solution solution = local_search(instance, {.kicks = 200}, {});
    CHECK(solution.kicks == 200);
    CHECK(solution.status == Status::kDone);
  }
  // The roads of six cities, 1e17 where there is none: the tour 0 3 .. needs none of these.
  const Instance roads = matrix_instance(
      6, {1e17, 1e17, 77.39, 1e17, 94.17, 38.18, 49.58, 40.9, 1e17, 6.07, 41.42, 63.44, 1e17, 43.19, 42.97});
  CHECK(local_search(roads, {}, {}).objective < 1e3);
  CHECK(local_search(roads, {.kicks = 24}, {}).objective == Approx(299.68));
}

TEST_CASE("a limit strikes within one city's exchanges") {
  const Instance instance = random_tsp(400, 1);
  Solution solution = quick_answer(instance);
  int asked = 0;
  SearchControl control;
  control.interrupted = [&] { return ++asked > 3; };
  TourSearch search(instance, {.kicks = 0}, {});
  CHECK_FALSE(search.improve(solution, control));
}

TEST_CASE("short distances beside one that is far larger are still shortened") {
  // Cities of a ring in steps of 1e-3 and one at 1e10: doubles beside 1e10 do not see gains of 1e-6.
  Instance instance;
  constexpr int kRing = 60;
  for (int i = 0; i < kRing; ++i) {
    const double angle = 6.283185307179586 * i / kRing;
    instance.values.insert(instance.values.end(), {1e-2 * std::cos(angle), 1e-2 * std::sin(angle)});
  }
  instance.values.insert(instance.values.end(), {1e10, 0.0});
  Solution solution;
  solution.order = random_order(kRing + 1, 2);
  REQUIRE(validate_solution(instance, solution).empty());
  improve_solution(instance, solution, {.kicks = 2000}, {});
  std::vector<int32_t> order = solution.order;
  std::rotate(order.begin(), std::find(order.begin(), order.end(), kRing), order.end());
  int apart = 0;  // of the ring's steps all but one are neighbours of the tour
  for (int i = 2; i <= kRing; ++i) {
    const int step = std::abs(order[i] - order[i - 1]);
    apart += step != 1 && step != kRing - 1;
  }
  CHECK(apart == 0);
}
