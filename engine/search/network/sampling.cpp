// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <new>
#include <span>
#include <string>
#include <utility>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/limits.h"
#include "engine/search/search.h"
#include "engine/search/sequence_packer.h"

namespace pointsman {

namespace {

constexpr int64_t kMostSamples = int64_t{1} << 32;
constexpr int64_t kMostRedraws = 10;      // times that the samples are drawn again
constexpr int64_t kSamplesPerOrder = 16;  // of one dihedral copy, with shuffle; they share one encoding

// One input sequence and its samples: first, first + augment, .. (`count` of them).
struct PlannedSequence {
  size_t instance;
  int copy;
  uint32_t replica;
  int64_t first;
  int32_t count;
};

struct Answer {
  double cost;
  int64_t sample;
  double log_prob;
  std::vector<int32_t> order = {};
  std::vector<int32_t> identity = {};  // Problem::canonical of the order
};

bool is_before(const Answer& a, const Answer& b) {
  return a.cost != b.cost ? a.cost < b.cost : a.sample < b.sample;
}

struct Sampler {
  const RolloutCall& rollout;
  const ModelConfig& config;
  const SearchBatch& batch;
  const SamplingOptions& options;
  const SearchControl& control;

  const InstancePointers& instances = batch.instances;
  const int n = instances[0]->n();
  const int64_t largest = largest_call(problem_of(*instances[0]), n);  // rollouts of a call
  // Of an instance. Greedy rollouts of the same sequence are all the same.
  const int64_t samples = options.greedy && !options.shuffle
                              ? std::min<int64_t>(options.samples, options.augment)
                              : options.samples;
  const int64_t last_sample = options.first_sample + samples;  // one past
  // Samples of the copies' first orders, or of as many without orders.
  const int64_t unit = kSamplesPerOrder * options.augment;
  SequencePacker packer = SequencePacker(instances, config.capacity);
  std::vector<PlannedSequence> planned = {};
  int64_t planned_rollouts = 0;
  RolloutResult rollouts = {};  // of the last call
  SearchResult result = {};
  std::vector<std::vector<Answer>> answers = std::vector<std::vector<Answer>>(instances.size());
  std::vector<int64_t> drawn = std::vector<int64_t>(instances.size());  // samples of each instance

  SearchResult run() {
    // All of an instance's samples together share most work. Under a time limit every instance gets its turn,
    // first for few samples, and at most for what one call holds of them all. Without one a signal may come:
    // where one call does not hold them all, every instance first gets few, so that it has an answer.
    const int64_t largest_round = largest / static_cast<int64_t>(instances.size());
    int64_t round = control.deadline || samples > largest_round ? unit : samples;
    Status status = control.check();
    for (int64_t begin = options.first_sample; begin < last_sample && status == Status::kDone;) {
      const int64_t end = std::min(begin + round, last_sample);
      status = draw_all(begin, end);
      begin = end;
      if (!control.deadline) {
        round = samples;
      } else if (4 * round <= largest_round) {
        round *= 4;
      }
    }
    if (status == Status::kDone && !options.greedy) status = draw_again();
    if (status != Status::kDone) draw_missing();
    for (size_t i = 0; i < instances.size(); ++i) result.candidates.push_back(finish(i, status));
    return std::move(result);
  }

  // Samples begin .. end - 1 of every instance, unless a limit strikes. An instance is cut between two calls
  // only where it must be, and then between two input orders.
  Status draw_all(int64_t begin, int64_t end) {
    for (size_t i = 0; i < instances.size(); ++i) {
      const Status status = plan_all(i, begin, end);
      if (status != Status::kDone) return status;
    }
    const bool whole = flush(control.stop());
    return whole && end == last_sample ? Status::kDone : control.check();
  }

  // The same of one instance; its last ones may still have to be made.
  Status plan_all(size_t i, int64_t begin, int64_t end) {
    for (int64_t at = begin; at < end;) {
      const int64_t room = largest - planned_rollouts;
      const int64_t left = end - at;
      if (left > room && planned_rollouts > 0 && (left <= largest || room < unit)) {
        flush(control.stop());
        const Status status = control.check();
        if (status != Status::kDone) return status;
        continue;
      }
      int64_t stop = std::min(end, at + room);
      if (stop < end && stop - stop % unit > at) stop -= stop % unit;
      plan(i, at, stop);
      at = stop;
    }
    return Status::kDone;
  }

