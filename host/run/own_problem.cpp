// SPDX-License-Identifier: Apache-2.0
#include "host/run/own_problem.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <iterator>

#include "engine/search/local/order_search.h"
#include "host/formats/input_file.h"
#include "host/options/call_options.h"
#include "host/run/train_setup.h"
#include "models/parameter_layout.h"

namespace pointsman {

namespace {

constexpr int kScalingOrders = 16;   // of each instance of the sample
constexpr int64_t kTrialSteps = 24;  // whose time says how many steps there is time for
constexpr double kTrialShare = 0.1, kTrainingShare = 0.97;  // of the minutes, at most
constexpr double kLastRate = 0.05;                          // of the first learning rate
constexpr int kDecays = 20;
// / n, in units of a random order's standard deviation; without it the policy settles early.
constexpr double kOwnEntropy = 0.2;
constexpr const char* kOwnTrainOptions[] = {
    "batch_size", "rollouts",      "layers",    "glimpses", "clip",    "learning_rate",
    "decay",      "decay_steps",   "entropy",   "max_norm", "resume",  "validation_every",
    "checkpoint", "entropy_steps", "log",       "force",    "threads", "checkpoint_every",
    "steps",      "seed",          "time_limit"};

double deviation_of(std::span<const double> values) {
  const auto count = static_cast<double>(values.size());
  double mean = 0.0, squares = 0.0;
  for (const double value : values) mean += value / count;
  for (const double value : values) squares += (value - mean) * (value - mean) / count;
  return std::sqrt(squares);
}

// Of random orders of one instance, as declared.
std::vector<double> random_costs(const Instance& instance, uint64_t row) {
  std::vector<double> items;
  std::vector<int64_t> orders;
  for (int sample = 0; sample < kScalingOrders; ++sample) {
    const auto wanted = input_order(1, row, static_cast<uint32_t>(sample), instance.n());
    items.insert(items.end(), instance.values.begin(), instance.values.end());
    std::ranges::copy(feasible_order(instance, wanted), std::back_inserter(orders));
    orders.resize(static_cast<size_t>(sample + 1) * static_cast<size_t>(instance.n()), -1);
  }
  return instance.own->cost(std::move(items), std::move(orders), kScalingOrders, instance.n());
}

// The range of each number in the sample becomes [0, 1].
OwnScaling ranges_of(std::span<const double> sample, int width) {
  OwnScaling scaling;
  for (int f = 0; f < width; ++f) {
    double low = sample[f], high = low;
    for (size_t i = static_cast<size_t>(f); i < sample.size(); i += static_cast<size_t>(width))
      low = std::min(low, sample[i]), high = std::max(high, sample[i]);
    scaling.offsets.push_back(low);
    scaling.scales.push_back(high > low ? 1.0 / (high - low) : 1.0);
    if (!std::isfinite(scaling.scales.back()) || !(scaling.scales.back() > 0.0))
      throw InputError("instances", 0, "expected numbers whose range is a normal float; scale them");
  }
  return scaling;
}

// problem: without a scaling.
OwnScaling scaling_of(const std::shared_ptr<const OwnProblem>& problem, const OwnTraining& training) {
  const int n = training.request.options.model.n;
  OwnScaling scaling = ranges_of(training.sample, problem->width());
  InstanceBatch instances;
  add_own_instances(problem, training.sample, n, instances);
  double deviations = 0.0;
  for (size_t i = 0; i < instances.size(); ++i) {
    if (training.interrupted && training.interrupted()) throw CallStopped();
    deviations += deviation_of(random_costs(instances[i], i));
  }
  const double unit = deviations / static_cast<double>(instances.size());
  scaling.cost_unit = unit == 0.0 ? 1.0 : unit;
  if (!(scaling.cost_unit > 1e-300 && scaling.cost_unit < 1e300))
    throw InputError("cost", 0,
                     printed("expected costs whose standard deviation lies within 1e-300 and 1e300, found "
                             "%g; scale them",
                             unit));
  return scaling;
}

// Completes the options of the training, and returns the parameters to start from.
std::vector<float> prepare_own_training(OwnTraining& training, const OwnScaling& scaling) {
  if (training.minutes && !training.request.resume.empty())
    throw UsageError("--resume: goes with steps, since minutes make other steps each time");
  for (const char* flag : {"--layers", "--glimpses", "--clip"}) {
    if (training.init != nullptr && training.options.is_given(flag))
      throw UsageError(std::string(flag) + ": comes from the model of init; leave it out");
  }
  check_outputs(training.request);
  TrainOptions& train = training.request.options;
  train.checkpoint = training.request.checkpoint;
  train.log = training.request.log;
  ModelConfig& model = train.model;
  const int n = model.n;
  if (training.init != nullptr) model = training.init->config;
  model.n = n;
  model.problem = ProblemKind::kOwn;
  model.has_prior = model.has_critic = false;
  model.seed = train.seed;
  model.version = POINTSMAN_VERSION;
  model.own = scaling;
  const double rate = training.request.learning_rate.value_or(fresh_learning_rate(model.encoder));
  train.learning_rate = static_cast<float>(rate);
  if (training.init == nullptr) model.learning_rate = rate;
  training.device.device = "cpu";
  return training.init == nullptr ? initial_parameters(model, model.seed) : training.init->parameters;
}

// What no option says of a training of so many steps.
void set_course(const OptionSet& given, TrainOptions& train) {
  const auto left = [&](const char* flag) { return !given.is_given(flag); };
  if (left("--decay-steps"))
    train.decay_steps = static_cast<int>(std::clamp<int64_t>(train.steps / kDecays, 1, 1 << 30));
  if (left("--decay"))
    train.decay = static_cast<float>(std::max(
        std::pow(kLastRate, static_cast<double>(train.decay_steps) / static_cast<double>(train.steps)),
        0.01));
  if (left("--entropy")) train.entropy = static_cast<float>(kOwnEntropy / train.model.n);
  if (left("--entropy-steps")) train.entropy_steps = train.steps;
  if (left("--validation-every")) train.validation_every = std::max<int64_t>(1, train.steps / 10);
}

// The parts of a training of one problem: a trial whose time says how long it may be, and itself.
struct OwnTrainer {
  TrainResult run(const TrainOptions& options, double limit, const std::filesystem::path& resume,
                  const std::function<void(const TrainProgress&)>& tell) {
    SearchControl control = within_limits(Clock::now(), limit);
    control.interrupted = [this] {
      return call.stopped() || (training.interrupted && training.interrupted());
    };
    control.report.warn = training.warn;
    return train(engine.backend(), {options, initial, resume, control, tell});
  }

