// SPDX-License-Identifier: Apache-2.0
// When a search must stop.
#pragma once

#include <chrono>
#include <functional>
#include <optional>

#include "engine/problem/instance.h"

namespace pointsman {

using Clock = std::chrono::steady_clock;

// Asked between backend calls. Both limits keep the best found so far.
struct SearchControl {
  std::optional<Clock::time_point> deadline;
  std::function<bool()> interrupted;  // may be empty

  // kDone while the search may go on.
  Status check() const {
    if (interrupted && interrupted()) return Status::kInterrupted;
    if (deadline && Clock::now() >= *deadline) return Status::kTimeLimit;
    return Status::kDone;
  }
};

}  // namespace pointsman
