// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/search/array_tour.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

using Edges = std::multiset<std::pair<int, int>>;

std::pair<int, int> edge(int a, int b) { return {std::min(a, b), std::max(a, b)}; }

Edges edges_of(const std::vector<int32_t>& order) {
  Edges edges;
  for (size_t i = 0; i < order.size(); ++i) edges.insert(edge(order[i], order[(i + 1) % order.size()]));
  return edges;
}

// Of the edges of a graph in which every city has two: do they make one cycle?
bool is_one_cycle(const Edges& edges, int n) {
  std::vector<std::vector<int>> joined(n);
  for (const auto& [a, b] : edges) {
    if (a == b) return false;
    joined[a].push_back(b), joined[b].push_back(a);
  }
  int before = -1, at = 0, seen = 0;
  do {
    if (joined[at].size() != 2) return false;
    const int next = joined[at][0] != before ? joined[at][0] : joined[at][1];
    if (joined[at][0] == joined[at][1] && n > 2) return false;
    before = at;
    at = next;
  } while (++seen <= n && at != 0);
  return seen == n;
}

// Positions in step with the order, and a permutation.
void check_whole(const ArrayTour& tour) {
  std::vector<int32_t> sorted = tour.order();
  std::sort(sorted.begin(), sorted.end());
  for (int i = 0; i < tour.n(); ++i) {
    REQUIRE(sorted[i] == i);
    REQUIRE(tour.position(tour.at(i)) == i);
  }
}

}  // namespace

TEST_CASE("an exchange is made exactly where it leaves one tour, and undone") {
  std::mt19937 random(7);
  int made = 0, refused = 0;
  for (int round = 0; round < 4000; ++round) {
    const int n = 5 + static_cast<int>(random() % 12);
    const int size = 2 + static_cast<int>(random() % 2);
    ArrayTour tour(n);
    tour.load(random_order(n, random()));
    Exchange exchange;
    exchange.size = size;
    std::set<int> cuts;
    for (int j = 0; j < size; ++j) {
      do {
        tour.choose(exchange, j, static_cast<int>(random() % n), random() % 2 == 0);
      } while (cuts.count(exchange.cut[j]) != 0);
      cuts.insert(exchange.cut[j]);
    }
    const std::vector<int32_t> before = tour.order();
    Edges wanted = edges_of(before);
    for (int j = 0; j < size; ++j) {
      const auto gone = wanted.find(edge(exchange.t[2 * j], exchange.t[2 * j + 1]));
      REQUIRE(gone != wanted.end());
      wanted.erase(gone);
    }
    for (int j = 0; j < size; ++j)
      wanted.insert(edge(exchange.t[2 * j + 1], exchange.t[(2 * j + 2) % (2 * size)]));
    const bool done = tour.apply(exchange);
    CHECK(done == is_one_cycle(wanted, n));
    CHECK(edges_of(tour.order()) == (done ? wanted : edges_of(before)));
    check_whole(tour);
    tour.undo();
    CHECK(tour.order() == before);
    check_whole(tour);
    ++(done ? made : refused);
  }
  CHECK(made > 500);
  CHECK(refused > 500);
}

TEST_CASE("a bridge reverses the order of three paths and none of their directions") {
  ArrayTour tour(9);
  tour.load({0, 1, 2, 3, 4, 5, 6, 7, 8});
  const int cuts[4] = {1, 3, 4, 7};
  tour.bridge(cuts);
  // 8 0 1 | 2 3 | 4 | 5 6 7 becomes 8 0 1 | 5 6 7 | 4 | 2 3.
  CHECK(edges_of(tour.order()) == edges_of({8, 0, 1, 5, 6, 7, 4, 2, 3}));
  check_whole(tour);
  tour.keep();
  tour.undo();  // of nothing
  CHECK(edges_of(tour.order()) == edges_of({8, 0, 1, 5, 6, 7, 4, 2, 3}));
}
