// SPDX-License-Identifier: Apache-2.0
// Local search on TSP tours: Lin-Kernighan moves of three edges, and kicks.
#pragma once

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/search/array_tour.h"
#include "engine/search/distances.h"
#include "engine/search/limits.h"
#include "engine/search/neighbour_lists.h"
#include "models/config.h"

namespace pointsman {

struct ImproveOptions {
  static constexpr int kKicksPerCity = 4;

  int neighbours = 8;  // length of each city's candidate list
  // After the first local optimum; none: as many as a time limit allows, or without one kKicksPerCity a city.
  std::optional<int64_t> kicks = 0;
  uint64_t seed = kDefaultSeed;  // of the kicks
  bool fills_limit = true;       // false: kicks of no number do not use the time that a limit leaves
};

// Iterated local search (Martin, Otto & Felten 1991). A step exchanges two or three edges, of both kinds the
// first found that shortens the tour: from a city t1 and its edge (t1, t2) on, the next edge to come starts
// at t2, the next to leave where that one ends (Lin & Kernighan 1973), candidates in the order of what is
// gained before the tour is closed, and only while that is above 0. Moves that reverse nothing (Or-opt) are
// among them. A queue holds the cities whose neighbourhood changed since they were last looked at (the
// don't-look bits of Bentley 1992). A kick is a double bridge within a short stretch. The tour after a kick
// and its repair is kept if it is longer by at most a random number whose mean falls to 0; the answer
// is the best of all.
//
// Deterministic unless a limit strikes. The instance, of the TSP, must outlive it. Throws CallStopped when
// `control` says so before it is ready.
class TourSearch {
 public:
  TourSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control);

  // Both replace the order of a valid solution by a tour that is never longer under the instance's own
  // metric, and revalidate it. False when a limit cut it short. descend() goes to the next local optimum,
  // improve() on from there by kicks, which it counts in the solution.
  bool descend(Solution& solution, const SearchControl& control) { return run(solution, 0, control); }
  bool improve(Solution& solution, const SearchControl& control) {
    return run(solution, kicks(control), control);
  }

  // greedy_edges(), in the instance's own numbers.
  std::vector<int32_t> greedy_tour(const SearchControl& control) const;

 private:
  static constexpr int kMostSteps = 64;  // considered from one city
  struct Step {
    double open;          // what is gained before the tour is closed
    int32_t city, other;  // the edge that leaves
    int32_t cut;
    bool is_ahead;
  };

  bool find_exchange(int city);
  template <int kSize>
  bool extend(double open);
  template <int kSize>
  int find_steps(double open, Step* steps) const;
  double drain_queue(const SearchControl& control);
  void enqueue(int city);

  int64_t kicks(const SearchControl& control) const;
  bool run(Solution& solution, int64_t kicks, const SearchControl& control);
  int64_t iterate(int64_t kicks, const SearchControl& control);
  double kick();
  double draw_excess(double mean);

  void load(const std::vector<int32_t>& order);
  double length() const;
  bool stop(const SearchControl& control);

  const Instance& instance_;
  const ImproveOptions options_;
  const int n_;
  const Distances distance_;
  const NeighbourLists neighbours_;
  ArrayTour tour_;
  Exchange exchange_;            // in the making
  double gain_ = 0.0;            // of the last exchange made
  double least_gain_ = 0.0;      // what counts as one: above the rounding of a sum of edges
  std::vector<int32_t> queue_;   // [n] a ring of cities, each at most once
  std::vector<char> is_queued_;  // [n]
  int queue_first_ = 0, queue_size_ = 0;
  uint32_t asked_ = 0;
  bool stopped_ = false;
  std::mt19937_64 random_;
};

// As TourSearch::improve(), for any valid solution; that of a KnapSack is left as it is. Stops early when
// control says so.
void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control);

}  // namespace pointsman
