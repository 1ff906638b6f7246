// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include <algorithm>
#include <map>
#include <utility>
#include <vector>

#include "engine/problem/validate.h"
#include "engine/schedule/parallel.h"
#include "engine/search/limits.h"
#include "engine/search/tour_search.h"

namespace pointsman {

namespace {

constexpr double kSearchShare = 0.9;  // of a batch's time, where improvement follows the search

using Candidates = std::vector<Solution>;  // of one instance, best first

int chosen_batch_size(const ModelConfig& config, const SolvePlan& plan, int n) {
  if (plan.batch_size > 0) return plan.batch_size;
  if (plan.active) return active_instances_at_once(config, plan.active_search.batch, n);
  const int64_t samples = std::max<int64_t>(plan.sampling.samples, 1);
  return static_cast<int>(std::clamp<int64_t>(largest_call(n) / samples, 1, 4096));
}

// Instances of one size, by their places in the input, in the order of their first ones.
std::vector<std::vector<size_t>> cut_batches(const ModelConfig& config, const SolvePlan& plan,
                                             std::span<const Instance> instances) {
  std::vector<std::vector<size_t>> batches;
  std::map<int, size_t> open;  // n -> the batch of that size that is not full
  for (size_t i = 0; i < instances.size(); ++i) {
    const int n = instances[i].n();
    const auto found = open.find(n);
    if (found != open.end() &&
        static_cast<int>(batches[found->second].size()) < chosen_batch_size(config, plan, n)) {
      batches[found->second].push_back(i);
    } else {
      open[n] = batches.size();
      batches.push_back({i});
    }
  }
  return batches;
}

// Instances that are handled together, by their places in the input.
struct Batch {
  std::vector<size_t> places;
  std::vector<Instance> instances;
  std::vector<uint64_t> keys;
};

std::vector<Candidates> search_actively(Backend& backend, const ModelConfig& config, const SolvePlan& plan,
                                        const Batch& batch, const SearchControl& control,
                                        PolicyStatistics& statistics) {
  ActiveSearchOptions options = plan.active_search;
  options.instances_at_once = plan.batch_size;
  std::function<void(const ActiveSearchProgress&)> on_step;
  if (plan.on_step) {
    on_step = [&](ActiveSearchProgress progress) {
      progress.instance = static_cast<int64_t>(batch.places[static_cast<size_t>(progress.instance)]);
      plan.on_step(progress);
    };
  }
  std::vector<Candidates> candidates;
  for (Solution& best : active_search(backend, config, plan.initial, batch.instances, batch.keys, options,
                                      control, on_step, &statistics)) {
    candidates.push_back({std::move(best)});
  }
  return candidates;
}

std::vector<Candidates> search_batch(Backend& backend, const ModelConfig& config, const SolvePlan& plan,
                                     const Batch& batch, const SearchControl& control,
                                     PolicyStatistics& statistics) {
  if (plan.active) return search_actively(backend, config, plan, batch, control, statistics);
  std::vector<Candidates> candidates;
  for (SampledInstance& sampled :
       sample_search(backend, config, batch.instances, batch.keys, plan.sampling, control, &statistics)) {
    candidates.push_back(std::move(sampled.best));
  }
  return candidates;
}

// The best answer after local search from each candidate; ties go to the one the network liked better. The
// first candidate is always improved, past a deadline too, as that costs about as much as the one rollout
// behind it; only an interruption stops it.
Solution improve_candidates(const Instance& instance, Candidates candidates, const ImproveOptions& options,
                            const SearchControl& control) {
  const double network_cost = candidates.front().cost;
  ImproveOptions descent = options;
  descent.kicks = 0;
  TourSearch search(instance, descent);
  bool finished = search.improve(candidates.front(), {{}, control.interrupted});
  for (size_t i = 1; i < candidates.size() && finished; ++i)
    finished = search.improve(candidates[i], control);
  Solution best = std::move(*std::min_element(
      candidates.begin(), candidates.end(),
      [&](const Solution& a, const Solution& b) { return is_better(instance, a.cost, b.cost); }));
  best.network_cost = network_cost;
  if (finished && options.kicks > 0) finished = TourSearch(instance, options).improve(best, control);
  if (!finished && best.status == Status::kDone) best.status = control.check();
  return best;
}

SolutionBatch solve_batch(Backend& backend, const ModelConfig& config, const SolvePlan& plan,
                          const Batch& batch, const SearchControl& control, PolicyStatistics& statistics) {
  const std::vector<Instance>& instances = batch.instances;
  const bool improve = plan.improve && instances[0].problem == ProblemKind::kTsp;
  const SearchControl searching = improve ? share_time(control, kSearchShare, 1.0) : control;
  std::vector<Candidates> candidates = search_batch(backend, config, plan, batch, searching, statistics);
  SolutionBatch solutions(instances.size());
  if (!improve) {
    for (size_t i = 0; i < solutions.size(); ++i) solutions[i] = std::move(candidates[i].front());
    return solutions;
  }
  parallel_for(instances.size(), backend.info().threads, [&](size_t i) {
    solutions[i] = improve_candidates(instances[i], std::move(candidates[i]), plan.improvement, control);
  });
  return solutions;
}

}  // namespace

SolutionBatch solve_instances(Backend& backend, const ModelConfig& config, const SolvePlan& plan,
                              std::span<const Instance> instances, uint64_t first_row,
                              const SearchControl& control, PolicyStatistics& statistics,
                              const std::function<void(size_t, const Solution&)>& on_solution) {
  double work_left = 0.0;
  for (const Instance& instance : instances) work_left += rollout_work(instance.n());
  SolutionBatch solutions(instances.size());
  std::vector<char> solved(instances.size(), 0);
  size_t reported = 0;
  for (std::vector<size_t>& places : cut_batches(config, plan, instances)) {
    Batch batch;
    for (const size_t place : places) {
      batch.instances.push_back(instances[place]);
      batch.keys.push_back(instance_key(instances[place], first_row + place));
    }
    batch.places = std::move(places);
    const double work = static_cast<double>(batch.instances.size()) * rollout_work(batch.instances[0].n());
    SolutionBatch answers =
        solve_batch(backend, config, plan, batch, share_time(control, work, work_left), statistics);
    work_left -= work;
    for (size_t i = 0; i < answers.size(); ++i) {
      solutions[batch.places[i]] = std::move(answers[i]);
      solved[batch.places[i]] = 1;
    }
    for (; reported < solved.size() && solved[reported]; ++reported) {
      if (on_solution) on_solution(reported, solutions[reported]);
    }
  }
  return solutions;
}

}  // namespace pointsman
