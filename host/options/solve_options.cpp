// SPDX-License-Identifier: Apache-2.0
#include "host/options/solve_options.h"

#include <algorithm>
#include <iterator>
#include <limits>

#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "engine/problem/timed_places.h"
#include "host/options/call_options.h"

namespace pointsman {

namespace {

constexpr int64_t kMostSamples = int64_t{1} << 31;
constexpr double kMostSeconds = 1e9;

// What means nothing without a network, and asks auto for one.
constexpr const char* kNetworkFlags[] = {
    "--model", "--samples", "--first-sample",         "--shuffle",  "--augment", "--temperature",
    "--clip",  "--improve", "--stop-at-first-misfit", "--mask-late"};

constexpr const char* kNotForActive[] = {"--samples", "--first-sample", "--shuffle", "--temperature"};
constexpr const char* kOnlyForActive[] = {"--steps", "--replicas", "--learn", "--learning-rate", "--entropy"};

// What --mode takes, and what each of them does.
void add_mode(OptionSet& options, Mode& mode) {
  OptionSet::Words<Mode> modes;
  std::string summaries;
  for (const ModeInfo& info : all_modes()) {
    if (info.only_rival) continue;
    modes.emplace_back(info.name, info.mode);
    summaries += (summaries.empty() ? "" : "; ") + std::string(info.name) + ": " + info.summary;
  }
  options.add_words("--mode", mode, modes, summaries);
}

void add_search_options(OptionSet& options, SolveOptions& solve) {
  add_mode(options, solve.mode);
  options.add("-n,--samples", solve.samples, int64_t{0}, "Samples per instance; 0: 1280, greedy one per copy")
      .range(0, kMostSamples);
  options.add("--first-sample", solve.first_sample, "Index of the first sample; cuts one run into chunks")
      .range(0, kMostSamples);
  options
      .add("-b,--batch-size", solve.batch_size, 0,
           "Instances solved at once; 0: automatic. Answers do not depend on it")
      .range(0, 1 << 20);
  add_temperature(options, solve.policy.temperature);
  options
      .add("--noise", solve.policy.noise,
           "Mode sample on the CPU: takes the largest logit after adding normal noise of this standard "
           "deviation, instead of drawing from the softmax; 0: draws")
      .range(0, 1000);
  options.add("--clip", solve.policy.clip, 0.0f, "C of the logits; 0: the model's").range(0, 1000);
  options
      .add("--augment", solve.augment, 0,
           "TSP: spread the samples over the 8 symmetries of the square; 0: 8 in mode auto, and in mode "
           "active from a model; else 1")
      .choices({"0", "1", "8"});
  options.add("--shuffle,--no-shuffle", solve.shuffle,
              "Spread the samples over random input orders; on in mode auto");
  options.add_on_off("--improve", solve.improve,
                     "on: local search from the best tours or routes; default: on in mode auto");
  options
      .add(
          "--kicks", solve.kicks, int64_t{-1},
          "Local search: kicks of the best improved tour or routes; -1: in modes auto and local 4 a city, "
          "7 of a path, 10 a place with a window, 1000 a customer or a node, in 2opt 64 a city, or until the "
          "limit; else none")
      .range(-1, int64_t{1} << 40);
  options.add_on_off("--mask-late", solve.policy.masks,
                     "TSPTW: what comes certainly too late is masked; off: as in a training by penalty");
  options.add("--stop-at-first-misfit", solve.policy.stop_at_first_misfit,
              "KnapSack: the paper's literal rule; nothing is masked, and the first item that does not fit "
              "ends the packing");
}

void add_active_options(OptionSet& options, SolveOptions& solve) {
  options.begin_group("Active search");
  options.add("--steps", solve.steps, int64_t{0}, "Gradient steps on an instance; 0: 5000")
      .range(0, int64_t{1} << 31);
  options.add("--replicas", solve.replicas, "Samples per step; each has its own input order; default: 128")
      .range(2, 1 << 16);
  options.add_words("--learn", solve.learned,
                    OptionSet::Words<Learned>{{"all", Learned::kAll}, {"attention", Learned::kAttention}},
                    "What is trained: all parameters, or those of the attention (glimpse, pointer, prior), "
                    "which takes two thirds of the time; default: attention from a trained model, else all");
  options
      .add("--learning-rate", solve.learning_rate, 0.0f,
           "Adam's learning rate; 0: from fresh parameters as `train`, from a trained model a share of its "
           "own: 0.2 with --learn attention, 0.01 with all")
      .range(0, 1);
  options
      .add("--entropy", solve.entropy, -1.0,
           "Entropy term's temperature; falls to 0 over the steps or the time limit; -1: 0.2 from fresh "
           "parameters, for n > 20 cities 0.2 (20/n)^1.5, 0 from a model")
      .range(-1.0, 1e6);
}

}  // namespace

void add_temperature(OptionSet& options, float& temperature) {
  options.add("--temperature", temperature, "T of softmax(C tanh(u) / T)").range(1e-3, 1e3);
}

void add_engine_options(OptionSet& options, SolveOptions& solve) {
  add_search_options(options, solve);
  add_active_options(options, solve);
}

void add_solve_options(OptionSet& options, SolveRequest& request) {
  options.add_model(
      "-m,--model", request.model,
      "Model file or name; default: same problem, nearest size. Mode auto then samples it first");
  options.add("--limit-each", request.limit_each, "Seconds for an instance; 0: no limit of its own")
      .range(0, kMostSeconds);
  options.add("--init", request.init,
              "\"random\": active search from fresh parameters; else a file of solutions to start from: no "
              "answer will be worse than these");
  add_engine_options(options, request.options);
}

void finish_solve_options(const OptionSet& options, SolveRequest& request) {
  SolveOptions& solve = request.options;
  solve.untrained = request.init == "random";
  solve.network = std::any_of(std::begin(kNetworkFlags), std::end(kNetworkFlags),
                              [&](const char* flag) { return options.is_given(flag); });
  const ModeInfo& mode = info_of(solve.mode);
  const bool active = solve.mode == Mode::kActive;
  if (!mode.has_network) options.refuse_typed(kNetworkFlags, std::string("is not for --mode ") + mode.name);
  if (active) {
    options.refuse_typed(kNotForActive, "is not for --mode active");
  } else {
    options.refuse_typed(kOnlyForActive, "is for --mode active");
  }
  if (solve.policy.noise > 0.0f && solve.mode != Mode::kSample)
    throw UsageError("--noise: is for --mode sample");
  if (solve.untrained && !active) throw UsageError("--init random: is for --mode active");
  if (options.is_typed("--kicks") && mode.number != ModeNumber::kKicks && !improves(solve))
    throw UsageError("--kicks: needs --improve on");
  if (solve.mode == Mode::kTwoOpt && solve.kicks.value_or(0) > std::numeric_limits<int>::max()) {
    throw UsageError("--kicks: expected at most " + std::to_string(std::numeric_limits<int>::max()) +
                     " for --mode 2opt, found " + std::to_string(*solve.kicks));
  }
  const int64_t samples = solve.samples.value_or(1), copies = solve.augment.value_or(1);
  if (solve.mode == Mode::kGreedy && samples > copies && !solve.shuffle.value_or(false)) {
    throw UsageError("--samples " + std::to_string(samples) +
                     " --mode greedy: a greedy pass of the same input gives the same tour; add --shuffle");
  }
}

SolveCalls::SolveCalls() {
  add_solve_options(options_, request_);
  add_seed(options_, request_.options.seed);
  add_time_limit(options_, request_.time_limit);
}

OptionSet& SolveCalls::begin() {
  request_ = {};
  for (Option& option : options_.all()) option.is_given = option.is_typed = false;
  return options_;
}

std::string too_many_pairs(const Instance& instance) {
  const Problem& problem = problem_of(instance);
  if (!reads_pairs(problem) || instance.n() <= kMostPairedItems) return {};
  return "networks read at most " + std::to_string(kMostPairedItems) + " " + problem.items + " of " +
         problem.title + ", found " + std::to_string(instance.n());
}

std::string wrong_options(const SolveOptions& options, const Instance& instance) {
  const std::string name = instance.id.empty() ? "" : instance.id + ": ";
  const Problem& problem = problem_of(instance);
  const ModeInfo& mode = info_of(options.mode);
  if (mode.needs != nullptr && !(problem.*mode.needs)) {
    return name + "--mode " + mode.name + ": is not for " + problem.title;
  }
  const bool in_plane = options.mode == Mode::kTwoOpt;
  if ((needs_network(options) || in_plane) && !instance.suits_networks()) {
    const bool is_matrix = problem.fields == ItemFields::kDistances;
    return name + "--mode " + mode.name +
           (is_matrix ? ": networks read no " : ": reads coordinates, and the instance has ") +
           instance.beyond_networks() + "; use local";
  }
  if (in_plane && instance.n() > kMostTourCities) {
    return name + "--mode " + mode.name + ": expected at most " + std::to_string(kMostTourCities) +
           " cities, found " + std::to_string(instance.n()) + "; use local";
  }
  if (const std::string wrong = too_many_pairs(instance); needs_network(options) && !wrong.empty())
    return name + "--mode " + mode.name + ": " + wrong + "; use local";
  if (options.mode == Mode::kExact && problem.has_first && instance.n() > kMostExactPlaces) {
    return name + "--mode exact: expected at most " + std::to_string(kMostExactPlaces) + " places, found " +
           std::to_string(instance.n());
  }
  if (options.mode == Mode::kExact && problem.has_labels && instance.n() > kMostExactNodes) {
    return name + "--mode exact: expected at most " + std::to_string(kMostExactNodes) + " nodes, found " +
           std::to_string(instance.n()) + "; use local";
  }
  if (!problem.has_symmetries && options.augment == 8) {
    return name + "--augment 8: turns the square, and " + problem.title + " has none; use --shuffle";
  }
  if (!problem.has_first && !options.policy.masks) {
    return name + "--mask-late off: is for TSPTW";
  }
  if (!problem.has_packing && options.policy.stop_at_first_misfit) {
    return name + "--stop-at-first-misfit: is a rule of KnapSack";
  }
  return {};
}

void check_instances(const SolveOptions& options, const InstancePointers& instances) {
  for (const Instance* instance : instances) {
    const std::string wrong = wrong_options(options, *instance);
    if (!wrong.empty()) throw UsageError(wrong);
  }
}

bool improves(const SolveOptions& options) {
  return options.mode == Mode::kLocal || options.improve.value_or(options.mode == Mode::kAuto);
}

}  // namespace pointsman
