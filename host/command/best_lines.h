// SPDX-License-Identifier: Apache-2.0
// How the answer to one instance improves, for the person at the terminal.
#pragma once

#include <atomic>
#include <mutex>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"

namespace pointsman {

// A line of the log for each better answer: when it was found, what it costs and its gap. Lines stand a
// twentieth of a second apart, later a tenth of the time that has passed; of what comes in between the best
// is told as soon as its turn comes.
class BestLines {
 public:
  // reference: what to compare with; NaN: nothing. The instance must outlive it.
  BestLines(const Instance& instance, double reference) : instance_(instance), reference_(reference) {}

  // Tells of all that a search with this control finds from now on. This must outlive the control.
  void follow(SearchControl& control);

  // From any thread.
  void report(double objective);
  // Tells what is held back, if its turn has come, or `now`.
  void show(bool now = false);

 private:
  const Instance& instance_;
  const double reference_;
  std::mutex mutex_;
  bool has_best_ = false;
  double best_ = 0.0, found_at_ = 0.0;  // seconds from the start of the program
  std::atomic<bool> is_waiting_{false};
  std::atomic<double> next_{0.0};
};

}  // namespace pointsman
