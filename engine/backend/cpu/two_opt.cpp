// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cpu/two_opt.h"

#include <algorithm>
#include <vector>

#include "kernels/common/two_opt.h"

namespace pointsman {

namespace {

constexpr int kCitiesPerStop = 64;  // whose neighbours are found between two questions

}  // namespace

int search_tour(const float* xy, int n, uint64_t key, const TwoOptRequest& request, int32_t* order) {
  const auto stops = [&] { return request.stop.stops(); };
  std::vector<uint16_t> neighbours(static_cast<size_t>(n) * kTourNeighbours);
  for (int city = 0; city < n; ++city) {
    if (city % kCitiesPerStop == 0 && stops()) return kNotBegun;
    nearest_cities(xy, n, city, &neighbours[city * kTourNeighbours]);
  }
  std::vector<uint32_t> storage(TourMemory::words(n));
  const TourMemory memory(storage.data(), n);
  TwoOpt<LoneThread> search({}, {xy, neighbours.data(), n}, memory);
  const int kicks = search.search(request.kicks, request.seed, key, stops);
  if (kicks != kNotBegun) std::copy_n(memory.best, n, order);
  return kicks;
}

}  // namespace pointsman
