// SPDX-License-Identifier: Apache-2.0
#include "host/command/best_lines.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "engine/problem/problem.h"
#include "host/formats/text_scan.h"
#include "host/formats/write_solutions.h"
#include "host/run/log.h"

namespace pointsman {

namespace {

constexpr double kApart = 0.05;      // seconds
constexpr double kRounding = 1e-12;  // of sums of the same edges
constexpr double kApartShare = 0.1;  // of the time that has passed

}  // namespace

void BestLines::follow(SearchControl& control) {
  control.on_best = [this](double objective) { report(objective); };
  control.interrupted = [this, asked = control.interrupted] {
    show();
    return asked && asked();
  };
}

void BestLines::report(double objective) {
  {
    const std::lock_guard lock(mutex_);
    const bool is_same = std::abs(objective - best_) <= kRounding * std::abs(best_);
    if (has_best_ && (is_same || !is_better(instance_.problem, objective, best_))) return;
    has_best_ = true;
    best_ = objective;
    found_at_ = seconds_now();
    is_waiting_ = true;
  }
  show();
}

void BestLines::show(bool now) {
  if (!is_waiting_ || (!now && seconds_now() < next_)) return;
  const std::lock_guard lock(mutex_);
  if (!is_waiting_.exchange(false)) return;
  const double seconds = seconds_now();
  next_ = seconds + std::max(kApart, kApartShare * seconds);
  std::string text = printed("%9.3f s  %s %s", found_at_, problem_of(instance_).objective_key,
                             short_objective_text(instance_, best_).c_str());
  const double percent = 100 * gap(instance_.problem, best_, reference_);
  if (!std::isnan(percent)) text += printed(", gap %.3f%%", percent);
  log_info(text);
}

}  // namespace pointsman
