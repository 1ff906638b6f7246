// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <utility>

#include "engine/schedule/solve_job.h"

namespace pointsman {

// Answers become final in any order and leave in the input's.
class AnswersInOrder {
 public:
  explicit AnswersInOrder(const SolutionSink& sink) : sink_(sink) {}

  // Of the instance in place `place`, once. Hands out all whose turn has come.
  void put(size_t place, Solution&& solution) {
    if (place != next_) return void(waiting_.emplace(place, std::move(solution)));
    sink_(next_++, std::move(solution));
    for (; !waiting_.empty() && waiting_.begin()->first == next_; waiting_.erase(waiting_.begin()))
      sink_(next_++, std::move(waiting_.begin()->second));
  }

 private:
  const SolutionSink& sink_;
  std::map<size_t, Solution> waiting_;  // for the answers before them, by place
  size_t next_ = 0;
};

}  // namespace pointsman
