// SPDX-License-Identifier: Apache-2.0
#include "engine/engine.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <limits>
#include <map>
#include <stdexcept>
#include <utility>
#include <variant>

#include "engine/search/exact/branch_and_bound.h"
#include "engine/search/exact/colouring.h"
#include "engine/search/exact/timed_tours.h"
#include "engine/search/heuristics.h"
#include "engine/search/limits.h"
#include "engine/search/local/routes.h"
#include "engine/search/sequence_packer.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

constexpr int kImprovedSamples = 16;  // how many of the best distinct samples local search starts from
constexpr int64_t kExactBranches = int64_t{1} << 20;  // of auto: some 20 ms
// Of the rate that the model was trained with, for all parameters and for the attention's alone. Ten times
// as much for the latter makes the answers worse (docs/experiments.md).
constexpr double kTrainedRateShare = 0.01, kAttentionRateShare = 0.2;

void check_instances(const Model* model, const InstancePointers& instances) {
  for (const Instance* instance : instances) {
    if (instance->n() < 1) throw std::invalid_argument("an instance without items");
    if (model != nullptr && instance->problem != model->config.problem) {
      throw std::invalid_argument(std::string("the model solves ") + name_of(model->config.problem) +
                                  ", the instance is another problem");
    }
  }
}

SamplingOptions sampling_options(const SolveOptions& options, const Model& model, bool improve) {
  const Problem& problem = problem_of(model.config.problem);
  const bool automatic = options.mode == Mode::kAuto;
  SamplingOptions sampling;
  sampling.greedy = options.mode == Mode::kGreedy;
  sampling.augment = options.augment.value_or(automatic && problem.has_symmetries ? 8 : 1);
  sampling.shuffle = reads_order(model.config.encoder) && options.shuffle.value_or(automatic);
  sampling.samples = options.samples.value_or(sampling.greedy ? sampling.augment : sampling.samples);
  if (sampling.greedy && !sampling.shuffle) {
    sampling.samples = std::min<int64_t>(sampling.samples, sampling.augment);
  }
  sampling.first_sample = options.first_sample;
  sampling.policy = options.policy;
  sampling.seed = options.seed;
  sampling.candidates = improve ? kImprovedSamples : 1;
  return sampling;
}

// Where annealing from fresh parameters begins, in network units. Tours of 20 cities are random above some
// 0.15 and ordered below 0.1; of more cities an edge is shorter and has more rivals (docs/experiments.md).
double untrained_entropy(const ModelConfig& config) {
  constexpr double kEntropy = 0.2, kCities = 20.0;
  if (!problem_of(config.problem).has_symmetries) return kEntropy;
  return kEntropy * std::min(std::pow(kCities / config.n, 1.5), 1.0);
}

ActiveSearchOptions active_options(const SolveOptions& options, const Model& model) {
  if (model.config.reread > 0)
    throw std::invalid_argument(
        "active search: expected a model that reads an instance once, found one that re-reads");
  if (options.steps && (*options.steps < 0 || *options.steps >= int64_t{1} << 31)) {
    throw std::invalid_argument("active search: cannot make " + std::to_string(*options.steps) + " steps");
  }
  ActiveSearchOptions active;
  active.initial = model.parameters;
  if (options.steps) active.steps = static_cast<int>(*options.steps);
  active.replicas = options.replicas.value_or(active.replicas);
  active.learned = options.learned.value_or(options.untrained ? Learned::kAll : Learned::kAttention);
  const double share = active.learned == Learned::kAll ? kTrainedRateShare : kAttentionRateShare;
  const double rate =
      options.untrained ? fresh_learning_rate(model.config.encoder) : model.config.learning_rate * share;
  active.learning_rate = options.learning_rate.value_or(static_cast<float>(rate));
  active.leave_one_out = options.untrained;
  active.entropy =
      options.entropy.value_or(options.untrained ? untrained_entropy(model.config) : active.entropy);
  const bool turns = problem_of(model.config.problem).has_symmetries && !options.untrained;
  active.augment = options.augment.value_or(turns ? 8 : 1);
  active.policy = options.policy;
  active.policy.stop_at_first_misfit = false;  // Algorithm 2 is trained on packings until nothing fits
  active.seed = options.seed;
  active.on_step = options.on_step;
  return active;
}

