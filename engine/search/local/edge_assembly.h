// SPDX-License-Identifier: Apache-2.0
// Edge assembly crossover of two tours.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "engine/problem/fixed_edges.h"
#include "engine/search/distances.h"
#include "engine/search/local/neighbour_lists.h"

namespace pointsman {

// An edge that comes to a tour or leaves it.
struct EdgeChange {
  int32_t a, b;
  bool comes;
};

// How many tours of a population have each edge.
class EdgeCounts {
 public:
  // Of `tours` tours of n cities, none yet.
  EdgeCounts(int n, size_t tours) : of_(static_cast<size_t>(n)), entropy_(tours + 2) {
    for (size_t count = 1; count < entropy_.size(); ++count) {
      const double share = static_cast<double>(count) / static_cast<double>(tours);
      entropy_[count] = -share * std::log(share);
    }
  }

  void add_tour(const std::vector<int32_t>& tour) {
    for (size_t i = 0; i < tour.size(); ++i) change({tour[i], tour[i + 1 < tour.size() ? i + 1 : 0], true});
  }
  void change(const EdgeChange& one) {
    count_of(one.a, one.b) += one.comes ? 1 : -1;
    count_of(one.b, one.a) += one.comes ? 1 : -1;
  }

  // What the edges' entropy loses by changes of one tour, each taken by itself (Nagata & Kobayashi 2013).
  double loss(std::span<const EdgeChange> changes) const {
    double loss = 0.0;
    for (const EdgeChange& one : changes) {
      const int count = count_of(one.a, one.b);
      loss += entropy_[count] - entropy_[one.comes ? count + 1 : std::max(count - 1, 0)];
    }
    return loss;
  }

 private:
  struct Count {
    int32_t other;
    int count;
  };

  int count_of(int32_t a, int32_t b) const {
    for (const Count& one : of_[a]) {
      if (one.other == b) return one.count;
    }
    return 0;
  }
  int& count_of(int32_t a, int32_t b) {
    for (Count& one : of_[a]) {
      if (one.other == b) return one.count;
    }
    of_[a].push_back({b, 0});
    return of_[a].back().count;
  }

  std::vector<std::vector<Count>> of_;  // [n]
  std::vector<double> entropy_;         // [tours + 2] -p log p of an edge that so many tours have
};

// Edge assembly crossover (Nagata & Kobayashi 2013, EAX-single): the edges that only one of two tours a and b
// has are cut up into cycles on which those of a and of b take turns. A child is a with the edges of one such
// cycle exchanged and its subtours joined, the smallest first, each by the best exchange of one of its edges
// and another's between neighbours.
//
// What it is made of must outlive it.
template <typename Length>
class EdgeAssembly {
 public:
  EdgeAssembly(const Distances& distances, const NeighbourLists& neighbours, const FixedEdges& fixed)
      : distances_(distances),
        neighbours_(neighbours),
        fixed_(fixed),
        n_(distances.n()),
        least_gain_(distances.as<Length>(n_ * distances.rounding())),
        links_(static_cast<size_t>(n_)),
        left_{links_, links_},
        departed_(links_.size(), {-1, -1}),
        position_(links_.size()) {}

  // Of at most kChildren children the one that gains most for the entropy lost, of those that are shorter
  // than a; their cycles are drawn by `random`. Both are tours of n >= 3 cities and have all fixed edges.
  // Returns what changes, until the next call; empty: none is shorter. Then tour() is a, else the child.
  std::span<const EdgeChange> cross(const std::vector<int32_t>& a, const std::vector<int32_t>& b,
                                    const EdgeCounts& counts, std::mt19937_64& random) {
    make_cycles(a, b, random);
    tour_ = a;
    link(a, links_);
    for (int i = 0; i < n_; ++i) position_[a[i]] = i;
    best_.clear();
    double best = 0.0;
    for (size_t tried = 0; tried < std::min(cycles_.size(), kChildren); ++tried) {
      std::swap(cycles_[tried], cycles_[tried + random() % (cycles_.size() - tried)]);
      const Length gain = exchange(std::span(on_cycles_).subspan(cycles_[tried].first, cycles_[tried].size));
      if (gain > least_gain_) {
        const double worth = distances_.to_double(gain) / std::max(counts.loss(changes_), kLeastLoss);
        if (worth > best) {
          best = worth;
          best_ = changes_;
        }
      }
      undo();
    }
    for (const EdgeChange& one : best_) one.comes ? add(one.a, one.b) : remove(one.a, one.b);
    if (!best_.empty()) walk();
    return best_;
  }
  const std::vector<int32_t>& tour() const { return tour_; }

