// SPDX-License-Identifier: Apache-2.0
// Lin-Kernighan moves and kicks on one tour.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <span>
#include <utility>
#include <vector>

#include "engine/problem/fixed_edges.h"
#include "engine/search/distances.h"
#include "engine/search/limits.h"
#include "engine/search/local/array_tour.h"
#include "engine/search/local/neighbour_lists.h"

namespace pointsman {

// An exchange, or a double bridge over the four edges in exchange.t, in the order of the tour.
struct Move {
  Exchange exchange;
  bool is_bridge;
};

// A step exchanges two or three edges, of both kinds the first found that shortens the tour: from a city t1
// and its edge (t1, t2) on, the next edge to come starts at t2, the next to leave where that one ends (Lin &
// Kernighan 1973), candidates in the order of what is gained before the tour is closed, and only while that
// is above 0. Moves that reverse nothing (Or-opt) are among them. A queue holds the cities whose
// neighbourhood changed (the don't-look bits of Bentley 1992).
//
// Lengths and gains are of type Length: double, where a gain must exceed Distances::rounding(), or
// WideLength, which is exact. So every exchange shortens the tour, and none can come again.
//
// What it is made of must outlive it.
template <typename Length>
class LinKernighan {
 public:
  LinKernighan(const Distances& distances, const NeighbourLists& neighbours, const FixedEdges& fixed)
      : distances_(distances),
        neighbours_(neighbours),
        fixed_(fixed),
        n_(distances.n()),
        tour_(n_),
        least_gain_(distances.as<Length>(distances.rounding())),
        queue_(static_cast<size_t>(n_)),
        is_queued_(static_cast<size_t>(n_)) {
    tour_.set_journal(false);
  }

  // [n], each once; looks at all of them next.
  void load(const std::vector<int32_t>& places) {
    load_settled(places);
    for (const int32_t place : places) enqueue(place);
    looks_ = 0;
  }
  // A tour of which nothing is left to look at.
  void load_settled(const std::vector<int32_t>& places) {
    tour_.load(places);
    std::fill(is_queued_.begin(), is_queued_.end(), 0);
    queue_first_ = queue_size_ = 0;
    stopped_ = false;
  }
  const std::vector<int32_t>& places() const { return tour_.order(); }

  Length length() const {
    Length length = 0;
    for (int i = 0; i < n_; ++i) length += distance(tour_.at(i), tour_.at(tour_.after(i)));
    return length;
  }
  // Of those that are not fixed.
  double median_edge() const {
    std::vector<double> edges;
    for (int i = 0; i < n_; ++i) {
      const int32_t a = tour_.at(i), b = tour_.at(tour_.after(i));
      if (!fixed_.has(a, b)) edges.push_back(distances_(a, b));
    }
    const auto middle = edges.begin() + static_cast<ptrdiff_t>(edges.size() / 2);
    std::nth_element(edges.begin(), middle, edges.end());
    return *middle;
  }
  // Whether a change of the length, of a kick and its repair, may be nothing but rounding.
  bool is_negligible(Length change) const {
    return change <= kRepairs * least_gain_ && -change <= kRepairs * least_gain_;
  }

  // Makes steps until none is left or `control` says stop; then stopped() is true. Returns what was gained.
  Length descend(const SearchControl& control) {
    Length gained = 0;
    while (queue_size_ > 0 && !asks_stop(control)) {
      const int city = queue_[queue_first_];
      if (++queue_first_ == n_) queue_first_ = 0;
      --queue_size_;
      is_queued_[city] = 0;
      ++looks_;
      while (find_exchange(city)) {
        gained += gain_;
        if (asks_stop(control)) break;
      }
    }
    return gained;
  }
  bool stopped() const { return stopped_; }
  int64_t looks() const { return looks_; }  // at a city, so far

  // A double bridge of three consecutive paths within a short stretch, each up to a third of it, which begins
  // at one of `count` positions from `first` on; a cut at a fixed edge is made behind it, of which one at
  // least is not fixed. Where cuts meet, nothing is done. Returns what it cost.
  Length kick(std::mt19937_64& random, int first, int count) {
    const auto draw = [&](int below) { return static_cast<int>(random() % static_cast<uint64_t>(below)); };
    const int longest = std::min(n_ - 1, kKickSpan) / 3;
    int cuts[4] = {free_cut((first + draw(count)) % n_)};
    for (int i = 1; i < 4; ++i) cuts[i] = free_cut((cuts[i - 1] + 1 + draw(longest)) % n_);
    std::sort(cuts, cuts + 4);
    if (fixed_.count() > 0 && std::adjacent_find(cuts, cuts + 4) != cuts + 4) return 0;
    Move move;
    move.is_bridge = true;
    move.exchange.size = 4;
    int32_t* const ends = move.exchange.t;
    for (int i = 0; i < 4; ++i) {
      ends[2 * i] = tour_.at(cuts[i]);
      ends[2 * i + 1] = tour_.at(tour_.after(cuts[i]));
    }
    Length cost = 0;
    for (int i = 0; i < 8; i += 2)  // the end before cut i meets the city behind the cut after the next
      cost += distance(ends[i], ends[(i + 5) % 8]) - distance(ends[i], ends[i + 1]);
    tour_.bridge(cuts);
    finish(move);
    return cost;
  }

  // undo() goes back to where keep() was last called; both need the journal, which is off at first.
  void set_journal(bool on) { tour_.set_journal(on); }
  void undo() { tour_.undo(); }
  void keep() { tour_.keep(); }

  // From now on descend() and kick() append their moves. undo() removes none.
  void record(std::vector<Move>* moves) { moves_ = moves; }

