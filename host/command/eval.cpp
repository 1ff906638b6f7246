// SPDX-License-Identifier: Apache-2.0
// `pointsman eval`: how good and how fast a model is on a set, one row a way of using it.
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <numeric>
#include <optional>
#include <set>
#include <sstream>
#include <thread>
#include <utility>

#include "engine/problem/problem.h"
#include "engine/search/limits.h"
#include "host/command/command.h"
#include "host/command/eval_modes.h"
#include "host/command/process.h"
#include "host/formats/formats.h"
#include "host/formats/read_files.h"
#include "host/options/solve_options.h"
#include "host/run/load.h"
#include "host/run/log.h"
#include "host/run/solve_run.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

constexpr double kOptimalGap = 1e-6;  // in absolute value: below it an answer counts as optimal

constexpr const char* kEvalExamples = R"(Examples:
  pointsman eval -m tsp20 tsp20_test.npy --ref tsp20_test.opt.npy
  pointsman eval set.npy --modes greedy,greedy+x8,sample+1280+x8+shuffle+improve,local+20
  pointsman eval set.npy --modes sample+1280,sample+1280+t1.5 --format ndjson >>rows.ndjson
  pointsman eval -m a.safetensors,b.safetensors set.npy --modes greedy  the best of both
  pointsman eval knap.npz --ref opt.npy --modes greedy,ratio,exact
A mode is greedy, sample, active or auto, then any of +NUMBER (samples), +x8 (the copies of the square),
+shuffle, +improve and, where samples are drawn, +tNUMBER (temperature). Or it needs no network: local (TSP:
greedy edges, Lin-Kernighan moves, +NUMBER kicks; CVRP: savings, TSPTW: closing times, colouring: DSATUR, +NUMBER kicks),
2opt (TSP: 2-opt and Or-opt moves, +NUMBER kicks), random (the best of +NUMBER random orders), ratio (KnapSack:
greedy by value/weight), exact (KnapSack, colouring: branch and bound; TSPTW: dynamic programming), savings (CVRP:
Clarke and Wright) and dsatur (colouring: Brelaz). The default is greedy, greedy+x8 and sample+x8, or greedy and
sample where an instance has no symmetries.)";

struct EvalFlags {
  Words files;
  std::string model, ref, modes;
  int64_t samples = 128;
  InstanceOptions input;
};

// The set, the same for every mode.
struct EvalSet {
  std::string name;  // of its files, without folders
  InstanceBatch instances;
  std::vector<double> reference;  // [instances], or empty
};

// The best answers so far to all instances.
struct Answers {
  const InstanceBatch& instances;
  std::string name;
  std::vector<double> objectives = std::vector<double>(instances.size(), std::nan(""));
  Status status = Status::kDone;
  std::vector<bool> infeasible = std::vector<bool>(instances.size());
  size_t seen = 0, solved = 0;  // by this model, and the sum of their objectives
  double sum = 0;
  ProgressLine line{};

  void add(size_t i, const Solution& solution) {
    const bool is_infeasible = solution.status == Status::kInfeasible;
    infeasible[i] = is_infeasible && std::isnan(objectives[i]);  // of several models: no one's
    if (!is_infeasible) status = std::max(status, solution.status);
    ++seen;
    if (has_answer(solution)) {
      double& best = objectives[i];
      if (std::isnan(best) || is_better(instances[i].problem, solution.objective, best))
        best = solution.objective;
      sum += solution.objective;
      ++solved;
    }
    if (seen < instances.size() && line.due()) {
      line.update(name + ": " + std::to_string(seen) + "/" + std::to_string(instances.size()) +
                  ", mean cost " + std::to_string(sum / static_cast<double>(solved)));
    }
    if (seen == instances.size()) seen = solved = 0, sum = 0;  // the next model's turn
  }

  // The means leave infeasible instances out.
  std::vector<double> counted() const {
    std::vector<double> some;
    for (size_t i = 0; i < objectives.size(); ++i) {
      if (!infeasible[i]) some.push_back(objectives[i]);
    }
    return some;
  }
};

// A device does not help the rivals that search one instance after the other: their threads are the host's.
int rival_threads(const CommonOptions& common, const EvalSet& set) {
  const unsigned cores = std::max(1u, std::thread::hardware_concurrency());
  const size_t threads = common.device.threads > 0 ? static_cast<size_t>(common.device.threads) : cores;
  return static_cast<int>(std::min(threads, set.instances.size()));
}

