// SPDX-License-Identifier: Apache-2.0
#include "engine/search/local/neighbour_lists.h"

#include <algorithm>
#include <limits>

namespace pointsman {
namespace {

constexpr int kLeaf = 8;  // points that a k-d tree does not divide further
constexpr int kQuadrants = 4;
constexpr int kLooksPerQuery = 64;  // at points, about

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

  // Bit 0: to the right or just above, bit 1: above or just beside.
  int quadrant(int from, int to) const {
    return (distances_.x(to) >= distances_.x(from) ? 1 : 0) +
           (distances_.y(to) >= distances_.y(from) ? 2 : 0);
  }

  // The `count` points nearest to `place` in the plane, itself left out; of one quadrant only where it is
  // >= 0. Their distance is the squared one of the plane.
  std::vector<Neighbour>& nearest(int place, int count, int quadrant) {
    from_ = place;
    wanted_ = static_cast<size_t>(count);
    quadrant_ = quadrant;
    found_.clear();
    search(0, points_.size());
    return found_;
  }

 private:
  double coordinate(int place, int axis) const {
    return axis == 0 ? distances_.x(place) : distances_.y(place);
  }

  void build(size_t begin, size_t end) {
    if (end - begin <= kLeaf) return;
    double low[2] = {std::numeric_limits<double>::infinity(), std::numeric_limits<double>::infinity()};
    double high[2] = {-low[0], -low[1]};
    for (size_t i = begin; i < end; ++i) {
      for (const int axis : {0, 1}) {
        low[axis] = std::min(low[axis], coordinate(points_[i], axis));
        high[axis] = std::max(high[axis], coordinate(points_[i], axis));
      }
    }
    const int axis = high[0] - low[0] >= high[1] - low[1] ? 0 : 1;
    const size_t middle = begin + (end - begin) / 2;
    std::nth_element(points_.begin() + begin, points_.begin() + middle, points_.begin() + end,
                     [&](int32_t a, int32_t b) { return coordinate(a, axis) < coordinate(b, axis); });
    axis_[middle] = static_cast<char>(axis);
    build(begin, middle);
    build(middle + 1, end);
  }

  void offer(int32_t place) {
    if (place == from_ || (quadrant_ >= 0 && quadrant(from_, place) != quadrant_)) return;
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

}  // namespace

NeighbourLists::NeighbourLists(const Distances& distances, std::span<const int32_t> among, int nearest,
                               const StopToken& stop) {
  const int count = std::clamp(nearest, 0, std::max(static_cast<int>(among.size()) - 1, 0));
  if (distances.is_planar()) {
    add_in_plane(distances, among, count, StopMeter(&stop));
  } else {
    add_by_scan(distances, among, count, StopMeter(&stop));
  }
}

void NeighbourLists::add(const Distances& distances, int place, std::vector<Neighbour>& list) {
  for (Neighbour& one : list) one.distance = distances(place, one.place);
  std::sort(list.begin(), list.end(), is_nearer);
  entries_.insert(entries_.end(), list.begin(), list.end());
  begins_.push_back(entries_.size());
}

void NeighbourLists::add_by_scan(const Distances& distances, std::span<const int32_t> among, int count,
                                 StopMeter stop) {
  std::vector<Neighbour> list;
  for (const int32_t place : among) {
    stop.check(static_cast<int>(among.size()));
    list.clear();
    for (const int32_t other : among) {
      if (other != place) list.push_back({distances(place, other), other});
    }
    std::partial_sort(list.begin(), list.begin() + count, list.end(), is_nearer);
    list.resize(static_cast<size_t>(count));
    add(distances, place, list);
  }
}

void NeighbourLists::add_in_plane(const Distances& distances, std::span<const int32_t> among, int count,
                                  StopMeter stop) {
  if (count == 0) {
    begins_.resize(among.size() + 1, 0);
    return;
  }
  PointTree tree(distances, among);
  std::vector<Neighbour> list;
  for (const int32_t place : among) {
    stop.check(kLooksPerQuery);
    list = tree.nearest(place, count, -1);
    int seen = 0;  // a bit for each quadrant
    for (const Neighbour& one : list) seen |= 1 << tree.quadrant(place, one.place);
    for (int quadrant = 0; quadrant < kQuadrants; ++quadrant) {
      if ((seen >> quadrant & 1) != 0) continue;
      const std::vector<Neighbour>& found = tree.nearest(place, 1, quadrant);
      list.insert(list.end(), found.begin(), found.end());
    }
    add(distances, place, list);
  }
}

}  // namespace pointsman
