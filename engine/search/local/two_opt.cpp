// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>

#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/local_search.h"
#include "engine/search/search.h"
#include "engine/search/sequence_packer.h"

namespace pointsman {
namespace {

constexpr int kMostKicks = std::numeric_limits<int>::max();
// Of the time that is left: what takes longer than was measured is cut short while its kicks are still wild.
constexpr double kSafety = 0.95;
constexpr double kProbeShare = 0.1;       // likewise, for a call that tells how long kicks take
constexpr double kLeastKickShare = 0.25;  // of a call's time

class TwoOptSearcher {
 public:
  TwoOptSearcher(TwoOptDevice& device, const SearchBatch& batch, const TwoOptOptions& options,
                 const SearchControl& control)
      : device_(device), instances_(batch.instances), control_(control), packer_(batch.instances, 1.0) {
    for (size_t i = 0; i < instances_.size(); ++i) packer_.add(i, 0, {});
    request_.sequences = packer_.sequences().view();
    request_.instance_keys = batch.keys.data();
    request_.seed = options.seed;
    best_.assign(instances_.size(), unsolved());
  }

  // All tours with so many kicks; the better ones stay. Returns the seconds that it took.
  double search(int kicks) {
    request_.kicks = kicks;
    request_.stop = control_.stop();
    const Clock::time_point start = Clock::now();
    device_.two_opt(request_, found_);
    control_.report.trace_call("call", request_.sequences.count, start);
    for (size_t i = 0; i < instances_.size(); ++i) keep(i);
    if (control_.report.on_best && best_[0].status != Status::kUnsolved)
      control_.report.on_best(best_[0].objective);
    return std::chrono::duration<double>(Clock::now() - start).count();
  }

  // With as many kicks as the time limit leaves time for. Tours without kicks, with one a city, and with as
  // many as a part of the time is for, tell how long they take. The longer a call, the less other programs'
  // work blurs what it tells. No answer is done: more time had been more kicks.
  void fill_limit() {
    const double without = search(0);
    int made = 0;
    double taken = 0.0;
    const auto make = [&](double kicks) {
      made = static_cast<int>(std::min(kicks, double{kMostKicks}));
      taken = search(made);
    };
    const auto kicks_within = [&](double share) {
      const double of_a_kick = std::max(taken - without, kLeastKickShare * taken) / made;
      return (share * seconds_left() - without) / of_a_kick;
    };
    if (seconds_left() > 0.0) {
      make(request_.sequences.n);
      if (const double some = kicks_within(kProbeShare); some > made) make(some);
      if (const double rest = kicks_within(kSafety); rest >= 1.0) make(rest);
    }
    for (Solution& best : best_) {
      if (best.status == Status::kDone) best.status = Status::kTimeLimit;
    }
  }

  // Where the time was too short for some, but not the run's, these have a quick answer.
  SearchResult result() {
    SearchResult result;
    for (size_t i = 0; i < instances_.size(); ++i) {
      if (best_[i].status == Status::kUnsolved && !control_.is_over())
        best_[i] = quick_answer(*instances_[i], control_.check());
      result.candidates.push_back({std::move(best_[i])});
    }
    return result;
  }

 private:
  double seconds_left() const {
    return std::chrono::duration<double>(*control_.deadline - Clock::now()).count();
  }

  void keep(size_t i) {
    Solution& best = best_[i];
    const Status status = found_.kicks[i] < request_.kicks ? control_.check() : Status::kDone;
    if (found_.kicks[i] == kNotBegun) {
      if (best.status != Status::kUnsolved) best.status = status;
      return;
    }
    Solution solution = unsolved();
    solution.order = packer_.answer(i, &found_.orders[i * request_.sequences.n]);
    require_valid(*instances_[i], solution, "an invalid tour of the device: ");
    solution.start = Start::kNearestNeighbour;
    const int64_t kicks = best.kicks + std::max(found_.kicks[i], 0);
    const bool is_first = best.status == Status::kUnsolved;
    if (is_first || is_better(instances_[i]->problem, solution.objective, best.objective))
      best = std::move(solution);
    best.kicks = kicks;
    best.status = status;
  }

  TwoOptDevice& device_;
  const std::span<const Instance* const> instances_;
  const SearchControl& control_;
  SequencePacker packer_;
  TwoOptRequest request_;
  TwoOptResult found_;  // of the last call
  SolutionBatch best_;
};

// Of too few cities for the device.
SearchResult search_small(const SearchBatch& batch, int kicks, uint64_t seed, const SearchControl& control) {
  SearchResult result;
  for (const Instance* instance : batch.instances) {
    Solution solution = unsolved();
    if (!control.is_over()) {
      solution = local_search(*instance, {.kicks = kicks, .seed = seed}, control);
      solution.start = Start::kGreedyEdges;
    }
    result.candidates.push_back({std::move(solution)});
  }
  return result;
}

void check(const TwoOptOptions& options, const Instance& instance) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("2opt: " + what); };
  if (!problem_of(instance).has_two_opt || !instance.has_coordinates())
    refuse("needs cities with coordinates");
  if (instance.n() > kMostTourCities) {
    refuse("expected at most " + std::to_string(kMostTourCities) + " cities, found " +
           std::to_string(instance.n()));
  }
  if (options.kicks && (*options.kicks < 0 || *options.kicks > kMostKicks))
    refuse("cannot make " + std::to_string(*options.kicks) + " kicks");
}

}  // namespace

SearchResult run_search(Backend& backend, const SearchBatch& batch, const TwoOptOptions& options,
                        const SearchControl& control) {
  for (const Instance* instance : batch.instances) check(options, *instance);
  const int n = batch.instances[0]->n();
  const auto kicks = static_cast<int>(options.kicks.value_or(int64_t{TwoOptOptions::kKicksPerCity} * n));
  if (n < kFewestTourCities) return search_small(batch, kicks, options.seed, control);
  TwoOptDevice* const device = backend.two_opt_device();
  if (device == nullptr) throw std::invalid_argument("2opt: not with the backend " + backend.info().name);
  TwoOptSearcher searcher(*device, batch, options, control);
  if (!options.kicks && control.deadline && options.fills_limit) {
    searcher.fill_limit();
  } else {
    searcher.search(0);  // so that all have a tour
    if (kicks > 0) searcher.search(kicks);
  }
  return searcher.result();
}

}  // namespace pointsman
