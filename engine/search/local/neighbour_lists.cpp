// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/neighbour_lists.h"

#include <algorithm>
#include <array>
#include <compare>
#include <numeric>
#include <optional>

namespace pointsman {
namespace {

constexpr int kLeaf = 8;  // points that a k-d tree does not divide further
constexpr int kQuadrants = 4;
constexpr int kLooksPerQuery = 64;  // at points, about
constexpr int kEndNeighbours = 5;   // of a fragment's end

bool is_nearer(const Neighbour& a, const Neighbour& b) {
  return a.distance != b.distance ? a.distance < b.distance : a.place < b.place;
}

// The k-d tree lies in the order of its points: of a range the median of the wider axis stands in the middle.
class PointTree {
 public:
  PointTree(const Distances& distances, std::span<const int32_t> among)
      : distances_(distances), points_(among.begin(), among.end()), axis_(among.size()) {
    build(0, points_.size());
  }

  // The `count` points nearest to `place` in the plane, itself left out, and the nearest of each quadrant
  // that has none of them. Their distance is the squared one of the plane.
  void find_neighbours(int place, int count, std::vector<Neighbour>& list) {
    list = nearest(place, count, -1);
    int seen = 0;  // a bit for each quadrant
    for (const Neighbour& one : list) seen |= 1 << quadrant_of(place, one.place);
    for (int quadrant = 0; quadrant < kQuadrants; ++quadrant) {
      if ((seen >> quadrant & 1) != 0) continue;
      const std::vector<Neighbour>& found = nearest(place, 1, quadrant);
      list.insert(list.end(), found.begin(), found.end());
    }
  }

 private:
  // Bit 0: to the right or just above, bit 1: above or just beside.
  int quadrant_of(int from, int to) const {
    return (distances_.x(to) >= distances_.x(from) ? 1 : 0) +
           (distances_.y(to) >= distances_.y(from) ? 2 : 0);
  }

  // Of one quadrant only where it is >= 0.
  const std::vector<Neighbour>& nearest(int place, int count, int quadrant) {
    from_ = place;
    wanted_ = static_cast<size_t>(count);
    quadrant_ = quadrant;
    found_.clear();
    search(0, points_.size());
    return found_;
  }

  double coordinate(int place, int axis) const {
    return axis == 0 ? distances_.x(place) : distances_.y(place);
  }

  void build(size_t begin, size_t end) {
    if (end - begin <= kLeaf) return;
    Box box;
    for (size_t i = begin; i < end; ++i) box.add(distances_.x(points_[i]), distances_.y(points_[i]));
    const auto& [low, high] = box;
    const int axis = high[0] - low[0] >= high[1] - low[1] ? 0 : 1;
    const size_t middle = begin + (end - begin) / 2;
    std::nth_element(points_.begin() + begin, points_.begin() + middle, points_.begin() + end,
                     [&](int32_t a, int32_t b) { return coordinate(a, axis) < coordinate(b, axis); });
    axis_[middle] = static_cast<char>(axis);
    build(begin, middle);
    build(middle + 1, end);
  }

  void offer(int32_t place) {
    if (place == from_ || (quadrant_ >= 0 && quadrant_of(from_, place) != quadrant_)) return;
    const double dx = distances_.x(place) - distances_.x(from_),
                 dy = distances_.y(place) - distances_.y(from_);
    const Neighbour one = {dx * dx + dy * dy, place};
    if (found_.size() == wanted_) {
      if (!is_nearer(one, found_.back())) return;
      found_.pop_back();
    }
    found_.insert(std::upper_bound(found_.begin(), found_.end(), one, is_nearer), one);
  }

