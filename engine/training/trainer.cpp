// SPDX-License-Identifier: Apache-2.0
// Algorithm 1 of Bello et al. 2017, synchronous: sample a batch, compare with the baseline, one Adam step.
#include "engine/training/trainer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <span>

#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "engine/training/baseline.h"
#include "engine/training/checkpoint.h"
#include "engine/training/train_log.h"
#include "engine/training/training_batch.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"

namespace pointsman {
namespace {

constexpr int64_t kLogEvery = 100;          // steps
constexpr double kReplacementLevel = 0.05;  // kRollout: p below which the frozen actor is replaced
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
constexpr int kActorSet = 0, kFrozenSet = 1;  // parameter sets of the backend

double mean_of(std::span<const double> values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void require(bool condition, const char* message) {
  if (!condition) throw std::invalid_argument(std::string("training: ") + message);
}

void check_options(const TrainOptions& o) {
  require(o.model.n >= 1, "n must be at least 1");
  require(o.batch >= 1, "the batch must be at least 1");
  require(o.steps >= 0, "steps must not be negative");
  require(o.rollouts >= (o.baseline == Baseline::kShared && !o.is_supervised() ? 2 : 1),
          "the shared baseline needs 2 rollouts or more");
  require(o.symmetries >= 1 && o.symmetries <= 8 && o.rollouts % o.symmetries == 0,
          "the symmetries must divide the rollouts");
  for (const auto& given : {o.examples, o.validation}) {
    require(!given || (given->problem == o.model.problem && given->n == o.model.n),
            "the examples are of another problem or size");
  }
  require((o.own != nullptr) == (o.model.own.width() > 0), "a user's own problem has a scaling of its own");
  require(!o.own || (o.model.encoder == Encoder::kAttention && !o.model.has_prior && !o.model.has_critic &&
                     o.symmetries == 1 && !o.examples && !o.validation),
          "not for a user's own problem");
  require(!o.is_supervised() || o.entropy == 0.0f, "supervised learning has no entropy term");
  require(o.model.reread == 0 || (o.is_supervised() && o.baseline == Baseline::kShared),
          "a network that re-reads learns from answers, without a baseline");
  require(!o.is_supervised() || (o.model.reread > 0) != o.examples->sizes.empty(),
          "the examples are not for such a network");
  require(o.baseline != Baseline::kCritic || o.model.has_critic, "the model has no critic");
  const bool leaves_out = problem_of(o.model.problem).has_first && o.infeasible == Infeasible::kMask;
  require(!leaves_out || o.is_supervised() || o.baseline == Baseline::kShared,
          "to leave late rollouts out takes the shared baseline");
  require(o.penalty >= 0.0 && std::isfinite(o.penalty), "the penalty must not be negative");
  require(o.decay_steps >= 1, "decay_steps must be at least 1");
  require(o.entropy >= 0.0f && std::isfinite(o.entropy), "entropy must not be negative");
  require(o.entropy_steps >= 1, "entropy_steps must be at least 1");
  require(o.checkpoint_every >= 1, "checkpoint_every must be at least 1");
  require(o.validation_every >= 1, "validation_every must be at least 1");
  require(o.validation_instances >= 2, "at least 2 validation instances are needed");
}

TrainOptions completed(TrainOptions options) {
  check_options(options);
  ModelConfig& model = options.model;
  model.seed = options.seed;
  model.version = POINTSMAN_VERSION;
  // The file names the rate of a model's first training; the decimal 0.001 where that is the same float.
  if (model.training_tours == 0 && static_cast<float>(model.learning_rate) != options.learning_rate)
    model.learning_rate = options.learning_rate;
  if (model.capacity <= 0.0) model.capacity = problem_of(model.problem).default_capacity(model.n);
  options.examples_fingerprint = options.examples ? options.examples->fingerprint : 0;
  return options;
}

class Trainer {
 public:
  Trainer(Backend& backend, const TrainJob& job)
      : backend_(backend),
        job_(job),
        options_(completed(job.options)),
        layout_(options_.model),
        validation_(validation_batch(options_)),
        stop_(job.control.stop()) {
    backend_.configure(options_.model, has_frozen() ? 2 : 1);
    const bool resumes = !job.resume.empty();
    if (!resumes) {
      require(job.initial.size() == layout_.size, "the initial parameters are not of this model's size");
      state_.prior_tours = options_.model.training_tours;
      state_.penalty = has_windows() ? options_.penalty : 0.0;
      state_.parameters = job.initial;
      if (has_frozen()) state_.baseline_parameters = job.initial;
    } else {
      Checkpoint checkpoint = read_checkpoint(job.resume);
      require_same_training(checkpoint.options, options_, job.resume.string());
      state_ = std::move(checkpoint.state);
    }
    backend_.load_parameters(kActorSet, state_.parameters);
    if (has_frozen()) backend_.load_parameters(kFrozenSet, state_.baseline_parameters);
    if (resumes) backend_.load_optimiser(kActorSet, state_.optimiser);
    const int64_t told_step = state_.interval.steps == 0 ? state_.step : state_.step - 1;
    log_.emplace(options_.log, resumes ? std::optional(told_step) : std::nullopt);
    if (!options_.checkpoint.empty()) checkpoint_.emplace(options_.checkpoint.string(), true);
    if (!options_.output.empty()) output_.emplace(options_.output.string(), true);
  }

  TrainResult run() {
    earlier_seconds_ = state_.seconds;
    told_.train_cost = kNone;
    first_step_ = known_step_ = state_.step;
    start_ = Clock::now();
    Status status = Status::kDone;
    const auto until_stop = [&](const auto& work) {
      try {
        work();
      } catch (const CallStopped&) {
        status = job_.control.check();
      }
    };
    until_stop([&] {
      // The end of an interval that a stop cut short before the checkpoint was written.
      const bool validates = state_.step % options_.validation_every == 0;
      if (state_.interval.steps > 0 && (validates || state_.step % kLogEvery == 0)) end_interval(validates);
      while (take_step() && (status = job_.control.check()) == Status::kDone) make_step();
    });
    std::vector<int64_t> ages;
    if (job_.shared != nullptr) ages = job_.shared->end(status != Status::kDone);
    // Changes nothing, so that a longer run goes on as if this were not its end.
    if (state_.step == options_.steps && std::max(told_.step, first_step_) < state_.step)
      until_stop([&] { report(true); });
    if (!save() && !save()) std::rethrow_exception(failure_);
    if (log_failure_) std::rethrow_exception(log_failure_);
    TrainProgress last = state_.step == told_.step ? told_ : measured();
    last.val_cost = val_cost_;
    return {written_config(), state_.parameters, last, status, std::move(ages)};
  }

 private:
  bool has_windows() const { return problem_of(options_.model.problem).has_first; }
  bool has_frozen() const { return options_.baseline == Baseline::kRollout; }

  void make_step() {
    train_step();
    const bool validates = has_passed(options_.validation_every);
    const bool is_told_below = job_.shared != nullptr && state_.step == options_.steps;  // with all updates
    if (!is_told_below && (validates || has_passed(kLogEvery))) end_interval(validates);
    if (has_passed(options_.checkpoint_every) && state_.step < options_.steps) save();
    known_step_ = state_.step;
  }

  // A stop leaves the interval as it is.
  void end_interval(bool validates) {
    report(validates);
    if (validates && has_frozen()) challenge_frozen();
    state_.interval = {};
    state_.interval.start_seconds = state_.seconds;
  }

  // Whether there is a step to make. Of a shared training state_.step then counts those that others make
  // before it.
  bool take_step() {
    if (job_.shared != nullptr)
      count_steps(std::max(first_step_, std::min(job_.shared->take(first_step_), options_.steps)));
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
    double lateness = 0.0;
    request.weigh = [&](const RolloutResult& sampled) {
      if (!options_.is_supervised()) return policy_gradient(batch, sampled, baseline_loss, lateness);
      return std::vector<float>(batch.count, -1.0f / static_cast<float>(batch.count));  // cross entropy
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
    state_.penalty += options_.penalty_rate * lateness;
    count_steps(state_.step + 1);
    state_.seconds = earlier_seconds_ + seconds_since(start_);
    IntervalSums& sums = state_.interval;
    sums.steps += 1;
    sums.tours += (state_.step - known_step_) * options_.tours_a_step();
    sums.cost += mean_of(rollouts.costs);
    sums.cross_entropy -= mean_of(rollouts.log_probs);
    sums.baseline_loss += baseline_loss;
    sums.grad_norm += norms.actor;
    sums.policy += rollouts.statistics;
  }

  GradientNorms learn(const LearnRequest& request, RolloutResult& rollouts) {
    const bool asks_backend = options_.baseline == Baseline::kCritic || has_frozen();
    new_critic_bias_.reset();
    try {
      const std::vector<GradientNorms> norms =
          asks_backend ? learn_in_calls(backend_, request, rollouts) : backend_.learn(request, rollouts);
      if (norms.empty()) throw CallStopped();
      return norms[0];
    } catch (const CallStopped&) {
      if (new_critic_bias_) change_critic_bias(*new_critic_bias_, 0.0f);
      throw;
    }
  }

  // (L - b) / B of equation (5), with the entropy term's T log p: what the gradient of each rollout's log p
  // is weighted with. baseline_loss: the mean of (L - b)^2; lateness: of what a policy's penalty is
  // multiplied with.
  std::vector<float> policy_gradient(const TrainingBatch& batch, const RolloutResult& sampled,
                                     double& baseline_loss, double& lateness) {
    baseline_loss = 0.0;
    const std::vector<double> late = has_windows() ? lateness_of(batch, sampled) : std::vector<double>();
    const bool leaves_out = options_.infeasible == Infeasible::kMask && has_windows();
    if (has_windows() && !leaves_out) lateness = mean_of(late);
    const std::vector<double> costs = leaves_out ? with_means(sampled.costs, late) : sampled.costs;
    const std::vector<double> baseline = baseline_of(batch, costs);
    // What log p is compared with: the instance's other rollouts where there are any, else the batch.
    const std::vector<double> expected =
        options_.baseline == Baseline::kShared
            ? leave_one_out_baseline(sampled.log_probs, options_.rollouts)
            : std::vector<double>(sampled.log_probs.size(), mean_of(sampled.log_probs));
    const double temperature = entropy_temperature(state_.step), count = batch.rollouts();
    std::vector<float> weights(batch.rollouts());
    for (size_t s = 0; s < weights.size(); ++s) {
      if (leaves_out && late[s] > 0.0) continue;
      const double advantage = costs[s] - baseline[s];
      const double surprise = temperature * (sampled.log_probs[s] - expected[s]);
      weights[s] = static_cast<float>((advantage + surprise) / count);
      baseline_loss += advantage * advantage / count;
    }
    return weights;
  }

  // What a policy's penalty is multiplied with, of each rollout.
  static std::vector<double> lateness_of(const TrainingBatch& batch, const RolloutResult& sampled) {
    const SequenceBatch view = batch.view();
    std::vector<double> late;
    for (int s = 0; s < batch.count; ++s) {
      const RuleInputs inputs = view.rule_inputs(s, {});
      for (int r = 0; r < (batch.counts.empty() ? 1 : batch.counts[s]); ++r)
        late.push_back(lateness(inputs, &sampled.orders[late.size() * batch.n]));
    }
    return late;
  }

  // The costs, where a late rollout has the mean of its instance's others, so that they are compared among
  // themselves.
  std::vector<double> with_means(std::vector<double> costs, const std::vector<double>& late) const {
    const auto each = static_cast<size_t>(options_.rollouts);
    for (size_t first = 0; first < costs.size(); first += each) {
      double sum = 0.0;
      int in_time = 0;
      for (size_t s = first; s < first + each; ++s) {
        sum += late[s] > 0.0 ? 0.0 : costs[s];
        in_time += late[s] <= 0.0;
      }
      for (size_t s = first; s < first + each; ++s) {
        if (late[s] > 0.0) costs[s] = in_time > 0 ? sum / in_time : 0.0;
      }
    }
    return costs;
  }

  // Samples of the policy, or supervised the given answers, onto the tape for the gradient.
  RolloutRequest rollouts_of(const TrainingBatch& batch) {
    RolloutRequest request = batch.request();
    request.decode = options_.is_supervised() ? Decode::kForced : Decode::kSample;
    if (!batch.orders.empty()) request.forced = batch.orders.data();
    if (!batch.counts.empty()) request.sample_stride = static_cast<uint32_t>(options_.symmetries);
    request.seed = training_seed(options_.seed);
    request.policy = policy();
    request.tape = &tape_;
    request.stop = stop_;
    return request;
  }

  // Of this step.
  Policy policy() const {
    Policy policy;
    policy.masks = options_.infeasible != Infeasible::kPenalty;
    policy.penalty = options_.infeasible == Infeasible::kMask ? 0.0 : state_.penalty;
    return policy;
  }

  std::vector<double> greedy_costs(const TrainingBatch& batch, int set, const Policy& policy) {
    const std::vector<int32_t> sets(batch.count, set);
    RolloutRequest request;
    request.sequences = batch.view();
    request.sequences.parameter_sets = sets.data();
    request.policy = policy;
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
      case Baseline::kEma: {  // the average moves on with the step
        const double mean = mean_of(costs), decay = options_.ema_decay;
        const double b = state_.average_started ? state_.average : mean;
        next_average_ = decay * b + (1.0 - decay) * mean;
        return std::vector<double>(costs.size(), b);
      }
      case Baseline::kRollout:
        return greedy_costs(batch, kFrozenSet, policy());
    }
    return {};
  }

  std::vector<double> critic_baseline(const TrainingBatch& batch, const std::vector<double>& costs) {
    // An untrained critic (output bias 0) would spend its first thousand steps on learning the mean cost.
    const auto mean = static_cast<float>(mean_of(costs));
    if (state_.step == 0 && change_critic_bias(0.0f, mean)) new_critic_bias_ = mean;
    const std::vector<float> targets(costs.begin(), costs.end());
    std::vector<float> values(costs.size());
    backend_.critic_gradient(batch.view(), targets, 1.0f / static_cast<float>(batch.count), values, stop_);
    return {values.begin(), values.end()};
  }

  // False where it is another than `from`.
  bool change_critic_bias(float from, float to) {
    std::vector<float> parameters(layout_.size);
    backend_.read_parameters(kActorSet, parameters);
    float& bias = parameters[layout_.critic.fc2_bias];
    if (bias != from) return false;
    bias = to;
    backend_.load_parameters(kActorSet, parameters);
    return true;
  }

  // kRollout: Kool et al. 2019. The instances are others each time, so that no actor is chosen for luck on
  // old ones.
  void challenge_frozen() {
    const TrainingBatch batch = challenge_batch(options_, state_.step / options_.validation_every, stop_);
    const std::vector<double> challenger = greedy_costs(batch, kActorSet, policy());
    const std::vector<double> incumbent = greedy_costs(batch, kFrozenSet, policy());
    if (mean_of(challenger) >= mean_of(incumbent)) return;
    if (paired_t_test(challenger, incumbent) >= kReplacementLevel) return;
    std::vector<float> parameters(layout_.size);
    backend_.read_parameters(kActorSet, parameters);
    backend_.load_parameters(kFrozenSet, parameters);
  }

  // A cost in the user's sense: the packed value is minus the cost.
  double shown(double cost) const {
    const double sign = options_.own ? options_.own->sign() : sign_of(problem_of(options_.model.problem));
    return sign * cost * options_.model.own.cost_unit;
  }

  // Of the steps since the last line, without a validation.
  TrainProgress measured() const {
    const IntervalSums& sums = state_.interval;
    const double steps = static_cast<double>(std::max<int64_t>(sums.steps, 1));
    const double decoding_steps = static_cast<double>(std::max<int64_t>(sums.policy.steps, 1));
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
    line.entropy = sums.policy.entropy / decoding_steps;
    line.mean_logit = sums.policy.mean_logit / decoding_steps;
    line.saturated = sums.policy.saturated / decoding_steps;
    line.learning_rate = learning_rate(state_.step - 1);
    line.infeasible = kNone;
    line.penalty = has_windows() ? policy().penalty : kNone;
    line.cross_entropy = options_.is_supervised() ? sums.cross_entropy / steps : kNone;
    line.eta_seconds = seconds_since(start_) / static_cast<double>(state_.step - first_step_) *
                       static_cast<double>(options_.steps - state_.step);
    return line;
  }

  void validate(TrainProgress& line) {
    Policy greedy = policy();
    greedy.penalty = kLatePenalty;  // also where a training leaves late rollouts out
    std::vector<double> costs = greedy_costs(validation_, kActorSet, greedy);
    const size_t all = costs.size();
    if (has_windows()) {
      std::erase_if(costs, [](double cost) { return cost >= kLatePenalty; });
      line.infeasible = 1.0 - static_cast<double>(costs.size()) / static_cast<double>(all);
    }
    val_cost_ = line.val_cost = shown(mean_of(costs));
  }

  void report(bool validate) {
    TrainProgress line = measured();
    if (validate) this->validate(line);
    told_ = line;
    if (!log_failure_) attempt([&] { log_->write(line); }, log_failure_);
    if (job_.progress) job_.progress(line);
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
      if (job_.control.report.warn) job_.control.report.warn(error.what());
    }
  }

  // False when a file could not be written; the others are written all the same.
  bool save() {
    failure_ = nullptr;
    state_.seconds = earlier_seconds_ + seconds_since(start_);
    backend_.read_parameters(kActorSet, state_.parameters);
    if (!options_.checkpoint.empty()) {
      state_.optimiser = backend_.read_optimiser(kActorSet);
      if (has_frozen()) backend_.read_parameters(kFrozenSet, state_.baseline_parameters);
      attempt([&] { checkpoint_->save(checkpoint_bytes(options_, state_)); }, failure_);
    }
    if (output_) {
      const std::string name = options_.output.string();
      attempt([&] { output_->save(model_bytes(written_config(), state_.parameters, name)); }, failure_);
    }
    return !failure_;
  }

  Backend& backend_;
  const TrainJob& job_;
  const TrainOptions options_;
  const ParameterLayout layout_;
  const TrainingBatch validation_;
  const StopToken stop_;
  EpochOrder epoch_order_;
  TrainState state_;
  Tape tape_;                             // of the step's rollouts
  std::optional<double> next_average_;    // kEma: after this step
  std::optional<float> new_critic_bias_;  // which this step gave to the critic
  std::optional<TrainLog> log_;
  std::optional<OutputFile> checkpoint_, output_;
  std::exception_ptr failure_, log_failure_;  // of the last save; of the log, which ends there
  TrainProgress told_;                        // the last line
  double val_cost_ = kNone;                   // the last one measured
  Clock::time_point start_{};
  double earlier_seconds_ = 0.0;  // of the runs before this one
  int64_t first_step_ = 0;        // of this run
  int64_t known_step_ = 0;        // state_.step after the step before
};

}  // namespace

TrainResult train(Backend& backend, const TrainJob& job) { return Trainer(backend, job).run(); }

}  // namespace pointsman
