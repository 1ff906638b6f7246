// SPDX-License-Identifier: Apache-2.0
// What every backend does with a RolloutRequest before and after its rollouts.
#pragma once

#include <algorithm>
#include <limits>

#include "engine/backend/backend.h"

namespace pointsman {

// How many rollouts a request has of sequence s, and of its first `sequences`. counts: a number each;
// null: 1.
inline int rollouts_of(const int32_t* counts, int s) { return counts == nullptr ? 1 : counts[s]; }
inline int64_t count_rollouts(const int32_t* counts, int sequences) {
  int64_t rollouts = 0;
  for (int s = 0; s < sequences; ++s) rollouts += rollouts_of(counts, s);
  return rollouts;
}

// How many rollouts the request asks for. Throws std::invalid_argument where its fields exclude each other.
inline int64_t count_rollouts(const RolloutRequest& request) {
  if (request.best_only && (request.tape != nullptr || request.decode == Decode::kForced))
    throw std::invalid_argument("rollout: best_only goes with neither a tape nor forced orders");
  return count_rollouts(request.counts, request.sequences.count);
}

// `entries` rollouts of n items that nobody has made yet.
inline void clear_rollouts(int64_t entries, int n, RolloutResult& result) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  result.orders.assign(entries * n, -1);
  result.costs.assign(entries, kNaN);
  result.log_probs.assign(entries, kNaN);
  result.winners.clear();
  result.finished.clear();
  result.statistics = {};
}

// After a stop, before choose_best(): counts each sequence's rollouts that have a cost.
inline void count_finished(const RolloutRequest& request, RolloutResult& result) {
  result.finished.assign(request.sequences.count, 0);
  auto cost = result.costs.begin();
  for (int s = 0; s < request.sequences.count; ++s) {
    for (const auto last = cost + rollouts_of(request.counts, s); cost != last; ++cost)
      result.finished[s] += !std::isnan(*cost);
  }
}

// With best_only: reduces the result from all rollouts to the best of each sequence.
inline void choose_best(const RolloutRequest& request, RolloutResult& result) {
  const int n = request.sequences.n, count = request.sequences.count;
  RolloutResult best;
  clear_rollouts(count, n, best);
  best.winners.assign(count, -1);
  best.statistics = result.statistics;
  best.finished = std::move(result.finished);
  auto last = result.costs.begin();
  for (int s = 0; s < count; ++s) {
    const auto first = last;
    last += rollouts_of(request.counts, s);
    const auto winner = std::min_element(first, last, costs_less);  // the first of equals
    if (winner == last || std::isnan(*winner)) continue;
    const auto row = winner - result.costs.begin();
    best.winners[s] = static_cast<int32_t>(winner - first);
    best.costs[s] = *winner;
    best.log_probs[s] = result.log_probs[row];
    std::copy_n(result.orders.begin() + row * n, n, best.orders.begin() + static_cast<int64_t>(s) * n);
  }
  result = std::move(best);
}

}  // namespace pointsman
