// SPDX-License-Identifier: Apache-2.0
// What a run is given: instances, how to solve them, until when, and who takes the solutions.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <numeric>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "engine/search/mode.h"
#include "engine/search/search.h"

namespace pointsman {

// What none says is the mode's own choice: that of SamplingOptions, ActiveSearchOptions, TwoOptOptions or
// ImproveOptions unless noted.
struct SolveOptions {
  Mode mode = Mode::kAuto;
  std::optional<int64_t> samples;  // of an instance; greedy: 1 or `augment`
  int64_t first_sample = 0;
  std::optional<int> batch_size;  // instances per backend call
  Policy policy;
  std::optional<int> augment;  // 1 or 8; auto, and active from a model: 8 for problems with symmetries
  std::optional<bool> shuffle, improve;  // auto: yes; else no
  // Local search: kicks of the best tour after its local optimum; auto and local: default_kicks(),
  // 2opt: kKicksPerCity of TwoOptOptions a city, with a limit as many as it leaves time for; else none.
  std::optional<int64_t> kicks;
  bool fills_limit = true;       // false: more instances may come before the limit, so these do not use it up
  bool network = false;          // auto: the samples of the network come first in any case
  std::optional<int64_t> steps;  // active search
  std::optional<int> replicas;   // active search
  std::optional<Learned> learned;      // active search: from a trained model the attention, else all
  std::optional<float> learning_rate;  // active search: from a trained model a share of the model's own, 0.2
                                       // for the attention and 0.01 for all
  // Active search: temperature it anneals from. From fresh parameters 0.2; of n > 20 cities 0.2 (20 / n)^1.5.
  std::optional<double> entropy;
  bool untrained = false;  // active search: start from fresh parameters instead of the model's
  uint64_t seed = kDefaultSeed;
  StepReport on_step;  // active search: after each step of each instance
};

// Takes the solution of the instance in place `index`, in input order; from any thread, one at a time.
using SolutionSink = std::function<void(size_t index, Solution&& solution)>;

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

// The instances belong to the caller and must outlive the job.
struct SolveJob {
  SolveJob() = default;
  // Instance i has row first_row + i.
  explicit SolveJob(std::span<const Instance> batch, uint64_t first_row = 0, SolveOptions how = {},
                    SearchControl until = {}, SolutionSink to = {})
      : instances(pointers_to(batch)),
        rows(batch.size()),
        options(std::move(how)),
        control(std::move(until)),
        sink(std::move(to)) {
    std::iota(rows.begin(), rows.end(), first_row);
  }

  // The instances in some places, with the same options and limits and without a sink. Steps of active
  // search are still reported by their places in this job. `places` must outlive the part.
  SolveJob part(const std::vector<size_t>& places) const {
    SolveJob some;
    for (const size_t place : places) {
      some.instances.push_back(instances[place]);
      some.rows.push_back(rows[place]);
    }
    some.options = options;
    some.options.on_step = report_places(options.on_step, places);
    some.control = control;
    return some;
  }

  size_t size() const { return instances.size(); }

  InstancePointers instances;
  // [instances] Row number in the file or stream: the draws of an instance depend on it, or on the
  // instance's id, never on the batch.
  std::vector<uint64_t> rows;
  SolveOptions options;
  SearchControl control;
  SolutionSink sink;
};

}  // namespace pointsman
