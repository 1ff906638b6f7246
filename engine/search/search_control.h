// SPDX-License-Identifier: Apache-2.0
// When a search must stop, and who wants to know what it does.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "engine/problem/instance.h"

namespace pointsman {

using Clock = std::chrono::steady_clock;

// Asked between backend calls. Both limits keep the best found so far.
struct SearchControl {
  std::optional<Clock::time_point> deadline;
  std::function<bool()> interrupted;  // may be empty
  std::function<void(const std::string&)> trace =
      {};  // may be empty; told of every batch and every backend call

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

}  // namespace pointsman
