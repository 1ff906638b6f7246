// SPDX-License-Identifier: Apache-2.0
// From a mixed batch of instances to answers: groups them by size, cuts the groups into batches, searches,
// improves. An InstanceSearch takes them one by one.
#pragma once

#include <optional>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/schedule/solve_job.h"
#include "engine/search/local/local_search.h"
#include "engine/search/search.h"
#include "models/config.h"

namespace pointsman {

// How to solve, with every choice made.
struct SolvePlan {
  SearchOptions search;
  // Local search from the search's candidates, with kicks for the best of them.
  std::optional<ImproveOptions> improve;
  Start start = Start::kNone;     // what the answers tell of it, where the search does not say itself
  std::optional<int> batch_size;  // instances handled together; none: chosen
};

// Devices that hold the same parameters where a network is asked, at least one. What is asked of them is
// independent of who answers.
using Devices = std::vector<Backend*>;

// Solves instances of one problem; the plan stands for the job's options. Every answer is valid: where a
// limit strikes first it is the best so far, and its status says so. Instances that no search came to are
// unsolved; one that is alone, in a run and not in a part of one (SearchControl::end), is so only after a
// signal. A deadline is shared among the batches by their work. Batches are cut as for the first device
// alone, tours without a network (TwoOptOptions) so that each device has its share, and go to whichever
// device is free: the answers are those of one device. What a device throws ends the run; what was handed out
// before stays. Returns what the devices counted.
PolicyStatistics solve_instances(const Devices& devices, const ModelConfig& config, const SolvePlan& plan,
                                 const SolveJob& job);

}  // namespace pointsman
