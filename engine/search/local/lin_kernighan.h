// SPDX-License-Identifier: Apache-2.0
// Lin-Kernighan moves and kicks on one tour.
#pragma once

#include <cstdint>
#include <random>
#include <span>
#include <vector>

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
  LinKernighan(const Distances& distances, const NeighbourLists& neighbours);

  void load(const std::vector<int32_t>& places);  // [n], each once; looks at all of them next
  void load(const LinKernighan& other);           // its tour, of which nothing is left to look at
  const std::vector<int32_t>& places() const { return tour_.order(); }
  Length length() const;
  double median_edge() const;  // of the tour
  // Whether a change of the length, of a kick and its repair, may be nothing but rounding.
  bool is_negligible(Length change) const {
    return change <= kRepairs * least_gain_ && -change <= kRepairs * least_gain_;
  }

  // Makes steps until none is left or `control` says stop; then stopped() is true. Returns what was gained.
  Length descend(const SearchControl& control);
  bool stopped() const { return stopped_; }
  int64_t looks() const { return looks_; }  // at a city, so far

  // A double bridge of three consecutive paths within a short stretch, which begins at one of `count`
  // positions from `first` on. Returns what it cost.
  Length kick(std::mt19937_64& random, int first, int count);

  // undo() goes back to where keep() was last called; both need the journal, which is off at first.
  void set_journal(bool on) { tour_.set_journal(on); }
  void undo() { tour_.undo(); }
  void keep() { tour_.keep(); }

  // From now on descend() and kick() append their moves; null: no more. undo() removes none.
  void record(std::vector<Move>* moves) { moves_ = moves; }

  // Makes moves of another tour that was equal to this one some moves ago, without looking at their cities
  // again. Returns false and changes nothing if they no longer fit.
  bool repeat(std::span<const Move> moves);

 private:
  static constexpr int kMostSteps = 64;  // considered from one city
  static constexpr int kRepairs = 64;    // exchanges, about, whose rounding adds up in a kick's repair
  struct Step {
    Length open;          // what is gained before the tour is closed
    int32_t city, other;  // the edge that leaves
    int32_t cut;
    bool is_ahead;
  };

  bool find_exchange(int city);
  template <int kSize>
  bool extend(Length open);
  template <int kSize>
  int find_steps(Length open, Step* steps) const;
  void enqueue(int city);
  void finish(const Move& move);
  bool asks_stop(const SearchControl& control);
  Length distance(int a, int b) const { return distances_.as<Length>(distances_(a, b)); }

  const Distances& distances_;
  const NeighbourLists& neighbours_;
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

}  // namespace pointsman
