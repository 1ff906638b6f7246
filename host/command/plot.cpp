// SPDX-License-Identifier: Apache-2.0
// `pointsman plot`: tours, ratios to the optimum, training curves and what more samples buy, as SVG.
#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "engine/problem/problem.h"
#include "engine/problem/validate.h"
#include "engine/search/mode.h"
#include "host/command/command.h"
#include "host/command/instance_flags.h"
#include "host/command/log.h"
#include "host/command/output.h"
#include "host/files/read_series.h"
#include "host/files/read_solutions.h"
#include "host/files/svg_chart.h"
#include "host/files/svg_tour.h"
#include "host/files/text_scan.h"
#include "host/run/did_you_mean.h"
#include "models/json_text.h"

namespace pointsman {

namespace {

constexpr const char* kPlotExamples = R"(Examples:
  pointsman plot tour berlin52.tsp berlin52.tour -o berlin52.svg      the cities and the round trip
  pointsman plot tour map.tsp greedy.json best.json -o both.svg       two answers side by side
  pointsman solve set.npy --ref opt.txt --mode greedy -o greedy.json
  pointsman plot ratio greedy.json sampled.json -o ratio.svg          sorted ratios, a line a file
  pointsman plot curve run1.jsonl run2.jsonl --ref 3.83 -o curve.svg  validation cost against tours
  pointsman plot curve run1.jsonl --y entropy --log-x >entropy.svg
  pointsman eval set.npy --ref opt.npy --modes sample+16,sample+128,sample+1280 -o tsp50.jsonl
  pointsman plot progress tsp50.jsonl -o progress.svg                 gap against samples)";

constexpr size_t kMostMaps = 25;

struct PlotFlags {
  std::string kind;
  std::vector<std::string> files, labels;
  std::string title;
  int index = -1;    // tour: of the instance; -1: all
  std::string x, y;  // empty: the usual of the kind
  bool log_x = false, log_y = false;
  double reference = std::nan("");
  InstanceFlags input;
};

// A column of a training log or of eval's rows (docs/file-formats.md), as an axis names it.
struct Column {
  std::string name, label;
  double rounding = 0;  // what is not above it is 0, but for the rounding of its sums
};

// What an axis may show; the first is the usual.
using Columns = std::vector<Column>;

const Columns kLogX = {
    {"tours", "tours seen in training"}, {"step", "training steps"}, {"seconds", "training time (seconds)"}};
const Columns kLogY = {{"val_cost", "mean cost of the validation set"},
                       {"train_cost", "mean cost of the training samples"},
                       {"tours", "tours seen in training"},
                       {"step", "training steps"},
                       {"seconds", "training time (seconds)"},
                       {"tours_per_second", "speed (tours per second)"},
                       {"baseline_loss", "mean squared error of the baseline"},
                       {"grad_norm", "norm of the actor's gradient"},
                       {"entropy", "mean entropy of a step (nats)"},
                       {"mean_logit", "mean logit u before centring"},
                       {"saturated", "share of saturated logits, |tanh| > 0.99"},
                       {"learning_rate", "learning rate"},
                       {"cross_entropy", "-log p of a given answer (nats)"}};
const Columns kEvalX = {{"samples", "samples of an instance"}, {"ms_per_instance", "time per instance (ms)"}};
const Columns kEvalY = {{"gap", "mean gap to the reference (%)", 1e-9},
                        {"mean_cost", "mean cost (tour length or packed value)"},
                        {"shortfall", "mean shortfall of the value (reference - value)"}};

std::string names_of(const Columns& columns) { return joined(columns, ", ", &Column::name); }

// The column that the flag asks for, empty: the usual.
const Column& chosen_column(const PlotFlags& flags, const char* flag, const std::string& name,
                            const Columns& columns) {
  if (name.empty()) return columns.front();
  const auto found =
      std::find_if(columns.begin(), columns.end(), [&](const Column& column) { return column.name == name; });
  if (found != columns.end()) return *found;
  std::vector<std::string> names;
  for (const Column& column : columns) names.push_back(column.name);
  throw UsageError("plot " + flags.kind + " " + flag + " " + name + ": expected one of " +
                   joined(names, ", ") + did_you_mean(name, names));
}

// One for each of the files from `first` on: --label, else the file's name, with its folders where two share
// one.
std::vector<std::string> labels_of(const PlotFlags& flags, size_t first) {
  const size_t count = flags.files.size() - first;
  if (!flags.labels.empty()) {
    if (flags.labels.size() == count) return flags.labels;
    throw UsageError("--label: expected " + std::to_string(count) + ", one for each file drawn, found " +
                     std::to_string(flags.labels.size()));
  }
  std::vector<std::string> names;
  for (size_t i = first; i < flags.files.size(); ++i) {
    names.push_back(flags.files[i] == "-" ? "stdin" : file_stem(flags.files[i]));
  }
  if (std::set<std::string>(names.begin(), names.end()).size() == count) return names;
  return {flags.files.begin() + static_cast<std::ptrdiff_t>(first), flags.files.end()};
}

// "berlin52: 52 cities, length 7542".
std::string caption(const std::string& name, const Instance& instance, double cost) {
  return name + (name.empty() ? "" : ": ") + std::to_string(instance.n()) +
         (instance.n() == 1 ? " city" : " cities") + ", length " +
         printed(instance.metric == Metric::kEuclidean ? "%.6g" : "%.15g", cost);
}

// The instances to draw: all, or that of --index.
std::vector<size_t> chosen_instances(const PlotFlags& flags, size_t instances, size_t answers) {
  if (flags.index >= 0) {
    if (static_cast<size_t>(flags.index) < instances) return {static_cast<size_t>(flags.index)};
    throw UsageError("--index " + std::to_string(flags.index) + ": " + flags.files[0] + " has " +
                     std::to_string(instances) + ", counted from 0");
  }
  if (instances * answers > kMostMaps) {
    throw UsageError("plot tour: " + std::to_string(instances * answers) + " maps are more than " +
                     std::to_string(kMostMaps) + "; choose an instance with --index");
  }
  std::vector<size_t> all(instances);
  for (size_t i = 0; i < instances; ++i) all[i] = i;
  return all;
}

std::string plot_tours(const PlotFlags& flags) {
  if (flags.files.size() < 2)
    throw UsageError("plot tour: expected instances and at least one file of tours");
  const std::vector<std::string> labels = labels_of(flags, 1);
  const InstanceBatch instances = load_instances(flags.files[0], flags.input);
  const std::vector<size_t> chosen = chosen_instances(flags, instances.size(), labels.size());
  for (const size_t i : chosen) {
    if (problem_of(instances[i]).fields != ItemFields::kCoordinates) {
      throw UsageError("plot tour: " + flags.files[0] + ": a knapsack has no map");
    }
    if (!instances[i].has_coordinates()) {
      throw UsageError("plot tour: " + flags.files[0] + ": instance " + std::to_string(i) +
                       " has no map, only distances");
    }
  }
  std::vector<TourMap> maps;
  std::vector<SolutionBatch> answers;
  for (size_t file = 1; file < flags.files.size(); ++file) {
    answers.push_back(read_solutions(flags.files[file], instances));
  }
  for (const size_t i : chosen) {
    for (size_t file = 0; file < answers.size(); ++file) {
      Solution& solution = answers[file][i];
      const std::string wrong = validate_solution(instances[i], solution);
      if (!wrong.empty()) {
        throw InputError(flags.files[file + 1], 0, "solution " + std::to_string(i) + ": " + wrong);
      }
      std::string name = instances[i].id.empty() ? "instance " + std::to_string(i) : instances[i].id;
      if (!flags.labels.empty() || answers.size() > 1)
        name = labels[file] + (chosen.size() > 1 ? ", " + name : "");
      maps.push_back({&instances[i], solution.order, caption(name, instances[i], solution.objective)});
    }
  }
  return format_tour_maps(maps, flags.title);
}

// Over a hundredth of the width for each of a hundred ratios, and so on: what share lies below, exactly.
ChartSeries sorted_ratios(const std::string& label, std::vector<double> ratios) {
  std::sort(ratios.begin(), ratios.end());
  ChartSeries series{label, {}};
  const double share = 100.0 / static_cast<double>(ratios.size());
  for (size_t i = 0; i < ratios.size(); ++i) {
    series.points.push_back({share * static_cast<double>(i), ratios[i]});
    series.points.push_back({share * static_cast<double>(i + 1), ratios[i]});
  }
  return series;
}

std::string plot_ratios(const PlotFlags& flags) {
  const std::vector<std::string> labels = labels_of(flags, 0);
  LineChart chart;
  std::optional<ProblemKind> problem;
  for (size_t i = 0; i < flags.files.size(); ++i) {
    RatioRow row = read_ratios(flags.files[i], problem);
    problem = row.problem;
    if (row.failed > 0) {
      log_warning(flags.files[i] + ": " + std::to_string(row.failed) + " lines hold errors and no solutions");
    }
    chart.series.push_back(sorted_ratios(labels[i], std::move(row.ratios)));
  }
  chart.title = flags.title;
  chart.x_label = "share of the instances, sorted (%)";
  chart.y_label = std::string("ratio to optimal (") + problem_of(*problem).full_measure + " / reference)";
  chart.reference = {1.0, "reference"};
  return format_line_chart(chart);
}

// Of lines that are in the file and not in the picture.
void warn_of_lines(const std::string& path, bool is_cut, int64_t unplaced, const Column& y) {
  if (is_cut) log_warning(path + ": the last line is cut short and is left out");
  if (unplaced == 0) return;
  log_warning(path + ": --log-y has no place for a " + y.name +
              " of 0 or less; lines left out: " + std::to_string(unplaced));
}

// With all but its series.
LineChart column_chart(const PlotFlags& flags, const Column& x, const Column& y, bool logarithmic_x) {
  LineChart chart{flags.title, x.label, y.label, logarithmic_x, flags.log_y, true, {}, std::nullopt};
  if (!std::isnan(flags.reference)) {
    if (flags.log_y && !(flags.reference >= kSmallestLogarithmic)) {
      throw UsageError("--ref " + number_text(flags.reference) + ": expected a number from " +
                       number_text(kSmallestLogarithmic) + " with --log-y");
    }
    chart.reference = {flags.reference, "reference " + number_text(flags.reference)};
  }
  return chart;
}

std::string plot_curves(const PlotFlags& flags) {
  const std::vector<std::string> labels = labels_of(flags, 0);
  const Column& x = chosen_column(flags, "--x", flags.x, kLogX);
  const Column& y = chosen_column(flags, "--y", flags.y, kLogY);
  LineChart chart = column_chart(flags, x, y, flags.log_x);
  for (size_t i = 0; i < flags.files.size(); ++i) {
    const LogCurve curve = read_log_curve(flags.files[i], {x.name, flags.log_x}, {y.name, flags.log_y});
    warn_of_lines(flags.files[i], curve.is_cut, curve.unplaced, y);
    chart.series.push_back({labels[i], curve.points});
  }
  return format_line_chart(chart);
}

// "tsp50 sample x8 shuffle T 1.5"; without a network what finds the answers.
std::string strategy_name(const EvalStrategy& strategy) {
  std::string name = strategy.model + (strategy.model.empty() ? "" : " ") + strategy.mode;
  const ModeInfo* const mode = find_mode(strategy.mode);
  const bool kicks = mode != nullptr && mode->number == ModeNumber::kKicks;
  if (kicks || strategy.mode == "random") name += " search";
  if (strategy.mode == "ratio") name += " greedy";
  if (strategy.augment > 1) name += " x" + std::to_string(strategy.augment);
  if (strategy.shuffle) name += " shuffle";
  if (strategy.improve && !kicks) name += " improve";
  if (strategy.temperature != 1) name += " T " + number_text(strategy.temperature);
  return name;
}

struct StrategySeries {
  EvalStrategy strategy;
  ChartSeries series;
};

// Adds the start of a detail to names that several series share, if it differs among them.
void tell_apart(std::vector<StrategySeries>& all, std::string EvalStrategy::*detail, size_t letters) {
  std::map<std::string, std::set<std::string>> details;
  for (const StrategySeries& one : all) details[one.series.label].insert(one.strategy.*detail);
  for (StrategySeries& one : all) {
    if (details[one.series.label].size() > 1)
      one.series.label += ", " + (one.strategy.*detail).substr(0, letters);
  }
}

// In the order in which the files first name them.
void add_rows(const EvalRows& rows, double unit, std::vector<StrategySeries>& all) {
  for (const EvalRow& row : rows.rows) {
    auto at = std::find_if(all.begin(), all.end(),
                           [&](const StrategySeries& one) { return one.strategy == row.strategy; });
    if (at == all.end()) at = all.insert(all.end(), {row.strategy, {strategy_name(row.strategy), {}}});
    at->series.points.push_back({row.point.x, unit * row.point.y, unit * row.point.error});
  }
}

std::string plot_progress(const PlotFlags& flags) {
  const Column& x = chosen_column(flags, "--x", flags.x, kEvalX);
  const Column& y = chosen_column(flags, "--y", flags.y, kEvalY);
  std::vector<StrategySeries> all;
  std::optional<ProblemKind> problem;
  for (const std::string& path : flags.files) {
    const EvalRows rows = read_eval_rows(path, {x.name, true}, {y.name, flags.log_y, y.rounding}, problem);
    warn_of_lines(path, rows.is_cut, rows.unplaced, y);
    problem = rows.problem;
    add_rows(rows, y.name == "gap" ? 100 : 1, all);
  }
  tell_apart(all, &EvalStrategy::set, std::string::npos);
  tell_apart(all, &EvalStrategy::device, std::string::npos);
  tell_apart(all, &EvalStrategy::model_sha256, 8);
  LineChart chart = column_chart(flags, x, y, true);
  for (StrategySeries& one : all) {
    std::stable_sort(one.series.points.begin(), one.series.points.end(),
                     [](const ChartPoint& a, const ChartPoint& b) { return a.x < b.x; });
    chart.series.push_back(std::move(one.series));
  }
  return format_line_chart(chart);
}

void check_flags(const PlotFlags& flags, const CLI::App& app) {
  const bool curve = flags.kind == "curve", progress = flags.kind == "progress";
  if (!curve && !progress) {
    refuse_typed(app, {"--x", "--y", "--ref", "--log-y"}, "is for plot curve and plot progress");
  }
  if (!curve) refuse_typed(app, {"--log-x"}, "is for plot curve");
  if (progress)
    refuse_typed(app, {"--label"}, "names files; the lines of plot progress are named by their strategies");
  if (flags.kind != "tour")
    refuse_typed(app, {"--index", "--input-format", "--problem", "--capacity"}, "is for plot tour");
  if (std::count(flags.files.begin(), flags.files.end(), "-") > 1) {
    throw UsageError("- (stdin) can be read only once");
  }
}

int run_plot(const PlotFlags& flags, const CLI::App& app, const CommonOptions& common) {
  check_flags(flags, app);
  OutputFile file = open_output(common);
  file.write(flags.kind == "tour"    ? plot_tours(flags)
             : flags.kind == "ratio" ? plot_ratios(flags)
             : flags.kind == "curve" ? plot_curves(flags)
                                     : plot_progress(flags));
  file.commit();
  return kExitDone;
}

}  // namespace

