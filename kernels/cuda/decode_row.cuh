// SPDX-License-Identifier: Apache-2.0
// One row of the decode kernel, by its half-warp: logits, choice and list, the samples that part, the end.
#pragma once

#include <cmath>
#include <type_traits>

#include "kernels/common/philox.h"
#include "kernels/common/rules.h"
#include "kernels/cuda/decode_memory.cuh"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/prior.cuh"

namespace pointsman::cuda {

// Made anew: else every address of the row is kept for all steps.
__device__ __forceinline__ int own_row() { return static_cast<int>(made_here(threadIdx.x) / kHalfWarp); }

template <Precision kPrecision>
using ReferenceWord = std::conditional_t<packs_references(kPrecision), PackedPair, float>;

inline constexpr int kIdle = -1;  // `remaining` of a half-warp whose rollouts have ended, or that has none

struct Softmax {
  float largest;    // logit
  float log_total;  // log of the last running sum
};

// prefix: exp(logit - max) -> running sums in list order. Returns the entropy where it is wanted. By one
// lane, which reads four items at once so as to wait for shared memory less often.
__device__ __forceinline__ double accumulate_prefix(const float* logits, float largest, int count,
                                                    bool want_entropy, float* prefix) {
  float running = 0.0f;
  double weighted = 0.0;  // sum of e (logit - max)
  const auto add = [&](float logit, float& e) {
    if (want_entropy) weighted += static_cast<double>(e) * static_cast<double>(logit - largest);
    e = running += e;
  };
  int j = 0;
  for (; j + 4 <= count; j += 4) {
    float4& there = *reinterpret_cast<float4*>(prefix + j);
    const float4 x = *reinterpret_cast<const float4*>(logits + j);
    float4 e = there;
    add(x.x, e.x), add(x.y, e.y), add(x.z, e.z), add(x.w, e.w);
    there = e;
  }
#pragma unroll 1
  for (; j < count; ++j) add(logits[j], prefix[j]);
  return want_entropy ? static_cast<double>(log_f32(running)) - weighted / running : 0.0;
}

// What a row's scores are made into logits by, and what they tell of the policy.
struct ScoreStatistics {
  float mean;     // of the scores relative to the first one's
  float first;    // u of the first item
  int saturated;  // logits with |tanh| > 0.99
  bool direct;    // as PointerScores

  __device__ __forceinline__ float shift(bool centre) const { return centre ? mean : -first; }
};

// The first position for which `found`; count when there is none.
template <typename Found>
__device__ __forceinline__ int first_position(HalfWarp w, int count, const Found& found) {
  int first = count;
  for (int j = w.lane; j < first; j += kHalfWarp) {
    if (found(j)) first = j;
  }
  return smallest_lane(w, first);
}

// Position of the largest logit, of the lowest item among equals.
__device__ __forceinline__ int greedy_position(HalfWarp w, const float* logits, const int32_t* items,
                                               int count) {
  int best = w.lane < count ? w.lane : 0;
  for (int j = w.lane + kHalfWarp; j < count; j += kHalfWarp) {
    if (logits[j] > logits[best] || (logits[j] == logits[best] && items[j] < items[best])) best = j;
  }
  const float largest = largest_lane(w, logits[best]);
  const int item = smallest_lane(w, logits[best] == largest ? items[best] : INT32_MAX);
  return first_position(w, count, [&](int j) { return items[j] == item; });
}

// The first position whose running sum reaches u times the total.
__device__ __forceinline__ int sampled_position(HalfWarp w, const float* prefix, int count, float u) {
  const float target = u * prefix[count - 1];
  return min(first_position(w, count, [&](int j) { return !(prefix[j] < target); }), count - 1);
}

// The same by one lane.
__device__ __forceinline__ int sampled_position(const float* prefix, int count, float u) {
  const float target = u * prefix[count - 1];
  int first = 0;
  for (int left = count - 1; left > 0;) {
    const int half = left / 2;
    if (prefix[first + half] < target) {
      first += half + 1;
      left -= half + 1;
    } else {
      left = half;
    }
  }
  return first;
}

// What a row does next without the network: takes the item at `position`, whose log p is `gain`.
struct Choice {
  int position;  // in the list; -1: none
  double gain;
};
inline constexpr Choice kNoChoice{-1, 0.0};

// Calls each(position, begin, end) for every position that samples chose.
template <typename Each>
__device__ __forceinline__ void for_each_choice(HalfWarp w, const int32_t* ends, int count,
                                                const Each& each) {
  for (int first = 0; first < count; first += kHalfWarp) {
    const int j = first + w.lane;
    const bool chosen = j < count && ends[j] > (j > 0 ? ends[j - 1] : 0);
    for (unsigned left = ballot_lanes(w, chosen); left != 0; left &= left - 1) {
      const int position = first + __ffs(static_cast<int>(left)) - 1;
      each(position, position > 0 ? ends[position - 1] : 0, ends[position]);
    }
  }
}

__device__ __forceinline__ void fill_zero(HalfWarp w, float* begin, const float* end) {
  for (float* x = begin + 4 * w.lane; x < end; x += 4 * kHalfWarp) {
    *reinterpret_cast<float4*>(x) = float4{0.0f, 0.0f, 0.0f, 0.0f};
  }
}

// A thread and what it works with. Its half-warp calls the functions together; they are of its own row, or of
// row `at`.
struct DecodeThread {
  HalfWarp w;
  const DecodeArgs& args;
  const DecodeTile& tile;
  const DecodeMemory& memory;
  bool shares;  // the tile's rollouts share prefixes; else each of them has a row of its own

