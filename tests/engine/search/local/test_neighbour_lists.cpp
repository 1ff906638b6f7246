// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <set>
#include <vector>

#include "engine/search/local/neighbour_lists.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

int quadrant(const Distances& distances, int from, int to) {
  return (distances.x(to) >= distances.x(from) ? 1 : 0) + (distances.y(to) >= distances.y(from) ? 2 : 0);
}

// By looking at all pairs.
std::vector<int32_t> plain_list(const Distances& distances, const std::vector<int32_t>& among, int from,
                                size_t nearest) {
  std::vector<std::pair<double, int32_t>> others;
  for (const int32_t other : among) {
    const double dx = distances.x(other) - distances.x(from), dy = distances.y(other) - distances.y(from);
    if (other != from) others.emplace_back(dx * dx + dy * dy, other);
  }
  std::sort(others.begin(), others.end());
  std::set<int> seen;
  std::vector<int32_t> list;
  for (size_t i = 0; i < others.size(); ++i) {
    const bool is_new = seen.insert(quadrant(distances, from, others[i].second)).second;
    if (i < nearest || is_new) list.push_back(others[i].second);
  }
  return list;
}

Instance clustered(int n, uint32_t seed) {
  Instance instance = random_tsp(n, seed);
  for (int i = 0; i < n; ++i) {
    instance.values[2 * i] = instance.values[2 * i] * 0.01 + (i % 4);
    instance.values[2 * i + 1] *= 0.01;
  }
  return instance;
}

}  // namespace

TEST_CASE("lists from the tree are those of looking at all pairs") {
  for (const int n : {2, 3, 9, 40, 500}) {
    for (const Instance& instance : {random_tsp(n, n), clustered(n, n)}) {
      const Distances distances(instance, {});
      const std::vector<int32_t> all = all_places(n);
      std::vector<int32_t> some;
      for (const int32_t place : all) {
        if (place % 3 != 1) some.push_back(place);
      }
      for (const auto& among : {all, some}) {
        const NeighbourLists lists(distances, among, 7, {});
        for (size_t i = 0; i < among.size(); ++i) {
          std::vector<int32_t> found;
          for (const Neighbour& one : lists[i]) {
            found.push_back(one.place);
            CHECK(one.distance == distances(among[i], one.place));
          }
          CHECK(found == plain_list(distances, among, among[i], 7));
        }
      }
    }
  }
}

TEST_CASE("lists of equal cities, and of great circles") {
  Instance same;
  for (int i = 0; i < 30; ++i) same.values.insert(same.values.end(), {1.0, 1.0});
  const Distances distances(same, {});
  const NeighbourLists lists(distances, all_places(30), 5, {});
  for (size_t i = 0; i < 30; ++i) CHECK(lists[i].size() == 5);

  const Instance globe = random_tsp(40, 3, 80.0, Metric::kGeo);
  const Distances great_circles(globe, {});
  const NeighbourLists far(great_circles, all_places(40), 6, {});
  for (int city = 0; city < 40; ++city) {
    REQUIRE(far[city].size() == 6);
    int nearer = 0;
    for (int other = 0; other < 40; ++other)
      nearer += other != city && great_circles(city, other) < far[city].back().distance;
    CHECK(nearer <= 5);
  }
}

TEST_CASE("greedy edges are the shortest that fit, one after the other") {
  for (const int n : {1, 2, 3, 8, 60}) {
    const Instance instance = random_tsp(n, 5 + n);
    const Distances distances(instance, {});
    const NeighbourLists lists(distances, all_places(n), std::max(n - 1, 1), {});  // then nothing is left out
    const std::vector<int32_t> tour = greedy_edges(distances, lists, FixedEdges(distances.n(), {}), {});
    REQUIRE(std::set<int32_t>(tour.begin(), tour.end()).size() == static_cast<size_t>(n));
    std::vector<std::vector<double>> edges;
    for (int a = 0; a < n; ++a) {
      for (int b = a + 1; b < n; ++b)
        edges.push_back({distances(a, b), static_cast<double>(a), static_cast<double>(b)});
    }
    std::sort(edges.begin(), edges.end());
    std::vector<int> degree(n), group = std::vector<int>(tour.begin(), tour.end());
    std::iota(group.begin(), group.end(), 0);
    double length = 0.0, found = 0.0;
    for (const auto& one : edges) {
      const int a = static_cast<int>(one[1]), b = static_cast<int>(one[2]);
      if (degree[a] == 2 || degree[b] == 2 || group[a] == group[b]) continue;
      ++degree[a], ++degree[b];
      length += one[0];
      const int old = group[a];
      for (int& other : group) other = other == old ? group[b] : other;
    }
    for (size_t i = 0; i + 1 < tour.size(); ++i) found += distances(tour[i], tour[i + 1]);
    CHECK(found == Approx(length));
  }
}

TEST_CASE("greedy edges join fragments that no list joins") {
  const Instance instance = clustered(400, 3);
  const Distances distances(instance, {});
  const NeighbourLists lists(distances, all_places(400), 3, {});
  const std::vector<int32_t> tour = greedy_edges(distances, lists, FixedEdges(distances.n(), {}), {});
  CHECK(std::set<int32_t>(tour.begin(), tour.end()).size() == 400);
}
