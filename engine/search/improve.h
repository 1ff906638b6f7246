// SPDX-License-Identifier: Apache-2.0
// Local search on a TSP tour: 2-opt and Or-opt over neighbour lists with a work queue (Bentley 1992).
#pragma once

#include <cstdint>
#include <deque>
#include <random>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "models/config.h"

namespace pointsman {

struct ImproveOptions {
  int neighbours = 10;  // length of each city's candidate list
  int64_t kicks = 0;    // local double-bridge kicks after the first local optimum (iterated search); 0: none
  uint64_t seed = kDefaultSeed;  // of the kicks
};

// Replaces solution.order by a tour that is never longer under the instance's own metric, and revalidates it.
// TSP only; KnapSack solutions are left as they are. Stops early when control says so.
void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control);

// 2-opt and Or-opt (segments of 1 to 3 cities, both orientations) over candidate lists, on an array of cities
// with their positions. A queue holds the cities whose neighbourhood changed since they were last looked at
// (the don't-look bits of Bentley 1992). Deterministic. Needs a TSP instance, which must outlive it.
class TourSearch {
 public:
  TourSearch(const Instance& instance, const ImproveOptions& options);

  // As improve_solution(), for a valid solution of the same instance. False when a limit cut it short.
  bool improve(Solution& solution, const SearchControl& control);

 private:
  struct Reversal {
    int start, length;
  };
  // The best change found at one city: one or three reversals of paths. gain > 0 shortens the tour.
  struct Move {
    double gain = 0.0;
    bool is_segment = false;
    int a = 0, b = 0, c = 0, d = 0;  // 2-opt: edges (a,b), (c,d) become (a,c), (b,d), b after a and d after c
    int segment_end = 0;             // Or-opt: the segment a .. segment_end goes between c (next to a) and d
  };

  int next(int city) const { return tour_[position_[city] + 1 < n_ ? position_[city] + 1 : 0]; }
  int previous(int city) const { return tour_[position_[city] > 0 ? position_[city] - 1 : n_ - 1]; }
  int wrap(int position) const { return position >= n_ ? position - n_ : position; }
  int path_length(int from, int to) const;  // cities from .. to, walking forward

  double distance(int a, int b) const;  // under the instance's own metric
  void find_neighbours();
  void load(const std::vector<int32_t>& order);
  void swap_path(int start, int length);
  void reverse_path(int start, int length);
  void reverse_either(int first, int last);
  void enqueue(int city);

  void look_for_two_opt(int a, Move& best) const;
  void look_for_segment_move(int a, bool forward, Move& best) const;
  void apply(const Move& move);
  void apply_segment_move(const Move& move);
  double drain_queue(const SearchControl& control);
  double kick();
  void undo();
  bool stop(const SearchControl& control);

  const Instance& instance_;
  const ImproveOptions options_;
  const int n_;
  std::vector<double> matrix_;  // [n][n] distances; empty where there are too many cities
  int list_length_ = 0;
  std::vector<int32_t> neighbours_;  // [n][list_length_], nearest first
  std::vector<double> neighbour_distance_;
  std::vector<int32_t> tour_, position_;
  std::deque<int32_t> queue_;      // each city at most once
  std::vector<char> queued_;       // [n] is it in the queue?
  std::vector<Reversal> journal_;  // since the last accepted tour
  double least_gain_ = 0.0;        // what counts as an improvement: above the rounding of a sum of edges
  uint32_t asked_ = 0;
  bool stopped_ = false;
  std::mt19937_64 random_;
};

}  // namespace pointsman
