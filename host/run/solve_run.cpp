// SPDX-License-Identifier: Apache-2.0
#include "host/run/solve_run.h"

#include <map>
#include <span>
#include <string>
#include <utility>

#include "engine/search/limits.h"
#include "host/formats/formats.h"
#include "host/run/solve_totals.h"

namespace pointsman {

namespace {

constexpr int kFarthest = 2;  // times the size that a network was trained on: it does not serve beyond

void append(std::string& list, const std::string& entry) {
  if (("," + list + ",").find("," + entry + ",") != std::string::npos) return;
  list += (list.empty() ? "" : ",") + entry;
}

// What was done to other instances of the run.
void add(SolveReport& run, const SolveReport& part) {
  if (run.samples == 0) {
    run = part;
    return;
  }
  if (run.samples != part.samples) run.samples.reset();
  if (run.augment != part.augment) run.augment.reset();
  run.shuffle = run.shuffle || part.shuffle;
  run.improve = run.improve || part.improve;
  run.solving_ms += part.solving_ms;
  run.statistics += part.statistics;
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
  tell_device_note(engine, log_);
}

const Model* SolveRun::model_for(ProblemKind problem, int n, const SolveOptions& options) {
  if (needs_network(options)) return &models.get(problem, n);
  if (!can_use_network(options, problem_of(problem))) return nullptr;
  try {
    const Model& model = models.get(problem, n);
    if (model.config.reread > 0 || n <= kFarthest * model.config.n) return &model;
    if (!std::exchange(told_of_size_, true)) {
      log_.info(model.name + " was trained on " + std::to_string(model.config.n) +
                " items: it is not used for " + std::to_string(n));
    }
  } catch (const ModelFileError& error) {
    if (!std::exchange(told_of_size_, true)) log_.info(std::string("no network is used: ") + error.what());
  }
  return nullptr;
}

std::vector<SolveRun::Group> SolveRun::groups_of(const SolveJob& job) {
  std::vector<Group> groups;
  std::map<std::pair<ProblemKind, const Model*>, size_t> known;
  for (size_t place = 0; place < job.size(); ++place) {
    const Instance& instance = *job.instances[place];
    const Model* model = model_for(instance.problem, instance.n(), job.options);
    const auto [at, is_new] = known.try_emplace({instance.problem, model}, groups.size());
    if (is_new) groups.push_back({model});
    groups[at->second].places.push_back(place);
    groups[at->second].work += rollout_work(instance.n());
  }
  return groups;
}

void SolveRun::tell_of_rounding(const Instance& instance, const Solution& solution) {
  constexpr double kMuch = 0.05;  // of the length; of the files of TSPLIB it is at most 2%
  const bool rounds = instance.metric == Metric::kEuc2d || instance.metric == Metric::kCeil2d ||
                      instance.metric == Metric::kFloor2d;
  if (!rounds || instance.is_metric_chosen || !has_answer(solution) ||
      std::abs(solution.objective - solution.unrounded) <= kMuch * solution.unrounded ||
      std::exchange(told_of_rounding_, true))
    return;
  const std::string metric = metric_name(instance.metric);
  log_.warn((instance.id.empty() ? "" : printable(instance.id) + ": ") + metric +
            " rounds each distance to an integer: the answer's cost is " +
            short_objective_text(instance, solution.objective) + ", its length in the plane " +
            number_text(solution.unrounded) + "; --metric euclidean does not round, --metric " +
            lower_case(metric) + " says that rounding is meant");
}

void SolveRun::solve(const SolveJob& job) {
  const std::vector<Group> groups = groups_of(job);
  double work_left = 0.0;
  for (const Group& group : groups) work_left += group.work;
  AnswersInOrder answers(job.sink);
  for (const Group& group : groups) {
    SolveJob part = job.part(group.places);
    part.control = share_time(job.control, group.work, work_left);
    if (groups.size() > 1 && !part.control.end) part.control.end = part.control.deadline;  // none is alone
    part.sink = [&](size_t i, Solution&& solution) {
      tell_of_rounding(*job.instances[group.places[i]], solution);
      answers.put(group.places[i], std::move(solution));
    };
    work_left -= group.work;
    if (group.model != nullptr) used.add(*group.model);
    const std::string note = engine.device_note();
    const SolveReport done = ranks_.solve(engine, group.model, part);
    if (engine.device_note() != note) tell_device_note(engine, log_);
    add(report, done);
    if (job.options.shuffle.value_or(false) && !done.shuffle && !std::exchange(told_of_shuffle_, true))
      log_.info("--shuffle: ignored, the attention encoder reads all orders of the items alike");
  }
}

std::vector<double> SolveRun::score(const InstanceBatch& instances, const SolutionBatch& solutions,
                                    float temperature, const StopToken& stop) {
  for (const Instance& instance : instances) {
    if (std::string wrong = too_many_pairs(instance); !wrong.empty()) throw UsageError("score: " + wrong);
  }
  std::vector<double> log_probs;
  for (size_t begin = 0, end = 0; begin < instances.size(); begin = end) {
    const Model& model = models.get(instances[begin].problem, instances[begin].n());
    while (end < instances.size() && instances[end].problem == instances[begin].problem &&
           &models.get(instances[end].problem, instances[end].n()) == &model) {
      ++end;
    }
    used.add(model);
    const std::vector<double> scores =
        ranks_.score(engine, model, std::span(instances).subspan(begin, end - begin),
                     std::span(solutions).subspan(begin, end - begin), temperature, stop);
    log_probs.insert(log_probs.end(), scores.begin(), scores.end());
  }
  return log_probs;
}

}  // namespace pointsman
