// SPDX-License-Identifier: Apache-2.0
// Algorithm 2 of Bello et al. 2017 for many instances at once, each with weights of its own.
#include <algorithm>
#include <atomic>
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

constexpr float kMaxNorm = 1.0f;  // global L2 norm that gradients are clipped to

// What one instance carries from step to step. Baseline and least cost are in network units.
struct Searched {
  Solution best = unsolved();
  double least_cost = std::numeric_limits<double>::infinity();
  double scale = 1.0;  // user's units in one network unit, from the first answer
  double baseline = 0.0;

  bool is_solved() const { return best.status != Status::kUnsolved; }
};

// All instances of a batch, searched in parallel with parameter sets 0, 1, ..
struct ActiveSearch {
  Backend& backend;
  const ModelConfig& config;
  const SearchBatch& batch;
  const ActiveSearchOptions& options;

  const InstancePointers& instances = batch.instances;
  const bool shares_encodings = !reads_order(config.encoder);
  SequencePacker packer = SequencePacker(instances, config.capacity);
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
    request.update = {.learning_rate = options.learning_rate, .max_norm = kMaxNorm};
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

  void report(int step) const {
    if (!options.on_step) return;
    for (size_t i = 0; i < instances.size(); ++i) {
      const double unit = sign_of(problem_of(*instances[i])) * searched[i].scale;
      double sum = 0.0;
      for (int r = 0; r < options.replicas; ++r) sum += rollouts.costs[i * options.replicas + r];
      options.on_step({static_cast<int64_t>(i), step + 1, unit * (sum / options.replicas),
                       unit * searched[i].baseline, searched[i].best.objective});
    }
  }

  SearchResult result(Status status) {
    SearchResult result;
    for (Searched& own : searched) {
      if (own.is_solved()) own.best.status = status;
      result.candidates.push_back({std::move(own.best)});
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
    for (size_t i = 0; i < instances.size(); ++i) {
      for (int r = 0; r < sequences; ++r) {
        Draws one = {batch.keys[i], static_cast<uint32_t>(static_cast<int64_t>(step) * options.replicas + r)};
        if (shares_encodings) one.count = (replicas - r + augment - 1) / augment;
        one.parameter_set = static_cast<int32_t>(i);
        packer.add(i, r % augment,
                   shares_encodings ? std::vector<int32_t>()
                                    : input_order(options.seed, one.key, one.first_sample, n,
                                                  problem_of(*instances[0]).depots()),
                   one);
      }
    }
    RolloutRequest request = packer.sequences().request();
    request.decode = Decode::kSample;
    request.sample_stride = static_cast<uint32_t>(augment);
    request.seed = options.seed;
    request.policy = options.policy;
    request.policy.penalty = 2.0 * n;  // TSPTW: more than a tour is long, and no more than that needs
    request.tape = &tape;
    request.stop = stop;
    return request;
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

  // What the request's replicas add to the search.
  void keep(const RolloutRequest& request) {
    statistics += rollouts.statistics;
    const size_t sequences = request.sequences.count / instances.size();
    const auto replicas = static_cast<int64_t>(rollouts.costs.size() / instances.size());
    for (size_t i = 0; i < instances.size(); ++i) {
      const auto begin = rollouts.costs.begin() + static_cast<int64_t>(i) * replicas;
      const size_t rollout = std::min_element(begin, begin + replicas, costs_less) - rollouts.costs.begin();
      // The sequences of an instance that shares them have all the user's order.
      keep(i, rollout, shares_encodings ? i * sequences : rollout);
    }
  }

  // A rollout of instance i that read a sequence.
  void keep(size_t i, size_t rollout, size_t sequence) {
    const double cost = rollouts.costs[rollout];
    Searched& own = searched[i];
    if (std::isnan(cost) || (own.is_solved() && !(cost < own.least_cost))) return;
    own.least_cost = cost;
    Solution solution;
    solution.order = packer.answer(sequence, &rollouts.orders[rollout * packer.sequences().steps()]);
    require_valid(*instances[i], solution, kInvalidAnswer);
    solution.log_prob = rollouts.log_probs[rollout];
    solution.network_objective = solution.objective;
    const double scale = solution.unrounded / std::abs(cost);
    const bool is_first = !own.is_solved() || own.best.violation > 0.0;
    if (is_first && std::isfinite(scale) && scale > 0.0) own.scale = scale;
    // A rounded metric may disagree with the network's length.
    if (!own.is_solved() || is_better(instances[i]->problem, solution, own.best))
      own.best = std::move(solution);
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
    control.report.trace_call("step", int64_t{sets} * options.replicas, began);
  }
  if (!std::ranges::all_of(search.searched, &Searched::is_solved) && !control.is_over())
    search.draw_one(control.stop_at_end());
  const bool by_clock = hurried && options.entropy > 0.0;
  return search.result(status == Status::kDone && by_clock ? Status::kTimeLimit : status);
}

}  // namespace pointsman
