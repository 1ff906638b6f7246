// SPDX-License-Identifier: Apache-2.0
// The C++ facade: what the command line and the library bindings are built on. Reads no files and prints
// nothing.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/generate.h"
#include "engine/problem/instance.h"
#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "engine/schedule/schedule.h"
#include "engine/search/local/tour_search.h"
#include "engine/search/mode.h"
#include "engine/search/search.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"

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
  // Local search: kicks of the best tour after its local optimum; auto and local: kKicksPerCity of
  // ImproveOptions a city, 2opt: that of TwoOptOptions, with a limit as many as it leaves time for; else
  // none.
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

// What was really done, for the summary.
struct SolveReport {
  Mode mode = Mode::kAuto;
  int64_t samples = 0;  // per instance
  int augment = 1;
  bool shuffle = false, improve = false;
  double solving_ms = 0.0;
  PolicyStatistics statistics;
};

// Whether the options ask a network for anything; auto does where branch and bound might not be enough.
bool needs_network(const SolveOptions& options);
bool can_use_network(const SolveOptions& options, const Problem& problem);

// What several devices are called together: "cuda:all", "2 x NVIDIA H200, sm_90, 139 GiB".
DeviceInfo describe(const std::vector<std::unique_ptr<Backend>>& backends);

class Engine {
 public:
  explicit Engine(const BackendOptions& options) : backends_(make_backends(options, &note_)) {}
  // One device or several of a kind, which share the work.
  explicit Engine(std::vector<std::unique_ptr<Backend>> backends, std::string note = {})
      : note_(std::move(note)), backends_(std::move(backends)) {}

  DeviceInfo device() const { return describe(backends_); }
  const std::string& device_note() const { return note_; }  // why "auto" fell back; empty when it did not
  // The first device.
  Backend& backend() {
    is_loaded_ = false;  // the caller may configure it
    return *backends_[0];
  }

  // Solves instances of one problem, of any sizes, with one model; null where the mode needs none. Auto
  // without `network` uses it for the packings that branch and bound does not finish, if there is one.
  // rows[i] is the row number of instance i in its file or stream: its draws depend on it (or on the
  // instance's id), never on the batch. `sink` takes the answers in input order as they become final.
  SolveReport solve(const Model* model, const InstanceBatch& instances, std::span<const uint64_t> rows,
                    const SolveOptions& options, const SearchControl& control, const SolutionSink& sink);

  // log p of given solutions under the model, [instances]; NaN where the order is not feasible for the
  // network. A stop ends it with CallStopped.
  std::vector<double> score(const Model& model, const InstanceBatch& instances,
                            const SolutionBatch& solutions, float temperature = 1.0f,
                            const StopToken& stop = {});

 private:
  void load(const Model& model);
  Devices devices() const;
  SolveReport run(const Model* model, const InstanceBatch& instances, std::span<const uint64_t> rows,
                  const SolveOptions& options, const SearchControl& control, const SolutionSink& sink);
  SolveReport run_exact_first(const Model* model, const InstanceBatch& instances,
                              std::span<const uint64_t> rows, const SolveOptions& options,
                              const SearchControl& control, const SolutionSink& sink);

  std::string note_;
  std::vector<std::unique_ptr<Backend>> backends_;
  bool is_loaded_ = false;  // does set 0 of each backend hold these parameters?
  ModelConfig config_;
  std::vector<float> parameters_;
};

}  // namespace pointsman