  // As many samples again, some times, of each instance whose answers are all infeasible.
  Status draw_again() {
    if (!problem_of(*instances[0]).has_first) return Status::kDone;
    for (int64_t begin = last_sample; begin < last_sample + kMostRedraws * samples; begin += samples) {
      Status status = Status::kDone;
      for (size_t i = 0; i < instances.size() && status == Status::kDone; ++i) {
        if (!answers[i].empty() && answers[i].front().cost >= kLatePenalty)
          status = plan_all(i, begin, std::min(begin + samples, kMostSamples));
      }
      if (status == Status::kDone && !flush(control.stop())) status = control.check();
      if (status != Status::kDone) return status;
    }
    return Status::kDone;
  }

  // The first sample of every instance that a limit left without an answer, until the run ends.
  void draw_missing() {
    for (size_t i = 0; i < instances.size() && !control.is_over(); ++i) {
      if (drawn[i] > 0) continue;
      plan(i, options.first_sample, options.first_sample + 1);
      if (planned_rollouts >= largest) flush(control.stop_at_end());
    }
    flush(control.stop_at_end());
  }

  // Samples begin .. end - 1 of one instance as sequences: one for each copy, or for each block of a copy.
  void plan(size_t instance, int64_t begin, int64_t end) {
    const int64_t augment = options.augment;
    const int64_t block_size = !options.shuffle ? std::numeric_limits<int64_t>::max()
                               : options.greedy ? 1
                                                : kSamplesPerOrder;
    for (int64_t copy = 0; copy < augment; ++copy) {
      // Sample s = index * augment + copy; the indices of this copy that lie in the range.
      int64_t index = std::max<int64_t>((begin - copy + augment - 1) / augment, 0);
      const int64_t last = (end - 1 - copy + augment) / augment;  // one past
      while (index < last) {
        const int64_t block = index / block_size;
        const int64_t stop = options.shuffle ? std::min(last, (block + 1) * block_size) : last;
        planned.push_back({instance, static_cast<int>(copy), static_cast<uint32_t>(block * augment + copy),
                           index * augment + copy, static_cast<int32_t>(stop - index)});
        index = stop;
      }
    }
    planned_rollouts += end - begin;
    drawn[instance] += end - begin;
  }

  // Makes what is planned; false when the stop left some of it unmade.
  bool flush(const StopToken& stop) {
    planned_rollouts = 0;
    return make(std::exchange(planned, {}), stop);
  }

  // Where memory runs out half of the rollouts are made at once, which changes no answer.
  bool make(std::span<const PlannedSequence> sequences, const StopToken& stop) {
    if (sequences.empty()) return true;
    try {
      call(sequences, stop);
    } catch (const std::bad_alloc&) {
      if (sequences.size() == 1) throw;
      rollouts = {};
      if (control.report.warn)
        control.report.warn("out of memory: a call for rollouts is made in two halves");
      const size_t half = sequences.size() / 2;
      const bool first = make(sequences.first(half), stop);
      return make(sequences.subspan(half), stop) && first;
    }
    collect(sequences);
    // To the only instance of a run.
    if (control.report.on_best && !answers[0].empty()) {
      const double best = problem_of(*instances[0]).objective(*instances[0], answers[0].front().order);
      if (std::isfinite(best)) control.report.on_best(best);
    }
    return rollouts.finished.empty();
  }

  void call(std::span<const PlannedSequence> sequences, const StopToken& stop) {
    packer.clear();
    int64_t count = 0;
    for (const PlannedSequence& one : sequences) {
      const uint64_t key = batch.keys[one.instance];
      packer.add(one.instance, one.copy,
                 options.shuffle
                     ? input_order(options.seed, key, one.replica, n, problem_of(*instances[0]).depots())
                     : std::vector<int32_t>(),
                 {key, static_cast<uint32_t>(one.first), one.count});
      count += one.count;
    }
    RolloutRequest request = packer.sequences().request();
    request.decode = options.greedy ? Decode::kGreedy : Decode::kSample;
    request.sample_stride = static_cast<uint32_t>(options.augment);
    request.seed = options.seed;
    request.policy = options.policy;
    request.best_only = options.candidates <= 1;
    request.stop = stop;
    const Clock::time_point start = Clock::now();
    rollout(request, rollouts);
    control.report.trace_call("call", count, start);
    result.statistics += rollouts.statistics;
  }