  __device__ __forceinline__ DecodeRow& own() const { return memory.rows[own_row()]; }
  __device__ __forceinline__ int sequence_of(int at) const { return tile.sequence + at * tile.sequence_step; }
  __device__ __forceinline__ bool chooses(int at) const { return memory.rows[at].remaining > 1; }

  // [projections][n][H]
  __device__ __forceinline__ int64_t references_size() const {
    return int64_t{args.projections.count} * args.n * kHidden;
  }

  template <Precision kPrecision>
  __device__ __forceinline__ const ReferenceWord<kPrecision>* references_of(int sequence) const {
    return reinterpret_cast<const ReferenceWord<kPrecision>*>(args.references) + sequence * references_size();
  }

  // By the whole block. Shared memory holds floats: scores then unpack nothing.
  template <Precision kPrecision>
  __device__ __forceinline__ void copy_references(int sequence, float* to) const {
    const ReferenceWord<kPrecision>* const from = references_of<kPrecision>(sequence);
    for (int row = own_row(); row < args.projections.count * args.n; row += blockDim.x / kHalfWarp) {
      float x[kOwned];
      load_reference(w, from + row * kHidden, x);
      store_reference(w, x, to + row * kHidden);
    }
  }

  // The rules as they stand, made anew where they are asked: registers are scarce in between.
  template <typename Rules>
  __device__ __forceinline__ Rules rules_of(int at) const {
    if constexpr (Rules::kHasCapacity) {
      return Rules::make(args.rules.inputs(sequence_of(at), args.n, memory.rows[at].capacity_left));
    } else {
      return Rules::make({nullptr, 0.0, false, args.n, args.rules.is_open});
    }
  }

  // How many rows begin: one of all the tile's samples where they share prefixes.
  __device__ __forceinline__ int rows_at_start() const { return shares ? 1 : tile.rows; }

  // Number in the tile of the row's i-th sample.
  __device__ __forceinline__ int sample_of(int i) const {
    const DecodeRow& row = own();
    return shares ? DecodeTree(args).samples(args, row.flipped)[row.begin + i] : row.begin + i;
  }

  // How many items the half-warp's row chooses from; kIdle when it has none.
  template <typename Rules>
  __device__ __forceinline__ int start_rollout() const {
    const int row = own_row();
    int remaining = kIdle;
    if (w.lane == 0) {
      DecodeRow& state = memory.rows[row];
      state = {};
      state.last = state.slot = -1;
      const bool begins = row < rows_at_start();
      int32_t* items = memory.items + row * memory.padded;
      for (int j = begins ? args.n : 0; j < memory.padded; ++j) items[j] = 0;
      if (begins) {
        state.begin = static_cast<uint16_t>(row);
        state.samples = static_cast<uint16_t>(shares ? tile.rows : 1);
        if constexpr (Rules::kHasCapacity) state.capacity_left = args.rules.capacities[sequence_of(row)];
        remaining = initial_remaining(rules_of<Rules>(row), items, args.n);
      }
      state.remaining = remaining;
    }
    __syncwarp(w.mask);
    return __shfl_sync(w.mask, remaining, 0, kHalfWarp);
  }

