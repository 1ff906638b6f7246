// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_flags.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <system_error>

#include "engine/problem/problem.h"
#include "host/command/flags.h"
#include "host/command/output.h"

namespace pointsman {

namespace {

using Names = std::vector<std::string>;

// What --mode takes, and what each of them does.
std::pair<Names, std::string> solve_modes() {
  std::pair<Names, std::string> modes;
  for (const ModeInfo& mode : all_modes()) {
    if (mode.only_rival) continue;
    modes.first.emplace_back(mode.name);
    modes.second += (modes.second.empty() ? "" : "; ") + std::string(mode.name) + ": " + mode.summary;
  }
  return modes;
}

template <typename Number>
Check range_check(const ranges::Range<Number>& range) {
  return within(range.low, range.high);
}

void add_search_flags(CLI::App& app, SolveFlags& flags) {
  SolveOptions& options = flags.options;
  const auto [modes, summaries] = solve_modes();
  add_option(app, "--mode", flags.mode, summaries, one_of(modes));
  add_optional(app, "-n,--samples", options.samples, int64_t{0},
               "Samples per instance; 0: 1280, greedy one per copy", range_check(ranges::kSamples));
  add_option(app, "--first-sample", options.first_sample,
             "Index of the first sample; cuts one run into chunks", range_check(ranges::kSamples));
  add_optional(app, "-b,--batch-size", options.batch_size, 0,
               "Instances solved at once; 0: automatic. Answers do not depend on it",
               range_check(ranges::kBatchSize));
  add_option(app, "--temperature", options.policy.temperature, "T of softmax(C tanh(u) / T)",
             range_check(ranges::kTemperature));
  add_optional(app, "--clip", options.policy.clip, 0.0f, "C of the logits; 0: the model's",
               range_check(ranges::kClip));
  add_optional(
      app, "--augment", options.augment, 0,
      "TSP: spread the samples over the 8 symmetries of the square; 0: 8 in mode auto, and in mode active "
      "from a model; else 1",
      one_of_numbers({0, 1, 8}));
  add_flag(app, "--shuffle,!--no-shuffle", options.shuffle,
           "Spread the samples over random input orders; on in mode auto");
  add_option(app, "--improve", flags.improve,
             "on: local search from the best tours; default: on in mode auto", one_of({"on", "off"}));
  add_optional(app, "--kicks", options.kicks, int64_t{-1},
               "TSP: double-bridge kicks of the best improved tour; -1: in modes auto and local 4 a city, in "
               "2opt 64, or until the limit; else none",
               range_check(ranges::kKicks));
  add_option(app, "--limit-each", flags.limit_each, "Seconds for an instance; 0: no limit of its own",
             range_check(ranges::kSeconds));
  add_flag(
      app, "--stop-at-first-misfit", options.policy.stop_at_first_misfit,
      "KnapSack: the paper's literal rule; nothing is masked, and the first item that does not fit ends the "
      "packing");
}

void add_active_flags(CLI::App& app, SolveFlags& flags) {
  begin_group(app, "Active search");
  SolveOptions& options = flags.options;
  add_optional(app, "--steps", options.steps, int64_t{0}, "Gradient steps on an instance; 0: 5000",
               range_check(ranges::kSteps));
  add_option(app, "--replicas", options.replicas,
             "Samples per step; each has its own input order; default: 128", range_check(ranges::kReplicas));
  add_option(
      app, "--learn", flags.learn,
      "What is trained: all parameters, or those of the attention (glimpse, pointer, prior), which takes "
      "two thirds of the time; default: attention from a trained model, else all",
      one_of({"all", "attention"}));
  add_optional(
      app, "--learning-rate", options.learning_rate, 0.0f,
      "Adam's learning rate; 0: from fresh parameters as `train`, from a trained model a share of its "
      "own: 0.2 with --learn attention, 0.01 with all",
      range_check(ranges::kLearningRate));
  add_optional(app, "--entropy", options.entropy, -1.0,
               "Entropy term's temperature; falls to 0 over the steps or the time limit; -1: 0.2 from fresh "
               "parameters, for n > 20 cities 0.2 (20/n)^1.5, 0 from a model",
               range_check(ranges::kEntropy));
}

// --resume needs a file whose lines stay.
void check_resume(const CommonOptions& common) {
  std::error_code absent;
  const auto type = std::filesystem::status(common.output, absent).type();
  if (common.output.empty() || common.output == "-" || common.output == "/dev/stdout")
    throw UsageError("--resume: needs -o FILE");
  if (output_format(common) != OutputFormat::kNdjson)
    throw UsageError("--resume: goes on with lines; needs --format ndjson, or -o FILE.ndjson");
  if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
    throw UsageError("--resume: -o " + common.output + ": is not a regular file");
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const char* const last = text.data() + text.size();
  const auto [slash, number_wrong] = std::from_chars(text.data(), last, shard.number);
  const bool has_slash = number_wrong == std::errc() && slash != last && *slash == '/';
  const auto [end, of_wrong] = std::from_chars(has_slash ? slash + 1 : last, last, shard.of);
  if (!has_slash || of_wrong != std::errc() || end != last || shard.number < 1 || shard.number > shard.of ||
      shard.of > ranges::kBatchSize.high) {
    throw UsageError("--shard: expected I/N, 1/N to N/N, found \"" + text + "\"");
  }
  return shard;
}

// Its outputs can be joined, and its input can be read twice: once to count the instances.
void check_shard(const SolveFlags& flags, const CommonOptions& common) {
  const OutputFormat format = output_format(common);
  if (format != OutputFormat::kNdjson && format != OutputFormat::kNpy && format != OutputFormat::kNpz)
    throw UsageError("--shard: needs --format ndjson, npy or npz, whose outputs can be joined");
  if (!flags.init.empty() && !flags.options.untrained) throw UsageError("--shard: is not for --init FILE");
  std::error_code absent;
  for (const std::string& path : flags.files) {
    const auto type =
        path == "-" ? std::filesystem::file_type::fifo : std::filesystem::status(path, absent).type();
    if (type != std::filesystem::file_type::regular && type != std::filesystem::file_type::not_found)
      throw UsageError("--shard: " + path + " is not a regular file, which it takes to count the instances");
  }
}

}  // namespace

void add_solve_flags(CLI::App& app, SolveFlags& flags) {
  add_positional(app, "FILE", flags.files,
                 "TSPLIB, .npy, .npz, JSON, NDJSON, CSV or KnapSack text, also .gz; - is stdin")
      .required();
  add_option(app, "-m,--model", flags.model,
             "Model file or name; default: same problem, nearest size. Mode auto then samples it first")
      .type_name(kModelValue);
  add_search_flags(app, flags);
  add_option(
      app, "--init", flags.init,
      "\"random\": active search from fresh parameters; else a file of solutions to start from: no answer "
      "will be worse than these");
  add_flag(
      app, "--resume", flags.resume,
      "Go on behind the last whole line that an earlier run left in -o FILE, an output of --format ndjson");
  add_option(
      app, "--shard", flags.shard_text,
      "I/N: solve part I of N parts of the input, 1/N to N/N; their outputs joined are the whole run's "
      "(--format ndjson, npy, npz)")
      .type_name("I/N");
  add_option(app, "--ref", flags.ref, "Reference costs for the gap: a number, .npy, .tour or JSON");
  add_active_flags(app, flags);
  add_instance_options(app, flags.input);
}

void finish_solve_flags(SolveFlags& flags, const CLI::App& app, const CommonOptions& common) {
  SolveOptions& options = flags.options;
  options.mode = find_mode(flags.mode)->mode;
  options.seed = common.seed;
  if (!flags.improve.empty()) options.improve = flags.improve == "on";
  if (!flags.learn.empty()) options.learned = flags.learn == "all" ? Learned::kAll : Learned::kAttention;
  options.untrained = flags.init == "random";
  options.network = asks_for_network([&](const char* flag) { return is_given(app, flag); });
  refuse_combinations(options, [&](const char* flag) { return is_typed(app, flag); });
  if (flags.resume) check_resume(common);
  if (!flags.shard_text.empty()) {
    flags.shard = parse_shard(flags.shard_text);
    check_shard(flags, common);
  }
  if (std::count(flags.files.begin(), flags.files.end(), "-") > 1)
    throw UsageError("- (stdin) can be read only once");
}

}  // namespace pointsman
