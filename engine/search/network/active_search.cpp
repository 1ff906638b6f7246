// SPDX-License-Identifier: Apache-2.0
// Algorithm 2 of Bello et al. 2017 for many instances at once, each with weights of its own.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "engine/problem/network_input.h"
#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
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
class ActiveSearch {
 public:
  ActiveSearch(Backend& backend, const ModelConfig& config, const SearchBatch& batch,
               const ActiveSearchOptions& options)
      : backend_(backend),
        instances_(batch.instances),
        keys_(batch.keys),
        options_(options),
        shares_encodings_(!reads_order(config.encoder)),
        packer_(instances_, config.capacity),
        searched_(instances_.size()) {}

  // One step of Algorithm 2 (lines 4 to 12), of the free energy L + T log p in place of L: all replicas, the
  // incumbents that they improve, and their policy gradient with an Adam step. Where a stop comes first
  // nothing is learnt. False when it left some of the replicas unmade.
  bool learn(int step, double temperature, const StopToken& stop) {
    LearnRequest request;
    request.rollouts = draws(step, options_.replicas, stop);
    request.weigh = [&](const RolloutResult& drawn) { return weights_of(drawn, step, temperature); };
    request.learned = options_.learned;
    request.sets = static_cast<int>(instances_.size());
    request.update.learning_rate = options_.learning_rate;
    request.update.max_norm = kMaxNorm;
    backend_.learn(request, result_);
    keep(request.rollouts);
    return result_.finished.empty();
  }

  // Of each instance one replica of the first step, as far as the stop lets.
  void draw_one(const StopToken& stop) {
    const RolloutRequest request = draws(0, 1, stop);
    backend_.rollout(request, result_);
    keep(request);
  }

  bool has_all() const {
    return std::all_of(searched_.begin(), searched_.end(), [](const Searched& own) { return own.has_best; });
  }

  void report(int step) const {
    if (!options_.on_step) return;
    for (size_t i = 0; i < instances_.size(); ++i) {
      const double unit = sign_of(problem_of(instances_[i])) * searched_[i].scale;
      options_.on_step({static_cast<int64_t>(i), step + 1, unit * mean_cost(i), unit * searched_[i].baseline,
                        searched_[i].best.objective});
    }
  }

  SearchResult result(Status status) {
    SearchResult result;
    for (Searched& own : searched_) {
      own.best.status = status;
      result.candidates.push_back({own.has_best ? std::move(own.best) : unsolved()});
    }
    result.statistics = statistics_;
    return result;
  }

 private:
  // The replicas of step `step`. Each reads a sequence in an order of its own, or where that makes no
  // difference those of a symmetry share one.
  RolloutRequest draws(int step, int replicas, const StopToken& stop) {
    const int n = instances_[0].n(), augment = options_.augment;
    const int sequences = shares_encodings_ ? std::min(augment, replicas) : replicas;
    packer_.clear();
    sequence_keys_.clear();
    samples_.clear();
    counts_.clear();
    for (size_t i = 0; i < instances_.size(); ++i) {
      for (int r = 0; r < sequences; ++r) {
        const auto sample = static_cast<uint32_t>(static_cast<int64_t>(step) * options_.replicas + r);
        packer_.add(
            i, r % augment,
            shares_encodings_ ? std::vector<int32_t>{} : input_order(options_.seed, keys_[i], sample, n),
            static_cast<int32_t>(i));
        sequence_keys_.push_back(keys_[i]);
        samples_.push_back(sample);
        counts_.push_back((replicas - r + augment - 1) / augment);
      }
    }
    RolloutRequest request;
    request.sequences = packer_.batch();
    request.decode = Decode::kSample;
    request.instance_keys = sequence_keys_.data();
    request.first_samples = samples_.data();
    if (shares_encodings_) request.counts = counts_.data();
    request.sample_stride = static_cast<uint32_t>(augment);
    request.seed = options_.seed;
    request.policy = options_.policy;
    request.tape = &tape_;
    request.stop = stop;
    return request;
  }