  template <typename Rules>
  __device__ __forceinline__ Prior<Rules> prior_of(int at, int remaining) const {
    const float* features = args.features + 2 * int64_t{sequence_of(at)} * args.n;
    return cuda::prior_of(args.prior, tile.set, rules_of<Rules>(at),
                          {features, memory.items + at * memory.padded, remaining, memory.rows[at].last});
  }

  // Scores of row `at` -> its logits, of the half-warp's share; the tanh is of what a score has above
  // `shift`. Returns how many it saturates. Of rules that look ahead the priors go through the row's
  // `prefix`: there are not registers for them and the logits at once.
  template <typename Rules>
  __device__ __forceinline__ int make_logits(int at, int remaining, float shift, Share share) const {
    float* const logits = memory.logits + at * memory.padded;
    const AttentionWeights& p = args.attention;
    const Prior<Rules> prior = prior_of<Rules>(at, remaining);
    if constexpr (Rules::kLooksAhead) {
      float* const totals = memory.prefix + at * memory.padded;  // each lane stores what it will read
      for_each_item(w, remaining, share, [&](int j) { totals[j] = prior.total(prior.step.items[j]); });
      return clipped_logits(w, logits, remaining, shift, share,
                            [&](int j, float t) { return fmaf(t, p.scale, totals[j]); });
    } else {
      return clipped_logits(w, logits, remaining, shift, share,
                            [&](int j, float t) { return prior.logit(t, p.scale, prior.step.items[j]); });
    }
  }

  // references: of the row's sequence.
  template <typename Word>
  __device__ __forceinline__ AttentionView<Word> attention_view(int row, const Word* references) const {
    const AttentionWeights& p = args.attention;
    const float* bounds = args.bounds + 2 * int64_t{sequence_of(row)};
    return {references,
            args.projections,
            args.n,
            bounds[0],
            bounds[1],
            p.glimpse_v.of(tile.set),
            p.pointer_v.of(tile.set),
            p.glimpses};
  }

  // Scores of the row's remaining items relative to the first one's, from `references`.
  template <Precision kPrecision, typename Word>
  __device__ __forceinline__ PointerScores score_items(int remaining, const Word* references) const {
    const int at = own_row();
    float query[kOwned];
    load_owned(w, memory.query + at * kHidden, query);
    return pointer_scores<kPrecision != Precision::kFp32>(w, attention_view(at, references), query,
                                                          memory.items + at * memory.padded, remaining,
                                                          memory.logits + at * memory.padded);
  }

  template <Precision kPrecision>
  __device__ __forceinline__ PointerScores score_items(int remaining) const {
    // Twice, so that the compiler knows shared memory.
    return memory.block->has_references
               ? score_items<kPrecision>(remaining, memory.references)
               : score_items<kPrecision>(remaining, references_of<kPrecision>(sequence_of(own_row())));
  }

  // Running sums of the row's remaining items, whose logits are there.
  __device__ __forceinline__ Softmax sum_up(int remaining, const ScoreStatistics& scores) const {
    const int at = own_row(), count = remaining;
    float* logits = memory.logits + at * memory.padded;
    float* prefix = memory.prefix + at * memory.padded;
    const float largest = largest_of(w, logits, count);
    exponentials(w, logits, count, largest, prefix);
    if (w.lane == 0) {
      DecodeRow& row = memory.rows[at];
      const float saturated = static_cast<float>(scores.saturated) / static_cast<float>(count);
      row.entropy += row.samples * accumulate_prefix(logits, largest, count, args.want_entropy, prefix);
      row.mean_logit += row.samples * static_cast<double>(scores.mean + scores.first);
      row.saturated += row.samples * static_cast<double>(saturated);
      row.direct += scores.direct;
      ++row.weighed;
    }
    __syncwarp(w.mask);
    return {largest, log_f32(prefix[count - 1])};
  }

  // Logits and running sums of the row's remaining items.
  template <typename Rules, Precision kPrecision>
  __device__ __forceinline__ Softmax weigh_items(int remaining) const {
    const int at = own_row();
    const PointerScores found = score_items<kPrecision>(remaining);
    ScoreStatistics scores{mean_of(memory.logits + at * memory.padded, remaining), found.first, 0,
                           found.direct};
    __syncwarp(w.mask);
    scores.saturated = make_logits<Rules>(at, remaining, scores.shift(args.attention.centre), {});
    return sum_up(remaining, scores);
  }

