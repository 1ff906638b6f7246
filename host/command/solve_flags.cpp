// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_flags.h"

#include <algorithm>

#include "host/command/solve_run.h"

namespace pointsman {

namespace {

using Names = std::vector<std::string>;

void add_search_flags(CLI::App& app, SolveFlags& flags) {
  SolveOptions& options = flags.options;
  add_option(app, "--mode", flags.mode,
             "greedy: one pass of the network; sample: the best of many; active: train on "
             "the instance (Algorithm 2); auto: sample with --augment 8 and --shuffle, then --improve on")
      ->check(CLI::IsMember(Names{"auto", "greedy", "sample", "active"}));
  add_option(app, "-n,--samples", options.samples,
             "Samples of an instance; 0: 1280 when sampling, one a copy when "
             "greedy")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  add_option(app, "--first-sample", options.first_sample,
             "Number of the first sample: chunks of one run add up to it")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31));
  add_option(app, "-b,--batch-size", options.batch_size, "Instances at once; 0: chosen; changes no answer")
      ->check(CLI::Range(0, 1 << 20));
  add_option(app, "--temperature", options.temperature, "T of softmax(C tanh(u) / T)")
      ->check(CLI::Range(1e-3, 1e3));
  add_option(app, "--clip", options.clip, "C of the logits; 0: the model's")->check(CLI::Range(0.0, 1e3));
  add_option(app, "--augment", options.augment,
             "TSP: spread the samples over the 8 symmetries of the square; 1: one "
             "copy; 0: 8 in mode auto and in mode active from a model, else 1")
      ->check(CLI::IsMember(std::vector<int>{0, 1, 8}));
  app.add_flag("--shuffle,!--no-shuffle", flags.shuffle,
               "Spread the samples over random input orders; on in mode auto")
      ->envname(environment_name("--shuffle"));
  add_option(app, "--improve", flags.improve,
             "on: 2-opt and Or-opt on the best tours; default: on in mode auto")
      ->check(CLI::IsMember(Names{"on", "off"}));
  add_option(
      app, "--kicks", options.kicks,
      "Where tours are improved: random double-bridge kicks of the best, each kept that makes it no longer")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 40));
  add_flag(app, "--stop-at-first-misfit", options.stop_at_first_misfit,
           "KnapSack: the paper's literal rule; nothing is "
           "masked and the first item that does not fit ends the packing");
}

void add_active_flags(CLI::App& app, SolveFlags& flags) {
  const std::string group = "Active search";
  SolveOptions& options = flags.options;
  add_option(app, "--steps", options.steps, "Gradient steps on an instance; 0: 5000")
      ->check(CLI::Range(int64_t{0}, int64_t{1} << 31))
      ->group(group);
  add_option(app, "--replicas", options.active_batch, "Samples a step, each with an input order of its own")
      ->check(CLI::Range(2, 1 << 16))
      ->group(group);
  add_option(app, "--learning-rate", options.learning_rate,
             "Of Adam; 0: 1e-3 from fresh parameters, the model's / 100 "
             "from a trained one")
      ->check(CLI::Range(0.0, 1.0))
      ->group(group);
  add_option(app, "--entropy", options.entropy,
             "Temperature of the entropy term, falling to 0 over the steps or the limit; -1: 0.2 from fresh "
             "parameters, 0 from a model")
      ->check(CLI::Range(-1.0, 1e6))
      ->group(group);
}

}  // namespace

void add_solve_flags(CLI::App& app, SolveFlags& flags) {
  app.add_option("FILE", flags.files, "TSPLIB, .npy, .npz, JSON, NDJSON or KnapSack text; - is stdin")
      ->required();
  add_option(app, "-m,--model", flags.model, "Model file or name; default: same problem, nearest size");
  add_search_flags(app, flags);
  add_active_flags(app, flags);
  add_option(app, "--init", flags.init,
             "\"random\": active search from fresh parameters; else a file of solutions, than "
             "which no answer will be worse");
  add_option(app, "--ref", flags.ref, "Reference costs for the gap: a number, .npy, .tour or JSON");
  add_instance_options(app, flags.input);
}

void finish_solve_flags(SolveFlags& flags, const CLI::App& app, const CommonOptions& common) {
  SolveOptions& options = flags.options;
  options.mode = parse_mode(flags.mode);
  options.seed = common.seed;
  if (app.count("--shuffle") > 0) options.shuffle = flags.shuffle ? 1 : 0;
  if (!flags.improve.empty()) options.improve = flags.improve == "on" ? 1 : 0;
  options.untrained = flags.init == "random";
  const bool active = options.mode == Mode::kActive;
  for (const char* name : {"--steps", "--replicas", "--learning-rate", "--entropy"}) {
    if (is_typed(app, name) && !active) throw UsageError(std::string(name) + ": is for --mode active");
  }
  for (const char* name : {"--samples", "--first-sample", "--shuffle", "--temperature"}) {
    if (is_typed(app, name) && active) throw UsageError(std::string(name) + ": is not for --mode active");
  }
  if (options.untrained && !active) throw UsageError("--init random: is for --mode active");
  if (is_typed(app, "--kicks") && !improves(options)) throw UsageError("--kicks: needs --improve on");
  const int64_t copies = std::max(1, options.augment);
  if (options.mode == Mode::kGreedy && options.samples > copies && options.shuffle != 1) {
    throw UsageError("--samples " + std::to_string(options.samples) +
                     " --mode greedy: a greedy pass of the same input "
                     "gives the same tour; add --shuffle");
  }
  if (std::count(flags.files.begin(), flags.files.end(), "-") > 1)
    throw UsageError("- (stdin) can be read only once");
}

std::pair<int, std::string> check_instance(const SolveOptions& options, const Instance& instance) {
  const std::string name = instance.id.empty() ? "" : instance.id + ": ";
  if (instance.problem == ProblemKind::kKnapsack && options.augment == 8) {
    return {kExitUsage, name + "--augment 8: turns the square, and KnapSack has none; use --shuffle"};
  }
  if (instance.problem == ProblemKind::kTsp && options.stop_at_first_misfit) {
    return {kExitUsage, name + "--stop-at-first-misfit: is a rule of KnapSack"};
  }
  return {0, ""};
}

bool improves(const SolveOptions& options) {
  return options.improve == 1 || (options.improve == -1 && options.mode == Mode::kAuto);
}

}  // namespace pointsman
