// SPDX-License-Identifier: Apache-2.0
#include "host/run/train_setup.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <utility>

#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "host/formats/input_file.h"
#include "host/formats/text_scan.h"
#include "host/run/load.h"
#include "host/run/log.h"
#include "host/run/model_lookup.h"
#include "host/run/solve_totals.h"
#include "models/parameter_layout.h"
#include "models/tools/atomic_file.h"

namespace pointsman {

namespace fs = std::filesystem;

namespace {

constexpr float kEntropyOfWindows = 0.5f;  // docs/experiments.md, "Time windows"

// Whether a model can start a training for a problem, its own or another: both networks read the same
// numbers.
bool can_start(ProblemKind problem, const ModelConfig& model) {
  ModelConfig wanted = model;
  wanted.problem = problem;
  return problem_of(problem).fields == problem_of(model.problem).fields &&
         (model.reread == 0 || can_reread(wanted)) &&
         ParameterLayout(wanted).size == ParameterLayout(model).size;
}

// The model's parameters in a network of this configuration. What a network that re-reads knows of a city
// beside its place counts for nothing at first.
void take_parameters(const Model& model, const ModelConfig& config, std::vector<float>& parameters) {
  const ParameterLayout to(config), from(model.config);
  for (size_t t = 0; t < std::min(to.tensors.size(), from.tensors.size()); ++t) {
    const Tensor& tensor = to.tensors[t];
    const auto columns = static_cast<size_t>(tensor.shape.back());
    const auto known = static_cast<size_t>(from.tensors[t].shape.back());
    for (size_t row = 0; row < tensor.size / columns; ++row) {
      float* const values = &parameters[tensor.offset + row * columns];
      std::fill_n(values, columns, 0.0f);
      std::copy_n(&model.parameters[from.tensors[t].offset + row * known], std::min(known, columns), values);
    }
  }
  rescale_prior(config, model.config, parameters);
}

// The model's shape and the parameters it starts from: fresh, or --init's with its recipe for what no flag
// says.
std::vector<float> initial_state(const TrainRequest& request, const OptionSet& options, ModelConfig& config) {
  config.has_critic = request.options.baseline == Baseline::kCritic;
  if (config.reread > 0 && !can_reread(config))
    throw UsageError("--reread: is for the attention encoder and tsp");
  if (config.encoder == Encoder::kLstm && options.is_given("--layers"))
    throw UsageError("--layers: the LSTM encoder has none; leave it out");
  if (config.capacity == 0) config.capacity = problem_of(config.problem).default_capacity(config.n);
  if (request.init.empty() && request.sharpen != 1.0) throw UsageError("--sharpen: goes with --init");
  if (request.init.empty()) return initial_parameters(config, config.seed);
  const Model model = load_model(find_model(request.init), run_log());
  if (!can_start(config.problem, model.config)) {
    throw UsageError("--init " + request.init + ": is a model for " + name_of(model.config.problem) +
                     ", not " + name_of(config.problem));
  }
  for (const char* name : {"--glimpses", "--centre-logits", "--encoder", "--layers", "--prior"}) {
    if (options.is_given(name))
      throw UsageError(std::string(name) + ": comes from the model of --init; leave it out");
  }
  config.glimpses = model.config.glimpses;
  config.encoder = model.config.encoder;
  config.layers = model.config.layers;
  config.heads = model.config.heads;
  config.feed_forward = model.config.feed_forward;
  config.has_prior = model.config.has_prior;
  if (!options.is_given("--clip")) config.clip = model.config.clip;
  config.centre_logits = model.config.centre_logits;
  config.training_tours = model.config.training_tours;
  config.learning_rate = model.config.learning_rate;
  if (!options.is_given("--reread")) config.reread = model.config.reread;
  if (config.reread == 0 && model.config.reread > 0)
    throw UsageError("--reread 0: --init " + request.init + " re-reads");
  if (config.reread > 0 && !can_reread(config))
    throw UsageError("--reread: --init " + request.init + " has the LSTM encoder");
  std::vector<float> parameters = initial_parameters(config, config.seed);
  take_parameters(model, config, parameters);
  config.clip *= request.sharpen;
  const ParameterLayout layout(config);
  for (int k = 0; k < layout.priors; ++k) parameters[layout.prior + k] *= static_cast<float>(request.sharpen);
  return parameters;
}

}  // namespace

void check_outputs(const TrainRequest& request) {
  const std::pair<const char*, std::string> files[] = {
      {"-o", request.output}, {"--checkpoint", request.checkpoint}, {"--log", request.log}};
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
    OutputFile refused_if_impossible(file, request.force || !request.resume.empty());
  }
}

