// SPDX-License-Identifier: Apache-2.0
// How a long call learns that it should end.
#pragma once

#include <exception>
#include <functional>
#include <utility>

namespace pointsman {

// Thrown out of work that a stop token ended; what it was to make is not whole.
class CallStopped : public std::exception {
 public:
  const char* what() const noexcept override { return "stopped"; }
};

class StopToken {
 public:
  StopToken() = default;  // never stops anything
  // `asked` is called from several threads at once, after every fraction of a millisecond of work; once true
  // it stays so.
  explicit StopToken(std::function<bool()> asked) : asked_(std::move(asked)) {}

  bool can_stop() const { return static_cast<bool>(asked_); }
  bool stops() const { return asked_ && asked_(); }
  // Throws CallStopped where the work should end.
  void check() const {
    if (stops()) throw CallStopped();
  }

 private:
  std::function<bool()> asked_;
};

// The same for steps that take less time than the question.
class StopMeter {
 public:
  explicit StopMeter(const StopToken* token) : token_(token) {}  // null: never stops

  // Counts the work ahead, in items that a network looks at.
  void check(int items) {
    work_ += items + 1;
    if (work_ < kItemsPerCheck) return;
    work_ = 0;
    if (token_ != nullptr) token_->check();
  }

 private:
  static constexpr int kItemsPerCheck = 2048;  // some 0.1 ms
  const StopToken* token_;
  int work_ = 0;
};

}  // namespace pointsman
