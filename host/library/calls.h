// SPDX-License-Identifier: Apache-2.0
// The options of calls that compute, and what such a call has done.
#pragma once

#include <atomic>
#include <chrono>
#include <mutex>

#include "engine/search/limits.h"
#include "host/library/handles.h"

namespace pointsman {

inline constexpr pointsman_solve_options kSolveDefaults = [] {
  pointsman_solve_options all = {};
  all.seed = kDefaultSeed;
  all.kicks = -1;
  all.temperature = 1.0;
  all.entropy = -1.0;
  all.shuffle = all.improve = -1;
  return all;
}();

// What pointsman_set_option() set, then what the caller's struct sets otherwise than by default. Throws
// UsageError for numbers and combinations that mean nothing.
SolveRequest solve_request(pointsman_solver& solver, const pointsman_solve_options& given);
// Of these only what scoring reads: the model and the temperature.
SolveRequest score_request(pointsman_solver& solver, const pointsman_solve_options& given);

// What a running call has done, and whether its owner wants it to go on. The threads of a solver share it.
struct CallWatch {
  static constexpr std::chrono::milliseconds kBetween{8};

  // Asks the owner, through one thread at a time, when it has not been asked for some milliseconds. Once
  // true it stays so.
  bool is_cancelled() {
    if (cancelled || options.progress == nullptr) return cancelled;
    const Clock::duration now = Clock::now() - start;
    if (now < due.load()) return false;
    const std::unique_lock lock(mutex, std::try_to_lock);
    if (!lock || cancelled || now < due.load()) return cancelled;
    const pointsman_progress progress = {.size = sizeof progress,
                                         .instances = instances,
                                         .answered = answered,
                                         .seconds = std::chrono::duration<double>(now).count(),
                                         .step = step};
    if (options.progress(options.progress_user, &progress) != 0) cancelled = true;
    due = Clock::now() - start + kBetween;
    return cancelled;
  }

  const pointsman_solve_options& options;
  const size_t instances;
  const Clock::time_point start = Clock::now();
  std::atomic<Clock::duration> due{Clock::duration::zero()};  // since the start
  std::atomic<bool> cancelled{false};
  std::atomic<size_t> answered{0};
  std::atomic<int64_t> step{0};
  std::mutex mutex{};  // held while the owner is asked
};

}  // namespace pointsman
