// SPDX-License-Identifier: Apache-2.0
// Algorithm 1 of Bello et al. 2017, synchronous: sample a batch, compare with the baseline, one Adam step.
#include "engine/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/training/baseline.h"
#include "engine/training/checkpoint.h"
#include "engine/training/train_log.h"
#include "engine/training/training_batch.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "models/tools/atomic_file.h"

namespace pointsman {
namespace {

constexpr int64_t kLogEvery = 100;  // steps
constexpr double kReplacementLevel =
    0.05;  // kRollout: p of the t-test below which the frozen actor is replaced
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int kActorSet = 0, kFrozenSet = 1;  // parameter sets of the backend

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(message);
}

void check_options(const TrainOptions& o) {
  require(o.model.n >= 1, "training: n must be at least 1");
  require(o.batch >= 1, "training: the batch must be at least 1");
  require(o.steps >= 0, "training: steps must not be negative");
  require(o.rollouts >= (o.baseline == Baseline::kShared && !o.is_supervised() ? 2 : 1),
          "training: the shared baseline needs 2 rollouts or more");
  require(o.symmetries >= 1 && o.symmetries <= 8 && o.rollouts % o.symmetries == 0,
          "training: the symmetries must divide the rollouts");
  for (const auto& given : {o.examples, o.validation}) {
    require(!given || (given->problem == o.model.problem && given->n == o.model.n),
            "training: the examples are of another problem or size");
  }
  require(!o.is_supervised() || o.entropy == 0.0f, "training: supervised learning has no entropy term");
  require(o.baseline != Baseline::kCritic || o.model.has_critic, "training: the model has no critic");
  require(o.decay_steps >= 1, "training: decay_steps must be at least 1");
  require(o.entropy >= 0.0f && std::isfinite(o.entropy), "training: entropy must not be negative");
  require(o.entropy_steps >= 1, "training: entropy_steps must be at least 1");
  require(o.checkpoint_every >= 1, "training: checkpoint_every must be at least 1");
  require(o.validation_every >= 1, "training: validation_every must be at least 1");
  require(o.validation_instances >= 2, "training: at least 2 validation instances are needed");
}

TrainOptions completed(TrainOptions options) {
  check_options(options);
  ModelConfig& model = options.model;
  model.seed = options.seed;
  model.version = POINTSMAN_VERSION;
  // The file names the rate of a model's first training. The decimal 0.001 is kept where it is the same
  // float.
  if (model.training_tours == 0 && static_cast<float>(model.learning_rate) != options.learning_rate)
    model.learning_rate = options.learning_rate;
  if (model.capacity <= 0.0) model.capacity = problem_of(model.problem).default_capacity(model.n);
  options.examples_fingerprint = options.examples ? options.examples->fingerprint : 0;
  return options;
}

class Trainer {
 public:
  Trainer(Backend& backend, const TrainOptions& options, SharedSteps* shared)
      : backend_(backend),
        shared_(shared),
        options_(completed(options)),
        layout_(options_.model),
        validation_(validation_batch(options_)) {
    backend_.configure(options_.model, options_.baseline == Baseline::kRollout ? 2 : 1);
  }

  void start(const std::vector<float>& initial) {
    require(initial.size() == layout_.size, "training: the initial parameters are not of this model's size");
    state_.prior_tours = options_.model.training_tours;
    backend_.load_parameters(kActorSet, initial);
    if (options_.baseline == Baseline::kRollout) backend_.load_parameters(kFrozenSet, initial);
    log_.emplace(options_.log);
    open_outputs();
  }

  void resume(const std::filesystem::path& path) {
    Checkpoint checkpoint = read_checkpoint(path);
    require_same_training(checkpoint.options, options_, path.string());
    state_ = std::move(checkpoint.state);
    backend_.load_parameters(kActorSet, state_.parameters);
    backend_.load_optimiser(kActorSet, state_.optimiser);
    if (options_.baseline == Baseline::kRollout)
      backend_.load_parameters(kFrozenSet, state_.baseline_parameters);
    log_.emplace(options_.log, state_.step, state_.interval.steps == 0);
    open_outputs();
  }

