// SPDX-License-Identifier: Apache-2.0
// `pointsman solve`: answers for instances from files and streams.
#include "host/command/solve.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <filesystem>
#include <mutex>

#include "engine/problem/problem.h"
#include "host/command/process.h"
#include "host/formats/formats.h"
#include "host/formats/read_files.h"
#include "host/run/incumbents.h"
#include "host/run/load.h"
#include "host/run/log.h"
#include "host/run/solve_run.h"

namespace pointsman {

namespace {

constexpr const char* kSolveExamples = R"(Examples:
  pointsman solve berlin52.tsp                             JSON, or a table on a terminal
  pointsman solve berlin52.tsp -o berlin52.tour --ref 7542 a TSPLIB tour, and the gap on stderr
  pointsman solve map.tsp --mode greedy                    the network alone
  pointsman solve map.tsp --mode active -l 20              train on this instance for 20 seconds
  pointsman solve set.npy --mode greedy -o tours.npy       one pass over a batch
  pointsman solve knap.npy --problem knapsack --capacity 12.5
  producer | pointsman solve - --format ndjson             a solution a line, in input order
  pointsman solve big.ndjson -o answers.ndjson --resume    goes on where an earlier run ended
Ctrl-C keeps the best so far, writes it and ends with 130; a second one ends at once.)";

constexpr int64_t kMostShards = 1 << 20;

// Not a pipe or device, whose lines do not stay. What is not there is told elsewhere, or will be one.
bool may_be_regular(const std::string& path) {
  std::error_code absent;
  const auto type = std::filesystem::status(path, absent).type();
  return type == std::filesystem::file_type::regular || type == std::filesystem::file_type::not_found;
}

void check_resume(const CommonOptions& common) {
  if (common.is_on_stdout() || common.output == "/dev/stdout") throw UsageError("--resume: needs -o FILE");
  if (output_format(common) != OutputFormat::kNdjson)
    throw UsageError("--resume: goes on with lines; needs --format ndjson, or -o FILE.ndjson");
  if (!may_be_regular(common.output))
    throw UsageError("--resume: -o " + common.output + ": is not a regular file");
}

Shard parse_shard(const std::string& text) {
  Shard shard;
  const size_t slash = text.find('/');
  if (slash == std::string::npos || !parse_integer(text.substr(0, slash), shard.number) ||
      !parse_integer(text.substr(slash + 1), shard.of) || shard.number < 1 || shard.number > shard.of ||
      shard.of > kMostShards) {
    throw UsageError("--shard: expected I/N, 1/N to N/N, found \"" + text + "\"");
  }
  return shard;
}

// Its outputs can be joined, and its input can be read twice: once to count the instances.
void check_shard(const SolveFlags& flags, const CommonOptions& common) {
  const OutputFormat format = output_format(common);
  if (format != OutputFormat::kNdjson && format != OutputFormat::kNpy && format != OutputFormat::kNpz)
    throw UsageError("--shard: needs --format ndjson, npy or npz, whose outputs can be joined");
  if (!flags.request.init.empty() && !flags.request.options.untrained)
    throw UsageError("--shard: is not for --init FILE");
  for (const std::string& path : flags.files) {
    if (path == "-" || !may_be_regular(path))
      throw UsageError("--shard: " + path + " is not a regular file, which it takes to count the instances");
  }
}

// How the answer to one instance improves, for the person at the terminal. Each better answer is a line of
// the log: when it was found, its cost and its gap. Lines stand a twentieth of a second apart, later a tenth
// of the time that has passed; of what comes in between the best is told as soon as its turn comes.
class BestLines {
 public:
  // reference: what to compare with; NaN: nothing. The instance must outlive it.
  BestLines(const Instance& instance, double reference) : instance_(instance), reference_(reference) {}

  // Tells of all that a search with this control finds from now on. This must outlive the control.
  void follow(SearchControl& control) {
    control.report.on_best = [this](double objective) { report(objective); };
    control.interrupted = [this, asked = control.interrupted] {
      show();
      return asked && asked();
    };
  }

  // Tells what is held back, if its turn has come, or `now`. From any thread.
  void show(bool now = false) {
    if (!is_waiting_ || (!now && seconds_now() < next_)) return;
    const std::lock_guard lock(mutex_);
    if (!is_waiting_.exchange(false)) return;
    const double seconds = seconds_now();
    next_ = seconds + std::max(kApart, kApartShare * seconds);
    std::string text = printed("%9.3f s  %s %s", found_at_, problem_of(instance_).objective_key,
                               short_objective_text(instance_, best_).c_str());
    const double percent = 100 * gap(instance_.problem, best_, reference_);
    if (!std::isnan(percent)) text += printed(", gap %.3f%%", percent);
    log_info(text);
  }

