// SPDX-License-Identifier: Apache-2.0
// `pointsman solve`: answers for instances from files and streams.
#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "engine/problem/problem.h"
#include "host/command/best_lines.h"
#include "host/command/command.h"
#include "host/command/interrupt.h"
#include "host/command/output.h"
#include "host/command/process_ranks.h"
#include "host/command/solve_flags.h"
#include "host/command/solve_stream.h"
#include "host/formats/formats.h"
#include "host/formats/read_solutions.h"
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

// All instances of a run whose answer is one document.
struct LoadedFiles {
  InstanceBatch instances;
  uint64_t first_row = 0;  // of the instances, counted through all files
  double loading_ms = 0;
};

LoadedFiles load_all(const SolveFlags& flags) {
  const Clock::time_point start = Clock::now();
  LoadedFiles loaded;
  for (const std::string& path : flags.files) {
    InstanceBatch instances = load_instances(path, flags.input);
    std::move(instances.begin(), instances.end(), std::back_inserter(loaded.instances));
  }
  check_instances(flags.request.options, pointers_to(loaded.instances));
  loaded.loading_ms = milliseconds_since(start);
  return loaded;
}

// The part of --shard; the rows stay those of the whole input.
void keep_shard(const SolveFlags& flags, LoadedFiles& loaded, std::vector<double>& reference) {
  const auto count = static_cast<int64_t>(loaded.instances.size());
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
  keep(loaded.instances);
  keep(reference);
  loaded.first_row = static_cast<uint64_t>(begin);
}

// As many as the stream's indices will be: lines that are no instance count too, and so does a bad file.
int64_t count_instances(const SolveFlags& flags) {
  int64_t count = 0;
  for (const std::string& path : flags.files) {
    try {
      InstanceInput input(path, read_options(flags.input));
      if (!input.is_stream()) {
        count += static_cast<int64_t>(input.read_all().instances.size());
        continue;
      }
      while (input.next_line()) ++count;
    } catch (const InputError&) {
      ++count;
    }
  }
  return count;
}

// The formats that hold less than everything are refused before the work, not after it.
void check_format(OutputFormat format, const InstanceBatch& instances) {
  const Instance& first = instances.front();
  const bool tours = problem_of(first).has_all_items;
  if (format == OutputFormat::kTour && (instances.size() != 1 || !tours)) {
    throw UsageError("--format tour: holds one tour, and the input has " + std::to_string(instances.size()) +
                     (tours ? " instances" : " " + std::string(problem_of(first).title) + " instances") +
                     "; use json");
  }
  if (format != OutputFormat::kNpy && format != OutputFormat::kNpz) return;
  if (!is_uniform(instances)) {
    throw UsageError("--format npy: holds one problem and one size; use json or ndjson");
  }
}

// Solutions of --init, ready to answer with: checked, and improved where the run improves.
SolutionBatch load_incumbents(const SolveFlags& flags, const InstanceBatch& instances,
                              const SearchControl& control) {
  if (flags.request.init.empty() || flags.request.options.untrained) return {};
  SolutionBatch incumbents = load_solutions(flags.request.init, instances);
  for (size_t i = 0; i < incumbents.size(); ++i) {
    incumbents[i].log_prob = incumbents[i].network_objective = std::nan("");
    if (improves(flags.request.options)) {
      improve_solution(instances[i], incumbents[i],
                       {.kicks = flags.request.options.kicks.value_or(0), .seed = flags.request.options.seed},
                       control);
    }
    if (control.on_best) control.on_best(incumbents[i].objective);
  }
  return incumbents;
}

