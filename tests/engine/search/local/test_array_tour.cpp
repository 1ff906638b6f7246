// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/search/local/array_tour.h"
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

TEST_CASE("a change of one tour is made on another that has its edges") {
  std::mt19937 random(11);
  int made = 0, lacking = 0, cycles = 0;
  for (int round = 0; round < 4000; ++round) {
    const int n = 12;
    const std::vector<int32_t> order = random_order(n, random());
    ArrayTour tour(n), other(n);
    tour.load(order);
    std::vector<int32_t> turned = order;  // the same tour elsewhere in the array, every other time backwards
    std::rotate(turned.begin(), turned.begin() + static_cast<int>(random() % n), turned.end());
    if (round % 2 == 0) std::reverse(turned.begin(), turned.end());
    const int first = static_cast<int>(random() % n), last = first + static_cast<int>(random() % (n - first));
    if (round % 4 == 0) std::reverse(turned.begin() + first, turned.begin() + last);  // no longer the same
    if (round % 4 == 1) std::rotate(turned.begin(), turned.begin() + first, turned.begin() + last);
    other.load(turned);
    const bool is_same = edges_of(turned) == edges_of(order);

    std::vector<int> positions(n);
    std::iota(positions.begin(), positions.end(), 0);
    std::shuffle(positions.begin(), positions.end(), random);
    std::sort(positions.begin(), positions.begin() + 4);
    const bool is_bridge = random() % 2 == 0;
    bool done = false;
    if (is_bridge) {
      const int cuts[4] = {positions[0], positions[1], positions[2], positions[3]};
      int32_t ends[8];
      for (int i = 0; i < 4; ++i) {
        ends[2 * i] = tour.at(cuts[i]);
        ends[2 * i + 1] = tour.at(tour.after(cuts[i]));
      }
      tour.bridge(cuts);
      done = other.bridge_elsewhere(ends);
    } else {
      Exchange exchange;
      exchange.size = 3;
      for (int j = 0; j < 3; ++j) tour.choose(exchange, j, tour.at(positions[j]), true);
      if (!tour.apply(exchange)) continue;
      done = other.apply_elsewhere(exchange);
    }
    check_whole(other);
    if (done) {
      // What came and what went is the same on both.
      Edges with_change = edges_of(tour.order()), without = edges_of(order);
      for (const auto& one : edges_of(other.order())) {
        if (with_change.count(one) == 0) CHECK(edges_of(turned).count(one) == 1);
      }
      for (const auto& one : without) {
        if (with_change.count(one) == 0) CHECK(edges_of(other.order()).count(one) == 0);
      }
      if (is_same) CHECK(edges_of(other.order()) == with_change);
      ++made;
    } else {
      CHECK_FALSE(is_same);
      CHECK(other.order() == turned);
      bool has_all = true;
      for (const auto& one : edges_of(order)) {
        if (edges_of(tour.order()).count(one) == 0) has_all = has_all && edges_of(turned).count(one) == 1;
      }
      ++(has_all ? cycles : lacking);
    }
  }
  CHECK(made > 500);
  CHECK(lacking > 100);
  CHECK(cycles > 20);
}

TEST_CASE("many changes are undone as few are") {
  std::mt19937 random(8);
  for (const int n : {8, 9, 40}) {
    ArrayTour tour(n);
    const std::vector<int32_t> order = random_order(n, 7);
    tour.load(order);
    for (const int changes : {1, 3, 500}) {
      for (int i = 0; i < changes; ++i) {
        int cuts[4] = {0, 2, 4, 6};
        for (int& cut : cuts) cut += static_cast<int>(random() % 2);
        tour.bridge(cuts);
      }
      tour.undo();
      check_whole(tour);
      CHECK(edges_of(tour.order()) == edges_of(order));
    }
  }
}
