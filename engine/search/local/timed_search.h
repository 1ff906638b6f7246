// SPDX-License-Identifier: Apache-2.0
// Local search on a tour with time windows.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "engine/search/local/local_search.h"

namespace pointsman {

// Exchanges of two neighbouring stretches, one of them of at most three places, and reversals, as in the
// variable neighbourhood search of da Silva & Urrutia (2010); less delay counts first, then length. A kick
// exchanges two longer stretches; what it makes worse is taken back.
//
// One thread. Deterministic unless a limit strikes.
class TimedSearch final : public LocalSearch {
 public:
  static constexpr int kKicksPerPlace = 10;

  // The instance must outlive it.
  TimedSearch(const Instance& instance, const ImproveOptions& options);

  // As quick_answer(); it may come late.
  Solution start(const SearchControl& control) const override;
  bool descend(Solution& solution, const SearchControl& control) const override;
  bool improve(Solution& solution, const SearchControl& control,
               WorkerThreads* workers = nullptr) const override;

 private:
  bool search(Solution& solution, int64_t kicks, const SearchControl& control) const;

  const Instance& instance_;
  const ImproveOptions options_;
};

}  // namespace pointsman