  // What sample `sample` of the tile draws in this step.
  __device__ __forceinline__ float uniform_of(int sample) const {
    const int sequence = sequence_of(own_row());
    const uint32_t first = args.first_samples == nullptr ? 0 : args.first_samples[sequence];
    const uint32_t index = tile.first + (tile.sequence_step == 0 ? sample : 0);
    return sampling_uniform(args.seed, args.instance_keys[sequence], first + index * args.sample_stride,
                            own().taken);
  }

  // What a forced order asks for: -1 when it has ended, `count` when it cannot be chosen.
  __device__ __forceinline__ int forced_position(int count) const {
    const DecodeRow& row = own();
    const int32_t* items = memory.items + own_row() * memory.padded;
    const int32_t item = args.forced[(tile.result + row.begin) * args.n + row.taken];
    return item < 0 ? -1 : first_position(w, count, [&](int j) { return items[j] == item; });
  }

  // The mode's choice of a single sample, among two items or more.
  __device__ __forceinline__ int pick_position(int count) const {
    const int at = own_row() * memory.padded;
    if (args.mode == Decode::kGreedy) return greedy_position(w, memory.logits + at, memory.items + at, count);
    return sampled_position(w, memory.prefix + at, count, uniform_of(sample_of(0)));
  }

  // After rules.step(items[position]): the new count. Looking for misfits is shared by the lanes, moving them
  // is not.
  template <typename Rules>
  __device__ __forceinline__ int remove_chosen(const Rules& rules, int count, int position) const {
    int32_t* items = memory.items + own_row() * memory.padded;
    bool misfit = false;
    if constexpr (Rules::kDropsItems) {
      for (int j = w.lane; j < count; j += kHalfWarp) misfit |= j != position && !rules.feasible(items[j]);
      misfit = __any_sync(w.mask, misfit) != 0;
    }
    __syncwarp(w.mask);
    int left = 0;
    if (w.lane == 0) {
      if constexpr (Rules::kHasCapacity) own().capacity_left = rules.capacity_left;
      left = remove_item(items, count, position);
      if (misfit) left = filter_remaining(rules, items, left);
    }
    __syncwarp(w.mask);
    return __shfl_sync(w.mask, left, 0, kHalfWarp);
  }

  // log p of the choice.
  __device__ __forceinline__ double gain_of(const Softmax& softmax, int position) const {
    const float logit = memory.logits[own_row() * memory.padded + position];
    return static_cast<double>((logit - softmax.largest) - softmax.log_total);
  }

  // The choice of all samples of the row, made among `remaining` items; `remaining` is 0 when they ended.
  template <typename Rules>
  __device__ __forceinline__ void take_choice(const Choice& choice, int& remaining) const {
    const int row = own_row(), count = remaining, step = memory.rows[row].taken;
    const int32_t item = memory.items[row * memory.padded + choice.position];
    Rules rules = rules_of<Rules>(row);
    remaining = 0;
    if (rules.ends(item)) return;  // the misfit is no part of the order, nor of its log p
    for (int i = w.lane; i < memory.rows[row].samples; i += kHalfWarp) {
      args.results.orders[(tile.result + sample_of(i)) * args.n + step] = item;
    }
    __syncwarp(w.mask);
    if (w.lane == 0) {
      DecodeRow& state = memory.rows[row];
      ++state.taken;
      state.last = item;
      state.input = reinterpret_cast<const float2*>(args.features)[int64_t{sequence_of(row)} * args.n + item];
      if (count > 1) {
        state.log_prob += choice.gain;
        ++state.learnt;
      }
    }
    rules.step(item);
    remaining = remove_chosen(rules, count, choice.position);
  }