// Every model in turn, each with its share of the time.
SolveReport run_models(SolveRun& run, const Words& models, const EvalMode& mode, const EvalSet& set,
                       const SearchControl& control, Answers& answers) {
  SolveReport all;
  for (size_t k = 0; k < models.size(); ++k) {
    run.models.request(models[k]);
    run.report = {};
    run.solve(SolveJob(set.instances, 0, mode.options,
                       share_time(control, 1.0, static_cast<double>(models.size() - k)),
                       [&](size_t i, Solution&& solution) { answers.add(i, solution); }));
    const auto earlier = std::exchange(all, run.report).samples;
    all.samples = earlier && all.samples ? std::optional(*earlier + *all.samples) : std::nullopt;
  }
  return all;
}

// Mean and half the width of its 95% confidence interval; NaN, in JSON null, where there is none.
void add_mean(Json& row, const std::string& key, const std::vector<double>& values) {
  const auto count = static_cast<double>(values.size());
  const double mean = std::accumulate(values.begin(), values.end(), 0.0) / count;
  double squares = 0;
  for (double value : values) squares += (value - mean) * (value - mean);
  row[key] = mean;
  row[key + "_ci95"] = values.size() > 1 ? 1.96 * std::sqrt(squares / (count - 1) / count) : std::nan("");
}

// The figures that need a reference; null without one.
void add_quality(Json& row, const EvalSet& set, const Answers& answers) {
  const std::vector<double>& objectives = answers.objectives;
  std::vector<double> gaps, shortfalls;
  double optimal = 0;
  size_t counted = 0;
  for (size_t i = 0; i < set.reference.size(); ++i) {
    if (answers.infeasible[i]) continue;
    ++counted;
    const double own = gap(set.instances[i].problem, objectives[i], set.reference[i]);
    if (!std::isnan(own) || std::isnan(objectives[i])) gaps.push_back(own);
    shortfalls.push_back(set.reference[i] - objectives[i]);
    if (std::abs(own) < kOptimalGap) ++optimal;
  }
  if (const size_t without = counted - gaps.size(); without > 0) {
    log_warning("--ref: a reference of 0, or nearly 0, gives no gap; instances left out of the mean gap: " +
                std::to_string(without));
  }
  add_mean(row, "gap", gaps);
  row["optimal"] = optimal / static_cast<double>(counted);
  if (!set.reference.empty() && problem_of(set.instances.front()).sense == Sense::kMaximise) {
    add_mean(row, "shortfall", shortfalls);
  }
}

Json eval_row(SolveRun& run, const Words& models, const EvalMode& mode, const EvalSet& set,
              const CommonOptions& common) {
  const bool rival = !can_use_network(mode.options, problem_of(set.instances.front()));
  const bool on_host = rival && mode.options.mode != Mode::kTwoOpt;
  const int threads = on_host ? rival_threads(common, set) : run.engine.device().threads;
  const SearchControl control = search_control(common);
  Answers answers{set.instances, mode.name};
  const Clock::time_point start = Clock::now();
  const SolveReport report = run_models(run, rival ? Words{""} : models, mode, set, control, answers);
  const double seconds = milliseconds_since(start) / 1000;
  const auto count = static_cast<double>(set.instances.size());
  const std::vector<double> counted = answers.counted();
  const double sum = std::accumulate(counted.begin(), counted.end(), 0.0);
  Json row = json_of({{"name", mode.name},
                      {"mode", info_of(mode.options.mode).name},
                      {"problem", name_of(set.instances.front().problem)},
                      {"n", is_uniform(set.instances) ? Json(set.instances.front().n()) : Json()},
                      {"augment", report.augment ? Json(*report.augment) : Json()},
                      {"shuffle", report.shuffle},
                      {"improve", report.improve},
                      {"samples", report.samples ? Json(*report.samples) : Json()},
                      {"temperature", mode.temperature},
                      {"mean_cost", sum / static_cast<double>(counted.size())}});
  add_quality(row, set, answers);
  row["instances"] = set.instances.size();
  if (counted.size() < set.instances.size()) row["infeasible"] = set.instances.size() - counted.size();
  row["seconds"] = seconds;
  row["ms_per_instance"] = 1000 * seconds / count;
  // A limit leaves fewer samples than were asked for.
  const bool is_counted = answers.status == Status::kDone && report.samples;
  row["tours_per_second"] =
      is_counted ? count * static_cast<double>(*report.samples) / seconds : std::nan("");
  row["threads"] = threads;
  row["model"] = rival ? Json() : Json(run.used.names);
  row["model_sha256"] = rival ? Json() : Json(run.used.sha256);
  row["status"] = name_of(answers.status);
  return row;
}

std::string row_text(const Json& row) {
  const auto number = [&](const char* key) { return row[key].get<double>(); };
  std::string quality = std::isnan(number("gap")) ? "-" : printed("%8.3f%%", 100 * number("gap"));
  if (!std::isnan(number("gap_ci95"))) quality += printed(" +- %-5.3f", 100 * number("gap_ci95"));
  return printed("%-32s %8s %12.6g %18s %10.3f %9.2f s %11.0f\n",
                 printable(row["name"].get<std::string>()).c_str(),
                 row["samples"].is_null() ? "-" : row["samples"].dump().c_str(), number("mean_cost"),
                 quality.c_str(), number("ms_per_instance"), number("seconds"), number("tours_per_second"));
}

