// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "engine/search/local/edge_assembly.h"
#include "engine/search/local/tour_population.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

using Tour = std::vector<int32_t>;
using Edge = std::pair<int32_t, int32_t>;

Edge edge(int32_t a, int32_t b) { return {std::min(a, b), std::max(a, b)}; }

std::set<Edge> edges_of(const Tour& tour) {
  std::set<Edge> edges;
  for (size_t i = 0; i < tour.size(); ++i) edges.insert(edge(tour[i], tour[(i + 1) % tour.size()]));
  return edges;
}

// An instance with its candidate lists; cities by place.
struct Plane {
  Instance instance;
  Distances distances;
  NeighbourLists neighbours;
  FixedEdges fixed;

  Plane(int n, uint32_t seed, std::vector<std::array<int32_t, 2>> edges = {})
      : instance(random_tsp(n, seed)),
        distances(instance, {}),
        neighbours(distances, all_places(n), 6, {}),
        fixed(n, edges) {}

  double length(const Tour& tour) const {
    double length = 0.0;
    for (size_t i = 0; i < tour.size(); ++i) length += distances(tour[i], tour[(i + 1) % tour.size()]);
    return length;
  }
};

// Reverses stretches of at most `longest` cities.
Tour shuffled(Tour tour, int times, int longest, std::mt19937& random) {
  const int n = static_cast<int>(tour.size());
  for (int i = 0; i < times; ++i) {
    const int first = static_cast<int>(random() % n);
    const int last = std::min(n, first + 2 + static_cast<int>(random() % longest));
    std::reverse(tour.begin() + first, tour.begin() + last);
  }
  return tour;
}

bool is_tour_of(int n, Tour tour) {
  std::sort(tour.begin(), tour.end());
  return tour == all_places(n);
}

EdgeCounts counts_of(int n, const std::vector<Tour>& tours) {
  EdgeCounts counts(n, tours.size());
  for (const Tour& tour : tours) counts.add_tour(tour);
  return counts;
}

// -p log p, summed over all edges of the tours.
double entropy_of(const std::vector<Tour>& tours) {
  std::map<Edge, int> counts;
  for (const Tour& tour : tours) {
    for (const Edge& one : edges_of(tour)) ++counts[one];
  }
  double entropy = 0.0;
  for (const auto& [one, count] : counts) {
    const double share = static_cast<double>(count) / static_cast<double>(tours.size());
    entropy -= share * std::log(share);
  }
  return entropy;
}

}  // namespace

TEST_CASE("a child is a shorter tour that differs from its mother by the changes it names") {
  std::mt19937 random(5);
  int children = 0, joined = 0, refused = 0;
  for (int round = 0; round < 3000; ++round) {
    const int n = 5 + static_cast<int>(random() % 60);
    const Plane plane(n, random());
    const Tour b = round % 2 == 0 ? random_order(n, random()) : all_places(n);
    const Tour a = round % 3 == 0 ? random_order(n, random()) : shuffled(b, 4, 6, random);
    EdgeAssembly<double> assembly(plane.distances, plane.neighbours, plane.fixed);
    std::mt19937_64 draws(random());
    const auto changes = assembly.cross(a, b, counts_of(n, {a, b}), draws);
    if (changes.empty()) {
      ++refused;
      continue;
    }
    ++children;
    REQUIRE(is_tour_of(n, assembly.tour()));
    std::multiset<Edge> wanted;
    for (const Edge& one : edges_of(a)) wanted.insert(one);
    for (const EdgeChange& one : changes) {
      if (one.comes) {
        wanted.insert(edge(one.a, one.b));
      } else {
        const auto gone = wanted.find(edge(one.a, one.b));
        REQUIRE(gone != wanted.end());
        wanted.erase(gone);
      }
    }
    const std::set<Edge> found = edges_of(assembly.tour()), of_b = edges_of(b);
    REQUIRE(std::multiset<Edge>(found.begin(), found.end()) == wanted);
    REQUIRE(plane.length(assembly.tour()) < plane.length(a));
    const bool has_join = std::any_of(changes.begin(), changes.end(), [&](const EdgeChange& one) {
      return one.comes && of_b.count(edge(one.a, one.b)) == 0;
    });
    joined += has_join ? 1 : 0;
  }
  CHECK(children > 1000);
  CHECK(joined > 300);
  CHECK(refused > 100);
}