ImproveOptions improve_options(const SolveOptions& options) {
  ImproveOptions improve = {.kicks = options.kicks, .seed = options.seed, .fills_limit = options.fills_limit};
  if (!improve.kicks && options.mode != Mode::kAuto && options.mode != Mode::kLocal) improve.kicks = 0;
  return improve;
}

InstanceSearch exact_search(int64_t most_branches) {
  return [most_branches](const Instance& instance, uint64_t, const SearchControl& control, WorkerThreads*) {
    const Problem& problem = problem_of(instance);
    return problem.has_packing  ? exact_packing(instance, control, most_branches)
           : problem.has_labels ? exact_colouring(instance, control)
                                : exact_timed_tour(instance, control);
  };
}

SearchOptions search_options(const SolveOptions& options, const Model* model, bool improve) {
  switch (options.mode == Mode::kAuto && model == nullptr ? Mode::kLocal : options.mode) {
    case Mode::kAuto:
    case Mode::kGreedy:
    case Mode::kSample:
      return sampling_options(options, *model, improve);
    case Mode::kActive:
      return active_options(options, *model);
    case Mode::kLocal:
      return [options = improve_options(options)](const Instance& instance, uint64_t,
                                                  const SearchControl& control, WorkerThreads* workers) {
        return local_search(instance, options, control, workers);
      };
    case Mode::kTwoOpt:
      return TwoOptOptions{options.kicks, options.seed, options.fills_limit};
    case Mode::kRandom:
      return [samples = options.samples.value_or(SamplingOptions().samples), seed = options.seed](
                 const Instance& instance, uint64_t key, const SearchControl& control, WorkerThreads*) {
        return random_search(instance, key, samples, seed, control);
      };
    case Mode::kRatio:
      return [](const Instance& instance, uint64_t, const SearchControl&, WorkerThreads*) {
        return ratio_packing(instance);
      };
    case Mode::kSavings:
      return [](const Instance& instance, uint64_t, const SearchControl& control, WorkerThreads*) {
        return savings_routes(instance, control);
      };
    case Mode::kDsatur:
      return [](const Instance& instance, uint64_t, const SearchControl&, WorkerThreads*) {
        return quick_answer(instance);
      };
    case Mode::kExact:
      return exact_search(std::numeric_limits<int64_t>::max());
  }
  throw std::logic_error("no such mode");
}

SolvePlan make_plan(const SolveOptions& options, const Problem& problem, const Model* model) {
  const bool samples = model != nullptr;  // auto's local search without a network is a search of its own
  const bool improve =
      samples && problem.has_local_search && options.improve.value_or(options.mode == Mode::kAuto);
  SolvePlan plan;
  plan.search = search_options(options, model, improve);
  if (improve) plan.improve = improve_options(options);
  if (options.mode == Mode::kLocal || options.mode == Mode::kAuto)
    plan.start = samples              ? Start::kNetwork
                 : problem.has_depot  ? Start::kSavings
                 : problem.has_first  ? Start::kClosingTimes
                 : problem.has_labels ? Start::kDsatur
                                      : Start::kGreedyEdges;
  plan.batch_size = options.batch_size;
  return plan;
}

SolveReport report_of(const SolvePlan& plan, const SolveOptions& options, const Model* model) {
  SolveReport report;
  report.mode = options.mode;
  report.improve = plan.improve || (plan.start != Start::kNone && plan.start != Start::kNetwork) ||
                   std::holds_alternative<TwoOptOptions>(plan.search);
  report.samples = options.mode == Mode::kRandom ? options.samples.value_or(SamplingOptions().samples) : 1;
  if (const auto* sampling = std::get_if<SamplingOptions>(&plan.search)) {
    report.samples = sampling->samples;
    report.augment = sampling->augment;
    report.shuffle = sampling->shuffle;
  } else if (const auto* active = std::get_if<ActiveSearchOptions>(&plan.search)) {
    report.samples = static_cast<int64_t>(active->steps) * active->replicas;
    report.augment = active->augment;
    report.shuffle = reads_order(model->config.encoder);
  }
  return report;
}