 private:
  static constexpr size_t kChildren = 30;
  static constexpr double kLeastLoss = 1e-9;  // what loses nothing, or less, comes first
  using Links = std::array<int32_t, 2>;
  struct Cycle {
    size_t first,
        size;  // in on_cycles_: its cities; the edge from the first to the second is a's, the next b's
  };

  Length distance(int a, int b) const { return distances_.as<Length>(distances_(a, b)); }

  static void link(const std::vector<int32_t>& tour, std::vector<Links>& links) {
    const size_t n = tour.size();
    for (size_t i = 0; i < n; ++i)
      links[tour[i]] = {tour[i > 0 ? i - 1 : n - 1], tour[i + 1 < n ? i + 1 : 0]};
  }

  void walk() {
    int32_t before = -1, city = tour_[0];
    for (int32_t& one : tour_) {
      one = city;
      city = links_[one][0] != before ? links_[one][0] : links_[one][1];
      before = one;
    }
  }

  // --- Cycles ---

  void make_cycles(const std::vector<int32_t>& a, const std::vector<int32_t>& b, std::mt19937_64& random) {
    link(a, left_[0]);
    link(b, left_[1]);
    drop_common_edges();
    on_cycles_.clear();
    cycles_.clear();
    for (int32_t city = 0; city < n_; ++city) {
      while (left_[0][city][0] >= 0) trace(city, random);
    }
  }

  void drop_common_edges() {
    for (int32_t city = 0; city < n_; ++city) {
      Links& of_a = left_[0][city];
      Links& of_b = left_[1][city];
      for (int i = 1; i >= 0; --i) {
        const int32_t other = of_a[i];
        if (other != of_b[0] && other != of_b[1]) continue;
        drop(of_a, i);
        drop(of_b, of_b[0] == other ? 0 : 1);
      }
    }
  }

  // The first of two is there if any is.
  static void drop(Links& links, int i) {
    if (i == 0) links[0] = links[1];
    links[1] = -1;
  }

  // An edge of a (kind 0) or b (1) at `city` that is on no cycle yet, which now is; returns its other end.
  int32_t take_edge(int kind, int32_t city, std::mt19937_64& random) {
    Links& links = left_[kind][city];
    const int i = links[1] >= 0 ? static_cast<int>(random() >> 63) : 0;
    const int32_t other = links[i];
    drop(links, i);
    Links& back = left_[kind][other];
    drop(back, back[0] == city ? 0 : 1);
    return other;
  }

  // Walks along edges of a and b by turns until all of the walk has closed to cycles.
  void trace(int32_t city, std::mt19937_64& random) {
    path_.clear();
    for (int kind = 0;; kind = 1 - kind) {
      departed_[city][kind] = static_cast<int>(path_.size());
      path_.push_back(city);
      city = take_edge(kind, city, random);
      // What was walked since the city was left by an edge of the other kind is a cycle; the walk goes on by
      // such an edge.
      if (const int start = departed_[city][1 - kind]; start >= 0) {
        close(static_cast<size_t>(start), 1 - kind);
        if (path_.empty()) return;
      }
    }
  }

