// SPDX-License-Identifier: Apache-2.0
// From a mixed batch of instances to answers: groups them by size, cuts the groups into batches, searches,
// improves. An InstanceSearch takes them one by one.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "engine/schedule/solve_job.h"
#include "engine/search/local/tour_search.h"
#include "engine/search/search.h"
#include "models/config.h"

namespace pointsman {

// How to solve, with every choice made.
struct SolvePlan {
  SearchOptions search;
  std::optional<ImproveOptions>
      improve;                 // local search from the search's candidates, with kicks for the best of them
  Start start = Start::kNone;  // what the answers tell of it, where the search does not say itself
  std::optional<int> batch_size;  // instances handled together; none: chosen
};

// Devices that hold the same parameters where a network is asked, at least one. What is asked of them is
// independent of who answers.
using Devices = std::vector<Backend*>;

// Calls work(item, device) for every item in [0, items), on all devices at once, each busy with one item. The
// first exception is thrown again, and the items not yet begun are dropped.
void share_out(const Devices& devices, int64_t items,
               const std::function<void(int64_t item, Backend& device)>& work);

// Solves instances of one problem. Every answer is valid: where a limit strikes first it is the best
// so far, and its status says so. Instances that no search came to are unsolved; one that is alone, in a run
// and not in a part of one (SearchControl::end), is so only after a signal. A deadline is shared among the
// batches by their work. The plan stands for the job's options. ActiveSearchProgress::instance is a place in
// the job. control.interrupted may be asked from several threads at once. Batches are cut as for the first
// device alone, tours without a network (TwoOptOptions) so that each device has its share, and go to
// whichever device is free: the answers are those of one device. What a device throws ends the run; what was
// handed out before stays. Returns what the devices counted.
PolicyStatistics solve_instances(const Devices& devices, const ModelConfig& config, const SolvePlan& plan,
                                 const SolveJob& job);

}  // namespace pointsman
