// SPDX-License-Identifier: Apache-2.0
#include "host/command/solve_run.h"

#include <map>
#include <utility>

#include "engine/schedule/answers_in_order.h"
#include "engine/search/limits.h"
#include "host/command/log.h"

namespace pointsman {

namespace {

void append(std::string& list, const std::string& entry) {
  if (("," + list + ",").find("," + entry + ",") != std::string::npos) return;
  list += (list.empty() ? "" : ",") + entry;
}

}  // namespace

void ModelsUsed::add(const Model& model) {
  append(names, model.name);
  if (!model.sha256.empty()) append(sha256, model.sha256);
}

SolveRun::SolveRun(const BackendOptions& backend, const std::string& model, bool untrained)
    : engine(backend), models(model, untrained) {
  if (!engine.device_note().empty()) log_info(engine.device_note());
}

std::vector<SolveRun::Group> SolveRun::groups_of(const InstanceBatch& instances, bool has_network) {
  std::vector<Group> groups;
  std::map<std::pair<ProblemKind, const Model*>, size_t> known;
  for (size_t place = 0; place < instances.size(); ++place) {
    const Instance& instance = instances[place];
    const Model* model = has_network ? &models.get(instance.problem, instance.n()) : nullptr;
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
  report = engine.solve(group.model, all ? instances : copies, own_rows, options, control, sink);
  report.solving_ms += earlier_ms;
  if (options.shuffle.value_or(false) && !report.shuffle && !std::exchange(told_of_shuffle_, true))
    log_info("--shuffle: ignored, the attention encoder reads all orders of the items alike");
}

void SolveRun::solve(const InstanceBatch& instances, const std::vector<uint64_t>& rows,
                     const SolveOptions& options, const SearchControl& control, const SolutionSink& sink) {
  const std::vector<Group> groups = groups_of(instances, info_of(options.mode).has_network);
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

}  // namespace pointsman