  // Of the walk's cities from `start` on, which an edge of that kind left.
  void close(size_t start, int kind) {
    const size_t size = path_.size() - start, shift = static_cast<size_t>(kind);
    cycles_.push_back({on_cycles_.size(), size});
    for (size_t i = 0; i < size; ++i) {
      departed_[path_[start + i]][(shift + i) % 2] = -1;
      on_cycles_.push_back(path_[start + (shift + i) % size]);
    }
    path_.resize(start);
  }

  // --- Children ---

  void remove(int32_t a, int32_t b) {
    links_[a][links_[a][0] == b ? 0 : 1] = -1;
    links_[b][links_[b][0] == a ? 0 : 1] = -1;
  }
  void add(int32_t a, int32_t b) {
    links_[a][links_[a][0] < 0 ? 0 : 1] = b;
    links_[b][links_[b][0] < 0 ? 0 : 1] = a;
  }
  void change(int32_t a, int32_t b, bool comes) {
    comes ? add(a, b) : remove(a, b);
    changes_.push_back({a, b, comes});
  }
  void undo() {
    for (; !changes_.empty(); changes_.pop_back()) {
      const EdgeChange& last = changes_.back();
      last.comes ? remove(last.a, last.b) : add(last.a, last.b);
    }
  }

  // Makes the child of one cycle in links_. Returns what it gains; 0 where that is nothing before all
  // subtours are joined, which costs more than it gains but for a few.
  Length exchange(std::span<const int32_t> cycle) {
    Length gain = 0;
    const auto after = [&](size_t i) { return cycle[i + 1 < cycle.size() ? i + 1 : 0]; };
    for (size_t i = 0; i < cycle.size(); i += 2)  // in pairs: large sums would round more
      gain += distance(cycle[i], cycle[i + 1]) - distance(cycle[i + 1], after(i + 1));
    if (!(gain > least_gain_)) return 0;
    for (size_t i = 0; i < cycle.size(); i += 2) change(cycle[i], cycle[i + 1], false);
    for (size_t i = 1; i < cycle.size(); i += 2) change(cycle[i], after(i), true);
    cut(cycle);
    find_subtours();
    for (size_t left = subtours_.size(); left > 1; --left) {
      if (!join_smallest(gain) || !(gain > least_gain_)) return 0;
    }
    return gain;
  }

  // --- Subtours, of the paths that are left of a without the cycle's edges ---

  int path_of(int32_t city) const {
    const auto at = std::lower_bound(cuts_.begin(), cuts_.end(), position_[city]);
    return at == cuts_.end() ? 0 : static_cast<int>(at - cuts_.begin());
  }
  int first_of(int path) const {
    const int cut = path > 0 ? cuts_[path - 1] : cuts_.back();
    return cut + 1 < n_ ? cut + 1 : 0;
  }
  int size_of(int path) const {
    const int size = cuts_[path] - first_of(path) + 1;
    return size > 0 ? size : size + n_;
  }

  // The end of a path that the city is: 2p, its first city, or 2p + 1, its last; the free one where it is
  // both.
  int end_of(int32_t city) const {
    const int path = path_of(city);
    if (first_of(path) == cuts_[path]) return joined_[2 * path] < 0 ? 2 * path : 2 * path + 1;
    return position_[city] == cuts_[path] ? 2 * path + 1 : 2 * path;
  }

  void cut(std::span<const int32_t> cycle) {
    cuts_.clear();
    for (size_t i = 0; i < cycle.size(); i += 2) {
      const int one = position_[cycle[i]], other = position_[cycle[i + 1]];
      cuts_.push_back(std::abs(one - other) == 1 ? std::min(one, other) : n_ - 1);
    }
    std::sort(cuts_.begin(), cuts_.end());
    joined_.assign(2 * cuts_.size(), -1);
    for (size_t i = 1; i < cycle.size(); i += 2) {
      const int one = end_of(cycle[i]);
      const int other = end_of(cycle[i + 1 < cycle.size() ? i + 1 : 0]);
      joined_[one] = other;
      joined_[other] = one;
    }
  }

