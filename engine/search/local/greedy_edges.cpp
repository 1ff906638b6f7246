// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
#include <span>
#include <tuple>

#include "engine/search/local/neighbour_lists.h"

namespace pointsman {
namespace {

constexpr int kEndNeighbours = 5;

struct Edge {
  double length;
  int32_t a, b;
};

class Fragments {
 public:
  explicit Fragments(int n) : joined_(n, {-1, -1}), root_(n), left_(n) {
    std::iota(root_.begin(), root_.end(), 0);
  }

  bool is_whole() const { return left_ <= 1; }

  // The cities that may take another edge.
  std::vector<int32_t> ends() const {
    std::vector<int32_t> ends;
    for (size_t city = 0; city < joined_.size(); ++city) {
      if (joined_[city][1] < 0) ends.push_back(static_cast<int32_t>(city));
    }
    return ends;
  }

  // Takes those that make neither a fork nor a cycle, shortest first.
  void add(const NeighbourLists& lists, std::span<const int32_t> cities) {
    std::vector<Edge> edges;
    for (size_t i = 0; i < cities.size(); ++i) {
      for (const Neighbour& one : lists[i]) {
        if (root(cities[i]) != root(one.place))
          edges.push_back({one.distance, std::min(cities[i], one.place), std::max(cities[i], one.place)});
      }
    }
    std::sort(edges.begin(), edges.end(), [](const Edge& x, const Edge& y) {
      return std::tie(x.length, x.a, x.b) < std::tie(y.length, y.a, y.b);
    });
    for (const Edge& edge : edges) {
      if (joined_[edge.a][1] >= 0 || joined_[edge.b][1] >= 0 || root(edge.a) == root(edge.b)) continue;
      joined_[edge.a][joined_[edge.a][0] < 0 ? 0 : 1] = edge.b;
      joined_[edge.b][joined_[edge.b][0] < 0 ? 0 : 1] = edge.a;
      root_[root(edge.a)] = root(edge.b);
      --left_;
    }
  }

  // From one end of the only fragment to the other.
  std::vector<int32_t> tour() const {
    std::vector<int32_t> tour;
    for (int32_t before = -1, city = ends().front(); city >= 0;) {
      tour.push_back(city);
      const int32_t next = joined_[city][0] != before ? joined_[city][0] : joined_[city][1];
      before = city;
      city = next;
    }
    return tour;
  }

 private:
  int32_t root(int32_t city) {
    while (root_[city] != city) city = root_[city] = root_[root_[city]];
    return city;
  }

  std::vector<std::array<int32_t, 2>> joined_;  // [n] neighbours in the fragment; -1: none, the second last
  std::vector<int32_t> root_;                   // [n] a union-find forest of the fragments
  int left_;                                    // fragments
};

}  // namespace

std::vector<int32_t> greedy_edges(const Distances& distances, const NeighbourLists& lists,
                                  const StopToken& stop) {
  Fragments fragments(distances.n());
  fragments.add(lists, fragments.ends());  // of all cities
  while (!fragments.is_whole()) {
    const std::vector<int32_t> ends = fragments.ends();
    fragments.add(NeighbourLists(distances, ends, kEndNeighbours, stop), ends);
  }
  return fragments.tour();
}

}  // namespace pointsman
