// SPDX-License-Identifier: Apache-2.0
// Local search on the routes of a CVRP: Slack Induction by String Removals.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/search/distances.h"
#include "engine/search/limits.h"
#include "engine/search/local/local_search.h"
#include "engine/search/local/neighbour_lists.h"

namespace pointsman {

// Christiaens & Vanden Berghe 2020. A kick removes strings of neighbouring customers from near routes and
// inserts them again where that costs least, with a few places passed over; the result is kept as simulated
// annealing says. Only the length counts, the number of vehicles does not. docs/decisions.md lists what
// differs from the paper.
//
// One thread. Deterministic unless a limit strikes.
class RouteSearch final : public LocalSearch {
 public:
  static constexpr int kKicksPerCustomer = 1000;  // docs/experiments.md, "Routes"

  // The instance must outlive it. Throws CallStopped when `control` says so before it is ready.
  RouteSearch(const Instance& instance, const ImproveOptions& options, const SearchControl& control);

  Solution start(const SearchControl& control) const override;
  // Each route alone, as TourSearch::descend() improves a tour.
  bool descend(Solution& solution, const SearchControl& control) const override;
  bool improve(Solution& solution, const SearchControl& control,
               WorkerThreads* workers = nullptr) const override;

 private:
  bool shorten(std::vector<int32_t>& route, const SearchControl& control) const;

  const Instance& instance_;
  const ImproveOptions options_;
  const Distances distances_;
  const NeighbourLists neighbours_;
};

}  // namespace pointsman
