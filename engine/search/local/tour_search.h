// SPDX-License-Identifier: Apache-2.0
// Local search on TSP tours: Lin-Kernighan moves and kicks.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/search/distances.h"
#include "engine/search/limits.h"
#include "engine/search/local/neighbour_lists.h"
#include "engine/search/local/symmetric_form.h"
#include "kernels/tools/worker_threads.h"
#include "models/config.h"

namespace pointsman {

struct ImproveOptions {
  static constexpr int kKicksPerCity = 4;

  int neighbours = 8;  // length of each city's candidate list
  // After the first local optimum; none: until a time limit, or kKicksPerCity a city.
  std::optional<int64_t> kicks = 0;
  uint64_t seed = kDefaultSeed;  // of the kicks
  bool fills_limit = true;       // false: kicks of no number do not use the time that a limit leaves
};

// Iterated local search (Martin, Otto & Felten 1991): Lin-Kernighan moves to a local optimum, then kicks,
// each with the moves that repair it; up to kMostExactCities cities their shortest tour instead. The tour
// after a kick and its repair is kept if it is longer by at most a random number whose mean falls to 0. Many
// kicks are several such runs; the answer is the best of all. On a large tour several searches kick a stretch
// each, on copies, for a round; then one of them repeats what the others changed, where it still fits.
// Threads make the rounds' searches side by side.
//
// Deterministic, whatever the number of threads, unless a limit strikes. The instance, of the TSP, must
// outlive it. Throws CallStopped when `control` says so before it is ready.
class TourSearch {
 public:
  TourSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control);

  // Both replace the order of a valid solution by a tour that is never longer under the instance's own
  // metric, and revalidate it. They return false if a limit cut them short; if the clock set the schedule of
  // the kicks, the status becomes kTimeLimit. descend() goes to the next local optimum; improve() goes on by
  // kicks, with `workers` on a large tour.
  bool descend(Solution& solution, const SearchControl& control) const {
    return run(solution, 0, control, nullptr);
  }
  bool improve(Solution& solution, const SearchControl& control, WorkerThreads* workers = nullptr) const {
    return run(solution, kicks(control), control, workers);
  }

  // Whether improve() can use several threads.
  static bool divides(int n);

  // greedy_edges(), in the instance's own numbers.
  std::vector<int32_t> greedy_tour(const SearchControl& control) const;

 private:
  int64_t kicks(const SearchControl& control) const;
  std::vector<std::array<int32_t, 2>> fixed_places();
  std::vector<int32_t> places_of(const std::vector<int32_t>& order) const;
  std::vector<int32_t> order_of(std::vector<int32_t> places) const;
  template <typename Length>
  std::vector<int32_t> shortest() const;
  bool run(Solution& solution, int64_t kicks, const SearchControl& control, WorkerThreads* workers) const;
  template <typename Length>
  bool run(Solution& solution, int64_t kicks, const SearchControl& control, WorkerThreads* workers) const;

  const Instance& instance_;
  const ImproveOptions options_;
  const SymmetricForm form_;
  const Distances distance_;
  const int n_;                    // of the form
  std::vector<int32_t> place_of_;  // [n_] of its cities
  const NeighbourLists neighbours_;
  const FixedEdges fixed_;
};

// As TourSearch::improve(), for any valid solution; leaves that of a KnapSack as it is.
void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control);

// TSP: the tour of greedy edges after local search and its kicks, or quick_answer() if stopped before that.
Solution local_search_tour(const Instance& instance, const ImproveOptions& options,
                           const SearchControl& control, WorkerThreads* workers = nullptr);

}  // namespace pointsman
