// SPDX-License-Identifier: Apache-2.0
// Algorithm 2 of Bello et al. 2017 for many instances at once, each with weights of its own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/limits.h"
#include "engine/search/search.h"
#include "engine/search/sequence_packer.h"
#include "models/parameter_layout.h"

namespace pointsman {
namespace {

// For parameters, gradients and moments of all instances: in the host's memory, in a device's own.
constexpr double kHostBytes = 128.0 * (1 << 20), kDeviceBytes = 32.0 * kHostBytes;
constexpr float kMaxNorm = 1.0f;  // global L2 norm that gradients are clipped to

// What one instance carries from step to step. Baseline and least cost are in network units.
struct Searched {
  Solution best;
  bool has_best = false;
  double least_cost = std::numeric_limits<double>::infinity();
  double scale = 1.0;  // user's units in one network unit
  double baseline = 0.0;
};

// User's units in one network unit, from an answer measured in both.
double unit_scale(const Solution& solution, double network_cost) {
  const double scale = solution.unrounded / std::abs(network_cost);
  return std::isfinite(scale) && scale > 0.0 ? scale : 1.0;
}

// All instances of a batch, searched in parallel with parameter sets 0, 1, ..
struct ActiveSearch {
  Backend& backend;
  const ModelConfig& config;
  const SearchBatch& batch;
  const ActiveSearchOptions& options;

  const std::span<const Instance* const> instances = batch.instances;
  const std::span<const uint64_t> keys = batch.keys;
  const bool shares_encodings = !reads_order(config.encoder);
  SequencePacker packer = SequencePacker(instances, config.capacity);
  std::vector<uint64_t> sequence_keys = {};  // of the sequences packed, with
  std::vector<uint32_t> samples = {};        // their first samples
  std::vector<int32_t> counts = {};          // and numbers of rollouts
  std::vector<Searched> searched = std::vector<Searched>(instances.size());
  RolloutResult rollouts = {};
  Tape tape = {};  // of the same rollouts
  PolicyStatistics statistics = {};

  // One step of Algorithm 2 (lines 4 to 12), of the free energy L + T log p in place of L: all replicas, the
  // incumbents that they improve, and their policy gradient with an Adam step. Where a stop comes first
  // nothing is learnt. False when it left some of the replicas unmade.
  bool learn(int step, double temperature, const StopToken& stop) {
    LearnRequest request;
    request.rollouts = draws(step, options.replicas, stop);
    request.weigh = [&](const RolloutResult& drawn) { return weights_of(drawn, step, temperature); };
    request.learned = options.learned;
    request.sets = static_cast<int>(instances.size());
    request.update.learning_rate = options.learning_rate;
    request.update.max_norm = kMaxNorm;
    backend.learn(request, rollouts);
    keep(request.rollouts);
    return rollouts.finished.empty();
  }

  // Of each instance one replica of the first step, as far as the stop lets.
  void draw_one(const StopToken& stop) {
    const RolloutRequest request = draws(0, 1, stop);
    backend.rollout(request, rollouts);
    keep(request);
  }

  bool has_all() const {
    return std::all_of(searched.begin(), searched.end(), [](const Searched& own) { return own.has_best; });
  }

  void report(int step) const {
    if (!options.on_step) return;
    for (size_t i = 0; i < instances.size(); ++i) {
      const double unit = sign_of(problem_of(*instances[i])) * searched[i].scale;
      options.on_step({static_cast<int64_t>(i), step + 1, unit * mean_cost(i), unit * searched[i].baseline,
                       searched[i].best.objective});
    }
  }

  SearchResult result(Status status) {
    SearchResult result;
    for (Searched& own : searched) {
      own.best.status = status;
      result.candidates.push_back({own.has_best ? std::move(own.best) : unsolved()});
    }
    result.statistics = statistics;
    return result;
  }

  // The replicas of step `step`. Each reads a sequence in an order of its own, or where that makes no
  // difference those of a symmetry share one.
  RolloutRequest draws(int step, int replicas, const StopToken& stop) {
    const int n = instances[0]->n(), augment = options.augment;
    const int sequences = shares_encodings ? std::min(augment, replicas) : replicas;
    packer.clear();
    sequence_keys.clear();
    samples.clear();
    counts.clear();
    for (size_t i = 0; i < instances.size(); ++i) {
      for (int r = 0; r < sequences; ++r) {
        const auto sample = static_cast<uint32_t>(static_cast<int64_t>(step) * options.replicas + r);
        packer.add(i, r % augment,
                   shares_encodings ? std::vector<int32_t>{} : input_order(options.seed, keys[i], sample, n),
                   static_cast<int32_t>(i));
        sequence_keys.push_back(keys[i]);
        samples.push_back(sample);
        counts.push_back((replicas - r + augment - 1) / augment);
      }
    }
    RolloutRequest request;
    request.sequences = packer.batch();
    request.decode = Decode::kSample;
    request.instance_keys = sequence_keys.data();
    request.first_samples = samples.data();
    if (shares_encodings) request.counts = counts.data();
    request.sample_stride = static_cast<uint32_t>(augment);
    request.seed = options.seed;
    request.policy = options.policy;
    request.tape = &tape;
    request.stop = stop;
    return request;
  }

  // What the request's replicas add to the search.
  void keep(const RolloutRequest& request) {
    statistics += rollouts.statistics;
    const int sequences = request.sequences.count / static_cast<int>(instances.size());
    const int replicas = static_cast<int>(rollouts.costs.size() / instances.size());
    for (size_t i = 0; i < instances.size(); ++i) keep_best(i, replicas, sequences);
  }

