// SPDX-License-Identifier: Apache-2.0
#include "engine/schedule/schedule.h"

#include <algorithm>
#include <map>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/search/limits.h"
#include "kernels/common/worker_threads.h"

namespace pointsman {

namespace {

constexpr double kSearchShare = 0.9;     // of a batch's time, where improvement follows the search
constexpr int kSearchedOneByOne = 4096;  // instances at once

using Candidates = std::vector<Solution>;  // of one instance, best first

int chosen_batch_size(const ModelConfig& config, const SolvePlan& plan, int n) {
  if (plan.batch_size) return *plan.batch_size;
  return std::visit(
      [&]<typename Options>(const Options& options) {
        if constexpr (std::is_same_v<Options, InstanceSearch>) {
          return kSearchedOneByOne;
        } else {
          return instances_at_once(config, options, n);
        }
      },
      plan.search);
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

// Instances that are handled together.
struct Batch {
  std::vector<size_t> places;  // in the input
  std::vector<Instance> instances;
  std::vector<uint64_t> keys;
};

// The best answer after local search from each candidate; ties go to the one the network liked better. The
// first candidate is always improved, past a deadline too, as that costs about as much as the one rollout
// behind it; only an interruption stops it.
Solution improve_candidates(const Instance& instance, Candidates candidates, const ImproveOptions& options,
                            const SearchControl& control) {
  if (candidates.front().status == Status::kUnsolved) return std::move(candidates.front());
  const double network_objective = candidates.front().objective;
  ImproveOptions descent = options;
  descent.kicks = 0;
  TourSearch search(instance, descent);
  bool finished = search.improve(candidates.front(), {{}, control.interrupted});
  for (size_t i = 1; i < candidates.size() && finished; ++i)
    finished = search.improve(candidates[i], control);
  Solution best = std::move(
      *std::min_element(candidates.begin(), candidates.end(), [&](const Solution& a, const Solution& b) {
        return is_better(instance.problem, a.objective, b.objective);
      }));
  best.network_objective = network_objective;
  if (finished && options.kicks > 0) finished = TourSearch(instance, options).improve(best, control);
  if (!finished && best.status == Status::kDone) best.status = control.check();
  return best;
}

class Scheduler {
 public:
  Scheduler(Backend& backend, const ModelConfig& config, const SolvePlan& plan)
      : backend_(backend), config_(config), plan_(plan), workers_(std::max(backend.info().threads, 1)) {}

  SolutionBatch solve(const Batch& batch, const SearchControl& control) {
    const bool improve = plan_.improve && problem_of(batch.instances[0]).has_local_search;
    if (control.trace) {
      control.trace("batch: " + std::to_string(batch.instances.size()) +
                    " instances of n = " + std::to_string(batch.instances[0].n()));
    }
    const SearchControl searching = improve ? share_time(control, kSearchShare, 1.0) : control;
    std::vector<Candidates> candidates =
        std::visit([&](const auto& options) { return search(batch, options, searching); }, plan_.search);
    SolutionBatch solutions;
    if (improve) {
      solutions.resize(candidates.size());
      workers_.for_each(static_cast<int64_t>(candidates.size()), [&](int64_t i, int) {
        solutions[i] =
            improve_candidates(batch.instances[i], std::move(candidates[i]), *plan_.improve, control);
      });
    } else {
      for (Candidates& own : candidates) solutions.push_back(std::move(own.front()));
    }
    return solutions;
  }

  const PolicyStatistics& statistics() const { return statistics_; }

 private:
  std::vector<Candidates> search(const Batch& batch, const InstanceSearch& one,
                                 const SearchControl& control) {
    std::vector<Candidates> candidates(batch.instances.size());
    const bool alone = candidates.size() == 1;
    workers_.for_each(static_cast<int64_t>(candidates.size()), [&](int64_t i, int) {
      const bool too_late = !alone && control.is_over();
      candidates[i].push_back(too_late ? unsolved() : one(batch.instances[i], batch.keys[i], control));
    });
    return candidates;
  }

  template <typename Options>
  std::vector<Candidates> search(const Batch& batch, Options options, const SearchControl& control) {
    if constexpr (std::is_same_v<Options, ActiveSearchOptions>) {
      if (options.on_step) {
        options.on_step = [&batch, on_step = std::move(options.on_step)](ActiveSearchProgress progress) {
          progress.instance = static_cast<int64_t>(batch.places[static_cast<size_t>(progress.instance)]);
          on_step(progress);
        };
      }
    }
    SearchResult result = run_search(backend_, config_, {batch.instances, batch.keys}, options, control);
    statistics_ += result.statistics;
    return std::move(result.candidates);
  }

  Backend& backend_;
  const ModelConfig& config_;
  const SolvePlan& plan_;
  WorkerThreads workers_;
  PolicyStatistics statistics_;
};

}  // namespace

PolicyStatistics solve_instances(Backend& backend, const ModelConfig& config, const SolvePlan& plan,
                                 std::span<const Instance> instances, uint64_t first_row,
                                 const SearchControl& control, const SolutionSink& sink) {
  double work_left = 0.0;
  for (const Instance& instance : instances) work_left += rollout_work(instance.n());
  Scheduler scheduler(backend, config, plan);
  std::map<size_t, Solution> waiting;  // for the answers before them, by place
  size_t next = 0;
  bool is_first = true;
  for (std::vector<size_t>& places : cut_batches(config, plan, instances)) {
    Batch batch;
    for (const size_t place : places) {
      batch.instances.push_back(instances[place]);
      batch.keys.push_back(instance_key(instances[place], first_row + place));
    }
    batch.places = std::move(places);
    const double work = static_cast<double>(batch.instances.size()) * rollout_work(batch.instances[0].n());
    // The first batch is begun in any case: it may hold the only instance.
    SolutionBatch answers = !is_first && control.is_over()
                                ? SolutionBatch(batch.places.size(), unsolved())
                                : scheduler.solve(batch, share_time(control, work, work_left));
    is_first = false;
    work_left -= work;
    for (size_t i = 0; i < answers.size(); ++i) waiting.emplace(batch.places[i], std::move(answers[i]));
    for (; !waiting.empty() && waiting.begin()->first == next; waiting.erase(waiting.begin())) {
      sink(next++, std::move(waiting.begin()->second));
    }
  }
  return scheduler.statistics();
}

}  // namespace pointsman
