// SPDX-License-Identifier: Apache-2.0
// The local search of kernels/common/two_opt.h by one thread, with what it needs.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "kernels/common/two_opt.h"

namespace pointsman {

// Of all cities. xy: [n][2].
inline std::vector<uint16_t> neighbours_of(const float* xy, int n) {
  std::vector<uint16_t> neighbours(static_cast<size_t>(n) * kTourNeighbours);
  for (int city = 0; city < n; ++city) nearest_cities(xy, n, city, &neighbours[city * kTourNeighbours]);
  return neighbours;
}

inline constexpr auto kNeverStops = [] { return false; };

// What `instance` points to must outlive it.
struct LoneSearch {
  explicit LoneSearch(const TourInstance& instance)
      : n(instance.n),
        storage(TourMemory::words(n)),
        memory(storage.data(), n),
        search({}, instance, memory) {}
  LoneSearch(const LoneSearch&) = delete;
  LoneSearch& operator=(const LoneSearch&) = delete;

  void load(const std::vector<int32_t>& order) {
    std::copy(order.begin(), order.end(), memory.order);
    search.queue_all();
  }
  std::vector<int32_t> order() const { return {memory.order, memory.order + n}; }
  std::vector<int32_t> best() const { return {memory.best, memory.best + n}; }

  int n;
  std::vector<uint32_t> storage;
  TourMemory memory;
  TwoOpt<LoneThread> search;
};

}  // namespace pointsman
