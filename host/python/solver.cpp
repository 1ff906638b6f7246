// SPDX-License-Identifier: Apache-2.0
#include "host/python/solver.h"

#include <utility>

#include "engine/engine.h"
#include "engine/search/limits.h"
#include "host/formats/formats.h"
#include "host/formats/npy_array.h"
#include "host/options/did_you_mean.h"
#include "host/python/call.h"
#include "host/run/load.h"
#include "host/run/log.h"
#include "host/run/solve_totals.h"
#include "models/tools/atomic_file.h"

namespace nb = nanobind;

namespace pointsman {

namespace {

template <typename Format>
const Format& format_for(std::span<const Format> formats, const std::string& path) {
  const Format* const found = format_by_suffix(formats, path);
  if (found && found->write) return *found;
  std::vector<std::string> suffixes;
  for (const Format& format : formats) {
    if (format.write) suffixes.emplace_back(format.suffixes[0]);
  }
  const std::string suffix = file_suffix(path);
  throw UsageError(path + ": expected a suffix out of " + joined(suffixes, ", ") + ", found " +
                   (suffix.empty() ? "none" : shown(suffix)) + did_you_mean(suffix, suffixes));
}

// Refers to the array's own memory; `name` is its own in messages.
NpyArray npy_of(const AnyArray& array, const std::string& name) {
  using Code = nb::dlpack::dtype_code;
  const auto code = static_cast<Code>(array.dtype().code);
  NpyHeader header;
  header.kind = code == Code::Float ? 'f' : code == Code::Int ? 'i' : code == Code::UInt ? 'u' : 'b';
  header.item_size = array.itemsize();
  for (size_t axis = 0; axis < array.ndim(); ++axis)
    header.shape.push_back(static_cast<int64_t>(array.shape(axis)));
  header.count = array.size();
  header.data_size = array.nbytes();
  return {header, std::string_view(static_cast<const char*>(array.data()), array.nbytes()), name};
}

// In messages, of one array or of several.
std::string element_name(const std::string& name, size_t i, size_t count) {
  return count == 1 ? name : name + "[" + std::to_string(i) + "]";
}

// The items taken, in their order, where they are not told as a choice of 0 or 1 for each.
bool are_items(const NpyArray& array, const Instance& instance) {
  return !problem_of(instance).has_all_items && array.header().is_integer() && array.header().item_size > 1;
}

Solution solution_of(const NpyArray& array, const Instance& instance, const std::string& name) {
  if (!are_items(array, instance)) return std::move(solutions_of_rows(array, {instance}, name).at(0));
  if (array.shape().size() != 1)
    array.fail("expected the items taken, (k,), found " + array.header().shape_text());
  Solution solution;
  solution.objective = kNoNumber;
  for (size_t i = 0; i < array.header().count; ++i) {
    const int64_t item = array.integer(i);
    if (item < 0 || item >= instance.n())
      array.fail(array.index_text(i) + ": expected an item, from 0, found " + std::to_string(item));
    solution.order.push_back(static_cast<int32_t>(item));
  }
  return solution;
}

// `name` is that of all arrays in messages.
SolutionBatch solutions_of(const std::vector<AnyArray>& arrays, const InstanceBatch& instances,
                           const std::string& name) {
  if (arrays.size() == 1 && !are_items(npy_of(arrays[0], ""), instances.at(0)))
    return solutions_of_rows(npy_of(arrays[0], name), instances, name);
  check_count(arrays.size(), instances, name);
  SolutionBatch solutions;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const std::string element = element_name(name, i, arrays.size());
    solutions.push_back(solution_of(npy_of(arrays[i], element), instances[i], element));
  }
  return solutions;
}

void append(InstanceBatch& all, InstanceBatch some) {
  if (all.empty()) return all.swap(some);
  std::move(some.begin(), some.end(), std::back_inserter(all));
}

// Those that read(array) makes of each array.
template <typename Read>
Instances together(const std::vector<AnyArray>& arrays, const std::string& name, const ReadOptions& options,
                   Read read) {
  InstanceBatch all;
  for (size_t i = 0; i < arrays.size(); ++i)
    append(all, read(npy_of(arrays[i], element_name(name, i, arrays.size()))));
  std::string warning;  // the first says enough
  for (size_t i = 0; i < all.size(); ++i) {
    std::string own = complete_instance(all[i], options, element_name(name, i, all.size()), 0);
    if (warning.empty()) warning = std::move(own);
  }
  if (!warning.empty()) log_warning(warning);
  return Instances(std::move(all));
}

}  // namespace

void write_file(const std::string& path, bool force, const std::string& bytes) {
  OutputFile file(path, force);
  file.write(bytes);
  file.commit();
}

Instances instances_from_points(const std::vector<AnyArray>& points, const Keywords& keywords) {
  const ReadOptions options = read_options(read_request(keywords));
  return together(points, "points", options,
                  [&](const NpyArray& array) { return instances_of_points(array, options); });
}

