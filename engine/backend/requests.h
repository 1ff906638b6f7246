// SPDX-License-Identifier: Apache-2.0
// What every backend does with a request before and after its own work.
#pragma once

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>

#include "engine/backend/backend.h"
#include "kernels/tools/fnv1a.h"

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

// What makes the rollouts of a gradient once more.
inline RolloutRequest forced_rollouts(const GradientRequest& gradient) {
  return {.sequences = gradient.sequences,
          .decode = Decode::kForced,
          .counts = gradient.counts,
          .policy = gradient.policy,
          .forced = gradient.orders,
          .stop = gradient.stop};
}

// `entries` rollouts of at most so many steps that nobody has made yet.
inline void clear_rollouts(int64_t entries, int steps, RolloutResult& result) {
  constexpr double kNaN = std::numeric_limits<double>::quiet_NaN();
  result.orders.assign(entries * steps, -1);
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

// Of a user's own problem: asks what the rollouts that are whole cost, and writes it in network units. False:
// a stop came before the end, which leaves the others without a cost. What else the user's function throws
// comes through.
inline bool cost_rollouts(const RolloutRequest& request, RolloutResult& result) {
  const SequenceBatch& batch = request.sequences;
  if (batch.own == nullptr) return true;
  const size_t at_once = batch.own->rows_at_once(batch.n);
  const size_t steps = batch.steps(), floats = static_cast<size_t>(batch.n) * batch.width();
  std::vector<double> items;
  std::vector<int64_t> orders;
  std::vector<size_t> rows;
  bool stopped = false;
  const auto ask = [&] {
    stopped = stopped || request.stop.stops();
    std::vector<double> costs(rows.size(), std::numeric_limits<double>::quiet_NaN());
    try {
      const auto count = static_cast<int64_t>(rows.size());
      if (!stopped) costs = batch.own->cost(std::move(items), std::move(orders), count, batch.n);
    } catch (const CallStopped&) {
      stopped = true;
    }
    for (size_t i = 0; i < rows.size(); ++i)
      result.costs[rows[i]] = costs[i] / batch.own->scaling().cost_unit;
    items.clear();
    orders.clear();
    rows.clear();
  };
  size_t row = 0;
  for (int s = 0; s < batch.count; ++s) {
    for (const size_t last = row + rollouts_of(request.counts, s); row < last; ++row) {
      if (std::isnan(result.costs[row])) continue;
      items.insert(items.end(), batch.items_of(s), batch.items_of(s) + floats);
      orders.insert(orders.end(), &result.orders[row * steps], &result.orders[row * steps] + steps);
      rows.push_back(row);
      if (rows.size() == at_once) ask();
    }
  }
  if (!rows.empty()) ask();
  return !stopped;
}

// With best_only: reduces the result from all rollouts to the best of each sequence.
inline void choose_best(const RolloutRequest& request, RolloutResult& result) {
  const int steps = request.sequences.steps(), count = request.sequences.count;
  RolloutResult best;
  clear_rollouts(count, steps, best);
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
    std::copy_n(result.orders.begin() + row * steps, steps,
                best.orders.begin() + static_cast<int64_t>(s) * steps);
  }
  result = std::move(best);
}

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

// Equal for the same rollouts of the same sequences. counts: rollouts a sequence; null: 1 each.
inline uint64_t fingerprint_of(const SequenceBatch& batch, const int32_t* counts, const Policy& policy,
                               const int32_t* orders) {
  const size_t items = static_cast<size_t>(batch.count) * batch.n;
  uint64_t hash = kFnvStart;
  const auto add = [&](const auto* values, size_t count) {
    if (values != nullptr) hash = hash_array(values, count * sizeof *values, hash);
  };
  const int32_t shape[] = {static_cast<int32_t>(batch.problem), batch.n, batch.count,
                           policy.stop_at_first_misfit, policy.masks};
  const float scale[] = {policy.temperature, policy.clip.value_or(0.0f)};
  add(shape, 5);
  add(scale, 2);
  for (int s = 0; s < batch.count; ++s) {
    const int32_t set = batch.set_of(s);  // null and all 0 are the same
    add(&set, 1);
  }
  add(batch.features, batch.width() * items);
  add(batch.weights, static_cast<size_t>(batch.count) * batch.numbers_each());
  add(batch.capacities, batch.count);
  add(counts, batch.count);
  add(orders, static_cast<size_t>(count_rollouts(counts, batch.count)) * batch.steps());
  return hash;
}

// A backend's end of the tape that it filled last.
class TapeHead {
 public:
  TapeHead() = default;
  TapeHead(const TapeHead&) = delete;
  TapeHead& operator=(const TapeHead&) = delete;

  // Parameters change, or what the tape stands for is about to go.
  void forget() { tape_ = nullptr; }

  // All rollouts of the request are now on its tape.
  void fill(const RolloutRequest& request, const RolloutResult& result) {
    tape_ = request.tape;
    tape_->filled_by_ = this;
    tape_->rollouts_ =
        fingerprint_of(request.sequences, request.counts, request.policy, result.orders.data());
  }

  // Whether the request's rollouts are on its tape, which is used up thereby.
  bool use(const GradientRequest& request) {
    if (request.tape == nullptr || request.tape != tape_ || tape_->filled_by_ != this) return false;
    const uint64_t filled = tape_->rollouts_;
    forget();
    if (fingerprint_of(request.sequences, request.counts, request.policy, request.orders) != filled)
      throw std::invalid_argument("gradient: the tape holds other rollouts");
    return true;
  }

 private:
  Tape* tape_ = nullptr;
};

}  // namespace pointsman