  // What the request's replicas add to the search.
  void keep(const RolloutRequest& request) {
    statistics_ += result_.statistics;
    const int sequences = request.sequences.count / static_cast<int>(instances_.size());
    const int replicas = static_cast<int>(result_.costs.size() / instances_.size());
    for (size_t i = 0; i < instances_.size(); ++i) keep_best(i, replicas, sequences);
  }

  // The baseline is the batch's own mean at the first step (a baseline of 0 would push every tour away).
  std::vector<float> weights_of(const RolloutResult& drawn, int step, double temperature) {
    const int batch = options_.replicas;
    std::vector<float> weights(drawn.costs.size());
    std::vector<double> energies(batch);
    for (size_t i = 0; i < instances_.size(); ++i) {
      double mean = 0.0;
      for (int r = 0; r < batch; ++r) {
        energies[r] = drawn.costs[i * batch + r] + temperature * drawn.log_probs[i * batch + r];
        mean += energies[r];
      }
      mean /= batch;
      double& baseline = searched_[i].baseline;
      if (step == 0) baseline = mean;
      for (int r = 0; r < batch; ++r) {
        const double expected =
            options_.leave_one_out ? (mean * batch - energies[r]) / (batch - 1) : baseline;
        weights[i * batch + r] = static_cast<float>((energies[r] - expected) / batch);
      }
      baseline = options_.baseline_decay * baseline + (1.0 - options_.baseline_decay) * mean;
    }
    return weights;
  }
  double mean_cost(size_t i) const {
    double sum = 0.0;
    for (int r = 0; r < options_.replicas; ++r) sum += result_.costs[i * options_.replicas + r];
    return sum / options_.replicas;
  }

  void keep_best(size_t i, int replicas, int sequences) {
    const auto begin = result_.costs.begin() + static_cast<int64_t>(i) * replicas;
    const size_t rollout = std::min_element(begin, begin + replicas, costs_less) - result_.costs.begin();
    const double cost = result_.costs[rollout];
    Searched& own = searched_[i];
    if (std::isnan(cost) || (own.has_best && !(cost < own.least_cost))) return;
    own.least_cost = cost;
    Solution solution;
    // The sequences of an instance that shares them have all the user's order.
    const size_t sequence = shares_encodings_ ? i * sequences : rollout;
    solution.order = packer_.original_order(sequence, &result_.orders[rollout * instances_[i].n()]);
    require_valid(instances_[i], solution, kInvalidAnswer);
    solution.log_prob = result_.log_probs[rollout];
    solution.network_objective = solution.objective;
    if (!own.has_best) own.scale = unit_scale(solution, cost);
    // A rounded metric may disagree with the network's length.
    if (!own.has_best || is_better(instances_[i].problem, solution.objective, own.best.objective))
      own.best = std::move(solution);
    own.has_best = true;
  }

  Backend& backend_;
  const std::span<const Instance> instances_;
  const std::span<const uint64_t> keys_;
  const ActiveSearchOptions& options_;
  const bool shares_encodings_;
  SequencePacker packer_;
  std::vector<uint64_t> sequence_keys_;  // of the sequences packed, with
  std::vector<uint32_t> samples_;        // their first samples
  std::vector<int32_t> counts_;          // and numbers of rollouts
  std::vector<Searched> searched_;
  RolloutResult result_;
  Tape tape_;  // of the same rollouts
  PolicyStatistics statistics_;
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
  check_options(options, config, batch.instances[0].problem);
  const int sets = static_cast<int>(batch.instances.size());
  backend.configure(config, sets);
  // Loading zeroes moments and gradients too, so nothing that an earlier batch learnt is left.
  for (int set = 0; set < sets; ++set) backend.load_parameters(set, options.initial);
  ActiveSearch search(backend, config, batch, options);
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