// In the place of an answer that is worse or missing.
void keep_incumbent(const Instance& instance, Solution&& incumbent, const SearchControl& control,
                    Solution& found) {
  const bool is_solved = found.status != Status::kUnsolved;
  if (is_solved && !is_better(instance.problem, incumbent.objective, found.objective)) return;
  incumbent.status = is_solved ? found.status : control.check();
  incumbent.network_objective = found.network_objective;
  found = std::move(incumbent);
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

// One line for the running step of an active search.
std::string step_text(const ActiveSearchProgress& at) {
  return printed("active search: instance %lld, step %d, batch mean %.6g, baseline %.6g, best %.6g",
                 static_cast<long long>(at.instance), at.step, at.batch_mean, at.baseline, at.best);
}

int run_document(SolveRun& run, const SolveFlags& flags, const CommonOptions& common, OutputFile& file) {
  SearchControl control = search_control(common, flags.request.limit_each);
  LoadedFiles loaded = load_all(flags);
  const InstanceBatch& instances = loaded.instances;
  check_format(output_format(common), instances);
  std::vector<double> reference;
  if (!flags.ref.empty()) reference = read_reference(flags.ref, instances);
  if (!flags.shard.is_all()) keep_shard(flags, loaded, reference);
  BestLines best(instances.front(), reference.empty() ? std::nan("") : reference.front());
  if (instances.size() == 1 && flags.request.options.mode != Mode::kGreedy && is_log_on_terminal())
    best.follow(control);
  SolutionBatch incumbents = load_incumbents(flags, instances, control);
  SolutionBatch solutions(instances.size());
  std::vector<double> gaps;
  SolveTotals totals;
  SolveJob job(instances, loaded.first_row, flags.request.options, control);
  {
    ProgressLine line;
    job.options.on_step = [&](const ActiveSearchProgress& at) {
      if (line.due()) line.update(step_text(at));
      if (control.on_best) control.on_best(at.best);
    };
    job.sink = [&](size_t i, Solution&& found) {
      const bool is_solved = found.status != Status::kUnsolved;
      if (is_solved && control.on_best) control.on_best(found.objective);
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
  SolveSummary summary = summarise(run, totals, flags.request.options, loaded.loading_ms);
  summary.code = totals.is_cut_short() ? interrupt_exit_code() : kExitDone;
  const Clock::time_point written_from = Clock::now();
  file.write(
      format_of_kind(answer_formats(), output_format(common)).write({instances, solutions, gaps, summary}));
  file.commit();
  log_end(summary, totals, milliseconds_since(written_from) / 1000);
  return summary.code;
}

int run_stream(SolveRun& run, const SolveFlags& flags, const CommonOptions& common, OutputFile& file) {
  if (!flags.request.init.empty() && !flags.request.options.untrained)
    throw UsageError("--init FILE: needs --format json");
  double reference = std::nan("");
  if (!flags.ref.empty()) {
    const auto number = reference_number(flags.ref);
    if (!number) throw UsageError("--ref " + flags.ref + ": a stream takes a number; use --format json");
    reference = *number;
  }
  const SearchControl control = search_control(common, flags.request.limit_each);
  SolveStream stream(run, flags, control, file, reference);
  if (!flags.shard.is_all()) {
    const int64_t count = count_instances(flags);
    stream.take_part(flags.shard.begin(count), flags.shard.end(count));
  }
  if (flags.resume) stream.resume(common.output);
  for (const std::string& path : flags.files) {
    stream.solve_file(path, read_options(flags.input));
    if (stream.stopped() || stream.is_past_part()) break;
  }
  stream.finish();
  log_end(summarise(run, stream.totals(), flags.request.options, 0.0), stream.totals());
  if (interrupt_exit_code() != 0) return interrupt_exit_code();
  return stream.totals().failed > 0 ? kExitInput : kExitDone;
}

int run_solve(SolveFlags& flags, const OptionSet& options, const CommonOptions& common) {
  finish_solve_flags(flags, options, common);
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
  add_solve_flags(*command.options, *flags);
  add_common_options(*command.options, *command.common, of_formats(answer_formats(), &AnswerFormat::name));
  command.run = [=, options = command.options, common = command.common](const Words&) {
    return run_solve(*flags, *options, *common);
  };
  return command;
}

}  // namespace pointsman