  TrainResult run(const SearchControl& control, const std::function<void(const TrainProgress&)>& progress) {
    warn_ = control.warn;
    earlier_seconds_ = state_.seconds;
    told_.train_cost = kNone;
    stop_ = control.stop();
    first_step_ = known_step_ = state_.step;
    start_ = Clock::now();
    Status status = Status::kDone;
    const auto until_stop = [&](const auto& work) {
      try {
        work();
      } catch (const CallStopped&) {
        status = control.check();
      }
    };
    until_stop([&] {
      finish_report(progress);
      while (take_step() && (status = control.check()) == Status::kDone) make_step(progress);
    });
    std::vector<int64_t> ages;
    if (shared_ != nullptr) ages = shared_->end(status != Status::kDone);
    // Changes nothing, so that a longer run goes on as if this were not its end.
    if (state_.step == options_.steps && std::max(told_.step, first_step_) < state_.step)
      until_stop([&] { report(true, progress); });
    if (!save() && !save()) std::rethrow_exception(failure_);
    if (log_failure_) std::rethrow_exception(log_failure_);
    return {written_config(), state_.parameters, last_line(), status, std::move(ages)};
  }

 private:
  void make_step(const std::function<void(const TrainProgress&)>& progress) {
    train_step();
    const bool validates = has_passed(options_.validation_every);
    const bool is_told_below = shared_ != nullptr && state_.step == options_.steps;  // with all updates
    if (!is_told_below && (validates || has_passed(kLogEvery))) end_interval(validates, progress);
    if (has_passed(options_.checkpoint_every) && state_.step < options_.steps) save();
    known_step_ = state_.step;
  }

  // A stop leaves the interval as it is.
  void end_interval(bool validates, const std::function<void(const TrainProgress&)>& progress) {
    report(validates, progress);
    if (validates && options_.baseline == Baseline::kRollout) challenge_frozen();
    state_.interval = {};
    state_.interval.start_seconds = state_.seconds;
  }

  // The end of an interval that a stop cut short before the checkpoint was written.
  void finish_report(const std::function<void(const TrainProgress&)>& progress) {
    const bool validates = state_.step % options_.validation_every == 0;
    if (state_.interval.steps == 0 || !(validates || state_.step % kLogEvery == 0)) return;
    end_interval(validates, progress);
  }

  void open_outputs() {
    if (!options_.checkpoint.empty()) checkpoint_.emplace(options_.checkpoint.string(), true);
    if (!options_.output.empty()) output_.emplace(options_.output.string(), true);
  }

  // Whether there is a step to make. Of a shared training state_.step then counts those that others make
  // before it.
  bool take_step() {
    if (shared_ != nullptr)
      count_steps(std::max(first_step_, std::min(shared_->take(first_step_), options_.steps)));
    return state_.step < options_.steps;
  }

  void count_steps(int64_t steps) {
    state_.step = steps;
    state_.tours = steps * options_.tours_a_step();
  }

  // Whether a multiple of `every` steps was reached since this trainer's step before.
  bool has_passed(int64_t every) const { return state_.step / every > known_step_ / every; }

  float learning_rate(int64_t step) const {
    const auto decays = static_cast<double>(step / options_.decay_steps);
    return static_cast<float>(options_.learning_rate * std::pow(static_cast<double>(options_.decay), decays));
  }

  double entropy_temperature(int64_t step) const {
    const double left = 1.0 - static_cast<double>(step) / static_cast<double>(options_.entropy_steps);
    return static_cast<double>(options_.entropy) * std::max(left, 0.0);
  }