// log p of answers that the network can reach, in the instances' own order of items. forced:
// [instances][steps].
std::vector<double> score_batch(Backend& backend, const ModelConfig& config,
                                const InstancePointers& instances, const std::vector<int32_t>& forced,
                                float temperature, const StopToken& stop) {
  SequencePacker packer(instances, config.capacity);
  for (size_t i = 0; i < instances.size(); ++i) packer.add(i, 0, {});
  RolloutRequest request = packer.sequences().request();
  request.decode = Decode::kForced;
  request.policy.temperature = temperature;
  request.forced = forced.data();
  request.stop = stop;
  RolloutResult result;
  backend.rollout(request, result);
  if (!result.finished.empty()) throw CallStopped();
  return std::move(result.log_probs);
}

// Of a search that did not come to an end.
Status stopped_status(const SearchControl& control) {
  const Status status = control.check();
  return status == Status::kDone ? Status::kTimeLimit : status;  // a limit of the instance's own
}

}  // namespace

DeviceInfo describe(const std::vector<std::unique_ptr<Backend>>& backends) {
  DeviceInfo info = backends.at(0)->info();
  if (backends.size() == 1) return info;
  info.name += ":all";
  info.detail = std::to_string(backends.size()) + " x " + info.detail;
  return info;
}

bool Engine::learns_on_cpu(ProblemKind problem) const {
  return backends_[0]->info().name == "cpu" || (options_ && options_->device == "auto" && !is_plain(problem));
}

void Engine::choose_devices(bool learns, ProblemKind problem, bool rereads) {
  const bool is_automatic = options_ && options_->device == "auto";
  const bool on_fallback =
      backends_[0]->info().name != "cpu" && ((learns && learns_on_cpu(problem)) || (rereads && is_automatic));
  if (on_fallback) {
    BackendOptions options = *options_;
    if (rereads && options.precision != Precision::kFp32)
      throw DeviceError("--precision: a network that re-reads runs on the CPU, in fp32");
    if (rereads) options.device = "cpu";
    options.learned = problem;
    if (fallback_.empty()) fallback_ = make_backends(options, &note_);
    if (rereads) note_ = "using the CPU; CUDA has no kernels for a network that re-reads";
  }
  if (on_fallback != on_fallback_) loaded_.reset();
  on_fallback_ = on_fallback;
}

Devices Engine::devices() const {
  Devices devices;
  for (const auto& backend : on_fallback_ ? fallback_ : backends_) devices.push_back(backend.get());
  return devices;
}

void Engine::load(const Model& model) {
  if (loaded_ && loaded_->config == model.config && loaded_->parameters == model.parameters) return;
  loaded_.reset();
  for (Backend* const backend : devices()) {
    backend->configure(model.config, 1);
    backend->load_parameters(0, model.parameters);
  }
  loaded_ = model;
}

SolveReport Engine::solve(const Model* model, const SolveJob& job) {
  const Clock::time_point start = Clock::now();
  const SolveOptions& options = job.options;
  check_instances(model, job.instances);
  if (job.rows.size() != job.size()) throw std::invalid_argument("solve: one row for each instance");
  if (job.size() == 0) return {};
  const Problem& problem = problem_of(*job.instances[0]);
  if (model == nullptr && needs_network(options)) {
    throw std::invalid_argument(std::string(info_of(options.mode).name) + ": needs a model");
  }
  if (!can_use_network(options, problem)) model = nullptr;
  const bool exact_first = options.mode == Mode::kAuto && !options.network && problem.has_packing;
  SolveReport report = exact_first ? run_exact_first(model, job) : run(model, job);
  report.solving_ms = std::chrono::duration<double, std::milli>(Clock::now() - start).count();
  return report;
}

