// SPDX-License-Identifier: Apache-2.0
// The reference for searches of routes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <numeric>
#include <vector>

#include "engine/problem/problem.h"

namespace pointsman {

// The length of the shortest routes of a CVRP, by trying all orders of the customers and all places to
// return.
inline double shortest_routes(const Instance& instance) {
  const int customers = instance.n() - 1;
  if (customers == 0) return 0.0;
  std::vector<int32_t> order(customers);
  std::iota(order.begin(), order.end(), 1);
  double best = std::numeric_limits<double>::infinity();
  do {
    for (int cuts = 0; cuts < 1 << (customers - 1); ++cuts) {
      Solution routes;
      for (int i = 0; i < customers; ++i) {
        if (i > 0 && (cuts >> (i - 1) & 1)) routes.order.push_back(0);
        routes.order.push_back(order[i]);
      }
      if (validate_solution(instance, routes).empty()) best = std::min(best, routes.objective);
    }
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

}  // namespace pointsman