Instances instances_from_matrices(const std::vector<AnyArray>& matrices, const Keywords& keywords) {
  const ReadOptions options = read_options(read_request(keywords));
  return together(matrices, "matrix", options, [&](const NpyArray& array) {
    std::string note;
    InstanceBatch batch = instances_of_matrices(array, options.problem, note);
    if (!note.empty()) log_warning("matrix: " + note);
    return batch;
  });
}

Instances instances_from_items(const std::vector<AnyArray>& weights, const std::vector<AnyArray>& values,
                               const AnyArray& capacity) {
  if (weights.size() != values.size())
    throw UsageError("values: expected " + std::to_string(weights.size()) + " arrays, as weights, found " +
                     std::to_string(values.size()));
  const NpyArray all = npy_of(capacity, "capacity");
  InstanceBatch instances;
  for (size_t i = 0; i < weights.size(); ++i) {
    append(instances, instances_of_items(npy_of(weights[i], element_name("weights", i, weights.size())),
                                         npy_of(values[i], element_name("values", i, values.size()))));
  }
  set_capacities(all, instances);
  return Instances(std::move(instances));
}

void Instances::write(const std::string& path, bool force) const {
  write_file(path, force, format_for(instance_formats(), path).write(all()));
}

void Answers::write(const std::string& path, bool force) const {
  write_file(path, force,
             format_for(answer_formats(), path).write({instances.all(), solutions, {}, summary}));
}

Answers read_answers(const Instances& instances, const std::string& path) {
  const InstanceBatch& all = instances.all();
  SolutionBatch solutions = load_solutions(path, all);
  SolveSummary summary = summary_of_given(all, solutions);
  return {instances, std::move(solutions), std::move(summary)};
}

Solver::Solver(std::string model, const Keywords& keywords) : model_(std::move(model)) {
  run_ = std::make_unique<SolveRun>(device_request(keywords), model_, false, run_log());
}

// A child that was forked has none of the threads: waiting for them would never end.
Solver::~Solver() {
  if (getpid() != process_) static_cast<void>(run_.release());
}

void Solver::require_own_process() const {
  if (getpid() != process_)
    throw UsageError("a Solver made before a fork cannot be used after it: make one in each process");
}

Solver::Turn Solver::turn(const SearchControl& control, bool in_handler) {
  for (bool is_ours = is_free_.try_acquire(); !is_ours;) {
    if (in_handler)
      throw UsageError("a Solver in use was called by a handler of signals or log lines: make another one");
    const Status status = control.check();
    if (status == Status::kInterrupted) throw CallStopped();
    if (status == Status::kTimeLimit)
      throw UsageError("time_limit: was over while another thread used the Solver: make one for each thread");
    is_ours = is_free_.try_acquire_for(SignalWatch::kInterval);
  }
  return Turn(&is_free_);
}

SolveRequest Solver::request_of(const Keywords& keywords) {
  Keywords all = keywords;
  if (!model_.empty()) all.emplace("model", model_);
  const std::lock_guard lock(calls_mutex_);
  return solve_request(calls_, all);
}

Answers Solver::solve(const Instances& instances, const Keywords& keywords, uint64_t first_row,
                      const std::vector<AnyArray>& init) {
  const Clock::time_point start = Clock::now();
  const bool in_handler = is_in_handler();
  require_own_process();
  SolutionBatch incumbents;
  if (!init.empty())
    incumbents = measured_answers(solutions_of(init, instances.all(), "init"), instances.all(), "init");
  SolvedBatch solved;
  run_stoppable([&](const std::function<bool()>& stopped) {
    const SolveRequest request = request_of(keywords);
    SearchControl control = within_limits(start, request.time_limit, request.limit_each);
    control.interrupted = stopped;
    control.report.warn = log_warning;
    const auto held = turn(control, in_handler);
    run_->models.request(model_, request.options.untrained);
    solved = solve_batch(*run_, SolveJob(instances.all(), first_row, request.options, control), {},
                         std::move(incumbents));
  });
  return {instances, std::move(solved.solutions), std::move(solved.summary)};
}

std::vector<double> Solver::score(const Instances& instances, const std::vector<AnyArray>& solutions,
                                  float temperature) {
  require_own_process();
  SolutionBatch orders = solutions_of(solutions, instances.all(), "solutions");
  check_solutions(orders, instances.all(), "solutions");
  const bool in_handler = is_in_handler();
  std::vector<double> log_probs;
  run_stoppable([&](const std::function<bool()>& stopped) {
    SearchControl control;
    control.interrupted = stopped;
    const auto held = turn(control, in_handler);
    log_probs = run_->score(instances.all(), orders, temperature, StopToken(stopped));
  });
  return log_probs;
}

std::string Solver::device() const { return device_text(run_->engine.device()); }

}  // namespace pointsman
