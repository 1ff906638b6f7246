// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <limits>
#include <map>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/schedule/schedule.h"
#include "engine/search/limits.h"
#include "engine/search/sequence_packer.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

constexpr int64_t kDefaultSamples = 1280;
constexpr int kDefaultSteps = 5000;
constexpr int kImprovedSamples = 16;  // how many of the best distinct samples local search starts from
constexpr float kUntrainedRate = 1e-3f;
constexpr double kUntrainedEntropy =
    0.2;  // tours are random above some 0.15 network units and ordered below 0.1
constexpr double kTrainedRateShare = 0.01;  // of the rate that the model was trained with

ProblemKind problem_of(const ModelConfig& config) {
  return config.problem == "knapsack" ? ProblemKind::kKnapsack : ProblemKind::kTsp;
}

void check_instances(const Model& model, const InstanceBatch& instances) {
  for (const Instance& instance : instances) {
    if (instance.n() < 1) throw std::invalid_argument("an instance without items");
    if (instance.problem != problem_of(model.config)) {
      throw std::invalid_argument("the model solves " + model.config.problem +
                                  ", the instance is another problem");
    }
  }
}

SamplingOptions sampling_options(const SolveOptions& options, bool is_tsp, bool improve) {
  const bool automatic = options.mode == Mode::kAuto;
  SamplingOptions sampling;
  sampling.greedy = options.mode == Mode::kGreedy;
  sampling.augment = options.augment != 0 ? options.augment : automatic && is_tsp ? 8 : 1;
  sampling.shuffle = options.shuffle >= 0 ? options.shuffle != 0 : automatic;
  sampling.samples = options.samples != 0 ? options.samples
                     : sampling.greedy    ? sampling.augment
                                          : kDefaultSamples;
  if (sampling.greedy && !sampling.shuffle) {
    sampling.samples = std::min<int64_t>(sampling.samples, sampling.augment);
  }
  sampling.first_sample = options.first_sample;
  sampling.temperature = options.temperature;
  sampling.clip = options.clip;
  sampling.stop_at_first_misfit = options.stop_at_first_misfit;
  sampling.seed = options.seed;
  sampling.keep = improve ? kImprovedSamples : 1;
  return sampling;
}

ActiveSearchOptions active_options(const SolveOptions& options, const ModelConfig& config) {
  if (options.steps < 0 || options.steps >= int64_t{1} << 31) {
    throw std::invalid_argument("active search: cannot make " + std::to_string(options.steps) + " steps");
  }
  ActiveSearchOptions active;
  active.steps = options.steps > 0 ? static_cast<int>(options.steps) : kDefaultSteps;
  active.batch = options.active_batch;
  active.learning_rate = options.learning_rate > 0.0f ? options.learning_rate
                         : options.untrained          ? kUntrainedRate
                                             : static_cast<float>(config.learning_rate * kTrainedRateShare);
  active.leave_one_out = options.untrained;
  active.entropy = options.entropy >= 0.0 ? options.entropy : options.untrained ? kUntrainedEntropy : 0.0;
  const bool is_tsp = problem_of(config) == ProblemKind::kTsp;
  active.augment = options.augment != 0 ? options.augment : is_tsp && !options.untrained ? 8 : 1;
  active.seed = options.seed;
  return active;
}

SolvePlan make_plan(const SolveOptions& options, const Model& model) {
  const bool is_tsp = problem_of(model.config) == ProblemKind::kTsp;
  const bool automatic = options.mode == Mode::kAuto;
  SolvePlan plan;
  plan.active = options.mode == Mode::kActive;
  plan.improve = is_tsp && (options.improve >= 0 ? options.improve != 0 : automatic);
  plan.improvement.kicks = options.kicks;
  plan.improvement.seed = options.seed;
  plan.sampling = sampling_options(options, is_tsp, plan.improve);
  plan.active_search = active_options(options, model.config);
  plan.initial = model.parameters;
  plan.batch_size = options.batch_size;
  plan.on_step = options.on_step;
  return plan;
}

SolveReport report_of(const SolvePlan& plan, Mode mode) {
  SolveReport report;
  report.mode = mode;
  report.samples = plan.active ? static_cast<int64_t>(plan.active_search.steps) * plan.active_search.batch
                               : plan.sampling.samples;
  report.augment = plan.active ? plan.active_search.augment : plan.sampling.augment;
  report.shuffle = plan.active || plan.sampling.shuffle;
  report.improve = plan.improve;
  return report;
}