EvalSet load_set(const EvalFlags& flags) {
  EvalSet set;
  for (const std::string& path : flags.files) {
    set.name += (set.name.empty() ? "" : ",") + std::filesystem::path(path).filename().string();
    for (Instance& instance : load_instances(path, flags.input)) set.instances.push_back(std::move(instance));
  }
  for (const Instance& instance : set.instances) {
    if (instance.problem != set.instances.front().problem) throw UsageError("eval: the set mixes problems");
  }
  if (!flags.ref.empty()) set.reference = read_reference(flags.ref, set.instances);
  return set;
}

// Reads every model that the modes will use: a mistake ends the run before the work, and no mode's time has
// it in it.
Words load_models(const EvalFlags& flags, const std::vector<EvalMode>& modes, const EvalSet& set,
                  ModelStore& store) {
  Words models;
  std::istringstream list(flags.model + ",");
  list.exceptions(std::ios::badbit);
  for (std::string model; std::getline(list, model, ',');) {
    if (model.empty() && !flags.model.empty())
      throw UsageError("-m " + flags.model + ": expected a model between commas");
    models.push_back(model);
  }
  const Problem& problem = problem_of(set.instances.front());
  const auto is_rival = [&](const EvalMode& mode) { return !can_use_network(mode.options, problem); };
  if (std::all_of(modes.begin(), modes.end(), is_rival)) return models;
  std::set<int> sizes;
  for (const Instance& instance : set.instances) sizes.insert(instance.n());
  for (const std::string& model : models) {
    store.request(model);
    for (const int n : sizes) store.get(problem.kind, n);
  }
  return models;
}

int run_eval(const EvalFlags& flags, const CommonOptions& common) {
  refuse_inputs(common, flags.files);
  OutputFile file = open_output(common);
  const EvalSet set = load_set(flags);
  const std::vector<EvalMode> modes =
      parse_eval_modes(flags.modes, set.instances.front().problem, flags.samples, common.seed);
  for (const EvalMode& mode : modes) check_instances(mode.options, pointers_to(set.instances));
  SolveRun run(common.device, "", false, run_log(), process_ranks());
  const Words models = load_models(flags, modes, set, run.models);
  const Json origin = json_of(
      {{"device", device_text(run.engine.device())}, {"seed", common.seed}, {"version", POINTSMAN_VERSION}});
  const bool by_line = output_format(common) == OutputFormat::kNdjson;
  Json rows = Json::array();
  std::string text = printed("%-32s %8s %12s %18s %10s %11s %11s\n", "mode", "samples", "mean cost",
                             "gap   95% CI", "ms each", "seconds", "tours/s");
  for (const EvalMode& mode : modes) {
    rows.push_back(eval_row(run, models, mode, set, common));
    log_info(mode.name + printed(": done in %.2f s", rows.back()["seconds"].get<double>()));
    if (by_line) {
      Json line = rows.back();
      line.update(origin);
      line["set"] = set.name;
      file.write(line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n");
    }
    text += row_text(rows.back());
    if (interrupt_exit_code() != 0) break;
  }
  const int code = interrupt_exit_code();
  if (by_line) {
    file.commit();
    return code;
  }
  Json summary = json_of({{"instances", set.instances.size()},
                          {"problem", name_of(set.instances.front().problem)},
                          {"model", run.used.names},
                          {"model_sha256", run.used.sha256}});
  summary.update(origin);
  write_answer(file, common, json_of({{"code", code}, {"summary", summary}, {"rows", rows}}), text);
  return code;
}

}  // namespace

Command eval_command() {
  auto flags = std::make_shared<EvalFlags>();
  Command command{"eval", "Mean cost, gap and speed of models and their rivals on a set, a row a mode",
                  kEvalExamples};
  OptionSet& options = *command.options;
  options.add("SET", flags->files, "Instances").required();
  options.add_model(
      "-m,--model", flags->model,
      "Model file or name, or several with commas: the best answer of all; default: same problem, "
      "nearest size");
  options.add("--ref", flags->ref, "Reference costs for the gap: a number, .npy, .tour or JSON");
  options.add("--modes", flags->modes, "Comma-separated modes, see below").type_name("MODES");
  options.add("-n,--samples", flags->samples, "Samples of the sample and random modes that name no number")
      .range(1, int64_t{1} << 31);
  add_instance_options(options, flags->input);
  add_common_options(options, *command.common, {"json", "ndjson", "text"});
  command.run = [=](const Command& self, const Words&) { return run_eval(*flags, *self.common); };
  return command;
}

}  // namespace pointsman