TEST_CASE("where two tours differ by one exchange the longer becomes the shorter") {
  std::mt19937 random(6);
  for (int round = 0; round < 500; ++round) {
    const int n = 8 + static_cast<int>(random() % 100);
    const Plane plane(n, random());
    Tour a = random_order(n, random()), b = shuffled(a, 1, n / 2, random);
    if (plane.length(a) < plane.length(b)) std::swap(a, b);
    if (plane.length(a) - plane.length(b) < 1e-9) continue;
    EdgeAssembly<double> assembly(plane.distances, plane.neighbours, plane.fixed);
    std::mt19937_64 draws(random());
    REQUIRE(!assembly.cross(a, b, counts_of(n, {a, b}), draws).empty());
    REQUIRE(edges_of(assembly.tour()) == edges_of(b));
    REQUIRE(assembly.cross(b, a, counts_of(n, {a, b}), draws).empty());
  }
}

TEST_CASE("joining subtours leaves fixed edges") {
  std::mt19937 random(7);
  int children = 0;
  for (int round = 0; round < 2000; ++round) {
    const int n = 12 + static_cast<int>(random() % 30);
    std::vector<std::array<int32_t, 2>> fixed;
    for (int32_t city = 0; city + 1 < n; city += 2) fixed.push_back({city, city + 1});
    const Plane plane(n, random(), fixed);
    const auto with_pairs = [&] {  // pairs in any order and direction
      Tour tour;
      for (const int32_t pair : random_order(n / 2, random())) {
        const int32_t turned = random() % 2;
        tour.push_back(2 * pair + turned);
        tour.push_back(2 * pair + 1 - turned);
      }
      if (n % 2 != 0) tour.push_back(n - 1);
      return tour;
    };
    const Tour a = with_pairs(), b = with_pairs();
    EdgeAssembly<double> assembly(plane.distances, plane.neighbours, plane.fixed);
    std::mt19937_64 draws(random());
    if (assembly.cross(a, b, counts_of(n, {a, b}), draws).empty()) continue;
    ++children;
    const std::set<Edge> found = edges_of(assembly.tour());
    for (const auto& [one, other] : fixed) REQUIRE(found.count(edge(one, other)) == 1);
  }
  CHECK(children > 300);
}

TEST_CASE("counts follow the changes, and their loss is the entropy's") {
  std::mt19937 random(8);
  const int n = 40;
  std::vector<Tour> tours;
  const Tour base = random_order(n, 1);
  for (int i = 0; i < 6; ++i) tours.push_back(shuffled(base, 5, 8, random));
  EdgeCounts counts = counts_of(n, tours);
  for (int round = 0; round < 200; ++round) {
    Tour& tour = tours[random() % tours.size()];
    const double before = entropy_of(tours);
    const std::set<Edge> old_edges = edges_of(tour);
    tour = shuffled(tour, 1, 10, random);
    const std::set<Edge> new_edges = edges_of(tour);
    std::vector<EdgeChange> changes;
    for (const auto& [a, b] : old_edges) {
      if (new_edges.count({a, b}) == 0) changes.push_back({a, b, false});
    }
    for (const auto& [a, b] : new_edges) {
      if (old_edges.count({a, b}) == 0) changes.push_back({b, a, true});
    }
    CHECK(counts.loss(changes) == Approx(before - entropy_of(tours)).margin(1e-12));
    for (const EdgeChange& one : changes) counts.change(one);
  }
}

TEST_CASE("a population evolves to the same shorter tours with any number of threads") {
  const int n = 300;
  const Plane plane(n, 3);
  std::mt19937 random(9);
  std::vector<Tour> tours;
  const Tour base = greedy_edges(plane.distances, plane.neighbours, plane.fixed, {});
  for (int i = 0; i < 12; ++i) tours.push_back(shuffled(base, 30, 12, random));
  std::vector<Tour> expected;
  for (const int threads : {0, 1, 2, 3}) {
    std::unique_ptr<WorkerThreads> workers;
    if (threads > 0) workers = std::make_unique<WorkerThreads>(threads);
    TourPopulation<double> population(plane.distances, plane.neighbours, plane.fixed, tours, workers.get());
    population.evolve(4, {});
    if (threads == 0) expected = population.tours();
    REQUIRE(population.tours() == expected);
  }
  for (size_t i = 0; i < tours.size(); ++i) CHECK(plane.length(expected[i]) < plane.length(tours[i]));
}

TEST_CASE("a population that a limit stops keeps tours") {
  const int n = 200;
  const Plane plane(n, 4);
  std::mt19937 random(10);
  std::vector<Tour> tours;
  for (int i = 0; i < 8; ++i) tours.push_back(shuffled(all_places(n), 30, 12, random));
  for (int asks = 0; asks < 40; ++asks) {
    TourPopulation<double> population(plane.distances, plane.neighbours, plane.fixed, tours, nullptr);
    int asked = 0;
    population.evolve(4, {{}, [&] { return ++asked > asks; }});
    for (size_t i = 0; i < tours.size(); ++i) {
      REQUIRE(is_tour_of(n, population.tours()[i]));
      REQUIRE(plane.length(population.tours()[i]) <= plane.length(tours[i]) + 1e-9);
    }
  }
}
