// SPDX-License-Identifier: Apache-2.0
// Local search on a colouring.
#pragma once

#include <cstdint>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "engine/search/local/local_search.h"

namespace pointsman {

// TabuCol (Hertz and de Werra 1987): the nodes of one colour get others, and then one node at a time of those
// that have a joined node's colour changes to the colour where that leaves the fewest such pairs, a move back
// being forbidden for some moves. Without such pairs the next colour goes. A kick is one move.
//
// One thread. Deterministic unless a limit strikes.
class ColourSearch final : public LocalSearch {
 public:
  static constexpr int kKicksPerNode = 1000;

  // The instance must outlive it.
  ColourSearch(const Instance& instance, const ImproveOptions& options);

  // DSATUR.
  Solution start(const SearchControl& control) const override;
  // Without kicks there is nothing to descend to.
  bool descend(Solution& solution, const SearchControl& control) const override;
  bool improve(Solution& solution, const SearchControl& control,
               WorkerThreads* workers = nullptr) const override;

 private:
  const Instance& instance_;
  const ImproveOptions options_;
};

}  // namespace pointsman
