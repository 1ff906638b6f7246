// SPDX-License-Identifier: Apache-2.0
// Search strategies of Bello et al. 2017, section 4: greedy decoding, sampling, active search. All of them
// answer in the user's units with solutions that validate.h has checked.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <stdexcept>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "models/config.h"

namespace pointsman {

using Clock = std::chrono::steady_clock;

// Asked between backend calls. Both limits keep the best found so far.
struct SearchControl {
  std::optional<Clock::time_point> deadline;
  std::function<bool()> interrupted;  // may be empty

  // kDone while the search may go on.
  Status check() const {
    if (interrupted && interrupted()) return Status::kInterrupted;
    if (deadline && Clock::now() >= *deadline) return Status::kTimeLimit;
    return Status::kDone;
  }
};

// Which input sequences the samples of one instance are spread over. With `augment` 8 sample s reads dihedral
// copy s mod 8 (TSP only); with `shuffle` every block of 16 samples of a copy (every single one when greedy)
// reads the cities in a random order of its own. Both are functions of the sample's index alone, so a run can
// be cut into chunks.
struct SamplingOptions {
  bool greedy = false;
  int64_t samples = 1280;    // per instance; greedy without augment and shuffle makes 1
  int64_t first_sample = 0;  // samples first .. first + samples - 1 of the instance's endless sequence
  int augment = 1;           // 1 or 8
  bool shuffle = false;
  float temperature = 1.0f;
  float clip = 0.0f;  // 0: the model's
  bool stop_at_first_misfit = false;
  uint64_t seed = 1234;
  int keep = 1;  // how many distinct best samples to return per instance (for improvement)
};

struct SampledInstance {
  std::vector<Solution> best;  // 1 .. keep, best first; never empty
  int64_t samples = 0;         // drawn; fewer than asked when a limit struck
};

// Every instance must have the same n and problem. keys: [instances] from instance_key(). Parameter set 0 is
// used. An instance always gets at least one sample, even past the deadline. What the calls counted is added
// to `statistics`. Throws std::invalid_argument for options that make no sense, std::logic_error when the
// network's answer is invalid.
std::vector<SampledInstance> sample_search(Backend& backend, const ModelConfig& config,
                                           std::span<const Instance> instances,
                                           std::span<const uint64_t> keys, const SamplingOptions& options,
                                           const SearchControl& control,
                                           PolicyStatistics* statistics = nullptr);

// Algorithm 2 of the paper with the decisions of docs/decisions.md.
struct ActiveSearchOptions {
  int steps = 5000;
  int batch = 128;               // replicas B, each with an input order of its own
  float learning_rate = 1e-3f;   // 1e-3 untrained; the model's own / 100 from a trained one
  float baseline_decay = 0.99f;  // alpha
  // Baseline: mean of the other replicas instead of the moving average, which lags behind a temperature that
  // falls.
  bool leave_one_out = false;
  // T0 >= 0, network units. Instead of L the steps lower the free energy L + T log p, T falling from T0 to 0
  // over the steps or the time limit, whichever is nearer its end (variational annealing, Hibat-Allah et al.
  // 2021). 0 is Algorithm 2 to the letter.
  double entropy = 0.0;
  int augment = 1;  // 8: replica r reads dihedral copy r mod 8 (TSP only)
  uint64_t seed = 1234;
  int instances_at_once = 0;  // parameter sets held; 0: by memory
};

struct ActiveSearchProgress {
  int64_t instance;                   // index in the span
  int step;                           // 1-based
  double batch_mean, baseline, best;  // user's units
};

// Instances of n items that active search handles at once by default: 128 MiB of weights, gradients and Adam
// moments, and fewer where a step of `batch` replicas each would keep a limit waiting.
int active_instances_at_once(const ModelConfig& config, int batch, int n);

// Searches each instance from `initial` parameters ([layout.size], the same for each; weights, moments and
// baseline are reset between instances). Every instance must have the same n and problem. Replica r of step t
// (from 0) is sample t * batch + r of its instance and reads input_order(seed, key, t * batch + r): an order
// of its own at every step. Each instance's answer is the best tour it ever drew. At a time limit an instance
// whose turn never came gets the one sample 0. Leaves the backend configured for its own parameter sets.
// `progress` is called after each step, once for each instance; what the calls counted is added to
// `statistics`.
std::vector<Solution> active_search(Backend& backend, const ModelConfig& config,
                                    std::span<const float> initial, std::span<const Instance> instances,
                                    std::span<const uint64_t> keys, const ActiveSearchOptions& options,
                                    const SearchControl& control,
                                    const std::function<void(const ActiveSearchProgress&)>& progress = {},
                                    PolicyStatistics* statistics = nullptr);

}  // namespace pointsman
