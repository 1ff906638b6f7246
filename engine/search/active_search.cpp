// SPDX-License-Identifier: Apache-2.0
// Algorithm 2 of Bello et al. 2017 for many instances at once, each with weights of its own.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <string>

#include "engine/problem/network_input.h"
#include "engine/problem/validate.h"
#include "engine/search/limits.h"
#include "engine/search/search.h"
#include "engine/search/sequence_packer.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

constexpr double kParameterBytes = 128.0 * (1 << 20);
constexpr double kStepWork = 2.5e7;  // some 600 rollouts of 100 cities
constexpr float kMaxNorm = 1.0f;     // global L2 norm that gradients are clipped to

// What one instance carries from step to step. Baseline and least cost are in network units.
struct Searched {
  Solution best;
  bool has_best = false;
  double least_cost = std::numeric_limits<double>::infinity();
  double scale = 1.0;  // user's units in one network unit
  double baseline = 0.0;
};

// User's units in one network unit, from an answer measured in both.
double unit_scale(const Instance& instance, const Solution& solution, double network_cost) {
  const bool is_tsp = instance.problem == ProblemKind::kTsp;
  const double user_cost = is_tsp ? solution.cost_euclidean : solution.cost;
  const double scale = user_cost / std::abs(network_cost);
  return std::isfinite(scale) && scale > 0.0 ? scale : 1.0;
}

// One wave: instances first .. first + size - 1, searched in parallel with parameter sets 0 .. size - 1.
class Wave {
 public:
  Wave(Backend& backend, const ModelConfig& config, std::span<const Instance> instances,
       std::span<const uint64_t> keys, const ActiveSearchOptions& options)
      : backend_(backend),
        instances_(instances),
        keys_(keys),
        options_(options),
        packer_(instances, config.capacity),
        searched_(instances.size()) {}

  // All replicas of step `step`, and the incumbents they improve.
  void draw(int step, int replicas) {
    const int n = instances_[0].n();
    packer_.clear();
    std::vector<uint64_t> sequence_keys;
    std::vector<uint32_t> samples;
    for (size_t i = 0; i < instances_.size(); ++i) {
      for (int r = 0; r < replicas; ++r) {
        const auto sample = static_cast<uint32_t>(static_cast<int64_t>(step) * options_.batch + r);
        packer_.add(i, r % options_.augment, input_order(options_.seed, keys_[i], sample, n),
                    static_cast<int32_t>(i));
        sequence_keys.push_back(keys_[i]);
        samples.push_back(sample);
      }
    }
    RolloutRequest request;
    request.sequences = packer_.batch();
    request.decode = Decode::kSample;
    request.instance_keys = sequence_keys.data();
    request.first_samples = samples.data();
    request.seed = options_.seed;
    request.keep = true;
    backend_.rollout(request, result_);
    statistics_ += result_.statistics;
    for (size_t i = 0; i < instances_.size(); ++i) keep_best(i, replicas);
  }

  // The policy gradient of the replicas just drawn and one Adam step: lines 6 to 12 of Algorithm 2, of the
  // free energy L + T log p in place of L. The baseline is the batch's own mean at the first step (a baseline
  // of 0 would push every tour away).
  void learn(int step, double temperature) {
    const int batch = options_.batch;
    std::vector<float> weights(result_.costs.size());
    std::vector<double> energies(batch);
    for (size_t i = 0; i < instances_.size(); ++i) {
      double mean = 0.0;
      for (int r = 0; r < batch; ++r) {
        energies[r] = result_.costs[i * batch + r] + temperature * result_.log_probs[i * batch + r];
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
    GradientRequest request;
    request.sequences = packer_.batch();
    request.orders = result_.orders.data();
    request.weights = weights.data();
    request.kept = true;
    backend_.gradient(request);
    UpdateRequest update;
    update.learning_rate = options_.learning_rate;
    update.max_norm = kMaxNorm;
    backend_.update(0, static_cast<int>(instances_.size()), update);
  }

  void report(size_t first, int step,
              const std::function<void(const ActiveSearchProgress&)>& progress) const {
    for (size_t i = 0; i < instances_.size(); ++i) {
      const bool is_tsp = instances_[i].problem == ProblemKind::kTsp;
      const double unit = is_tsp ? searched_[i].scale : -searched_[i].scale;
      progress({static_cast<int64_t>(first + i), step + 1, unit * mean_cost(i), unit * searched_[i].baseline,
                searched_[i].best.cost});
    }
  }

  Solution answer(size_t i, Status status) {
    searched_[i].best.status = status;
    return std::move(searched_[i].best);
  }

  const PolicyStatistics& statistics() const { return statistics_; }

 private:
  double mean_cost(size_t i) const {
    double sum = 0.0;
    for (int r = 0; r < options_.batch; ++r) sum += result_.costs[i * options_.batch + r];
    return sum / options_.batch;
  }

  void keep_best(size_t i, int replicas) {
    const auto begin = result_.costs.begin() + static_cast<int64_t>(i) * replicas;
    const size_t rollout = std::min_element(begin, begin + replicas) - result_.costs.begin();
    const double cost = result_.costs[rollout];
    Searched& own = searched_[i];
    if (own.has_best && !(cost < own.least_cost)) return;
    own.least_cost = cost;
    Solution solution;
    solution.order = packer_.original_order(rollout, &result_.orders[rollout * instances_[i].n()]);
    check_answer(instances_[i], solution);
    solution.log_prob = result_.log_probs[rollout];
    solution.network_cost = solution.cost;
    if (!own.has_best) own.scale = unit_scale(instances_[i], solution, cost);
    // A rounded metric may disagree with the network's length.
    if (!own.has_best || is_better(instances_[i], solution.cost, own.best.cost))
      own.best = std::move(solution);
    own.has_best = true;
  }

  Backend& backend_;
  const std::span<const Instance> instances_;
  const std::span<const uint64_t> keys_;
  const ActiveSearchOptions& options_;
  SequencePacker packer_;
  std::vector<Searched> searched_;
  RolloutResult result_;
  PolicyStatistics statistics_;
};

void check_options(const ActiveSearchOptions& options, const ModelConfig& config, ProblemKind problem,
                   std::span<const float> initial) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("active search: " + what); };
  if (options.steps < 1) refuse("expected at least one step, found " + std::to_string(options.steps));
  if (options.batch < 1) refuse("expected at least one replica, found " + std::to_string(options.batch));
  if (options.augment != 1 && (options.augment != 8 || problem != ProblemKind::kTsp)) {
    refuse("expected augment 1, or 8 for TSP, found " + std::to_string(options.augment));
  }
  if (!(options.entropy >= 0.0) || !std::isfinite(options.entropy)) {
    refuse("expected an entropy temperature of 0 or more, found " + std::to_string(options.entropy));
  }
  if (options.leave_one_out && options.batch < 2) refuse("leaving one out takes two replicas");
  if (static_cast<int64_t>(options.steps) * options.batch > int64_t{1} << 32) {
    refuse("more than 2^32 samples of one instance");
  }
  if (initial.size() != ParameterLayout(config).size) {
    refuse("the model has " + std::to_string(ParameterLayout(config).size) + " parameters, found " +
           std::to_string(initial.size()));
  }
}