  void search(size_t begin, size_t end) {
    if (end - begin <= kLeaf) {
      for (size_t i = begin; i < end; ++i) offer(points_[i]);
      return;
    }
    const size_t middle = begin + (end - begin) / 2;
    const int axis = axis_[middle];
    const double ahead = coordinate(points_[middle], axis) - coordinate(from_, axis);  // to the dividing line
    const bool is_low = ahead >= 0.0;
    const auto side = [&](bool low) { low ? search(begin, middle) : search(middle + 1, end); };
    side(is_low);
    offer(points_[middle]);
    if (found_.size() == wanted_ && ahead * ahead > found_.back().distance) return;
    const bool wants_high = (quadrant_ & (axis == 0 ? 1 : 2)) != 0;
    if (quadrant_ < 0 || wants_high == is_low) side(!is_low);
  }

  const Distances& distances_;
  std::vector<int32_t> points_;
  std::vector<char> axis_;
  int from_ = 0, quadrant_ = -1;
  size_t wanted_ = 0;
  std::vector<Neighbour> found_;
};

// The at most `count` cities of `among` that are nearest to `place`.
void scan(const Distances& distances, std::span<const int32_t> among, int place, int count,
          std::vector<Neighbour>& list) {
  list.clear();
  for (const int32_t other : among) {
    if (other != place) list.push_back({distances(place, other), other});
  }
  const size_t found = std::min(static_cast<size_t>(count), list.size());
  std::partial_sort(list.begin(), list.begin() + static_cast<ptrdiff_t>(found), list.end(), is_nearer);
  list.resize(found);
}

struct Edge {
  double length;
  int32_t a, b;

  auto operator<=>(const Edge&) const = default;
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
    std::sort(edges.begin(), edges.end());
    for (const Edge& edge : edges) add(edge.a, edge.b);
  }

  // Unless it makes a fork or a cycle.
  void add(int32_t a, int32_t b) {
    if (joined_[a][1] >= 0 || joined_[b][1] >= 0 || root(a) == root(b)) return;
    joined_[a][joined_[a][0] < 0 ? 0 : 1] = b;
    joined_[b][joined_[b][0] < 0 ? 0 : 1] = a;
    root_[root(a)] = root(b);
    --left_;
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

std::vector<int32_t> all_places(int n) {
  std::vector<int32_t> places(static_cast<size_t>(n));
  std::iota(places.begin(), places.end(), 0);
  return places;
}

NeighbourLists::NeighbourLists(const Distances& distances, std::span<const int32_t> of,
                               std::span<const int32_t> among, int nearest, const StopToken& stop) {
  const int count = std::clamp(nearest, 0, std::max(static_cast<int>(among.size()) - 1, 0));
  if (count == 0) {
    begins_.resize(of.size() + 1, 0);
    return;
  }
  std::optional<PointTree> tree;
  if (distances.is_planar()) tree.emplace(distances, among);
  const int looks = tree ? kLooksPerQuery : static_cast<int>(among.size());
  StopMeter meter(&stop);
  std::vector<Neighbour> list;
  for (const int32_t place : of) {
    meter.check(looks);
    if (tree) {
      tree->find_neighbours(place, count, list);
    } else {
      scan(distances, among, place, count, list);
    }
    for (Neighbour& one : list) one.distance = distances(place, one.place);
    std::sort(list.begin(), list.end(), is_nearer);
    entries_.insert(entries_.end(), list.begin(), list.end());
    begins_.push_back(entries_.size());
  }
}

std::vector<int32_t> greedy_edges(const Distances& distances, const NeighbourLists& lists,
                                  const FixedEdges& fixed, const StopToken& stop) {
  Fragments fragments(distances.n());
  for (int32_t place = 0; place < distances.n() && fixed.count() > 0; ++place) {
    for (const int32_t other : fixed.at(place)) {
      if (other > place) fragments.add(place, other);
    }
  }
  fragments.add(lists, all_places(distances.n()));
  while (!fragments.is_whole()) {
    const std::vector<int32_t> ends = fragments.ends();
    fragments.add(NeighbourLists(distances, ends, kEndNeighbours, stop), ends);
  }
  return fragments.tour();
}

}  // namespace pointsman