  // ends[j]: where the samples that chose position j end, in the order of positions; in the place of the
  // running sums. Their numbers go to the other list in that order.
  __device__ __forceinline__ void sort_samples(int count, int32_t* ends) const {
    const DecodeTree tree(args);
    const DecodeRow& row = own();
    const float* prefix = memory.prefix + own_row() * memory.padded;
    const int32_t* from = tree.samples(args, row.flipped) + row.begin;
    int32_t* to = tree.samples(args, !row.flipped) + row.begin;
    int32_t* choices = tree.choices + row.begin;
    for (int i = w.lane; i < row.samples; i += kHalfWarp) {
      choices[i] = sampled_position(prefix, count, uniform_of(from[i]));
    }
    __syncwarp(w.mask);
    for (int j = w.lane; j < count; j += kHalfWarp) ends[j] = 0;
    __syncwarp(w.mask);
    for (int i = w.lane; i < row.samples; i += kHalfWarp) atomicAdd(&ends[choices[i]], 1);
    __syncwarp(w.mask);
    for (int first = 0, before = 0; first < count; first += kHalfWarp) {
      const int j = first + w.lane, own = j < count ? ends[j] : 0;
      const int sum = running_sum(w, own);
      if (j < count) ends[j] = before + sum - own;
      before += __shfl_sync(w.mask, sum, kHalfWarp - 1, kHalfWarp);
    }
    __syncwarp(w.mask);
    for (int i = w.lane; i < row.samples; i += kHalfWarp) to[atomicAdd(&ends[choices[i]], 1)] = from[i];
    __syncwarp(w.mask);
  }

  // The samples draw and part. Those of one choice stay in the row, for each other choice a slot is filled.
  // Returns the choice of those that stay.
  __device__ __forceinline__ int part_samples(const Softmax& softmax, int count) const {
    const DecodeTree tree(args);
    const int at = own_row() * memory.padded;
    DecodeRow& row = own();
    int32_t* const ends = reinterpret_cast<int32_t*>(memory.prefix + at);
    sort_samples(count, ends);
    int choices = 0, slot = 0, stays = -1, stay_end = 0;
    for_each_choice(w, ends, count, [&](int, int, int) { ++choices; });
    if (w.lane == 0 && choices > 1) slot = atomicAdd(&memory.block->pending, choices - 1);
    slot = __shfl_sync(w.mask, slot, 0, kHalfWarp);
    if (w.lane == 0) {
      row.first_pushed = static_cast<uint16_t>(slot);
      row.pushed = static_cast<uint16_t>(choices - 1);
    }
    for_each_choice(w, ends, count, [&](int position, int begin, int end) {
      if (stays < 0) {  // the first one's samples begin where the row's do
        stays = position;
        stay_end = end;
        return;
      }
      int32_t* const items = tree.items + int64_t{slot} * memory.padded;
      for (int j = w.lane; j < count; j += kHalfWarp) items[j] = memory.items[at + j];
      if (w.lane == 0) {
        PushedRow pushed = {row, gain_of(softmax, position), count, position};
        pushed.begin += begin;
        pushed.samples = static_cast<uint16_t>(end - begin);
        pushed.flipped = !row.flipped;
        tree.rows[slot] = pushed;
      }
      ++slot;
    });
    __syncwarp(w.mask);
    if (w.lane == 0) {
      row.samples = static_cast<uint16_t>(stay_end);
      row.flipped = !row.flipped;
    }
    __syncwarp(w.mask);
    return stays;
  }

  // Whether the position is one of the list; else the rollout has ended.
  __device__ __forceinline__ bool may_take(int position, int& remaining) const {
    if (position >= 0 && position < remaining) return true;
    if (position == remaining && w.lane == 0) own().infeasible = true;
    remaining = 0;
    return false;
  }

  // A choice among `remaining` items, two or more, whose running sums are there. `remaining` is 0 when the
  // rollout ends without one.
  __device__ __forceinline__ Choice choose(const Softmax& softmax, int& remaining) const {
    const int count = remaining;
    DecodeRow& row = own();
    if (w.lane == 0) row.steps += row.samples;
    const int position = args.mode == Decode::kForced ? forced_position(count)
                         : shares && row.samples > 1  ? part_samples(softmax, count)
                                                      : pick_position(count);
    if (!may_take(position, remaining)) return kNoChoice;
    return {position, gain_of(softmax, position)};
  }

  // The only item left needs no network.
  __device__ __forceinline__ Choice choose_only_item(int& remaining) const {
    if (w.lane == 0) own().steps += own().samples;
    const int position = args.mode == Decode::kForced ? forced_position(1) : 0;
    return may_take(position, remaining) ? Choice{position, 0.0} : kNoChoice;
  }

  // Does the host want the launch to end? It may have said so since the last question, and the half-warps of
  // a block need not hear of it in the same step. Lane 0 asks ..
  __device__ __forceinline__ int32_t stop_word() const {
    return args.stop != nullptr && w.lane == 0 ? *static_cast<const volatile int32_t*>(args.stop) : 0;
  }

  // .. and tells the others.
  __device__ __forceinline__ bool is_stop(int32_t stop) const {
    return __shfl_sync(w.mask, stop, 0, kHalfWarp) != 0;
  }
  __device__ __forceinline__ bool is_stopped() const { return is_stop(stop_word()); }

