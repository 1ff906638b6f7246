// SPDX-License-Identifier: Apache-2.0
// Local search on tours and paths: Lin-Kernighan moves and kicks.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/search/distances.h"
#include "engine/search/limits.h"
#include "engine/search/local/local_search.h"
#include "engine/search/local/neighbour_lists.h"
#include "engine/search/local/symmetric_form.h"
#include "kernels/tools/worker_threads.h"

namespace pointsman {

// Iterated local search (Martin, Otto & Felten 1991): Lin-Kernighan moves to a local optimum, then kicks,
// each with the moves that repair it; up to kMostExactCities cities their shortest tour instead. The tour
// after a kick and its repair is kept if it is longer by at most a random number whose mean falls to 0. Where
// there are kicks for twelve short runs or more, each run begins with kicks that are repaired only together,
// and their tours are crossed (TourPopulation). Else on a large tour several searches kick a stretch each, on
// copies, for a round; then one of them repeats what the others changed, where it still fits. Threads make
// runs, children and the rounds' searches side by side.
//
// It works on the instance's SymmetricForm. Deterministic, whatever the number of threads, unless a limit
// strikes. The instance must outlive it. Throws CallStopped when `control` says so before it is ready.
class TourSearch final : public LocalSearch {
 public:
  static constexpr int kKicksPerCity = 5, kKicksPerCityOfPath = 7;

  TourSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control);

  // greedy_edges().
  Solution start(const SearchControl& control) const override;
  bool descend(Solution& solution, const SearchControl& control) const override {
    return run(solution, 0, control, nullptr);
  }
  // With `workers` on a large tour.
  bool improve(Solution& solution, const SearchControl& control,
               WorkerThreads* workers = nullptr) const override {
    return run(solution, kicks_of(instance_, options_, control), control, workers);
  }

  // Whether improve() can use several threads.
  static bool divides(int n);

 private:
  std::vector<std::array<int32_t, 2>> fixed_places();
  std::vector<int32_t> places_with_a_choice() const;
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
  const FixedEdges fixed_;
  const NeighbourLists neighbours_;
};

}  // namespace pointsman
