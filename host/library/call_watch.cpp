// SPDX-License-Identifier: Apache-2.0
#include "host/library/call_watch.h"

namespace pointsman {

namespace {

constexpr std::chrono::milliseconds kBetween(8);

}  // namespace

bool CallWatch::is_cancelled() {
  if (cancelled_ || options_.progress == nullptr) return cancelled_;
  const Clock::duration now = Clock::now() - start_;
  if (now < due_.load()) return false;
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock || cancelled_ || now < due_.load()) return cancelled_;
  const pointsman_progress progress = {.size = sizeof progress,
                                       .instances = instances_,
                                       .answered = answered_,
                                       .seconds = std::chrono::duration<double>(now).count(),
                                       .step = step_};
  if (options_.progress(options_.progress_user, &progress) != 0) cancelled_ = true;
  due_ = Clock::now() - start_ + kBetween;
  return cancelled_;
}

SearchControl CallWatch::control(const SolveRequest& request) {
  SearchControl control = within_limits(start_, request.time_limit, request.limit_each);
  if (options_.progress != nullptr) control.interrupted = [this] { return is_cancelled(); };
  return control;
}

}  // namespace pointsman
