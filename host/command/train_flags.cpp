// SPDX-License-Identifier: Apache-2.0
#include "host/command/train_flags.h"

#include <algorithm>
#include <filesystem>
#include <map>
#include <utility>

#include "engine/problem/problem.h"
#include "host/command/flags.h"
#include "host/command/instance_flags.h"
#include "host/command/log.h"
#include "host/formats/input_file.h"
#include "host/formats/text_scan.h"
#include "host/run/model_lookup.h"
#include "models/parameter_layout.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

namespace fs = std::filesystem;

namespace {

const std::vector<std::pair<std::string, Baseline>> kBaselines = {{"shared", Baseline::kShared},
                                                                  {"critic", Baseline::kCritic},
                                                                  {"ema", Baseline::kEma},
                                                                  {"rollout", Baseline::kRollout}};

// The model's shape and the parameters it starts from: fresh, or --init's with its recipe for what no flag
// says.
std::vector<float> initial_state(const TrainFlags& flags, const CLI::App& app, ModelConfig& config) {
  config.centre_logits = flags.centre_logits == "on";
  config.has_critic = flags.options.baseline == Baseline::kCritic;
  config.encoder = flags.encoder == name_of(Encoder::kLstm) ? Encoder::kLstm : Encoder::kAttention;
  if (config.encoder == Encoder::kLstm && is_given(app, "--layers"))
    throw UsageError("--layers: the LSTM encoder has none; leave it out");
  config.has_prior = flags.prior == "on";
  if (config.capacity == 0) config.capacity = problem_of(config.problem).default_capacity(config.n);
  if (flags.init.empty()) return initial_parameters(config, config.seed);
  const Model model = load_model(find_model(flags.init), run_log());
  if (model.config.problem != config.problem) {
    throw UsageError("--init " + flags.init + ": is a model for " + name_of(model.config.problem) + ", not " +
                     name_of(config.problem));
  }
  for (const char* name : {"--glimpses", "--centre-logits", "--encoder", "--layers", "--prior"}) {
    if (is_given(app, name))
      throw UsageError(std::string(name) + ": comes from the model of --init; leave it out");
  }
  config.glimpses = model.config.glimpses;
  config.encoder = model.config.encoder;
  config.layers = model.config.layers;
  config.heads = model.config.heads;
  config.feed_forward = model.config.feed_forward;
  config.has_prior = model.config.has_prior;
  if (!is_given(app, "--clip")) config.clip = model.config.clip;
  config.centre_logits = model.config.centre_logits;
  config.training_tours = model.config.training_tours;
  config.learning_rate = model.config.learning_rate;
  std::vector<float> parameters = initial_parameters(config, config.seed);
  std::copy_n(model.parameters.begin(), std::min(parameters.size(), model.parameters.size()),
              parameters.begin());
  rescale_prior(config, model.config.n, parameters);
  return parameters;
}

// What a training writes hours later must be possible now. A continued training replaces its own earlier
// files.
void check_outputs(const TrainFlags& flags, const CommonOptions& common) {
  const std::pair<const char*, std::string> files[] = {
      {"-o", common.output}, {"--checkpoint", flags.checkpoint}, {"--log", flags.log}};
  std::map<fs::path, const char*> seen;
  for (const auto& [flag, file] : files) {
    if (file.empty()) continue;
    const fs::path place = fs::weakly_canonical(fs::absolute(file));
    for (const auto& [other, other_flag] : seen) {
      std::error_code absent;  // a hard link is the same file by another name
      if (place == other || fs::equivalent(place, other, absent))
        throw UsageError(std::string(flag) + " " + file + ": is the file of " + other_flag);
    }
    seen.emplace(place, flag);
    if (flag == std::string("--log") && fs::is_character_file(file)) continue;  // a terminal
    if (fs::exists(file) && !fs::is_regular_file(file) && !fs::is_directory(file))
      throw UsageError(std::string(flag) + " " + file + ": expected a file, found a device, socket or FIFO");
    OutputFile refused_if_impossible(file, common.force || !flags.resume.empty());
  }
}

void prepare(TrainFlags& flags, CommonOptions& common) {
  TrainOptions& options = flags.options;
  const auto found = std::find_if(kBaselines.begin(), kBaselines.end(),
                                  [&](const auto& entry) { return entry.first == flags.baseline; });
  options.baseline = found->second;
  if (options.baseline == Baseline::kShared && options.rollouts < 2 && flags.solutions.empty()) {
    throw UsageError("--rollouts: the shared baseline needs at least 2 rollouts of an instance");
  }
  if (options.rollouts % options.symmetries != 0)
    throw UsageError("--symmetries: expected a divisor of --rollouts, found " +
                     std::to_string(options.symmetries));
  options.model.problem = *find_problem(flags.problem);
  const Problem& problem = problem_of(options.model.problem);
  refuse_capacity(problem.kind, options.model.capacity);
  if (common.output.empty()) {
    common.output = problem.model_prefix + std::to_string(options.model.n) + ".safetensors";
  }
  check_outputs(flags, common);
  options.output = common.output;
  options.checkpoint = flags.checkpoint;
  options.log = flags.log;
  options.seed = options.model.seed = common.seed;
  options.model.version = POINTSMAN_VERSION;
}

// The instances to train on and, for supervised learning, the answers to learn from.
void load_examples(TrainFlags& flags, const CLI::App& app) {
  if (flags.instances.empty() && !flags.solutions.empty())
    throw UsageError("--solutions: needs the instances they are of, --instances");
  if (flags.instances.empty()) return;
  const bool supervised = !flags.solutions.empty();
  if (supervised) {
    refuse_typed(app, {"--baseline", "--entropy", "--entropy-steps"},
                 "is not for supervised learning (--solutions)");
  }
  const ModelConfig& model = flags.options.model;
  InstanceFlags input;
  input.problem = flags.problem;
  input.capacity = model.capacity;
  const InstanceBatch instances = load_instances(flags.instances, input);
  require_coordinates(instances, flags.instances, "--instances");
  for (size_t i = 0; i < instances.size(); ++i) {
    if (instances[i].n() == model.n) continue;
    throw InputError(flags.instances, 0,
                     "instance " + std::to_string(i) + ": expected " + std::to_string(model.n) +
                         " items (-n), found " + std::to_string(instances[i].n()));
  }
  LoadingWatch watch(flags.instances);
  Examples examples = make_examples(model, instances,
                                    supervised ? load_solutions(flags.solutions, instances) : SolutionBatch{},
                                    [&](size_t numbers) { watch.after(numbers); });
  if (examples.unreachable > 0) {
    log_warning(printed(
        "%s: %zu of %zu solutions passed over: the network packs until nothing fits and cannot make them",
        flags.solutions.c_str(), examples.unreachable, instances.size()));
  }
  if (!supervised) {
    const auto most = static_cast<size_t>(flags.options.validation_instances);
    flags.options.validation = std::make_shared<const Examples>(split_off(examples, most));
  }
  flags.options.examples = std::make_shared<const Examples>(std::move(examples));
}

void add_training_options(CLI::App& app, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  std::vector<std::string> baselines;
  for (const auto& [name, baseline] : kBaselines) baselines.push_back(name);
  add_option(app, "--baseline", flags.baseline,
             "b of the gradient (L - b): leave-one-out mean of the instance's other "
             "rollouts, critic network, moving average, or greedy rollout of the best actor",
             one_of(baselines));
  add_option(app, "--rollouts", options.rollouts,
             "Copies of an instance, turned and reordered, with the shared baseline or --solutions",
             within(1, 4096));
  add_option(
      app, "--symmetries", options.symmetries,
      "With --encoder attention and the shared baseline: encodings an instance, each of another symmetry, "
      "that its rollouts are shared out to",
      one_of_numbers({1, 2, 4, 8}));
  add_option(app, "-b,--batch-size", options.batch, "Instances a step", within(1, 1 << 20));
  add_option(app, "--steps", options.steps, "Gradient steps", within(int64_t{1}, int64_t{1} << 40));
  add_option(app, "--learning-rate", flags.learning_rate,
             "Of Adam, at the start; default: 3e-4 with --encoder attention, 1e-3 with lstm",
             within(1e-9, 1.0));
  add_option(app, "--decay", options.decay, "The learning rate is multiplied by this every --decay-steps",
             within(0.01, 1.0));
  add_option(app, "--decay-steps", options.decay_steps, "Steps between two decays", within(1, 1 << 30));
  add_option(app, "--entropy", options.entropy,
             "Temperature T of the entropy term, in units of cost: E[L + T log p] is minimised",
             within(0.0, 1e6));
  add_option(app, "--entropy-steps", options.entropy_steps, "T falls linearly to 0 over so many steps",
             within(int64_t{1}, int64_t{1} << 40));
  add_option(app, "--max-norm", options.max_norm, "The gradient's L2 norm is clipped to this",
             within(1e-6, 1e6));
  add_flag(
      app, "--asynchronous", flags.asynchronous,
      "Several MPI ranks: each makes steps of its own and waits for nobody (Mnih et al. 2016). No two runs "
      "have the same bits");
  add_option(app, "--validation-every", options.validation_every, "Steps between two greedy validations",
             within(1.0, 1e12));
}

void add_training_files(CLI::App& app, TrainFlags& flags) {
  TrainOptions& options = flags.options;
  add_option(
      app, "--instances", flags.instances,
      "Train on these instances of size -n, any format of `solve`, instead of uniform ones; the last tenth, "
      "at most 1,000, is for validation")
      .type_name(kFileValue);
  add_option(app, "--solutions", flags.solutions,
             "Supervised learning: the answers to all --instances, which the network learns to give (cross "
             "entropy)")
      .type_name(kFileValue);
  add_option(app, "--init", flags.init, "Start from this model (path or name) instead of fresh parameters")
      .type_name(kModelValue);
  add_option(app, "--resume", flags.resume,
             "Continue from this checkpoint, bit for bit as if never stopped; give the "
             "same flags again")
      .type_name(kFileValue);
  add_option(app, "--checkpoint", flags.checkpoint, "Write a resumable state to this file")
      .type_name(kFileValue);
  add_option(app, "--checkpoint-every", options.checkpoint_every, "Steps between two checkpoints",
             within(1, 1 << 30));
  add_option(app, "--log", flags.log, "Write a JSON line here every 100 steps and at each validation")
      .type_name(kFileValue);
}

}  // namespace