// log p of answers that the network can reach, in the instances' own order of items. All of one size.
std::vector<double> score_batch(Backend& backend, const ModelConfig& config,
                                const std::vector<Instance>& instances,
                                const std::vector<const Solution*>& solutions, float temperature) {
  const int n = instances[0].n();
  SequencePacker packer(instances, config.capacity);
  std::vector<int32_t> forced(instances.size() * n, -1);
  for (size_t i = 0; i < instances.size(); ++i) {
    packer.add(i, 0, {});
    std::copy(solutions[i]->order.begin(), solutions[i]->order.end(), forced.begin() + i * n);
  }
  RolloutRequest request;
  request.sequences = packer.batch();
  request.decode = Decode::kForced;
  request.temperature = temperature;
  request.forced = forced.data();
  RolloutResult result;
  backend.rollout(request, result);
  return std::move(result.log_probs);
}

}  // namespace

struct Engine::State {
  std::unique_ptr<Backend> backend;
  std::string note;
  bool is_loaded = false;  // does set 0 of the backend hold `parameters`?
  ModelConfig config;
  std::vector<float> parameters;

  void load(const Model& model) {
    const ModelConfig& other = model.config;
    if (is_loaded && config.problem == other.problem && config.hidden == other.hidden &&
        config.glimpses == other.glimpses && config.clip == other.clip &&
        config.centre_logits == other.centre_logits && config.has_critic == other.has_critic &&
        parameters == model.parameters) {
      return;
    }
    is_loaded = false;
    backend->configure(other, 1);
    backend->load_parameters(0, model.parameters);
    config = other;
    parameters = model.parameters;
    is_loaded = true;
  }
};

Engine::Engine(const BackendOptions& options) : state_(std::make_unique<State>()) {
  state_->backend = make_backend(options, &state_->note);
}

Engine::~Engine() = default;

DeviceInfo Engine::device() const { return state_->backend->info(); }

const std::string& Engine::device_note() const { return state_->note; }

Backend& Engine::backend() {
  state_->is_loaded = false;  // the caller may configure it
  return *state_->backend;
}

SolutionBatch Engine::solve(const Model& model, const InstanceBatch& instances, uint64_t first_row,
                            const SolveOptions& options, const SearchControl& control, SolveReport& report,
                            const std::function<void(size_t, const Solution&)>& on_solution) {
  const Clock::time_point start = Clock::now();
  check_instances(model, instances);
  SolvePlan plan = make_plan(options, model);
  report = report_of(plan, options.mode);
  ModelConfig config = model.config;
  std::vector<float> fresh;
  if (plan.active) {
    state_->is_loaded = false;
    if (options.clip > 0.0f) config.clip = options.clip;
    if (options.untrained) plan.initial = fresh = initial_parameters(config, options.seed);
  } else {
    state_->load(model);
  }
  SolutionBatch solutions = solve_instances(*state_->backend, config, plan, instances, first_row, control,
                                            report.statistics, on_solution);
  report.solving_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return solutions;
}

std::vector<double> Engine::score(const Model& model, const InstanceBatch& instances,
                                  const SolutionBatch& solutions, float temperature) {
  check_instances(model, instances);
  if (solutions.size() != instances.size())
    throw std::invalid_argument("score: one solution for each instance");
  if (!(temperature > 0.0f)) throw std::invalid_argument("score: expected a temperature above 0");
  state_->load(model);
  std::vector<double> log_probs(instances.size(), std::numeric_limits<double>::quiet_NaN());
  std::map<int, std::vector<size_t>> by_size;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (is_reachable(instances[i], solutions[i])) by_size[instances[i].n()].push_back(i);
  }
  for (const auto& [n, places] : by_size) {
    const auto at_once = static_cast<size_t>(largest_call(n));
    for (size_t first = 0; first < places.size(); first += at_once) {
      const size_t last = std::min(first + at_once, places.size());
      std::vector<Instance> batch;
      std::vector<const Solution*> orders;
      for (size_t i = first; i < last; ++i) {
        batch.push_back(instances[places[i]]);
        orders.push_back(&solutions[places[i]]);
      }
      const std::vector<double> scores =
          score_batch(*state_->backend, model.config, batch, orders, temperature);
      for (size_t i = first; i < last; ++i) log_probs[places[i]] = scores[i - first];
    }
  }
  return log_probs;
}

}  // namespace pointsman
