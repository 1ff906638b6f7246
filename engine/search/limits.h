// SPDX-License-Identifier: Apache-2.0
// When a search must stop, who wants to know what it does, and how much work goes into one backend call, so
// that memory stays bounded and a limit is noticed soon.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "engine/problem/instance.h"

namespace pointsman {

using Clock = std::chrono::steady_clock;

// Asked between backend calls. Both limits keep the best found so far.
struct SearchControl {
  std::optional<Clock::time_point> deadline;  // of the whole run, or of a part of it
  std::function<bool()> interrupted;          // may be empty
  std::function<void(const std::string&)> trace =
      {};  // may be empty; told of every batch and every backend call
  std::function<void(const std::string&)> warn =
      {};  // may be empty; told of what went wrong and is tried again

  std::optional<Clock::time_point> end = {};  // of the whole run, where `deadline` is a part's

  // Nothing more is to be begun, not even a first answer to an instance.
  bool is_over() const {
    const auto& last = end ? end : deadline;
    return (interrupted && interrupted()) || (last && Clock::now() >= *last);
  }

  // kDone while the search may go on.
  Status check() const {
    if (interrupted && interrupted()) return Status::kInterrupted;
    if (deadline && Clock::now() >= *deadline) return Status::kTimeLimit;
    return Status::kDone;
  }

  // After a call for `rollouts` rollouts that began at `start`.
  void trace_call(const char* what, int64_t rollouts, Clock::time_point start) const {
    if (!trace) return;
    const std::chrono::duration<double, std::milli> taken = Clock::now() - start;
    trace(std::string(what) + ": " + std::to_string(rollouts) + " rollouts in " +
          std::to_string(taken.count()) + " ms");
  }
};

// Rollouts of n items that one call may hold: 16,384, or 4 million items (some 50 MB here with their
// features).
inline int64_t largest_call(int n) { return std::clamp<int64_t>(4'000'000 / std::max(n, 1), 1, 16384); }

// Grows with what one rollout of n items costs: the recurrences are linear in n, the attention is quadratic.
inline double rollout_work(int n) { return n * (320.0 + n); }

// Sizes the calls of a search that may be stopped: each should take a fifth of a second, or a quarter of the
// time left where that is less. Sizes change only how much is done before a limit strikes, never a result.
class CallPacer {
 public:
  CallPacer(const SearchControl& control, int n) : deadline_(control.deadline), largest_(largest_call(n)) {
    limited_ = deadline_.has_value() || static_cast<bool>(control.interrupted);
    size_ = limited_ ? bounded(kFirstWork / rollout_work(std::max(n, 1))) : largest_;
  }

  int64_t size() const { return size_; }

  // Tells how long a call of `rollouts` took.
  void record(int64_t rollouts, Clock::duration taken) {
    if (!limited_) return;
    double seconds = kSeconds;
    if (deadline_) {
      const std::chrono::duration<double> left = *deadline_ - Clock::now();
      seconds = std::clamp(0.25 * left.count(), kFewestSeconds, kSeconds);
    }
    const double each =
        std::max(std::chrono::duration<double>(taken).count(), 1e-9) / static_cast<double>(rollouts);
    size_ = bounded(std::min(seconds / each, 4.0 * static_cast<double>(rollouts)));
  }

 private:
  static constexpr double kFirstWork = 1e7;  // some 240 rollouts of 100 cities: well within kSeconds
  static constexpr double kSeconds = 0.2, kFewestSeconds = 0.01;

  int64_t bounded(double size) const { return std::clamp<int64_t>(static_cast<int64_t>(size), 1, largest_); }

  std::optional<Clock::time_point> deadline_;
  int64_t largest_, size_ = 1;
  bool limited_ = false;
};

// The part of the time left that `work` units may use when `all_work` units, these included, are still to be
// done.
inline SearchControl share_time(const SearchControl& control, double work, double all_work) {
  SearchControl share = control;
  if (!control.deadline || work >= all_work) return share;
  const Clock::time_point now = Clock::now();
  if (*control.deadline <= now) return share;
  const std::chrono::duration<double> left = *control.deadline - now;
  share.end = control.end ? control.end : control.deadline;
  share.deadline = now + std::chrono::duration_cast<Clock::duration>(left * (work / all_work));
  return share;
}

}  // namespace pointsman