void add_train_flags(CLI::App& app, TrainFlags& flags) {
  ModelConfig& model = flags.options.model;
  add_positional(app, "problem", flags.problem, problem_names()).required().check(one_of(problem_choices()));
  add_option(app, "-n,--size", model.n, "Cities or items of an instance").required().check(within(2, 10000));
  add_option(app, "--capacity", model.capacity, "KnapSack: capacity; 0: 12.5 up to n = 50, else 25",
             within(0.0, 1e12));
  const std::vector<std::string> on_off = {"on", "off"};
  add_option(app, "--encoder", flags.encoder, "attention: layers of self-attention; lstm: the paper's",
             one_of({name_of(Encoder::kAttention), name_of(Encoder::kLstm)}));
  add_option(app, "--layers", model.layers, "Of the attention encoder", within(1, 64));
  add_option(app, "--prior", flags.prior,
             "Learned weight of what the rules know of a candidate (TSP: its distance), added to its logit; "
             "off: the paper's form",
             one_of(on_off));
  add_option(app, "--glimpses", model.glimpses, "Glimpses before the pointer", within(0, 4));
  add_option(app, "--clip", model.clip,
             "C of the logits C tanh(u); with --init the model's. A larger one is a colder policy",
             within(0.1, 1000.0));
  add_option(app, "--centre-logits", flags.centre_logits,
             "Subtract the mean of u over the feasible cities before "
             "the clip; off: the paper's literal form",
             one_of(on_off));
  add_training_options(app, flags);
  add_training_files(app, flags);
}

std::vector<float> finish_train_flags(TrainFlags& flags, const CLI::App& app, CommonOptions& common) {
  if (common.device == "cuda:all")
    throw UsageError("--device cuda:all: training uses one device; name it, as cuda or cuda:1");
  if (flags.asynchronous && (!flags.instances.empty() || flags.baseline == "rollout"))
    throw UsageError("--asynchronous: is for neither --instances nor --baseline rollout");
  prepare(flags, common);
  TrainOptions& options = flags.options;
  std::vector<float> initial = initial_state(flags, app, options.model);
  const double rate = flags.learning_rate.value_or(fresh_learning_rate(options.model.encoder));
  options.learning_rate = static_cast<float>(rate);
  if (flags.init.empty()) options.model.learning_rate = rate;
  load_examples(flags, app);
  return initial;
}

}  // namespace pointsman
