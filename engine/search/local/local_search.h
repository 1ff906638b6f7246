// SPDX-License-Identifier: Apache-2.0
// Local search of every problem that has one (Problem::has_local_search).
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "engine/problem/instance.h"
#include "engine/problem/problem.h"
#include "engine/search/limits.h"
#include "kernels/tools/worker_threads.h"
#include "models/config.h"

namespace pointsman {

struct ImproveOptions {
  int neighbours = 8;  // TSP: length of each city's candidate list
  // After the first local optimum; none: until a time limit, or the search's own number (default_kicks()).
  std::optional<int64_t> kicks = 0;
  uint64_t seed = kDefaultSeed;  // of the kicks
  bool fills_limit = true;       // false: kicks of no number do not use the time that a limit leaves
};

// A search of one instance, which must outlive it. Several threads may use it at once.
class LocalSearch {
 public:
  virtual ~LocalSearch() = default;

  // A solution without a network, to improve; where ways are forbidden it may take some. Throws CallStopped.
  virtual Solution start(const SearchControl& control) const = 0;

  // Both replace the order of such a solution by one that is never longer under the instance's own metric,
  // and revalidate it. They return false if a limit cut them short; if the clock set the schedule of the
  // kicks, the status becomes kTimeLimit. descend() goes to the next local optimum; improve() goes on by
  // kicks. Deterministic, whatever the number of `workers`, unless a limit strikes.
  virtual bool descend(Solution& solution, const SearchControl& control) const = 0;
  virtual bool improve(Solution& solution, const SearchControl& control,
                       WorkerThreads* workers = nullptr) const = 0;
};

// TourSearch, RouteSearch, TimedSearch or ColourSearch. Throws CallStopped when `control` says so before it
// is ready, and std::invalid_argument for a problem without a local search.
std::unique_ptr<LocalSearch> make_local_search(const Instance& instance, const ImproveOptions& options,
                                               const SearchControl& control);

// How many kicks improve() makes: those of the options, as many as fit into a limit, or default_kicks().
int64_t kicks_of(const Instance& instance, const ImproveOptions& options, const SearchControl& control);

// How many kicks an instance of n items gets without a number and a limit.
int64_t default_kicks(const Problem& problem, int n);

// Whether improve() can use several threads for an instance of n items.
bool divides(const Problem& problem, int n);

// As LocalSearch::improve(), for any valid solution; leaves that of another problem as it is.
void improve_solution(const Instance& instance, Solution& solution, const ImproveOptions& options,
                      const SearchControl& control);

// LocalSearch::start() after improve(), or quick_answer() if stopped before that. std::invalid_argument for a
// problem without a local search.
Solution local_search(const Instance& instance, const ImproveOptions& options, const SearchControl& control,
                      WorkerThreads* workers = nullptr);

}  // namespace pointsman
