// SPDX-License-Identifier: Apache-2.0
// Examples of any problem for tests of supervised learning.
#pragma once

#include <memory>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/exact/timed_tours.h"
#include "engine/search/heuristics.h"
#include "engine/training/trainer.h"

namespace pointsman {

// `count` generated instances of model.n items with the solution of one pass each. model.capacity must be
// set where the problem has one.
inline std::shared_ptr<const Examples> quick_examples(const ModelConfig& model, int count) {
  InstanceBatch instances = generate_instances(model.problem, model.n, 5, 0, count);
  SolutionBatch solutions;
  for (Instance& instance : instances) {
    if (problem_of(instance).has_capacity) instance.capacity = model.capacity;
    const bool is_timed = model.problem == ProblemKind::kTsptw;  // one pass may come late
    solutions.push_back(is_timed ? exact_timed_tour(instance, {}) : quick_answer(instance));
  }
  return std::make_shared<const Examples>(make_examples(model, instances, solutions));
}

}  // namespace pointsman
