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
  std::vector<int32_t> order;
  std::vector<int32_t> identity;  // Problem::canonical of the order
};

// Keeps the best distinct answers of one instance, best first, whatever the order of the offers.
void offer_answer(std::vector<Answer>& kept, Answer answer, size_t keep) {
  const auto before = [](const Answer& a, const Answer& b) {
    return a.cost != b.cost ? a.cost < b.cost : a.sample < b.sample;
  };
  const auto twin = std::find_if(kept.begin(), kept.end(),
                                 [&](const Answer& other) { return other.identity == answer.identity; });
  if (twin != kept.end()) {
    if (!before(answer, *twin)) return;
    kept.erase(twin);
  }
  kept.insert(std::upper_bound(kept.begin(), kept.end(), answer, before), std::move(answer));
  if (kept.size() > keep) kept.pop_back();
}

class Sampler {
 public:
  Sampler(const RolloutCall& rollout, const ModelConfig& config, const SearchBatch& batch,
          const SamplingOptions& options, const SearchControl& control)
      : rollout_(rollout),
        instances_(batch.instances),
        keys_(batch.keys),
        options_(options),
        control_(control),
        largest_(largest_call(instances_[0]->n())),
        packer_(instances_, config.capacity),
        kept_(instances_.size()),
        drawn_(instances_.size(), 0) {
    end_ = options.first_sample + sample_count();
  }

  SearchResult run() {
    // All of an instance's samples together share most work. Under a time limit every instance gets its turn,
    // first for few samples, and at most for what one call holds of them all. Without one a signal may come:
    // where one call does not hold them all, every instance first gets few, so that it has an answer.
    const int64_t unit = unit_size(), largest_round = largest_ / static_cast<int64_t>(instances_.size());
    int64_t round = control_.deadline || sample_count() > largest_round ? unit : sample_count();
    Status status = control_.check();
    for (int64_t begin = options_.first_sample; begin < end_ && status == Status::kDone;) {
      const int64_t end = std::min(begin + round, end_);
      status = draw_all(begin, end);
      begin = end;
      if (!control_.deadline) {
        round = sample_count();
      } else if (4 * round <= largest_round) {
        round *= 4;
      }
    }
    if (status != Status::kDone) draw_missing();
    for (size_t i = 0; i < instances_.size(); ++i) result_.candidates.push_back(finish(i, status));
    return std::move(result_);
  }

 private:
  // Samples of the copies' first orders, or of as many without orders.
  int64_t unit_size() const { return kSamplesPerOrder * options_.augment; }

  // Greedy rollouts of the same sequence are all the same.
  int64_t sample_count() const {
    const bool repeats = options_.greedy && !options_.shuffle;
    return repeats ? std::min<int64_t>(options_.samples, options_.augment) : options_.samples;
  }

  // Samples begin .. end - 1 of every instance, unless a limit strikes. An instance is cut between two calls
  // only where it must be, and then between two input orders.
  Status draw_all(int64_t begin, int64_t end) {
    const int64_t unit = unit_size();
    for (size_t i = 0; i < instances_.size(); ++i) {
      for (int64_t at = begin; at < end;) {
        const int64_t room = largest_ - planned_rollouts_;
        const int64_t left = end - at;
        if (left > room && planned_rollouts_ > 0 && (left <= largest_ || room < unit)) {
          flush(control_.stop());
          const Status status = control_.check();
          if (status != Status::kDone) return status;
          continue;
        }
        int64_t stop = std::min(end, at + room);
        if (stop < end && stop - stop % unit > at) stop -= stop % unit;
        plan(i, at, stop);
        at = stop;
      }
    }
    const bool whole = flush(control_.stop());
    return whole && end == end_ ? Status::kDone : control_.check();
  }

  // The first sample of every instance that a limit left without an answer, until the run ends.
  void draw_missing() {
    for (size_t i = 0; i < instances_.size() && !control_.is_over(); ++i) {
      if (drawn_[i] > 0) continue;
      plan(i, options_.first_sample, options_.first_sample + 1);
      if (planned_rollouts_ >= largest_) flush(control_.stop_at_end());
    }
    flush(control_.stop_at_end());
  }