  TrainResult run_trial() {
    TrainOptions options = training.request.options;
    options.checkpoint.clear();
    options.log.clear();
    options.steps = kTrialSteps;
    options.validation_every = 1'000'000'000;
    return run(options, kTrialShare * 60.0 * *training.minutes, {}, {});
  }

  OwnCall& call;
  OwnTraining& training;
  const std::vector<float> initial;
  Engine engine{training.device};
};

}  // namespace

template <typename Call>
auto OwnCall::ask(const Call& call) {
  if (stopped_) throw CallStopped();
  try {
    return call();
  } catch (const CallStopped&) {
  } catch (...) {
    thrown_ = std::current_exception();
  }
  stopped_ = true;
  throw CallStopped();
}

std::shared_ptr<const OwnProblem> OwnCall::problem(OwnScaling scaling) {
  OwnDeclarations declarations = definition_.declarations;
  if (declarations.before)
    declarations.before = [this](int n) { return ask([&] { return definition_.declarations.before(n); }); };
  const auto cost = [this](std::vector<double> items, std::vector<int64_t> orders, int64_t count, int n) {
    std::vector<double> costs =
        ask([&] { return definition_.cost(std::move(items), std::move(orders), count, n); });
    for (double& one : costs) one *= sign();
    return costs;
  };
  OwnProblem::Draw draw;
  if (definition_.draw) {
    draw = [this](uint64_t seed, uint64_t first, int count, int n) {
      return ask([&] { return definition_.draw(seed, first, count, n); });
    };
  }
  return std::make_shared<const OwnProblem>(std::move(scaling), std::move(declarations), cost, draw);
}

std::shared_ptr<const OwnProblem> OwnCall::problem() {
  const auto width = static_cast<size_t>(definition_.width);
  return problem({std::vector<double>(width, 0.0), std::vector<double>(width, 1.0)});
}

void add_own_instances(const std::shared_ptr<const OwnProblem>& problem, std::span<const double> items, int n,
                       InstanceBatch& instances) {
  const size_t numbers = static_cast<size_t>(n) * static_cast<size_t>(problem->width());
  for (; items.size() >= numbers; items = items.subspan(numbers))
    instances.push_back(
        own_instance(problem, {items.begin(), items.begin() + static_cast<int64_t>(numbers)}));
}

std::span<const char* const> own_train_options() { return kOwnTrainOptions; }

OwnTraining::OwnTraining() {
  add_train_options(options, request);
  add_output(options, request.output, request.force);
  add_seed(options, request.options.seed);
  add_time_limit(options, time_limit);
  add_device_options(options, device);
  options.add("--minutes", minutes, "How long, instead of --steps").range(1e-6, 1e6);
  request.options.rollouts = 16;
}

OwnTrained train_own(OwnCall& call, OwnTraining& training) {
  const Clock::time_point start = Clock::now();
  TrainOptions& options = training.request.options;
  const std::shared_ptr<const OwnProblem> plain = call.problem();
  plain->declared(options.model.n);
  const OwnScaling scaling =
      training.init != nullptr ? training.init->config.own : scaling_of(plain, training);
  OwnTrainer trainer{call, training, prepare_own_training(training, scaling)};
  const std::shared_ptr<const OwnProblem> problem = options.own = call.problem(scaling);
  double limit = training.time_limit;
  if (training.minutes) {
    TrainResult trial = trainer.run_trial();
    if (trial.status == Status::kInterrupted)
      return {std::move(trial), plain->seconds() + problem->seconds()};
    const std::chrono::duration<double> taken = Clock::now() - start;
    const double left = std::max(60.0 * *training.minutes - taken.count(), 1.0);
    const double steps =
        kTrainingShare * left * static_cast<double>(trial.last.step) / std::max(trial.last.seconds, 1e-3);
    options.steps = std::max<int64_t>(1, static_cast<int64_t>(steps));
    if (limit == 0.0) limit = left;
  }
  set_course(training.options, options);
  TrainResult result = trainer.run(options, limit, training.request.resume, training.tell);
  return {std::move(result), plain->seconds() + problem->seconds()};
}

SolutionBatch solve_own(OwnCall& call, Engine& engine, const Model& model, const InstanceBatch& instances,
                        SolveJob job, std::optional<int64_t> kicks) {
  SolutionBatch solutions(instances.size(), unsolved());
  const SolutionSink told = std::exchange(job.sink, [&](size_t i, Solution&& solution) {
    solutions[i] = std::move(solution);
    if (told && !kicks) told(i, {});
  });
  job.control.interrupted = [&call, asked = std::move(job.control.interrupted)] {
    return call.stopped() || (asked && asked());
  };
  try {
    engine.solve(&model, job);
    if (kicks) improve_orders(instances, job.rows, solutions, {*kicks, job.options.seed}, job.control);
  } catch (const CallStopped&) {
    if (!call.stopped()) throw;
  }
  for (size_t i = 0; told && kicks && i < solutions.size(); ++i) told(i, {});
  for (Solution& solution : solutions) {
    for (double* cost : {&solution.objective, &solution.unrounded, &solution.network_objective})
      *cost *= call.sign();
  }
  return solutions;
}

std::vector<double> own_costs(OwnCall& call, const InstanceBatch& instances, const SolutionBatch& orders,
                              const StopToken& stop) {
  std::vector<double> costs;
  for (size_t i = 0; i < instances.size(); ++i) {
    stop.check();
    Solution solution = orders[i];
    const std::string wrong = validate_solution(instances[i], solution);
    if (!wrong.empty()) throw std::invalid_argument("orders[" + std::to_string(i) + "]: " + wrong);
    costs.push_back(call.sign() * solution.objective);
  }
  return costs;
}

Model read_own_model(const std::string& path) {
  Model model = read_model(path);
  if (is_own(model.config.problem)) return model;
  throw InputError(
      path, 0,
      std::string("expected a model of an own problem, found one of ") + name_of(model.config.problem));
}

}  // namespace pointsman