  void find_subtours() {
    const int paths = static_cast<int>(cuts_.size());
    subtours_.clear();
    subtour_of_.assign(cuts_.size(), -1);
    for (int path = 0; path < paths; ++path) {
      if (subtour_of_[path] >= 0) continue;
      int size = 0;
      for (int end = 2 * path; subtour_of_[end / 2] < 0; end = joined_[end ^ 1]) {
        subtour_of_[end / 2] = static_cast<int>(subtours_.size());
        size += size_of(end / 2);
      }
      subtours_.push_back(size);
    }
  }

  // Edges (u, next) of one subtour and (v, other) of another leave; (u, v) and (next, other) come.
  struct Join {
    int32_t u = -1, next, v, other;
    Length gain = 0;
  };

  // false: it has no neighbours in others.
  bool join_smallest(Length& gain) {
    int smallest = -1;
    for (size_t i = 0; i < subtours_.size(); ++i) {
      if (subtours_[i] > 0 && (smallest < 0 || subtours_[i] < subtours_[smallest]))
        smallest = static_cast<int>(i);
    }
    Join best;
    for (int path = 0; path < static_cast<int>(cuts_.size()); ++path) {
      if (subtour_of_[path] == smallest) find_joins(path, best);
    }
    if (best.u < 0) return false;
    const int into = subtour_of_[path_of(best.v)];
    std::replace(subtour_of_.begin(), subtour_of_.end(), smallest, into);
    subtours_[into] += std::exchange(subtours_[smallest], 0);
    gain += best.gain;
    change(best.u, best.next, false);
    change(best.v, best.other, false);
    change(best.u, best.v, true);
    change(best.next, best.other, true);
    return true;
  }

  // From all cities of a path.
  void find_joins(int path, Join& best) const {
    const int first = first_of(path), size = size_of(path), subtour = subtour_of_[path];
    for (int i = 0, at = first; i < size; ++i, at = at + 1 < n_ ? at + 1 : 0) {
      for (const Neighbour& near : neighbours_[tour_[at]]) {
        const int ahead = position_[near.place] - first;
        const bool is_same = (ahead < 0 ? ahead + n_ : ahead) < size;  // the path, as of most
        if (!is_same && subtour_of_[path_of(near.place)] != subtour) find_join(tour_[at], near, best);
      }
    }
  }

  void find_join(int32_t u, const Neighbour& near, Join& best) const {
    const int32_t v = near.place;
    const Length between = distances_.as<Length>(near.distance);
    for (const int32_t next : links_[u]) {
      if (fixed_.has(u, next)) continue;
      for (const int32_t other : links_[v]) {
        if (fixed_.has(v, other)) continue;
        const Length gain = distance(u, next) + distance(v, other) - between - distance(next, other);
        if (best.u < 0 || gain > best.gain) best = {u, next, v, other, gain};
      }
    }
  }

  const Distances& distances_;
  const NeighbourLists& neighbours_;  // of all cities
  const FixedEdges& fixed_;           // which both tours have
  const int n_;
  const Length least_gain_;                   // each of n sums may be off by Distances::rounding()
  std::vector<Links> links_;                  // [n] of the child; -1: none
  std::vector<Links> left_[2];                // [n] edges of a and of b on no cycle yet; -1: none
  std::vector<std::array<int, 2>> departed_;  // [n] where on the walk an edge of each kind left the city
  std::vector<int32_t> path_;                 // the walk
  std::vector<int32_t> on_cycles_;
  std::vector<Cycle> cycles_;
  std::vector<int32_t> tour_, position_;  // [n] of a
  std::vector<int> cuts_;                 // ascending: path p ends at position cuts_[p]
  std::vector<int> joined_;               // [2 paths] to which end an edge of b goes; -1: not yet known
  std::vector<int> subtour_of_;           // [paths]
  std::vector<int> subtours_;             // cities of each; 0: joined to another
  std::vector<EdgeChange> changes_, best_;
};

}  // namespace pointsman