 private:
  static constexpr double kApart = 0.05;      // seconds
  static constexpr double kApartShare = 0.1;  // of the time that has passed
  static constexpr double kRounding = 1e-12;  // of sums of the same edges

  // From any thread.
  void report(double objective) {
    {
      const std::lock_guard lock(mutex_);
      const bool is_same = std::abs(objective - best_) <= kRounding * std::abs(best_);
      if (is_same || (!std::isnan(best_) && !is_better(instance_.problem, objective, best_))) return;
      best_ = objective;
      found_at_ = seconds_now();
      is_waiting_ = true;
    }
    show();
  }

  const Instance& instance_;
  const double reference_;
  std::mutex mutex_;
  double best_ = kNoNumber, found_at_ = 0.0;  // seconds from the start of the program
  std::atomic<bool> is_waiting_{false};
  std::atomic<double> next_{0.0};
};

InstanceBatch load_all(const SolveFlags& flags) {
  InstanceBatch all;
  for (const std::string& path : flags.files) {
    for (Instance& instance : load_instances(path, flags.input)) all.push_back(std::move(instance));
  }
  check_instances(flags.request.options, pointers_to(all));
  return all;
}

// Keeps the part of --shard. Returns the row of its first instance in the whole input.
uint64_t keep_shard(const SolveFlags& flags, InstanceBatch& instances, std::vector<double>& reference) {
  const auto count = static_cast<int64_t>(instances.size());
  const int64_t begin = flags.shard.begin(count), end = flags.shard.end(count);
  if (begin == end) {
    throw UsageError("--shard " + flags.shard_text + ": is empty, the input has only " +
                     std::to_string(count) + " instances");
  }
  const auto keep = [&](auto& values) {
    if (values.empty()) return;
    values.erase(values.begin() + end, values.end());
    values.erase(values.begin(), values.begin() + begin);
  };
  keep(instances);
  keep(reference);
  return static_cast<uint64_t>(begin);
}

// The formats that hold less than everything are refused before the work, not after it.
void check_format(OutputFormat format, const InstanceBatch& instances) {
  const Instance& first = instances.front();
  const bool routes = problem_of(first).has_depot, tours = holds_tours(problem_of(first));
  if (format == OutputFormat::kRoutes && (instances.size() != 1 || !routes))
    throw UsageError("--format sol: holds the routes of one CVRP; use json");
  if (format == OutputFormat::kTour && (instances.size() != 1 || !tours)) {
    throw UsageError("--format tour: holds one tour, and the input has " + std::to_string(instances.size()) +
                     (tours ? " instances" : " " + std::string(problem_of(first).title) + " instances") +
                     "; use json");
  }
  if ((format == OutputFormat::kNpy || format == OutputFormat::kNpz) && !is_uniform(instances))
    throw UsageError("--format npy: holds one problem and one size; use json or ndjson");
}

// Solutions of --init, to start from; none without it.
SolutionBatch load_incumbents(const SolveFlags& flags, const InstanceBatch& instances, const SolveJob& job) {
  if (flags.request.init.empty() || flags.request.options.untrained) return {};
  SolutionBatch incumbents = load_solutions(flags.request.init, instances);
  improve_incumbents(incumbents, job);
  return incumbents;
}

// A limit holds for the search, so what writing took behind it is told apart.
void log_end(const SolveSummary& summary, const SolveTotals& totals, double writing_seconds = 0) {
  std::string text = summary_text(summary) + printed(", %.2f s", seconds_now());
  if (writing_seconds >= 0.01) text += printed(" (writing %.2f s)", writing_seconds);
  if (totals.failed > 0) text += ", " + std::to_string(totals.failed) + " failed";
  if (totals.is_cut_short())
    text += interrupt_exit_code() != 0 ? ", interrupted" : ", stopped by the time limit";
  log_info(text);
  for (const SummaryGroup& group : summary.groups) {
    if (summary.groups.size() > 1) (totals.problem ? log_debug : log_info)(group_text(group));
  }
}

std::string step_text(const ActiveSearchProgress& at) {
  return printed("active search: instance %lld, step %d, batch mean %.6g, baseline %.6g, best %.6g",
                 static_cast<long long>(at.instance), at.step, at.batch_mean, at.baseline, at.best);
}

int run_document(SolveRun& run, const SolveFlags& flags, const CommonOptions& common, OutputFile& file) {
  SearchControl control = search_control(common, flags.request.limit_each);
  const Clock::time_point loaded_from = Clock::now();
  InstanceBatch instances = load_all(flags);
  const double loading_ms = milliseconds_since(loaded_from);
  check_format(output_format(common), instances);
  std::vector<double> reference;
  if (!flags.ref.empty()) reference = read_reference(flags.ref, instances);
  const uint64_t first_row = keep_shard(flags, instances, reference);
  BestLines best(instances.front(), reference.empty() ? std::nan("") : reference.front());
  if (instances.size() == 1 && flags.request.options.mode != Mode::kGreedy && is_log_on_terminal())
    best.follow(control);
  SolutionBatch solutions(instances.size());
  std::vector<double> gaps;
  SolveTotals totals;
  SolveJob job(instances, first_row, flags.request.options, control);
  SolutionBatch incumbents = load_incumbents(flags, instances, job);
  {
    ProgressLine line;
    job.options.on_step = [&](const ActiveSearchProgress& at) {
      if (line.due()) line.update(step_text(at));
      if (control.report.on_best) control.report.on_best(at.best);
    };
    job.sink = [&](size_t i, Solution&& found) {
      const bool is_solved = has_answer(found);
      if (is_solved && control.report.on_best) control.report.on_best(found.objective);
      if (!incumbents.empty()) keep_incumbent(instances[i], std::move(incumbents[i]), control, found);
      solutions[i] = std::move(found);
      if (!reference.empty()) gaps.push_back(gap(instances[i].problem, solutions[i].objective, reference[i]));
      totals.add(instances[i], solutions[i], reference.empty() ? std::nan("") : gaps.back());
      if (is_solved && i + 1 < instances.size() && line.due()) {
        line.update(std::to_string(i + 1) + "/" + std::to_string(instances.size()) + " solved, mean cost " +
                    std::to_string(totals.mean_objective()));
      }
    };
    run.solve(job);
  }
  best.show(true);
  SolveSummary summary = summarise(run, totals, flags.request.options, loading_ms);
  summary.code = totals.is_cut_short() ? interrupt_exit_code() : kExitDone;
  const Clock::time_point written_from = Clock::now();
  file.write(
      format_of_kind(answer_formats(), output_format(common)).write({instances, solutions, gaps, summary}));
  file.commit();
  log_end(summary, totals, milliseconds_since(written_from) / 1000);
  return summary.code;
}

int run_stream(SolveRun& run, const SolveFlags& flags, const CommonOptions& common, OutputFile& file) {
  const SearchControl control = search_control(common, flags.request.limit_each);
  const SolveTotals totals = solve_stream(run, flags, common, control, file);
  log_end(summarise(run, totals, flags.request.options, 0.0), totals);
  if (interrupt_exit_code() != 0) return interrupt_exit_code();
  return totals.failed > 0 ? kExitInput : kExitDone;
}

int run_solve(SolveFlags& flags, const OptionSet& options, const CommonOptions& common) {
  flags.request.options.seed = common.seed;
  finish_solve_options(options, flags.request);
  if (flags.resume) check_resume(common);
  if (!flags.shard_text.empty()) {
    flags.shard = parse_shard(flags.shard_text);
    check_shard(flags, common);
  }
  if (std::count(flags.files.begin(), flags.files.end(), "-") > 1)
    throw UsageError("- (stdin) can be read only once");
  refuse_inputs(common, flags.files);
  const bool is_stream = output_format(common) == OutputFormat::kNdjson;
  CommonOptions output = common;
  output.force = common.force || flags.resume;
  OutputFile file = open_output(output, is_stream ? Appearance::kGrowing : Appearance::kWhole);
  SolveRun run(common.device, flags.request.model, flags.request.options.untrained, run_log(),
               process_ranks());
  log_info(std::string("pointsman ") + POINTSMAN_VERSION + " on " + device_text(run.engine.device()) +
           ", seed " + std::to_string(common.seed));
  return is_stream ? run_stream(run, flags, common, file) : run_document(run, flags, common, file);
}

}  // namespace

Command solve_command() {
  auto flags = std::make_shared<SolveFlags>();
  Command command{"solve", "Solve instances from files or stdin", kSolveExamples};
  OptionSet& options = *command.options;
  options
      .add("FILE", flags->files,
           "TSPLIB, .npy, .npz, JSON, NDJSON, CSV or KnapSack text, also .gz; - is stdin")
      .required();
  options.add("--resume", flags->resume,
              "Go on behind the last whole line that an earlier run left in -o FILE, an output of --format "
              "ndjson");
  options
      .add("--shard", flags->shard_text,
           "I/N: solve part I of N parts of the input, 1/N to N/N; their outputs joined are the whole run's "
           "(--format ndjson, npy, npz)")
      .type_name("I/N");
  options.add("--ref", flags->ref, "Reference costs for the gap: a number, .npy, .tour or JSON");
  add_solve_options(options, flags->request);
  add_instance_options(options, flags->input);
  add_common_options(options, *command.common, of_formats(answer_formats(), &AnswerFormat::name));
  command.run = [=](const Command& self, const Words&) {
    return run_solve(*flags, *self.options, *self.common);
  };
  return command;
}

}  // namespace pointsman