namespace {

// The instances to train on and, for supervised learning, the answers to learn from.
void load_examples(TrainRequest& request, const OptionSet& set) {
  if (request.instances.empty() && !request.solutions.empty())
    throw UsageError("--solutions: needs the instances they are of, --instances");
  if (request.instances.empty()) return;
  const bool supervised = !request.solutions.empty();
  if (supervised) {
    constexpr const char* kPolicyGradient[] = {"--baseline", "--entropy", "--entropy-steps"};
    set.refuse_typed(kPolicyGradient, "is not for supervised learning (--solutions)");
  }
  const ModelConfig& model = request.options.model;
  const InstanceBatch instances =
      load_instances(request.instances, {"auto", request.problem, model.capacity});
  require_coordinates(instances, request.instances, "--instances");
  for (size_t i = 0; i < instances.size(); ++i) {
    if (model.reread > 0 ? instances[i].n() >= kFewestRead : instances[i].n() == model.n) continue;
    throw InputError(request.instances, 0,
                     "instance " + std::to_string(i) + ": expected " +
                         (model.reread > 0 ? std::to_string(kFewestRead) + " cities or more"
                                           : std::to_string(model.n) + " items (-n)") +
                         ", found " + std::to_string(instances[i].n()));
  }
  LoadingWatch watch(request.instances);
  Examples examples = make_examples(
      model, instances, supervised ? load_solutions(request.solutions, instances) : SolutionBatch{},
      [&](size_t numbers) { watch.after(numbers); });
  if (examples.unreachable > 0) {
    log_warning(
        printed("%s: %zu of %zu solutions passed over: the network %s and cannot make them",
                request.solutions.c_str(), examples.unreachable, instances.size(),
                problem_of(model.problem).has_packing ? "packs until nothing fits" : "follows rules"));
  }
  if (!supervised) {
    const auto most = static_cast<size_t>(request.options.validation_instances);
    request.options.validation = std::make_shared<const Examples>(split_off(examples, most));
  }
  request.options.examples = std::make_shared<const Examples>(std::move(examples));
}

// What is special about TSPTW; problem and size are known.
void prepare_windows(TrainRequest& request, const OptionSet& options) {
  TrainOptions& train = request.options;
  const bool has_windows = problem_of(train.model.problem).has_first,
             is_supervised = !request.solutions.empty();
  const bool leaves_out = train.infeasible == Infeasible::kMask;
  constexpr const char* kOfWindows[] = {"--infeasible", "--penalty"};
  if (!has_windows) return options.refuse_typed(kOfWindows, "is for tsptw");
  if (options.is_typed("--penalty") && (leaves_out || is_supervised))
    throw UsageError("--penalty: goes with neither --infeasible mask nor --solutions");
  if (leaves_out && train.baseline != Baseline::kShared && !is_supervised)
    throw UsageError("--infeasible mask: goes with --baseline shared");
  if (request.asynchronous)
    throw UsageError("--asynchronous: is not for tsptw, whose penalty all ranks would have to share");
  // Windows leave few choices, which rollouts of one instance would soon all make alike.
  if (!is_supervised && !options.is_given("--entropy")) train.entropy = kEntropyOfWindows;
}

// What is special about a network that re-reads.
void prepare_reread(const TrainRequest& request, BackendOptions& device) {
  if (request.options.model.reread == 0) return;
  if (request.solutions.empty())
    throw UsageError("--reread: learns from --solutions, also where --init re-reads");
  if (device.precision != Precision::kFp32)
    throw UsageError("--precision: a network that re-reads runs on the CPU, in fp32");
  if (device.device == "auto") device.device = "cpu";
}

}  // namespace

std::vector<float> prepare_training(TrainRequest& request, const OptionSet& options, BackendOptions& device,
                                    uint64_t seed) {
  if (device.device == "cuda:all")
    throw UsageError("--device cuda:all: training uses one device; name it, as cuda or cuda:1");
  if (request.asynchronous && (!request.instances.empty() || request.options.baseline == Baseline::kRollout))
    throw UsageError("--asynchronous: is for neither --instances nor --baseline rollout");
  TrainOptions& train = request.options;
  if (train.baseline == Baseline::kShared && train.rollouts < 2 && request.solutions.empty()) {
    throw UsageError("--rollouts: the shared baseline needs at least 2 rollouts of an instance");
  }
  if (train.rollouts % train.symmetries != 0)
    throw UsageError("--symmetries: expected a divisor of --rollouts, found " +
                     std::to_string(train.symmetries));
  train.model.problem = *find_problem(request.problem);
  const Problem& problem = problem_of(train.model.problem);
  if (reads_pairs(problem) && train.model.n > kMostPairedItems)
    throw UsageError("-n: expected at most " + std::to_string(kMostPairedItems) + " " + problem.items +
                     " of " + name_of(problem.kind) + ", found " + std::to_string(train.model.n));
  refuse_capacity(problem.kind, train.model.capacity);
  prepare_windows(request, options);
  if (request.output.empty()) {
    request.output = problem.model_prefix + std::to_string(train.model.n) + ".safetensors";
  }
  check_outputs(request);
  train.output = request.output;
  train.checkpoint = request.checkpoint;
  train.log = request.log;
  train.seed = train.model.seed = seed;
  train.model.version = POINTSMAN_VERSION;
  std::vector<float> initial = initial_state(request, options, train.model);
  prepare_reread(request, device);
  const double rate = request.learning_rate.value_or(fresh_learning_rate(train.model.encoder));
  train.learning_rate = static_cast<float>(rate);
  if (request.init.empty()) train.model.learning_rate = rate;
  load_examples(request, options);
  device.learned = train.model.problem;
  return initial;
}

nlohmann::ordered_json train_summary(const TrainOptions& options, const TrainResult& result,
                                     const DeviceInfo& device) {
  const TrainProgress& last = result.last;
  nlohmann::ordered_json json;
  json["problem"] = name_of(result.config.problem);
  json["n"] = result.config.n;
  json["status"] = name_of(result.status);
  json["steps"] = last.step;
  json["training_tours"] = result.config.training_tours;
  json["seconds"] = last.seconds;
  json["tours_per_second"] = last.tours_per_second;
  json["train_cost"] = last.train_cost;
  if (!std::isnan(last.val_cost)) json["val_cost"] = last.val_cost;
  if (!result.ages.empty()) {
    json["gradient_ages"] = std::vector(result.ages.begin(), result.ages.end() - 1);
    json["gradients_left_out"] = result.ages.back();
  }
  json["model"] = options.output.string();
  json["model_sha256"] = read_model(options.output).sha256;
  json["device"] = device_text(device);
  json["seed"] = options.seed;
  json["version"] = POINTSMAN_VERSION;
  return json;
}

}  // namespace pointsman