  // Makes moves of another tour that was equal to this one some moves ago, without looking at their cities
  // again. Returns false and changes nothing if they no longer fit.
  bool repeat(std::span<const Move> moves) {
    keep();
    for (const Move& move : moves) {
      if (move.is_bridge ? tour_.bridge_elsewhere(move.exchange.t) : tour_.apply_elsewhere(move.exchange))
        continue;
      undo();
      return false;
    }
    keep();
    return true;
  }

 private:
  // Measured over n = 50 to 1,000 and 2 ms to 1 s: docs/experiments.md, "Local search".
  static constexpr int kDepth = 3;              // edges of an exchange
  static constexpr int kBreadth = 5;            // steps tried after the first edge; after the second all
  static constexpr int kKickSpan = 100;         // cities that a kick may move, at most
  static constexpr int kMostSteps = 64;         // considered from one city
  static constexpr int kRepairs = 64;           // exchanges, about, whose rounding adds up in a kick's repair
  static constexpr int64_t kAsksPerCheck = 64;  // looks and exchanges between two questions to the control

  struct Step {
    Length open;          // what is gained before the tour is closed
    int32_t city, other;  // the edge that leaves
    int32_t cut;
    bool is_ahead;
  };

  Length distance(int a, int b) const { return distances_.as<Length>(distances_(a, b)); }

  void enqueue(int city) {
    if (is_queued_[city]) return;
    is_queued_[city] = 1;
    const int end = queue_first_ + queue_size_++;
    queue_[end < n_ ? end : end - n_] = city;
  }

  bool asks_stop(const SearchControl& control) {
    if (!stopped_ && ++asked_ % kAsksPerCheck == 0) stopped_ = control.check() != Status::kDone;
    return stopped_;
  }

  // The first position from this one on whose edge is not fixed.
  int free_cut(int position) const {
    while (fixed_.has(tour_.at(position), tour_.at(tour_.after(position)))) position = tour_.after(position);
    return position;
  }

  bool find_exchange(int city) {
    for (const bool next : {true, false}) {
      tour_.choose(exchange_, 0, city, next);
      if (fixed_.has(exchange_.t[0], exchange_.t[1])) continue;
      if (extend<1>(distance(exchange_.t[0], exchange_.t[1]))) return true;
    }
    return false;
  }

  // From the open end of the last edge chosen: every candidate with both of its edges, while there is a gain.
  template <int kSize>
  int find_steps(Length open, Step* steps) const {
    const int end = exchange_.t[2 * kSize - 1];
    const int32_t next = tour_.next(end), previous = tour_.previous(end);
    const auto is_chosen = [&](int cut) {
      for (int j = 0; j < kSize; ++j) {
        if (exchange_.cut[j] == cut) return true;
      }
      return false;
    };
    int count = 0;
    for (const Neighbour& near : neighbours_[end]) {
      const Length gained = open - distances_.as<Length>(near.distance);
      if (gained <= least_gain_ || count + 2 > kMostSteps) break;
      if (near.place == next || near.place == previous) continue;  // the edge is in the tour
      const int position = tour_.position(near.place), before = tour_.before(position);
      const int32_t ahead = tour_.at(tour_.after(position)), behind = tour_.at(before);
      if (!is_chosen(position) && !fixed_.has(near.place, ahead))
        steps[count++] = {gained + distance(near.place, ahead), near.place, ahead, position, true};
      if (!is_chosen(before) && !fixed_.has(near.place, behind))
        steps[count++] = {gained + distance(near.place, behind), near.place, behind, before, false};
    }
    return count;
  }

  // Goes on from kSize edges chosen, what is `open` gained. Makes the first exchange that shortens the tour.
  template <int kSize>
  bool extend(Length open) {
    Step steps[kMostSteps];
    const int count = find_steps<kSize>(open, steps);
    constexpr bool kIsLast = kSize + 1 == kDepth;
    for (int i = 0; i < (kIsLast ? count : std::min(count, kBreadth)); ++i) {
      if constexpr (!kIsLast) {
        int best = i;
        for (int j = i + 1; j < count; ++j) best = steps[j].open > steps[best].open ? j : best;
        std::swap(steps[i], steps[best]);
      }
      const Step& step = steps[i];
      const Length gain = step.open - distance(step.other, exchange_.t[0]);
      if (kIsLast && gain <= least_gain_) continue;
      exchange_.set(kSize, step.city, step.other, step.cut, step.is_ahead);
      if (gain > least_gain_) {
        exchange_.size = kSize + 1;
        if (tour_.apply(exchange_)) {
          gain_ = gain;
          finish({exchange_, false});
          return true;
        }
      }
      if constexpr (kSize + 1 < kDepth) {
        if (extend<kSize + 1>(step.open)) return true;
      }
    }
    return false;
  }

  void finish(const Move& move) {
    for (int end = 0; end < 2 * move.exchange.size; ++end) enqueue(move.exchange.t[end]);
    if (moves_ != nullptr) moves_->push_back(move);
  }

  const Distances& distances_;
  const NeighbourLists& neighbours_;
  const FixedEdges& fixed_;  // none of which leaves the tour
  const int n_;
  ArrayTour tour_;
  Exchange exchange_;            // in the making
  Length gain_ = 0;              // of the last exchange made
  const Length least_gain_;      // what counts as one is more
  std::vector<int32_t> queue_;   // [n] a ring of cities, each at most once
  std::vector<char> is_queued_;  // [n]
  int queue_first_ = 0, queue_size_ = 0;
  int64_t looks_ = 0, asked_ = 0;
  bool stopped_ = false;
  std::vector<Move>* moves_ = nullptr;
};

extern template class LinKernighan<double>;  // tour_search.cpp
extern template class LinKernighan<WideLength>;

}  // namespace pointsman