  // A stop throws CallStopped, and nothing of the step is left.
  void train_step() {
    const TrainingBatch batch = training_batch(options_, state_.step, epoch_order_, stop_);
    double baseline_loss = 0.0;
    LearnRequest request;
    request.rollouts = rollouts_of(batch);
    request.weigh = [&](const RolloutResult& sampled) {
      Objective objective = options_.is_supervised() ? cross_entropy(batch) : policy_gradient(batch, sampled);
      baseline_loss = objective.baseline_loss;
      return std::move(objective.weights);
    };
    request.first_set = kActorSet;
    request.update.learning_rate = learning_rate(state_.step);
    request.update.max_norm = options_.max_norm;
    request.update.critic = options_.baseline == Baseline::kCritic;
    RolloutResult rollouts;
    const GradientNorms norms = learn(request, rollouts);
    if (!std::isfinite(norms.actor) || (request.update.critic && !std::isfinite(norms.critic))) {
      throw std::runtime_error("training: the gradient of step " + std::to_string(state_.step + 1) +
                               " is not finite; the last checkpoint is from before it");
    }
    if (next_average_) {
      state_.average = *next_average_;
      state_.average_started = true;
    }
    count_steps(state_.step + 1);
    state_.seconds = earlier_seconds_ + seconds_since(start_);
    accumulate(rollouts, baseline_loss, norms.actor);
  }

  GradientNorms learn(const LearnRequest& request, RolloutResult& rollouts) {
    const bool asks_backend =
        options_.baseline == Baseline::kCritic || options_.baseline == Baseline::kRollout;
    critic_is_new_ = false;
    try {
      const std::vector<GradientNorms> norms =
          asks_backend ? learn_in_calls(backend_, request, rollouts) : backend_.learn(request, rollouts);
      if (norms.empty()) throw CallStopped();
      return norms[0];
    } catch (const CallStopped&) {
      if (critic_is_new_) set_critic_bias(0.0f);
      throw;
    }
  }

  // What the gradient of each rollout's log p is weighted with, and the mean of (L - b)^2.
  struct Objective {
    std::vector<float> weights;
    double baseline_loss = 0.0;
  };

  static Objective cross_entropy(const TrainingBatch& batch) {
    return {std::vector<float>(batch.count, -1.0f / static_cast<float>(batch.count))};
  }

  // (L - b) / B of equation (5), with the entropy term's T log p.
  Objective policy_gradient(const TrainingBatch& batch, const RolloutResult& sampled) {
    const std::vector<double> baseline = baseline_of(batch, sampled.costs);
    const std::vector<double> expected = expected_log_probs(sampled.log_probs);
    const double temperature = entropy_temperature(state_.step), count = batch.rollouts();
    Objective objective{std::vector<float>(batch.rollouts())};
    for (size_t s = 0; s < objective.weights.size(); ++s) {
      const double advantage = sampled.costs[s] - baseline[s];
      const double surprise = temperature * (sampled.log_probs[s] - expected[s]);
      objective.weights[s] = static_cast<float>((advantage + surprise) / count);
      objective.baseline_loss += advantage * advantage / count;
    }
    return objective;
  }

  // Samples of the policy, or supervised the given answers, onto the tape for the gradient.
  RolloutRequest rollouts_of(const TrainingBatch& batch) {
    RolloutRequest request;
    request.sequences = batch.view();
    if (options_.is_supervised()) {
      request.decode = Decode::kForced;
      request.forced = batch.orders.data();
    } else {
      request.decode = Decode::kSample;
      request.instance_keys = batch.keys.data();
      request.first_samples = batch.first_samples.data();
      if (!batch.counts.empty()) {
        request.counts = batch.counts.data();
        request.sample_stride = static_cast<uint32_t>(options_.symmetries);
      }
      request.seed = training_seed(options_.seed);
    }
    request.tape = &tape_;
    request.stop = stop_;
    return request;
  }

  std::vector<double> greedy_costs(TrainingBatch& batch, int set) {
    batch.parameter_sets.assign(batch.count, set);
    RolloutRequest request;
    request.sequences = batch.view();
    request.stop = stop_;
    RolloutResult result;
    backend_.rollout(request, result);
    if (!result.finished.empty()) throw CallStopped();
    return std::move(result.costs);
  }

  // b(s) of every sequence, from the parameters before this step.
  std::vector<double> baseline_of(const TrainingBatch& batch, const std::vector<double>& costs) {
    switch (options_.baseline) {
      case Baseline::kShared:
        return leave_one_out_baseline(costs, options_.rollouts);
      case Baseline::kCritic:
        return critic_baseline(batch, costs);
      case Baseline::kEma:
        return std::vector<double>(costs.size(), next_average(mean_of(costs)));
      case Baseline::kRollout: {
        TrainingBatch frozen = batch;
        return greedy_costs(frozen, kFrozenSet);
      }
    }
    return {};
  }

