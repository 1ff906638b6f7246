// SPDX-License-Identifier: Apache-2.0
#include "host/run/solve_run.h"

#include <map>
#include <utility>

#include "engine/schedule/answers_in_order.h"
#include "engine/search/limits.h"

namespace pointsman {

namespace {

constexpr int kFarthest = 2;  // times the size that a network was trained on: it does not serve beyond

void append(std::string& list, const std::string& entry) {
  if (("," + list + ",").find("," + entry + ",") != std::string::npos) return;
  list += (list.empty() ? "" : ",") + entry;
}

}  // namespace

void ModelsUsed::add(const Model& model) {
  append(names, model.name);
  if (!model.sha256.empty()) append(sha256, model.sha256);
}

SolveRun::SolveRun(const BackendOptions& backend, const std::string& model, bool untrained, RunLog log,
                   Communicator& ranks)
    : engine(options_of_rank(backend, ranks)),
      models(model, untrained, log),
      ranks_(ranks, backend),
      log_(std::move(log)) {
  if (!engine.device_note().empty()) log_.tell(engine.device_note());
}

// Null where the options ask none for anything, or none suits an instance that can do without.
const Model* SolveRun::model_for(const Instance& instance, const SolveOptions& options) {
  if (needs_network(options)) return &models.get(instance.problem, instance.n());
  if (!can_use_network(options, problem_of(instance))) return nullptr;
  try {
    const Model& model = models.get(instance.problem, instance.n());
    if (instance.n() <= kFarthest * model.config.n) return &model;
    if (!std::exchange(told_of_size_, true)) {
      log_.tell(model.name + " was trained on " + std::to_string(model.config.n) +
                " items: it is not used for " + std::to_string(instance.n()));
    }
  } catch (const ModelFileError& error) {
    if (!std::exchange(told_of_size_, true)) log_.tell(std::string("no network is used: ") + error.what());
  }
  return nullptr;
}

std::vector<SolveRun::Group> SolveRun::groups_of(const InstanceBatch& instances,
                                                 const SolveOptions& options) {
  std::vector<Group> groups;
  std::map<std::pair<ProblemKind, const Model*>, size_t> known;
  for (size_t place = 0; place < instances.size(); ++place) {
    const Instance& instance = instances[place];
    const Model* model = model_for(instance, options);
    const auto [at, is_new] = known.try_emplace({instance.problem, model}, groups.size());
    if (is_new) groups.push_back({model});
    groups[at->second].places.push_back(place);
    groups[at->second].work += rollout_work(instance.n());
  }
  return groups;
}

void SolveRun::solve_group(const Group& group, const InstanceBatch& instances,
                           const std::vector<uint64_t>& rows, SolveOptions options,
                           const SearchControl& control, const SolutionSink& sink) {
  if (group.model != nullptr) used.add(*group.model);
  const bool all = group.places.size() == instances.size();
  InstanceBatch copies;
  std::vector<uint64_t> own_rows;
  for (const size_t place : group.places) {
    if (!all) copies.push_back(instances[place]);
    own_rows.push_back(rows[place]);
  }
  options.on_step = report_places(std::move(options.on_step), group.places);
  const double earlier_ms = report.solving_ms;
  report = ranks_.solve(engine, group.model, all ? instances : copies, own_rows, options, control, sink);
  report.solving_ms += earlier_ms;
  if (options.shuffle.value_or(false) && !report.shuffle && !std::exchange(told_of_shuffle_, true))
    log_.tell("--shuffle: ignored, the attention encoder reads all orders of the items alike");
}

void SolveRun::solve(const InstanceBatch& instances, const std::vector<uint64_t>& rows,
                     const SolveOptions& options, const SearchControl& control, const SolutionSink& sink) {
  const std::vector<Group> groups = groups_of(instances, options);
  double work_left = 0.0;
  for (const Group& group : groups) work_left += group.work;
  AnswersInOrder answers(sink);
  for (const Group& group : groups) {
    SearchControl part = share_time(control, group.work, work_left);
    if (groups.size() > 1 && !part.end) part.end = part.deadline;  // no instance is alone
    work_left -= group.work;
    solve_group(group, instances, rows, options, part,
                [&](size_t i, Solution&& solution) { answers.put(group.places[i], std::move(solution)); });
  }
}

std::vector<double> SolveRun::score(const InstanceBatch& instances, const SolutionBatch& solutions,
                                    float temperature, const StopToken& stop) {
  std::vector<double> log_probs;
  for (size_t begin = 0, end = 0; begin < instances.size(); begin = end) {
    const Model& model = models.get(instances[begin].problem, instances[begin].n());
    while (end < instances.size() && instances[end].problem == instances[begin].problem &&
           &models.get(instances[end].problem, instances[end].n()) == &model) {
      ++end;
    }
    used.add(model);
    const std::vector<double> scores =
        ranks_.score(engine, model, InstanceBatch(&instances[begin], &instances[begin] + (end - begin)),
                     SolutionBatch(&solutions[begin], &solutions[begin] + (end - begin)), temperature, stop);
    log_probs.insert(log_probs.end(), scores.begin(), scores.end());
  }
  return log_probs;
}

}  // namespace pointsman
