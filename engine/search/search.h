// SPDX-License-Identifier: Apache-2.0
// The searches of Bello et al. 2017, section 4 (greedy decoding, sampling, active search), and the place of
// those that need no network. A search by batches is a struct of options and an overload of run_search(); one
// by instances is a function. All of them answer in the user's units with solutions that
// validate_solution() has checked.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <variant>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "kernels/tools/worker_threads.h"
#include "models/config.h"

namespace pointsman {

// What a search is asked about: instances of one size and problem, at least one.
struct SearchBatch {
  InstancePointers instances;
  std::vector<uint64_t> keys;  // [instances] from instance_key(): what their draws depend on
};

// What it found.
struct SearchResult {
  // Of each instance the best distinct answers, best first, at least one.
  std::vector<std::vector<Solution>> candidates;
  PolicyStatistics statistics;  // of the backend's calls
};

// Greedy decoding and sampling. Which input sequences the samples of one instance are spread over: with
// `augment` 8 sample s reads dihedral copy s mod 8 (problems with symmetries only); with `shuffle` every
// block of 16 samples of a copy (every single one when greedy) reads the items in a random order of its own.
// Both are functions of the sample's index alone, so a run can be cut into chunks.
struct SamplingOptions {
  bool greedy = false;
  int64_t samples = 1280;    // per instance; greedy without augment and shuffle makes 1
  int64_t first_sample = 0;  // samples first .. first + samples - 1 of the instance's endless sequence
  int augment = 1;           // 1 or 8
  bool shuffle = false;
  Policy policy;
  uint64_t seed = kDefaultSeed;
  // Where all are infeasible (TSPTW) as many follow, up to ten times.
  int candidates = 1;  // how many distinct best samples to return per instance (for improvement)
};

struct ActiveSearchProgress {
  int64_t instance;                   // index in the batch
  int step;                           // 1-based
  double batch_mean, baseline, best;  // user's units
};

using StepReport = std::function<void(const ActiveSearchProgress&)>;

// For a search of some instances of a batch: tells `report`, unless it is empty, their places in the batch.
inline StepReport report_places(StepReport report, const std::vector<size_t>& places) {
  if (!report) return {};
  return [report = std::move(report), &places](ActiveSearchProgress progress) {
    progress.instance = static_cast<int64_t>(places[static_cast<size_t>(progress.instance)]);
    report(progress);
  };
}

// Algorithm 2 of the paper with the decisions of docs/decisions.md: each instance trains a copy of the
// `initial` parameters of its own. Replica r of step t (from 0) is sample t * replicas + r of its instance
// and reads input_order(seed, key, t * replicas + r): an order of its own at every step. The answer is the
// best tour ever drawn.
struct ActiveSearchOptions {
  std::span<const float> initial;  // [layout.size]
  int steps = 5000;
  int replicas = 128;  // B of the paper
  float learning_rate = 1e-3f;
  // kAttention, from a trained model: efficient active search (Hottung et al. 2022). A step then ends before
  // the recurrences and the encoder.
  Learned learned = Learned::kAll;
  float baseline_decay = 0.99f;  // alpha
  // Baseline: mean of the other replicas. The moving average would lag behind a temperature that falls.
  bool leave_one_out = false;
  // T0 >= 0, network units. Instead of L the steps lower the free energy L + T log p, T falling from T0 to 0
  // over the steps or the time limit, whichever is nearer its end (variational annealing, Hibat-Allah et al.
  // 2021). 0 is Algorithm 2 to the letter.
  double entropy = 0.0;
  int augment = 1;  // 8: replica r reads dihedral copy r mod 8 (problems with symmetries only)
  Policy policy;
  uint64_t seed = kDefaultSeed;
  StepReport on_step;  // after each step, once for each instance
};

// Iterated 2-opt and Or-opt without a network, one tour of each instance, by TwoOptDevice::two_opt(): the
// tours of `seed` and an instance's key, the same on every device. It measures in the plane, as the networks
// do, also where the instance's metric rounds. Instances of fewer than kFewestTourCities cities have no room
// for it: local_search() answers these.
struct TwoOptOptions {
  static constexpr int kKicksPerCity = 64;

  // After the first local optimum; none: as many as a time limit allows, or without one kKicksPerCity a city.
  std::optional<int64_t> kicks = {};
  uint64_t seed = kDefaultSeed;
  bool fills_limit = true;  // false: kicks of no number do not use the time that a limit leaves
};

// A search without a network (heuristics.h, exact, local), called for one instance at a time, from several
// threads at once. `workers`: threads that it may use, or null.
using InstanceSearch = std::function<Solution(const Instance& instance, uint64_t key,
                                              const SearchControl& control, WorkerThreads* workers)>;

using SearchOptions = std::variant<SamplingOptions, ActiveSearchOptions, TwoOptOptions, InstanceSearch>;

// Sampling makes its rollouts by calls of Backend::rollout() with parameter set 0 as it is loaded; active
// search configures the backend anew and leaves it so. Where `control` says stop, the answers are the best so
// far, or unsolved, and their status says so. Throws std::invalid_argument for options that make no sense,
// std::logic_error when the network's answer is invalid.
SearchResult run_search(const RolloutCall& rollout, const ModelConfig& config, const SearchBatch& batch,
                        const SamplingOptions& options, const SearchControl& control);
SearchResult run_search(Backend& backend, const ModelConfig& config, const SearchBatch& batch,
                        const ActiveSearchOptions& options, const SearchControl& control);
SearchResult run_search(Backend& backend, const SearchBatch& batch, const TwoOptOptions& options,
                        const SearchControl& control);

}  // namespace pointsman