  // What log p is compared with: the instance's other rollouts where there are any, else the batch.
  std::vector<double> expected_log_probs(const std::vector<double>& log_probs) const {
    if (options_.baseline == Baseline::kShared) return leave_one_out_baseline(log_probs, options_.rollouts);
    return std::vector<double>(log_probs.size(), mean_of(log_probs));
  }

  std::vector<double> critic_baseline(const TrainingBatch& batch, const std::vector<double>& costs) {
    if (state_.step == 0) start_critic_at(mean_of(costs));
    const std::vector<float> targets(costs.begin(), costs.end());
    std::vector<float> values(costs.size());
    backend_.critic_gradient(batch.view(), targets, 1.0f / static_cast<float>(batch.count), values, stop_);
    return {values.begin(), values.end()};
  }

  // An untrained critic (output bias still 0) would spend its first thousand steps on learning the mean cost.
  void start_critic_at(double mean_cost) {
    std::vector<float> parameters(layout_.size);
    backend_.read_parameters(kActorSet, parameters);
    if (parameters[layout_.critic.fc2_bias] != 0.0f) return;
    set_critic_bias(static_cast<float>(mean_cost));
    critic_is_new_ = true;
  }

  void set_critic_bias(float bias) {
    std::vector<float> parameters(layout_.size);
    backend_.read_parameters(kActorSet, parameters);
    parameters[layout_.critic.fc2_bias] = bias;
    backend_.load_parameters(kActorSet, parameters);
  }

  // b of this step; the average moves on with the step.
  double next_average(double mean_cost) {
    const double b = state_.average_started ? state_.average : mean_cost, decay = options_.ema_decay;
    next_average_ = decay * b + (1.0 - decay) * mean_cost;
    return b;
  }

  void accumulate(const RolloutResult& sampled, double baseline_loss, double norm) {
    IntervalSums& sums = state_.interval;
    sums.steps += 1;
    sums.tours += (state_.step - known_step_) * options_.tours_a_step();
    sums.cost += mean_of(sampled.costs);
    sums.cross_entropy -= mean_of(sampled.log_probs);
    sums.baseline_loss += baseline_loss;
    sums.grad_norm += norm;
    sums.entropy += sampled.statistics.entropy;
    sums.mean_logit += sampled.statistics.mean_logit;
    sums.saturated += sampled.statistics.saturated;
    sums.decoding_steps += sampled.statistics.steps;
  }

  // kRollout: Kool et al. 2019. The instances are others each time, so that no actor is chosen for luck on
  // old ones.
  void challenge_frozen() {
    TrainingBatch batch = challenge_batch(options_, state_.step / options_.validation_every, stop_);
    const std::vector<double> challenger = greedy_costs(batch, kActorSet);
    const std::vector<double> incumbent = greedy_costs(batch, kFrozenSet);
    if (mean_of(challenger) >= mean_of(incumbent)) return;
    if (paired_t_test(challenger, incumbent) >= kReplacementLevel) return;
    std::vector<float> parameters(layout_.size);
    backend_.read_parameters(kActorSet, parameters);
    backend_.load_parameters(kFrozenSet, parameters);
  }

  // A cost in the user's sense: the packed value is minus the cost.
  double shown(double cost) const { return sign_of(problem_of(options_.model.problem)) * cost; }

