// SPDX-License-Identifier: Apache-2.0
// What every backend does with a TwoOptRequest before its searches.
#pragma once

#include <stdexcept>
#include <string>

#include "engine/backend/backend.h"

namespace pointsman {

// Checks the request, and makes room for its tours, none of which is begun.
inline void begin_tours(const TwoOptRequest& request, TwoOptResult& result) {
  const SequenceBatch& batch = request.sequences;
  if (batch.problem != ProblemKind::kTsp || batch.n < kFewestTourCities || batch.n > kMostTourCities) {
    throw std::invalid_argument("two_opt: expected a TSP of " + std::to_string(kFewestTourCities) + " to " +
                                std::to_string(kMostTourCities) + " cities, found " +
                                std::to_string(batch.n) + " items");
  }
  if (request.kicks < 0) throw std::invalid_argument("two_opt: expected kicks from 0 on");
  result.orders.assign(static_cast<size_t>(batch.count) * batch.n, -1);
  result.kicks.assign(batch.count, kNotBegun);
}

}  // namespace pointsman
