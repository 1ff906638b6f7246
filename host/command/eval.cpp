// SPDX-License-Identifier: Apache-2.0
// `pointsman eval`: how good and how fast a model is on a set, one row a way of using it.
#include <cmath>
#include <nlohmann/json.hpp>
#include <sstream>

#include "host/command/command.h"
#include "host/command/instance_flags.h"
#include "host/command/interrupt.h"
#include "host/command/log.h"
#include "host/command/output.h"
#include "host/command/solve_flags.h"
#include "host/command/solve_run.h"
#include "host/files/read_solutions.h"

namespace pointsman {

namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kExamples = R"(Examples:
  pointsman eval -m tsp20 tsp20_test.npy --ref tsp20_test.opt.npy
  pointsman eval set.npy --modes greedy,greedy+x8,sample+1280+x8+shuffle+improve
A mode is greedy, sample, active or auto, then any of +NUMBER (samples), +x8 (the copies of the square), +shuffle and
+improve; or local, the same local search from a nearest-neighbour tour without any network, with +NUMBER kicks (TSP). The default is greedy, greedy+x8 and sample+x8+shuffle for TSP; greedy, sample+shuffle for KnapSack.)";

struct EvalFlags {
  std::vector<std::string> files;
  std::string model, ref, modes;
  int64_t samples = 128;
  InstanceFlags input;
};

struct EvalMode {
  std::string name;
  SolveOptions options;
  bool local = false;  // no network: nearest neighbour, local search and options.samples kicks
};

EvalMode parse_eval_mode(const std::string& text, const EvalFlags& flags, uint64_t seed) {
  EvalMode mode{text, {}, false};
  SolveOptions& options = mode.options;
  options.seed = seed;
  options.augment = 1;
  options.shuffle = options.improve = 0;
  std::istringstream words(text);
  std::string word;
  std::getline(words, word, '+');
  mode.local = word == "local";
  if (!mode.local && word != "greedy" && word != "sample" && word != "active" && word != "auto") {
    throw UsageError("--modes: expected greedy, sample, active, auto or local, found \"" + word + "\"");
  }
  if (!mode.local) options.mode = parse_mode(word);
  if (options.mode == Mode::kSample) options.samples = flags.samples;
  if (options.mode == Mode::kAuto) options.augment = 0, options.shuffle = options.improve = -1;
  while (std::getline(words, word, '+')) {
    if (mode.local && word.find_first_not_of("0123456789") != std::string::npos) {
      throw UsageError("--modes: " + text + ": local takes only +NUMBER, its kicks");
    } else if (word == "x8") {
      options.augment = 8;
    } else if (word == "shuffle") {
      options.shuffle = 1;
    } else if (word == "improve") {
      options.improve = 1;
    } else if (!word.empty() && word.size() < 10 &&
               word.find_first_not_of("0123456789") == std::string::npos && std::stoll(word) > 0) {
      options.samples = std::stoll(word);
    } else {
      throw UsageError("--modes: " + text + ": expected +NUMBER, +x8, +shuffle or +improve, found \"+" +
                       word + "\"");
    }
  }
  return mode;
}

std::vector<EvalMode> parse_modes(const EvalFlags& flags, ProblemKind problem, uint64_t seed) {
  const std::string usual =
      problem == ProblemKind::kTsp ? "greedy,greedy+x8,sample+x8+shuffle" : "greedy,sample+shuffle";
  std::istringstream list(flags.modes.empty() ? usual : flags.modes);
  std::vector<EvalMode> modes;
  for (std::string text; std::getline(list, text, ',');) modes.push_back(parse_eval_mode(text, flags, seed));
  return modes;
}

// Mean of the gaps and half the width of its 95% confidence interval.
std::pair<double, double> mean_and_ci95(const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  double sum = 0, squares = 0;
  for (double value : values) sum += value;
  const double mean = sum / count;
  for (double value : values) squares += (value - mean) * (value - mean);
  return {mean, values.size() > 1 ? 1.96 * std::sqrt(squares / (count - 1) / count) : std::nan("")};
}

// The rival without a network, instance by instance on one thread.
void search_locally(const EvalMode& mode, const InstanceBatch& instances, const SearchControl& control,
                    SolveReport& report, const SolutionSink& sink) {
  report.samples = 1;
  report.improve = true;
  ImproveOptions options;
  options.kicks = mode.options.samples;
  options.seed = mode.options.seed;
  for (size_t i = 0; i < instances.size(); ++i) {
    Solution solution = nearest_neighbour_tour(instances[i], 0);
    improve_solution(instances[i], solution, options, control);
    sink(i, solution);
  }
}

