// SPDX-License-Identifier: Apache-2.0
// From a mixed batch of instances to answers: groups them by size, cuts the groups into batches, searches,
// improves.
#pragma once

#include <cstdint>
#include <functional>
#include <span>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "engine/search/improve.h"
#include "engine/search/search.h"
#include "models/config.h"

namespace pointsman {

// How to solve, with every choice made.
struct SolvePlan {
  bool active = false;  // active search instead of sampling (greedy is a way of sampling)
  SamplingOptions sampling;
  ActiveSearchOptions active_search;  // instances_at_once is taken from batch_size
  std::span<const float> initial;     // active search: where it starts
  bool improve = false;               // local search from the `sampling.keep` best answers; TSP only
  ImproveOptions improvement;         // the kicks are those of the best tour that comes of it
  int batch_size = 0;                 // instances handled together; 0: chosen
  std::function<void(const ActiveSearchProgress&)> on_step;  // active search; instances by their place
};

// Solves instances of one problem; sampling uses parameter set 0 as it is loaded, active search configures
// the backend anew. Every instance gets a valid answer: where a limit strikes first it is the best so far, at
// least one sample's, and its status says so. A deadline is shared among the batches by their work. The
// instance in place i draws with instance_key(instance, first_row + i). on_solution, when given, is called in
// input order. What the backend counted is added to `statistics`. control.interrupted may be asked from
// several threads at once.
SolutionBatch solve_instances(Backend& backend, const ModelConfig& config, const SolvePlan& plan,
                              std::span<const Instance> instances, uint64_t first_row,
                              const SearchControl& control, PolicyStatistics& statistics,
                              const std::function<void(size_t, const Solution&)>& on_solution = {});

}  // namespace pointsman