// Bounded branch and bound answers all but hard instances; the network's samples may be better for these.
SolveReport Engine::run_exact_first(const Model* model, const SolveJob& job) {
  AnswersInOrder answers(job.sink);
  std::vector<size_t> open;
  SolutionBatch found;
  SolvePlan plan;
  plan.search = exact_search(kExactBranches);
  choose_devices(false, job.instances[0]->problem);
  SolveJob exact = job;
  exact.sink = [&](size_t i, Solution&& solution) {
    if (model == nullptr || solution.start == Start::kExact || solution.status != Status::kDone) {
      answers.put(i, std::move(solution));
      return;
    }
    open.push_back(i);
    found.push_back(std::move(solution));
  };
  solve_instances(devices(), {}, plan, exact);
  if (open.empty()) return report_of(plan, job.options, nullptr);
  SolveJob sampled = job.part(open);
  sampled.sink = [&](size_t i, Solution&& solution) {
    const bool is_worse = !has_answer(solution) ||
                          !is_better(sampled.instances[i]->problem, solution.objective, found[i].objective);
    if (is_worse) {  // also where the network was cut short before it found a better one
      found[i].status = solution.status == Status::kUnsolved ? stopped_status(job.control) : solution.status;
      found[i].network_objective = solution.network_objective;
      solution = std::move(found[i]);
    } else {
      solution.bound = found[i].bound;
    }
    answers.put(open[i], std::move(solution));
  };
  return run(model, sampled);
}

SolveReport Engine::run(const Model* model, const SolveJob& job) {
  const SolveOptions& options = job.options;
  Model fresh;
  if (options.untrained) {
    fresh.config = model->config;
    fresh.parameters = initial_parameters(fresh.config, options.seed);
    model = &fresh;
  }
  const SolvePlan plan = make_plan(options, problem_of(*job.instances[0]), model);
  choose_devices(std::holds_alternative<ActiveSearchOptions>(plan.search), job.instances[0]->problem,
                 model != nullptr && model->config.reread > 0);
  if (std::holds_alternative<SamplingOptions>(plan.search)) {
    load(*model);
  } else if (std::holds_alternative<ActiveSearchOptions>(plan.search)) {
    loaded_.reset();
  }
  SolveReport report = report_of(plan, options, model);
  report.statistics = solve_instances(devices(), model == nullptr ? ModelConfig() : model->config, plan, job);
  return report;
}

std::vector<double> Engine::score(const Model& model, std::span<const Instance> instances,
                                  std::span<const Solution> solutions, float temperature,
                                  const StopToken& stop) {
  check_instances(&model, pointers_to(instances));
  if (solutions.size() != instances.size())
    throw std::invalid_argument("score: one solution for each instance");
  if (!(temperature > 0.0f)) throw std::invalid_argument("score: expected a temperature above 0");
  choose_devices(false, model.config.problem, model.config.reread > 0);
  load(model);
  std::vector<double> log_probs(instances.size(), std::numeric_limits<double>::quiet_NaN());
  std::map<int, std::vector<size_t>> by_size;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (is_reachable(instances[i], solutions[i])) by_size[instances[i].n()].push_back(i);
  }
  std::vector<std::span<const size_t>> calls;
  for (const auto& [n, places] : by_size) {
    const auto at_once = static_cast<size_t>(largest_call(problem_of(model.config.problem), n));
    for (size_t first = 0; first < places.size(); first += at_once)
      calls.push_back(std::span(places).subspan(first, std::min(at_once, places.size() - first)));
  }
  const Devices devices = this->devices();
  WorkerThreads callers(static_cast<int>(devices.size()));  // each busy with a call of its device
  callers.for_each(static_cast<int64_t>(calls.size()), [&](int64_t call, int caller) {
    Backend& device = *devices[caller];
    InstancePointers batch;
    std::vector<int32_t> forced;
    for (const size_t place : calls[call]) {
      batch.push_back(&instances[place]);
      const std::vector<int32_t> choices =
          problem_of(instances[place]).choices_of(instances[place], solutions[place].order);
      forced.insert(forced.end(), choices.begin(), choices.end());
      forced.resize(batch.size() * max_steps(model.config.problem, instances[place].n()), -1);
    }
    const std::vector<double> scores = score_batch(device, model.config, batch, forced, temperature, stop);
    for (size_t i = 0; i < batch.size(); ++i) log_probs[calls[call][i]] = scores[i];
  });
  return log_probs;
}

}  // namespace pointsman
