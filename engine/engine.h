// SPDX-License-Identifier: Apache-2.0
// The C++ facade, which the command line and the library bindings are built on. Reads no files, prints
// nothing.
#pragma once

#include <cstdint>
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
#include "engine/schedule/schedule.h"
#include "engine/schedule/solve_job.h"
#include "engine/search/mode.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"

namespace pointsman {

// What was really done, for the summary.
struct SolveReport {
  Mode mode = Mode::kAuto;
  // Per instance, 0: nothing was solved; none: parts of the run differ in it.
  std::optional<int64_t> samples = 0;
  std::optional<int> augment = 1;  // likewise
  bool shuffle = false, improve = false;
  double solving_ms = 0.0;
  PolicyStatistics statistics;
};

// Whether the options ask a network for anything; auto does where branch and bound might not be enough.
inline bool needs_network(const SolveOptions& options) {
  return info_of(options.mode).has_network && (options.mode != Mode::kAuto || options.network);
}
inline bool can_use_network(const SolveOptions& options, const Problem& problem) {
  return needs_network(options) || (options.mode == Mode::kAuto && !problem.has_local_search);
}

// What several devices are called together: "cuda:all", "2 x NVIDIA H200, sm_90, 139 GiB".
DeviceInfo describe(const std::vector<std::unique_ptr<Backend>>& backends);

class Engine {
 public:
  explicit Engine(const BackendOptions& options)
      : options_(options), backends_(make_backends(options, &note_)) {}
  // One device or several of a kind, which share the work.
  explicit Engine(std::vector<std::unique_ptr<Backend>> backends, std::string note = {})
      : note_(std::move(note)), backends_(std::move(backends)) {}

  // What the last call computed on; before the first one, what it was made of.
  DeviceInfo device() const { return describe(on_fallback_ ? fallback_ : backends_); }
  const std::string& device_note() const { return note_; }  // why "auto" fell back; empty when it did not
  // Whether active search of the problem computes on the CPU: the only device, or, of "auto", the one with
  // gradients.
  bool learns_on_cpu(ProblemKind problem) const;
  // The first device.
  Backend& backend() {
    loaded_.reset();  // the caller may configure it
    return *backends_[0];
  }

  // Solves instances of one problem, of any sizes, with one model; null where the mode needs none. Auto
  // without `network` uses it for the packings that branch and bound does not finish, if there is one.
  SolveReport solve(const Model* model, const SolveJob& job);

  // log p of given solutions under the model, [instances]; NaN where the order is not feasible for the
  // network. A stop ends it with CallStopped.
  std::vector<double> score(const Model& model, std::span<const Instance> instances,
                            std::span<const Solution> solutions, float temperature = 1.0f,
                            const StopToken& stop = {});

 private:
  void load(const Model& model);
  void choose_devices(bool learns, ProblemKind problem, bool rereads = false);
  Devices devices() const;
  SolveReport run(const Model* model, const SolveJob& job);
  SolveReport run_exact_first(const Model* model, const SolveJob& job);

  std::string note_;
  std::optional<BackendOptions> options_;  // none: the devices were given
  std::vector<std::unique_ptr<Backend>> backends_;
  std::vector<std::unique_ptr<Backend>> fallback_;  // what "auto" uses where CUDA lacks the kernels
  bool on_fallback_ = false;
  std::optional<Model> loaded_;  // whose parameters are set 0 of each backend
};

}  // namespace pointsman