Json eval_row(SolveRun& run, const EvalMode& mode, const InstanceBatch& instances,
              const std::vector<double>& reference, const SearchControl& control) {
  std::vector<uint64_t> rows(instances.size());
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = i;
  std::vector<double> gaps;
  double cost = 0;
  Status status = Status::kDone;
  run.report = {};
  const Clock::time_point start = Clock::now();
  {
    ProgressLine line;
    const SolutionSink sink = [&](size_t i, const Solution& solution) {
      cost += solution.cost;
      status = std::max(status, solution.status);
      if (!reference.empty()) gaps.push_back(gap(instances[i], solution.cost, reference[i]));
      if (i + 1 < instances.size() && line.due()) {
        line.update(mode.name + ": " + std::to_string(i + 1) + "/" + std::to_string(instances.size()) +
                    ", mean cost " + std::to_string(cost / static_cast<double>(i + 1)));
      }
    };
    if (mode.local) {
      search_locally(mode, instances, control, run.report, sink);
    } else {
      run.solve(instances, rows, mode.options, control, sink);
    }
  }
  const double seconds = milliseconds_since(start) / 1000;
  const auto count = static_cast<double>(instances.size());
  Json row = {{"mode", mode.local ? "local" : mode_name(run.report.mode)}, {"augment", run.report.augment},
              {"shuffle", run.report.shuffle},      {"improve", run.report.improve},
              {"samples", run.report.samples},      {"mean_cost", cost / count}};
  const auto [mean_gap, ci95] = mean_and_ci95(gaps);  // NaN, in JSON null, without a reference
  row["gap"] = mean_gap;
  row["gap_ci95"] = ci95;
  row["instances"] = instances.size();
  row["seconds"] = seconds;
  // A limit leaves fewer samples than were asked for.
  row["tours_per_second"] = status == Status::kDone ? count * static_cast<double>(run.report.samples) / seconds
                                                    : std::nan("");
  row["status"] = status_name(status);
  return row;
}

std::string row_text(const std::string& name, const Json& row) {
  char text[200];
  std::snprintf(text, sizeof text, "%-32s %8lld %12.6g ", name.c_str(), row["samples"].get<long long>(),
                row["mean_cost"].get<double>());
  std::string line = text;
  if (!std::isnan(row["gap"].get<double>())) {
    std::snprintf(text, sizeof text, "%8.3f%% +- %.3f", 100 * row["gap"].get<double>(),
                  100 * row["gap_ci95"].get<double>());
    line += text;
  } else {
    line += "               -";
  }
  std::snprintf(text, sizeof text, " %9.2f s %11.0f\n", row["seconds"].get<double>(),
                row["tours_per_second"].get<double>());
  return line + text;
}

InstanceBatch load_set(const EvalFlags& flags) {
  InstanceBatch instances;
  for (const std::string& path : flags.files) {
    for (Instance& instance : load_instances(path, flags.input)) instances.push_back(std::move(instance));
  }
  for (const Instance& instance : instances) {
    if (instance.problem != instances.front().problem)
      throw UsageError("eval: the set mixes TSP and KnapSack");
  }
  return instances;
}

int run_eval(const EvalFlags& flags, const CommonOptions& common) {
  OutputFile file = open_output(common);
  const InstanceBatch instances = load_set(flags);
  const std::vector<EvalMode> modes = parse_modes(flags, instances.front().problem, common.seed);
  for (const EvalMode& mode : modes) {
    const auto [code, message] = check_instance(mode.options, instances.front());
    if (code != 0) throw UsageError(message);
    if (mode.local && instances.front().problem != ProblemKind::kTsp) throw UsageError("--modes: local is for TSP");
  }
  const std::vector<double> reference =
      flags.ref.empty() ? std::vector<double>() : read_reference(flags.ref, instances);
  SolveRun run(backend_options(common), flags.model, false);
  const SearchControl control = search_control(common);
  Json rows = Json::array();
  std::string text =
      "mode                              samples    mean cost       gap   95% CI      seconds     tours/s\n";
  for (const EvalMode& mode : modes) {
    rows.push_back(eval_row(run, mode, instances, reference, control));
    text += row_text(mode.name, rows.back());
    log_info("%s: done in %.2f s", mode.name.c_str(), rows.back()["seconds"].get<double>());
    if (interrupt_signal() != 0) break;
  }
  const int code = interrupt_exit_code();
  const Json summary = {{"instances", instances.size()},
                        {"problem", problem_name(instances.front().problem)},
                        {"model", run.used.names},
                        {"model_sha256", run.used.sha256},
                        {"device", device_text(run.engine.device())},
                        {"seed", common.seed},
                        {"version", POINTSMAN_VERSION}};
  write_answer(file, common, {{"code", code}, {"summary", summary}, {"rows", rows}}, text);
  return code;
}

}  // namespace

Command add_eval(CLI::App& parent) {
  auto flags = std::make_shared<EvalFlags>();
  auto common = std::make_shared<CommonOptions>();
  CLI::App* app = parent.add_subcommand("eval", "Mean cost, gap and speed of a model on a set, a row a mode");
  app->footer(kExamples);
  app->add_option("SET", flags->files, "Instances")->required();
  add_option(*app, "-m,--model", flags->model, "Model file or name; default: same problem, nearest size");
  add_option(*app, "--ref", flags->ref, "Reference costs for the gap: a number, .npy, .tour or JSON");
  add_option(*app, "--modes", flags->modes, "Comma-separated modes, see below");
  add_option(*app, "-n,--samples", flags->samples, "Samples of the sample modes that name no number")
      ->check(CLI::Range(int64_t{1}, int64_t{1} << 31));
  add_instance_options(*app, flags->input);
  add_common_options(*app, *common, {"json", "text"});
  return {app, common, [=] { return run_eval(*flags, *common); }};
}

}  // namespace pointsman
