// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <cstdint>
#include <mutex>

#include "engine/search/search.h"
#include "host/library/include/pointsman.h"
#include "host/options/solve_options.h"

namespace pointsman {

// What a running call has done, and whether its owner wants it to go on. The threads of a solver share it.
class CallWatch {
 public:
  // Of a call with so many instances, which begins now.
  CallWatch(const pointsman_solve_options& options, size_t instances)
      : options_(options), instances_(instances) {}

  // Asks the owner, through one thread at a time, when it has not been asked for some milliseconds. Once
  // true it stays so.
  bool is_cancelled();
  bool was_cancelled() const { return cancelled_; }

  void count_answer() { ++answered_; }
  void tell_step(int step) { step_ = step; }

  Clock::time_point start() const { return start_; }
  // With the request's limits; the watch must outlive it.
  SearchControl control(const SolveRequest& request);

 private:
  const pointsman_solve_options& options_;
  const size_t instances_;
  const Clock::time_point start_ = Clock::now();
  std::atomic<Clock::duration> due_{Clock::duration::zero()};  // since the start
  std::atomic<bool> cancelled_{false};
  std::atomic<size_t> answered_{0};
  std::atomic<int64_t> step_{0};
  std::mutex mutex_;  // held while the owner is asked
};

}  // namespace pointsman
