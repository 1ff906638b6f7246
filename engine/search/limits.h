// SPDX-License-Identifier: Apache-2.0
// When a search must stop, who is told what it does, and how much work goes into one backend call.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/problem/instance.h"
#include "engine/problem/problem.h"
#include "kernels/common/rules.h"
#include "kernels/tools/stop_token.h"

namespace pointsman {

using Clock = std::chrono::steady_clock;

// Of as many seconds, at most 1e9, which a clock still holds.
inline Clock::duration duration_of(double seconds) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(std::min(seconds, 1e9)));
}

// Who is told what a search does. Any member may be empty. Several threads may call a function at once.
struct SearchReports {
  std::function<void(const std::string&)> trace;  // of every batch and every backend call
  std::function<void(const std::string&)> warn;   // of what went wrong and is tried again
  // What each new best answer to the only instance of a run costs, in the user's units. Also of answers that
  // are no better than an earlier one.
  std::function<void(double objective)> on_best;

  // After a call for `rollouts` rollouts that began at `start`.
  void trace_call(const char* what, int64_t rollouts, Clock::time_point start) const {
    if (!trace) return;
    const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
    trace(std::string(what) + ": " + std::to_string(rollouts) + " rollouts in " +
          std::to_string(taken.count()) + " ms");
  }
};

// When a search ends. It is asked between backend calls and within them. A search that a limit or an
// interruption ends keeps the best found so far.
struct SearchControl {
  std::optional<Clock::time_point> deadline;  // of the whole run, or of a part of it; none: no limit
  std::function<bool()> interrupted;          // may be empty; several threads may call it at once
  // Until when an instance without any answer may still get its first one; none: `deadline`.
  std::optional<Clock::time_point> end = {};
  // Of one instance, from when its search begins; none: no limit of its own.
  std::optional<Clock::duration> each = {};
  SearchReports report = {};

  std::optional<Clock::time_point> last() const { return end ? end : deadline; }

  // Nothing more is to be begun, not even a first answer to an instance.
  bool is_over() const { return (interrupted && interrupted()) || (last() && Clock::now() >= *last()); }

  // kDone while the search may go on.
  Status check() const {
    if (interrupted && interrupted()) return Status::kInterrupted;
    if (deadline && Clock::now() >= *deadline) return Status::kTimeLimit;
    return Status::kDone;
  }

  // For calls that end with the search, and for those that end with the run. Both live as long as this.
  StopToken stop() const {
    return StopToken([this] { return check() != Status::kDone; });
  }
  StopToken stop_at_end() const {
    return StopToken([this] { return is_over(); });
  }
};

// With a request's limits in seconds, 0: none. The run began at `start`.
inline SearchControl within_limits(Clock::time_point start, double time_limit, double limit_each = 0.0) {
  SearchControl control;
  if (time_limit > 0.0) control.deadline = start + duration_of(time_limit);
  if (limit_each > 0.0) control.each = duration_of(limit_each);
  return control;
}

// By how much the clock must be ahead of a search's own count before the search follows the clock.
inline constexpr double kClockLead = 0.05;

// The share of a search that is over: `counted` by its own steps, or by the time limit where the clock is
// clearly ahead of them. The second sets `hurried`: then the answer depends on the clock, even with all
// steps.
inline double share_gone(double counted, Clock::time_point start, const SearchControl& control,
                         std::atomic<bool>& hurried) {
  if (!control.deadline) return counted;
  const std::chrono::duration<double> gone = Clock::now() - start, all = *control.deadline - start;
  const double by_clock = std::clamp(gone.count() / std::max(all.count(), 1e-9), 0.0, 1.0);
  if (by_clock <= counted + kClockLead) return counted;
  hurried = true;
  return by_clock;
}

// With `each` as the deadline of `turns` instances that are searched one after the other from now on.
inline SearchControl limit_each(const SearchControl& control, int64_t turns) {
  SearchControl limited = control;
  if (!control.each) return limited;
  const Clock::time_point last = Clock::now() + *control.each * turns;
  limited.end = control.last();
  if (!limited.deadline || last < *limited.deadline) limited.deadline = last;
  return limited;
}

// Rollouts of n items that one call may hold: 16,384, or 4 million items (some 50 MB with their features).
// Where the rules read numbers of pairs, 32 million numbers (256 MB).
inline int64_t largest_call(const Problem& problem, int n) {
  const int64_t items = std::max(n, 1), most = std::clamp<int64_t>(4'000'000 / items, 1, 16384);
  if (!reads_pairs(problem)) return most;
  return std::clamp<int64_t>(32'000'000 / (items * number_rows(problem.kind, std::max(n, 1))), 1, most);
}

// Grows with what one rollout of n items costs: the recurrences are linear in n, the attention is quadratic.
inline double rollout_work(int n) { return n * (320.0 + n); }

// The part of the time left for `work` units when `all_work` units, these included, are still to be done.
inline SearchControl share_time(const SearchControl& control, double work, double all_work) {
  SearchControl share = control;
  if (!control.deadline || work >= all_work) return share;
  const Clock::time_point now = Clock::now();
  if (*control.deadline <= now) return share;
  const std::chrono::duration<double> left = *control.deadline - now;
  share.end = control.last();
  share.deadline = now + std::chrono::duration_cast<Clock::duration>(left * (work / all_work));
  return share;
}

}  // namespace pointsman