  // Nothing of the row's rollouts is kept.
  __device__ __forceinline__ void give_up(int& remaining) const {
    remaining = 0;
    if (w.lane != 0) return;
    DecodeRow& row = own();
    const uint16_t begin = row.begin, samples = row.samples;
    const bool flipped = row.flipped;
    row = {};
    row.begin = begin, row.samples = samples, row.flipped = flipped;
    row.slot = -1;
    row.stopped = true;
  }

  // Zeros in the record where nothing was computed.
  __device__ __forceinline__ void finish_record(const DecodeRow& row) const {
    const int n = args.n;
    const DecodeRecord& record = args.record;
    const int64_t result = tile.result + own_row(), state = result * (n + 1) + 1, step = result * n;
    if (w.lane == 0) record.row_steps[result] = row.learnt;
    for (float* const array : {record.h, record.c})
      fill_zero(w, array + (state + row.weighed) * kHidden, array + (state + n) * kHidden);
    fill_zero(w, record.cells + (step + row.weighed) * kLstmCell, record.cells + (step + n) * kLstmCell);
    fill_zero(w, record.queries + (step + row.weighed) * kHidden, record.queries + (step + n) * kHidden);
  }

  // The end of the row's rollouts: the end of each order, cost and log p. An order that ended in what cannot
  // be chosen, or a tour that ended early, has no log p and no cost. One that was given up costs more than
  // all.
  template <typename Rules>
  __device__ __forceinline__ void finish_rollouts() const {
    const int n = args.n;
    const DecodeRow& row = own();
    __syncwarp(w.mask);
    for (int i = w.lane; i < row.samples; i += kHalfWarp) {
      const int64_t result = tile.result + sample_of(i);
      int32_t* order = args.results.orders + result * n;
      for (int step = row.taken; step < n; ++step) order[step] = -1;
      const bool whole = (Rules::kDropsItems || row.taken == n) && !row.infeasible && !row.stopped;
      const float* features = args.features + 2 * int64_t{sequence_of(own_row())} * n;
      args.results.log_probs[result] = whole ? row.log_prob : nan("");
      args.results.costs[result] = whole         ? rules_of<Rules>(own_row()).cost(features, order, n)
                                   : row.stopped ? INFINITY
                                                 : nan("");
    }
    if (args.record.h != nullptr) finish_record(row);
  }

  // A waiting row's state and choice for a half-warp that has nothing to do; false: none waits.
  __device__ __forceinline__ bool pop_row(Choice& choice, int& remaining) const {
    const DecodeTree tree(args);
    int slot = 0;
    if (w.lane == 0) {
      slot = atomicSub(&memory.block->pending, 1) - 1;
      if (slot < 0) atomicAdd(&memory.block->pending, 1);
    }
    slot = __shfl_sync(w.mask, slot, 0, kHalfWarp);
    if (slot < 0) return false;
    __syncwarp(w.mask);  // all lanes have read the row that ended
    const PushedRow& from = tree.rows[slot];
    const int32_t* items = tree.items + int64_t{slot} * memory.padded;
    for (int j = w.lane; j < from.remaining; j += kHalfWarp)
      memory.items[own_row() * memory.padded + j] = items[j];
    if (w.lane == 0) {
      DecodeRow& row = own();
      static_cast<RowPrefix&>(row) = from;
      row.slot = slot;
      row.infeasible = row.stopped = false;
    }
    __syncwarp(w.mask);
    remaining = from.remaining;
    choice = {from.position, from.gain};
    if (is_stopped()) {
      give_up(remaining);
      choice = kNoChoice;
    }
    return true;
  }

  // The row's choice, those after it that need no network, and the end; a row that has ended takes what
  // waits.
  template <typename Rules>
  __device__ __forceinline__ void settle(Choice choice, int& remaining) const {
    for (;;) {
      if (choice.position >= 0) take_choice<Rules>(choice, remaining);
      if (remaining > 1) break;
      if (remaining == 1) {
        choice = choose_only_item(remaining);
        continue;
      }
      if (remaining == 0) finish_rollouts<Rules>();
      remaining = kIdle;
      if (!shares || !pop_row(choice, remaining)) break;
    }
    if (w.lane == 0) own().remaining = remaining;
  }
};

}  // namespace pointsman::cuda