  // Samples begin .. end - 1 of one instance as sequences: one for each copy, or for each block of a copy.
  void plan(size_t instance, int64_t begin, int64_t end) {
    const int64_t augment = options_.augment;
    const int64_t block_size = !options_.shuffle ? std::numeric_limits<int64_t>::max()
                               : options_.greedy ? 1
                                                 : kSamplesPerOrder;
    for (int64_t copy = 0; copy < augment; ++copy) {
      // Sample s = index * augment + copy; the indices of this copy that lie in the range.
      int64_t index = std::max<int64_t>((begin - copy + augment - 1) / augment, 0);
      const int64_t last = (end - 1 - copy + augment) / augment;  // one past
      while (index < last) {
        const int64_t block = index / block_size;
        const int64_t stop = options_.shuffle ? std::min(last, (block + 1) * block_size) : last;
        plan_.push_back({instance, static_cast<int>(copy), static_cast<uint32_t>(block * augment + copy),
                         index * augment + copy, static_cast<int32_t>(stop - index)});
        index = stop;
      }
    }
    planned_rollouts_ += end - begin;
    drawn_[instance] += end - begin;
  }

  // Makes what is planned; false when the stop left some of it unmade. Where memory runs out half of the
  // rollouts are made at once, which changes no answer.
  bool flush(const StopToken& stop) {
    const std::vector<PlannedSequence> planned = std::exchange(plan_, {});
    planned_rollouts_ = 0;
    return make(planned, stop);
  }

  bool make(std::span<const PlannedSequence> planned, const StopToken& stop) {
    if (planned.empty()) return true;
    try {
      call(planned, stop);
    } catch (const std::bad_alloc&) {
      if (planned.size() == 1) throw;
      rollouts_ = {};
      if (control_.warn) control_.warn("out of memory: a call for rollouts is made in two halves");
      const size_t half = planned.size() / 2;
      const bool first = make(planned.first(half), stop);
      return make(planned.subspan(half), stop) && first;
    }
    collect(planned);
    report_best();
    return rollouts_.finished.empty();
  }

  void call(std::span<const PlannedSequence> planned, const StopToken& stop) {
    packer_.clear();
    int64_t count = 0;
    std::vector<int32_t> counts;
    std::vector<uint64_t> keys;
    std::vector<uint32_t> firsts;
    for (const PlannedSequence& sequence : planned) {
      packer_.add(sequence.instance, sequence.copy,
                  options_.shuffle ? input_order(options_.seed, keys_[sequence.instance], sequence.replica,
                                                 instances_[0]->n())
                                   : std::vector<int32_t>());
      counts.push_back(sequence.count);
      count += sequence.count;
      keys.push_back(keys_[sequence.instance]);
      firsts.push_back(static_cast<uint32_t>(sequence.first));
    }
    RolloutRequest request;
    request.sequences = packer_.batch();
    request.decode = options_.greedy ? Decode::kGreedy : Decode::kSample;
    request.counts = counts.data();
    request.instance_keys = keys.data();
    request.first_samples = firsts.data();
    request.sample_stride = static_cast<uint32_t>(options_.augment);
    request.seed = options_.seed;
    request.policy = options_.policy;
    request.best_only = options_.candidates <= 1;
    request.stop = stop;
    const Clock::time_point start = Clock::now();
    rollout_(request, rollouts_);
    control_.trace_call("call", count, start);
    result_.statistics += rollouts_.statistics;
  }

  // To the only instance of a run.
  void report_best() const {
    if (!control_.on_best || kept_[0].empty()) return;
    control_.on_best(problem_of(*instances_[0]).objective(*instances_[0], kept_[0].front().order));
  }