  // Of the steps since the last line, without a validation.
  TrainProgress measured() const {
    const IntervalSums& sums = state_.interval;
    const double steps = static_cast<double>(std::max<int64_t>(sums.steps, 1));
    const double decoding_steps = static_cast<double>(std::max<int64_t>(sums.decoding_steps, 1));
    TrainProgress line;
    line.step = state_.step;
    line.tours = state_.tours;
    line.seconds = state_.seconds;
    line.tours_per_second =
        static_cast<double>(sums.tours) / std::max(state_.seconds - sums.start_seconds, 1e-9);
    line.train_cost = sums.steps > 0 ? shown(sums.cost / steps) : kNone;
    line.val_cost = kNone;
    line.baseline_loss = sums.baseline_loss / steps;
    line.grad_norm = sums.grad_norm / steps;
    line.entropy = sums.entropy / decoding_steps;
    line.mean_logit = sums.mean_logit / decoding_steps;
    line.saturated = sums.saturated / decoding_steps;
    line.learning_rate = learning_rate(state_.step - 1);
    line.cross_entropy = options_.is_supervised() ? sums.cross_entropy / steps : kNone;
    line.eta_seconds = seconds_since(start_) / static_cast<double>(state_.step - first_step_) *
                       static_cast<double>(options_.steps - state_.step);
    return line;
  }

  void report(bool validate, const std::function<void(const TrainProgress&)>& progress) {
    TrainProgress line = measured();
    if (validate) val_cost_ = line.val_cost = shown(mean_of(greedy_costs(validation_, kActorSet)));
    told_ = line;
    if (!log_failure_) attempt([&] { log_->write(line); }, log_failure_);
    if (progress) progress(line);
  }

  TrainProgress last_line() const {
    TrainProgress line = state_.step == told_.step ? told_ : measured();
    line.val_cost = val_cost_;
    return line;
  }

  ModelConfig written_config() const {
    ModelConfig config = options_.model;
    config.training_tours = state_.prior_tours + state_.tours;
    return config;
  }

  // What the disk refuses ends no training: it is told, and kept as the training's own failure.
  void attempt(const std::function<void()>& write, std::exception_ptr& failure) const {
    try {
      write();
    } catch (const std::system_error& error) {
      failure = std::current_exception();
      if (warn_) warn_(error.what());
    }
  }

  // False when a file could not be written; the others are written all the same.
  bool save() {
    failure_ = nullptr;
    state_.seconds = earlier_seconds_ + seconds_since(start_);
    state_.parameters.resize(layout_.size);
    backend_.read_parameters(kActorSet, state_.parameters);
    if (!options_.checkpoint.empty()) {
      state_.optimiser = backend_.read_optimiser(kActorSet);
      if (options_.baseline == Baseline::kRollout) {
        state_.baseline_parameters.resize(layout_.size);
        backend_.read_parameters(kFrozenSet, state_.baseline_parameters);
      }
      attempt([&] { checkpoint_->save(checkpoint_bytes(options_, state_)); }, failure_);
    }
    if (output_) {
      const std::string name = options_.output.string();
      attempt([&] { output_->save(model_bytes(written_config(), state_.parameters, name)); }, failure_);
    }
    return !failure_;
  }

  Backend& backend_;
  SharedSteps* const shared_;  // null: this trainer makes all steps
  const TrainOptions options_;
  const ParameterLayout layout_;
  TrainingBatch validation_;
  EpochOrder epoch_order_;
  TrainState state_;
  Tape tape_;  // of the step's rollouts
  StopToken stop_;
  std::optional<double> next_average_;  // kEma: after this step
  bool critic_is_new_ = false;          // this step gave the critic its output bias
  std::optional<TrainLog> log_;
  std::optional<OutputFile> checkpoint_, output_;
  std::function<void(const std::string&)> warn_;
  std::exception_ptr failure_, log_failure_;  // of the last save; of the log, which ends there
  TrainProgress told_;                        // the last line
  double val_cost_ = kNone;                   // the last one measured
  Clock::time_point start_{};
  double earlier_seconds_ = 0.0;  // of the runs before this one
  int64_t first_step_ = 0;        // of this run
  int64_t known_step_ = 0;        // state_.step after the step before
};

}  // namespace

TrainResult train(Backend& backend, const TrainOptions& options, const std::vector<float>& initial,
                  const std::filesystem::path& resume, const SearchControl& control,
                  const std::function<void(const TrainProgress&)>& progress, SharedSteps* shared) {
  Trainer trainer(backend, options, shared);
  if (resume.empty()) {
    trainer.start(initial);
  } else {
    trainer.resume(resume);
  }
  return trainer.run(control, progress);
}

}  // namespace pointsman
