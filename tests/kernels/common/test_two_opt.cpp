// SPDX-License-Identifier: Apache-2.0
// The local search that the CUDA kernel shares, by one thread: what it leaves, against all moves tried one by
// one in double, and against the shortest tours.
#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/common/tsp.h"
#include "kernels/tools/fnv1a.h"
#include "tests/catch.h"
#include "tests/kernels/lone_search.h"

using namespace pointsman;

namespace {

using Order = std::vector<int32_t>;

struct Cities {
  // levels: how many different values a coordinate has; 0: any.
  Cities(int count, unsigned seed, int levels = 0) : n(count), start(static_cast<size_t>(count)) {
    std::mt19937 random(seed);
    for (int i = 0; i < 2 * n; ++i) {
      const float value = uniform_from_word(static_cast<uint32_t>(random()));
      xy.push_back(levels == 0 ? value : std::floor(value * 0.999f * levels) / static_cast<float>(levels));
    }
    neighbours = neighbours_of(xy.data(), n);
    std::iota(start.begin(), start.end(), 0);
    std::shuffle(start.begin(), start.end(), random);
  }
  double distance(int a, int b) const {
    return euclidean_length<double>(double{xy[2 * a]} - double{xy[2 * b]},
                                    double{xy[2 * a + 1]} - double{xy[2 * b + 1]});
  }
  double length(const Order& order) const { return tour_length(xy.data(), order.data(), n); }
  bool lists(int a, int c) const {
    const auto first = neighbours.begin() + a * kTourNeighbours;
    return std::find(first, first + kTourNeighbours, c) != first + kTourNeighbours;
  }
  TourInstance instance() const { return {xy.data(), neighbours.data(), n}; }
  // After so many kicks.
  Order improved(int kicks, uint64_t seed = 1, uint64_t key = 0) const {
    LoneSearch lone(instance());
    lone.load(start);
    CHECK(lone.search.run(kicks, seed, key, kNeverStops) == kicks);
    return lone.best();
  }

  int n;
  std::vector<float> xy;
  std::vector<uint16_t> neighbours;
  Order start;  // in any order
};

bool is_tour(Order order) {
  std::sort(order.begin(), order.end());
  for (size_t i = 0; i < order.size(); ++i) {
    if (order[i] != static_cast<int32_t>(i)) return false;
  }
  return true;
}

// Does the search, at `city`, look at moves that exchange the edge (a, b) for (a, c)?
bool is_looked_at(const Cities& cities, int city, int a, int b, int c) {
  return a == city && cities.lists(a, c) && cities.distance(a, c) < cities.distance(a, b);
}

// By how much the best 2-opt move that is looked at would shorten the tour.
double best_pair_gain(const Cities& cities, const Order& order, int city) {
  double best = 0.0;
  for (int i = 0; i + 1 < cities.n; ++i) {
    for (int j = i + 1; j < cities.n; ++j) {
      const int a = order[(i + cities.n - 1) % cities.n], b = order[i], c = order[j],
                d = order[(j + 1) % cities.n];
      if (a == c || a == d) continue;
      if (!is_looked_at(cities, city, a, b, c) && !is_looked_at(cities, city, c, d, a) &&
          !is_looked_at(cities, city, b, a, d) && !is_looked_at(cities, city, d, c, b)) {
        continue;
      }
      Order moved = order;
      std::reverse(moved.begin() + i, moved.begin() + j + 1);
      best = std::max(best, cities.length(order) - cities.length(moved));
    }
  }
  return best;
}

// Likewise of those that move up to three cities, turned or not.
double best_path_gain(const Cities& cities, const Order& order, int city) {
  const int n = cities.n;
  double best = 0.0;
  for (int start = 0; start < n; ++start) {
    Order turned = order;
    std::rotate(turned.begin(), turned.begin() + start, turned.end());
    for (int length = 1; length <= 3; ++length) {
      for (int to = length; to + 1 < n; ++to) {  // between turned[to] and turned[to + 1]
        for (const bool reverses : {false, true}) {
          Order path(turned.begin(), turned.begin() + length),
              moved(turned.begin() + length, turned.begin() + to + 1);
          const int before = turned[n - 1], behind = turned[length], first = path.front(), last = path.back();
          if (reverses) std::reverse(path.begin(), path.end());
          const int u = turned[to], v = turned[to + 1], begin = path.front(), end = path.back();
          // An end of the path was beside a city outside it; a single city was beside two.
          const auto leaves = [&](int a, int c) {
            return (a == first && is_looked_at(cities, city, a, before, c)) ||
                   (a == last && is_looked_at(cities, city, a, behind, c));
          };
          if (!is_looked_at(cities, city, u, v, begin) && !is_looked_at(cities, city, v, u, end) &&
              !leaves(begin, u) && !leaves(end, v)) {
            continue;
          }
          moved.insert(moved.end(), path.begin(), path.end());
          moved.insert(moved.end(), turned.begin() + to + 1, turned.end());
          best = std::max(best, cities.length(order) - cities.length(moved));
        }
      }
    }
  }
  return best;
}

// Held and Karp 1962.
double shortest_tour(const Cities& cities) {
  const int n = cities.n - 1, all = 1 << n;  // the last city is where tours start
  std::vector<double> least(static_cast<size_t>(all) * n, std::numeric_limits<double>::infinity());
  for (int i = 0; i < n; ++i) least[(1 << i) * n + i] = cities.distance(n, i);
  for (int set = 1; set < all; ++set) {
    for (int i = 0; i < n; ++i) {
      if ((set >> i & 1) == 0) continue;
      for (int j = 0; j < n; ++j) {
        if ((set >> j & 1) != 0) continue;
        double& longer = least[(set | 1 << j) * n + j];
        longer = std::min(longer, least[set * n + i] + cities.distance(i, j));
      }
    }
  }
  double best = std::numeric_limits<double>::infinity();
  for (int i = 0; i < n; ++i) best = std::min(best, least[(all - 1) * n + i] + cities.distance(i, n));
  return best;
}

}  // namespace

