// SPDX-License-Identifier: Apache-2.0
// How a backend knows its tape again. Tape and head name each other: a tape that was destroyed, or filled by
// another backend since, is never taken for the one that this head filled.
#pragma once

#include "engine/backend/rollout_request.h"
#include "kernels/tools/fnv1a.h"

namespace pointsman {

// Equal for the same rollouts of the same sequences. counts: rollouts a sequence; null: 1 each.
inline uint64_t fingerprint_of(const SequenceBatch& batch, const int32_t* counts, const Policy& policy,
                               const int32_t* orders) {
  const size_t items = static_cast<size_t>(batch.count) * batch.n;
  uint64_t hash = kFnvStart;
  const auto add = [&](const auto* values, size_t count) {
    if (values != nullptr) hash = hash_array(values, count * sizeof *values, hash);
  };
  const int32_t shape[] = {static_cast<int32_t>(batch.problem), batch.n, batch.count,
                           policy.stop_at_first_misfit};
  const float scale[] = {policy.temperature, policy.clip.value_or(0.0f)};
  add(shape, 4);
  add(scale, 2);
  for (int s = 0; s < batch.count; ++s) {
    const int32_t set = batch.set_of(s);  // null and all 0 are the same
    add(&set, 1);
  }
  add(batch.features, 2 * items);
  add(batch.weights, items);
  add(batch.capacities, batch.count);
  add(counts, batch.count);
  add(orders, static_cast<size_t>(count_rollouts(counts, batch.count)) * batch.n);
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