// Share of the time limit that has passed since `start`; 0 without a limit.
double time_used(const SearchControl& control, Clock::time_point start) {
  if (!control.deadline) return 0.0;
  const std::chrono::duration<double> used = Clock::now() - start, all = *control.deadline - start;
  return std::clamp(used.count() / std::max(all.count(), 1e-9), 0.0, 1.0);
}

// Runs one wave to its end or to a limit.
Status run_wave(Backend& backend, std::span<const float> initial, const ActiveSearchOptions& options,
                const SearchControl& control, Wave& wave, size_t first, size_t size,
                const std::function<void(const ActiveSearchProgress&)>& progress) {
  // Loading zeroes moments and gradients too, so nothing an earlier wave learnt is left.
  for (size_t set = 0; set < size; ++set) backend.load_parameters(static_cast<int>(set), initial);
  Status status = control.check();
  if (status != Status::kDone) {
    wave.draw(0, 1);
    return status;
  }
  const Clock::time_point start = Clock::now();
  for (int step = 0; step < options.steps; ++step) {
    wave.draw(step, options.batch);
    const bool is_last = step + 1 == options.steps;
    if (!is_last) status = control.check();
    if (status == Status::kDone) {
      const double left =
          1.0 - std::max(static_cast<double>(step) / options.steps, time_used(control, start));
      wave.learn(step, options.entropy * left);
    }
    if (progress) wave.report(first, step, progress);
    if (status != Status::kDone) break;
  }
  return status;
}

}  // namespace

int active_instances_at_once(const ModelConfig& config, int batch, int n) {
  const double by_memory = kParameterBytes / (4.0 * sizeof(float) * ParameterLayout(config).size);
  const double by_work = kStepWork / (batch * rollout_work(n));
  return static_cast<int>(std::clamp(std::min(by_memory, by_work), 1.0, 1024.0));
}

std::vector<Solution> active_search(Backend& backend, const ModelConfig& config,
                                    std::span<const float> initial, std::span<const Instance> instances,
                                    std::span<const uint64_t> keys, const ActiveSearchOptions& options,
                                    const SearchControl& control,
                                    const std::function<void(const ActiveSearchProgress&)>& progress,
                                    PolicyStatistics* statistics) {
  if (instances.empty()) return {};
  check_options(options, config, instances[0].problem, initial);
  const size_t at_once = options.instances_at_once > 0
                             ? options.instances_at_once
                             : active_instances_at_once(config, options.batch, instances[0].n());
  const size_t sets = std::min(at_once, instances.size());
  backend.configure(config, static_cast<int>(sets));
  std::vector<Solution> answers;
  for (size_t first = 0; first < instances.size(); first += sets) {
    const size_t size = std::min(sets, instances.size() - first);
    const SearchControl share =
        share_time(control, static_cast<double>(size), static_cast<double>(instances.size() - first));
    Wave wave(backend, config, instances.subspan(first, size), keys.subspan(first, size), options);
    const Status status = run_wave(backend, initial, options, share, wave, first, size, progress);
    for (size_t i = 0; i < size; ++i) answers.push_back(wave.answer(i, status));
    if (statistics) *statistics += wave.statistics();
  }
  return answers;
}

}  // namespace pointsman