TEST_CASE("candidate lists hold the nearest cities, ties by number") {
  const Cities cities(40, 3, GENERATE(0, 5));
  for (int city = 0; city < cities.n; ++city) {
    Order others(cities.n);
    std::iota(others.begin(), others.end(), 0);
    others.erase(others.begin() + city);
    std::stable_sort(others.begin(), others.end(), [&](int a, int b) {
      return tour_distance(cities.xy.data(), city, a) < tour_distance(cities.xy.data(), city, b);
    });
    for (int k = 0; k < kTourNeighbours; ++k)
      REQUIRE(cities.neighbours[city * kTourNeighbours + k] == others[k]);
  }
}

TEST_CASE("the tour to begin with goes to the nearest city that is left") {
  for (const int levels : {0, 4}) {
    const Cities cities(70, 5, levels);
    LoneSearch lone(cities.instance());
    lone.search.begin(kNeverStops);
    const Order order = lone.order();
    REQUIRE(is_tour(order));
    CHECK(order[0] == 0);
    for (int i = 1; i < cities.n; ++i) {
      for (int j = i; j < cities.n; ++j)
        CHECK(cities.distance(order[i - 1], order[i]) <= cities.distance(order[i - 1], order[j]) + 2e-7);
    }
  }
}

TEST_CASE("a stop leaves the best tour so far, and tells how far it came") {
  const Cities cities(100, 11);
  LoneSearch whole(cities.instance());
  whole.search.begin(kNeverStops);
  const double first = cities.length(whole.order());
  whole.search.descend(kNeverStops);
  const double descended = cities.length(whole.order());
  int fewest_kicks = 1000;
  for (const int answered : {0, 1, 2, 20, 100}) {
    int questions = 0;
    LoneSearch lone(cities.instance());
    const int kicks = lone.search.search(1000, 1, 0, [&] { return questions++ >= answered; });
    INFO(answered << " questions, " << kicks << " kicks");
    CHECK(questions == answered + 1);
    if (answered <= 1) {  // before and within the tour to begin with
      CHECK(kicks == kNotBegun);
      continue;
    }
    REQUIRE(is_tour(lone.best()));
    const double length = cities.length(lone.best());
    if (answered == 2) {
      CHECK(kicks == kDescentStopped);
      CHECK(length < first);
      CHECK(length > descended);
      continue;
    }
    CHECK(kicks > 0);
    CHECK(length <= descended + 100 * double{kLeastTourGain});
    fewest_kicks = std::min(fewest_kicks, kicks);
  }
  CHECK(fewest_kicks < 1000);
}

TEST_CASE("a look finds the best of all moves that it promises, and descend() makes them all") {
  for (unsigned seed = 0; seed < 30; ++seed) {
    const Cities cities(kFewestTourCities + static_cast<int>(seed), seed);
    LoneSearch lone(cities.instance());
    lone.load(cities.start);
    const auto compare = [&](bool at_rest) {
      const Order order = lone.order();
      REQUIRE(is_tour(order));
      for (int city = 0; city < cities.n; ++city) {
        const double expected =
            std::max(best_pair_gain(cities, order, city), best_path_gain(cities, order, city));
        const double gain = double{lone.search.look(city).gain};
        CHECK(std::abs(std::max(expected, double{kLeastTourGain}) - gain) <= double{kLeastTourGain});
        if (at_rest) CHECK(gain == double{kLeastTourGain});
      }
    };
    compare(false);
    const double before = cities.length(cities.start), gained = double{lone.search.descend(kNeverStops)};
    compare(true);
    // A rounding for each of some n moves.
    CHECK(before - cities.length(lone.order()) == Approx(gained).margin(cities.n * double{kLeastTourGain}));
  }
}

TEST_CASE("kicks find the shortest tours of few cities") {
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Cities cities(seed % 2 == 0 ? 10 : 12, 100 + seed);
    const Order order = cities.improved(500);
    REQUIRE(is_tour(order));
    CHECK(cities.length(order) == Approx(shortest_tour(cities)).epsilon(1e-6));
  }
}

TEST_CASE("kicks never leave a longer tour, nor one that a look would shorten") {
  for (unsigned seed = 0; seed < 200; ++seed) {
    const bool many = seed % 5 == 0;
    const Cities cities(many ? 120 : 30, seed);
    const int kicks = many ? 300 : 3;
    const Order order = cities.improved(kicks);
    // A rounding for each kick.
    CHECK(cities.length(order) <= cities.length(cities.improved(0)) + kicks * double{kLeastTourGain});
    LoneSearch lone(cities.instance());
    lone.load(order);
    CHECK(lone.search.descend(kNeverStops) == 0.0f);
  }
}

TEST_CASE("more kicks find shorter tours, which depend on seed and key alone") {
  const Cities cities(200, 7);
  double last = std::numeric_limits<double>::infinity();
  Order order;
  for (const int kicks : {0, 50, 1000}) {
    order = cities.improved(kicks);
    REQUIRE(is_tour(order));
    CHECK(cities.length(order) < last);
    last = cities.length(order);
  }
  // A change of any bit on the way would lead elsewhere.
  CHECK(hash_array(order.data(), order.size() * sizeof(int32_t)) == 0x5F12210CC22F1685ull);
  CHECK(cities.improved(50, 1, 5) == cities.improved(50, 1, 5));
  CHECK(cities.improved(50, 1, 5) != cities.improved(50, 1, 6));
  CHECK(cities.improved(50, 1, 5) != cities.improved(50, 2, 5));
}