  void collect(std::span<const PlannedSequence> planned) {
    size_t rollout = 0;
    for (size_t s = 0; s < planned.size(); ++s) {
      if (!rollouts_.finished.empty())
        drawn_[planned[s].instance] -= planned[s].count - rollouts_.finished[s];
      if (!rollouts_.winners.empty()) {
        offer(planned[s], s, rollouts_.winners[s], s);
        continue;
      }
      for (int32_t j = 0; j < planned[s].count; ++j) offer(planned[s], s, j, rollout++);
    }
  }

  // The j-th rollout of a planned sequence, the s-th of the call, entry `at` of the result.
  void offer(const PlannedSequence& sequence, size_t s, int32_t j, size_t at) {
    const auto keep = static_cast<size_t>(std::max(options_.candidates, 1));
    std::vector<Answer>& kept = kept_[sequence.instance];
    const double cost = rollouts_.costs[at];
    if (std::isnan(cost) || !(kept.size() < keep || cost <= kept.back().cost)) return;
    std::vector<int32_t> order = packer_.original_order(s, &rollouts_.orders[at * instances_[0]->n()]);
    std::vector<int32_t> identity = problem_of(*instances_[0]).canonical(order);
    const int64_t sample = sequence.first + j * options_.augment;
    offer_answer(kept, {cost, sample, rollouts_.log_probs[at], std::move(order), std::move(identity)}, keep);
  }

  std::vector<Solution> finish(size_t i, Status status) {
    if (kept_[i].empty()) return {unsolved()};
    std::vector<Solution> best;
    for (Answer& answer : kept_[i]) {
      Solution solution;
      solution.order = std::move(answer.order);
      require_valid(*instances_[i], solution, kInvalidAnswer);
      solution.log_prob = answer.log_prob;
      solution.network_objective = solution.objective;
      solution.status = drawn_[i] < end_ - options_.first_sample ? status : Status::kDone;
      best.push_back(std::move(solution));
    }
    // Rounded metrics rank tours otherwise than the network's length does.
    std::stable_sort(best.begin(), best.end(), [&](const Solution& a, const Solution& b) {
      return is_better(instances_[i]->problem, a.objective, b.objective);
    });
    return best;
  }

  const RolloutCall& rollout_;
  const std::span<const Instance* const> instances_;
  const std::span<const uint64_t> keys_;
  const SamplingOptions& options_;
  const SearchControl& control_;
  const int64_t largest_;  // rollouts of a call
  SequencePacker packer_;
  int64_t end_ = 0;
  std::vector<PlannedSequence> plan_;
  int64_t planned_rollouts_ = 0;
  RolloutResult rollouts_;  // of the last call
  SearchResult result_;
  std::vector<std::vector<Answer>> kept_;
  std::vector<int64_t> drawn_;
};

void check_options(const SamplingOptions& options, ProblemKind problem) {
  const auto refuse = [](const std::string& what) { throw std::invalid_argument("sampling: " + what); };
  if (options.samples < 1) refuse("expected at least one sample, found " + std::to_string(options.samples));
  if (options.first_sample < 0 || options.samples > (int64_t{1} << 32) - options.first_sample) {
    refuse("samples are numbered from 0 to 2^32 - 1");
  }
  if (options.augment != 1 && options.augment != 8) {
    refuse("expected augment 1 or 8, found " + std::to_string(options.augment));
  }
  if (!(options.policy.temperature > 0.0f)) refuse("expected a temperature above 0");
  if (options.augment == 8 && !problem_of(problem).has_symmetries) {
    refuse(std::string(problem_of(problem).title) + " has no dihedral copies; use shuffle");
  }
}

}  // namespace

int instances_at_once(const SamplingOptions& options, int n) {
  const int64_t samples = std::max<int64_t>(options.samples, 1);
  return static_cast<int>(std::clamp<int64_t>(largest_call(n) / samples, 1, 4096));
}

SearchResult run_search(const RolloutCall& rollout, const ModelConfig& config, const SearchBatch& batch,
                        const SamplingOptions& options, const SearchControl& control) {
  check_options(options, batch.instances[0]->problem);
  return Sampler(rollout, config, batch, options, control).run();
}

}  // namespace pointsman