Command add_plot(CLI::App& parent) {
  auto flags = std::make_shared<PlotFlags>();
  auto common = std::make_shared<CommonOptions>();
  CLI::App* const app = add_subcommand(
      parent, "plot", "Tours, ratios to optimal, training curves and eval's rows as SVG", kPlotExamples);
  add_positional(*app, "KIND", flags->kind, "tour, ratio, curve or progress")
      .required()
      .check(one_of({"tour", "ratio", "curve", "progress"}));
  add_positional(
      *app, "FILE", flags->files,
      "tour: instances, then their solutions, a file an answer; ratio: JSON or NDJSON of solve --ref; "
      "curve: logs of train; progress: rows of eval --format ndjson; - is stdin")
      .required();
  add_option(*app, "--label", flags->labels, "Name of a file in the picture; repeat it for each, in order")
      .one_each()
      .type_name("NAME");
  add_option(*app, "--title", flags->title, "Title above the picture").type_name("WORDS");
  const auto columns = [](const char* axis, const Columns& log, const Columns& eval) {
    return std::string("Column ") + axis + ", the first unless told; curve: " + names_of(log) +
           "; progress: " + names_of(eval);
  };
  add_option(*app, "--x", flags->x, columns("along the bottom", kLogX, kEvalX)).type_name("COLUMN");
  add_option(*app, "--y", flags->y, columns("up the side", kLogY, kEvalY)).type_name("COLUMN");
  add_flag(*app, "--log-x", flags->log_x, "curve: the bottom axis is logarithmic");
  add_flag(*app, "--log-y", flags->log_y, "curve, progress: the side axis is logarithmic");
  add_option(*app, "--ref", flags->reference,
             "curve, progress: a horizontal line here, say at the mean optimum", within(-1e100, 1e100));
  add_option(*app, "--index", flags->index, "tour: only this instance, from 0; -1: all", within(-1, 1 << 30));
  add_instance_options(*app, flags->input);
  add_common_options(*app, *common, {"svg"});
  return {app, common, [=] { return run_plot(*flags, *app, *common); }};
}

}  // namespace pointsman