  // The baseline is the batch's own mean at the first step (a baseline of 0 would push every tour away).
  std::vector<float> weights_of(const RolloutResult& drawn, int step, double temperature) {
    const int replicas = options.replicas;
    std::vector<float> weights(drawn.costs.size());
    std::vector<double> energies(replicas);
    for (size_t i = 0; i < instances.size(); ++i) {
      double mean = 0.0;
      for (int r = 0; r < replicas; ++r) {
        energies[r] = drawn.costs[i * replicas + r] + temperature * drawn.log_probs[i * replicas + r];
        mean += energies[r];
      }
      mean /= replicas;
      double& baseline = searched[i].baseline;
      if (step == 0) baseline = mean;
      for (int r = 0; r < replicas; ++r) {
        const double expected =
            options.leave_one_out ? (mean * replicas - energies[r]) / (replicas - 1) : baseline;
        weights[i * replicas + r] = static_cast<float>((energies[r] - expected) / replicas);
      }
      baseline = options.baseline_decay * baseline + (1.0 - options.baseline_decay) * mean;
    }
    return weights;
  }
  double mean_cost(size_t i) const {
    double sum = 0.0;
    for (int r = 0; r < options.replicas; ++r) sum += rollouts.costs[i * options.replicas + r];
    return sum / options.replicas;
  }

  void keep_best(size_t i, int replicas, int sequences) {
    const auto begin = rollouts.costs.begin() + static_cast<int64_t>(i) * replicas;
    const size_t rollout = std::min_element(begin, begin + replicas, costs_less) - rollouts.costs.begin();
    const double cost = rollouts.costs[rollout];
    Searched& own = searched[i];
    if (std::isnan(cost) || (own.has_best && !(cost < own.least_cost))) return;
    own.least_cost = cost;
    Solution solution;
    // The sequences of an instance that shares them have all the user's order.
    const size_t sequence = shares_encodings ? i * sequences : rollout;
    solution.order = packer.original_order(sequence, &rollouts.orders[rollout * instances[i]->n()]);
    require_valid(*instances[i], solution, kInvalidAnswer);
    solution.log_prob = rollouts.log_probs[rollout];
    solution.network_objective = solution.objective;
    if (!own.has_best) own.scale = unit_scale(solution, cost);
    // A rounded metric may disagree with the network's length.
    if (!own.has_best || is_better(instances[i]->problem, solution.objective, own.best.objective))
      own.best = std::move(solution);
    own.has_best = true;
  }
};

void check_options(const ActiveSearchOptions& options, const ModelConfig& config, ProblemKind problem) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("active search: " + what); };
  if (options.steps < 1) refuse("expected at least one step, found " + std::to_string(options.steps));
  if (options.replicas < 1)
    refuse("expected at least one replica, found " + std::to_string(options.replicas));
  if (options.augment != 1 && (options.augment != 8 || !problem_of(problem).has_symmetries)) {
    refuse("expected augment 1, or 8 for TSP, found " + std::to_string(options.augment));
  }
  if (!(options.entropy >= 0.0) || !std::isfinite(options.entropy)) {
    refuse("expected an entropy temperature of 0 or more, found " + std::to_string(options.entropy));
  }
  if (options.leave_one_out && options.replicas < 2) refuse("leaving one out takes two replicas");
  if (static_cast<int64_t>(options.steps) * options.replicas > int64_t{1} << 32) {
    refuse("more than 2^32 samples of one instance");
  }
  if (options.initial.size() != ParameterLayout(config).size) {
    refuse("the model has " + std::to_string(ParameterLayout(config).size) + " parameters, found " +
           std::to_string(options.initial.size()));
  }
}

}  // namespace

int instances_at_once(const ActiveSearchOptions& options, const DeviceInfo& device) {
  const auto most = static_cast<int64_t>((device.uses_host ? kHostBytes : kDeviceBytes) /
                                         (4.0 * sizeof(float) * options.initial.size()));
  return static_cast<int>(
      std::clamp<int64_t>(device.rollouts / options.replicas, 1, std::max<int64_t>(most, 1)));
}

SearchResult run_search(Backend& backend, const ModelConfig& config, const SearchBatch& batch,
                        const ActiveSearchOptions& options, const SearchControl& control) {
  check_options(options, config, batch.instances[0]->problem);
  const int sets = static_cast<int>(batch.instances.size());
  backend.configure(config, sets);
  // Loading zeroes moments and gradients too, so nothing that an earlier batch learnt is left.
  for (int set = 0; set < sets; ++set) backend.load_parameters(set, options.initial);
  ActiveSearch search{backend, config, batch, options};
  const Clock::time_point start = Clock::now();
  Status status = control.check();
  std::atomic<bool> hurried{false};
  for (int step = 0; step < options.steps && status == Status::kDone; ++step) {
    const Clock::time_point began = Clock::now();
    const double done = share_gone(static_cast<double>(step) / options.steps, start, control, hurried);
    const bool drawn = search.learn(step, options.entropy * (1.0 - done), control.stop());
    if (drawn) search.report(step);
    if (!drawn || step + 1 < options.steps) status = control.check();
    control.trace_call("step", int64_t{sets} * options.replicas, began);
  }
  if (!search.has_all() && !control.is_over()) search.draw_one(control.stop_at_end());
  const bool by_clock = hurried && options.entropy > 0.0;
  return search.result(status == Status::kDone && by_clock ? Status::kTimeLimit : status);
}

}  // namespace pointsman