  void collect(std::span<const PlannedSequence> sequences) {
    size_t row = 0;
    for (size_t s = 0; s < sequences.size(); ++s) {
      if (!rollouts.finished.empty())
        drawn[sequences[s].instance] -= sequences[s].count - rollouts.finished[s];
      if (!rollouts.winners.empty()) {
        offer(sequences[s], s, rollouts.winners[s], s);
        continue;
      }
      for (int32_t j = 0; j < sequences[s].count; ++j) offer(sequences[s], s, j, row++);
    }
  }

  // The j-th rollout of a planned sequence, the s-th of the call, entry `at` of the result. The best distinct
  // answers are kept, best first, whatever the order of the offers.
  void offer(const PlannedSequence& sequence, size_t s, int32_t j, size_t at) {
    const auto keep = static_cast<size_t>(std::max(options.candidates, 1));
    std::vector<Answer>& kept = answers[sequence.instance];
    const double cost = rollouts.costs[at];
    if (std::isnan(cost) || !(kept.size() < keep || cost <= kept.back().cost)) return;
    Answer answer = {cost, sequence.first + j * options.augment, rollouts.log_probs[at]};
    answer.order = packer.answer(s, &rollouts.orders[at * packer.sequences().steps()]);
    answer.identity = problem_of(*instances[0]).canonical(answer.order);
    const auto twin = std::ranges::find(kept, answer.identity, &Answer::identity);
    if (twin != kept.end()) {
      if (!is_before(answer, *twin)) return;
      kept.erase(twin);
    }
    kept.insert(std::upper_bound(kept.begin(), kept.end(), answer, is_before), std::move(answer));
    if (kept.size() > keep) kept.pop_back();
  }

  std::vector<Solution> finish(size_t i, Status status) {
    if (answers[i].empty()) return {unsolved()};
    std::vector<Solution> best;
    for (Answer& answer : answers[i]) {
      Solution solution;
      solution.order = std::move(answer.order);
      require_valid(*instances[i], solution, kInvalidAnswer);
      solution.log_prob = answer.log_prob;
      solution.network_objective = solution.objective;
      solution.status = drawn[i] < samples ? status : Status::kDone;
      solution.redrawn = std::max<int64_t>(drawn[i] - samples, 0);
      best.push_back(std::move(solution));
    }
    // Rounded metrics rank tours otherwise than the network's length does.
    std::stable_sort(best.begin(), best.end(), [&](const Solution& a, const Solution& b) {
      return is_better(instances[i]->problem, a, b);
    });
    return best;
  }
};

void check_options(const SamplingOptions& options, ProblemKind problem) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("sampling: " + what); };
  if (options.samples < 1) refuse("expected at least one sample, found " + std::to_string(options.samples));
  if (options.first_sample < 0 || options.samples > kMostSamples - options.first_sample) {
    refuse("samples are numbered from 0 to 2^32 - 1");
  }
  if (options.augment != 1 && options.augment != 8) {
    refuse("expected augment 1 or 8, found " + std::to_string(options.augment));
  }
  if (!(options.policy.temperature > 0.0f)) refuse("expected a temperature above 0");
  if (!(options.policy.noise >= 0.0f)) refuse("expected noise of 0 or more");
  if (options.augment == 8 && !problem_of(problem).has_symmetries) {
    refuse(std::string(problem_of(problem).title) + " has no dihedral copies; use shuffle");
  }
}

}  // namespace

SearchResult run_search(const RolloutCall& rollout, const ModelConfig& config, const SearchBatch& batch,
                        const SamplingOptions& options, const SearchControl& control) {
  check_options(options, batch.instances[0]->problem);
  return Sampler{rollout, config, batch, options, control}.run();
}

}  // namespace pointsman
