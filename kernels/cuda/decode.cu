// SPDX-License-Identifier: Apache-2.0
// The persistent decode kernel. A block takes a tile of rollouts ("rows") through all steps. It has 128
// threads for every 8 rows: in the products thread t makes unit t % 128 of the 8 rows of group t / 128, whose
// c it keeps in registers; in the attention half-warp w owns row w. A step is
//   h, c = cell(h, c, chosen item);  query = W_q h;  logits, choice, list of remaining items,
// with block barriers between. The last item of a list needs no network; groups of 8 rows that have finished
// make no products. Rows that have finished wait for the others, unless the tile's samples share prefixes:
// then a row is all samples that chose the same so far, where they part all but one choice's wait on a stack
// (DecodeTree), and a row that has finished takes what waits. Between two steps a half-warp asks whether
// the host wants an end: a read from the L2, some 500 clocks beside the 20,500 of its products.
//
// Shared memory: h and query, 2 x 512 B a row; its state, 88 B; logits, running sums and the list, 12 B a row
// and item (items rounded up to 16); when all rows are of one sequence and it fits, that sequence's
// references, 512 B an item and projection. 32 rows of n = 100 with three projections: 232,240 B.
//
// A step of a row with m items left and g glimpses costs 2 x 5 x 128^2 flops of products, (g + 1) m 128
// elements of scores (4.8 operations and 1/4 special-function operation each, half_warp_attention.cuh), g m
// 128 fma of readout, (g + 1) m exp, m tanh and, one by one in list order, (g + 2) m additions. Device
// memory: 328 KB of weights a step and block (from the L2), 4 B of choice a row; (2 g + 1) m 512 B of
// references where they are not in shared memory; with activations recorded 4 KB a row.
//
// With a precision other than fp32 the products are tile_multiply_mma.cuh's, whose header says which units of
// which rows a thread then has; h is swizzled, quotients of scores are approximate (3.9 operations an
// element), activations are not recorded.
#include <cmath>
#include <type_traits>

#include "kernels/common/philox.h"
#include "kernels/common/rules.h"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/lstm_cell.cuh"
#include "kernels/cuda/prior.cuh"
#include "kernels/cuda/tile_multiply.cuh"
#include "kernels/cuda/tile_multiply_mma.cuh"

namespace pointsman::cuda {

inline constexpr int kMaxDecodeThreads = 512;
inline constexpr int kMaxDecodeRows = kMaxDecodeThreads / kHidden * kTileRows;
static_assert(kMaxDecodeRows * kHalfWarp == kMaxDecodeThreads);

// A row, written by lane 0 of its half-warp: what it makes now, one rollout or several samples whose choices
// were the same so far, and sums over all that it made.
struct DecodeRow {
  double entropy, mean_logit, saturated;  // sums over choices, as often as samples made them
  double log_prob;
  double capacity_left;           // of rules with capacities
  float2 input;                   // features of the item chosen last
  int32_t steps;                  // sum: choices, as often as samples made them
  int32_t weighed;                // sum: choices among two items or more
  int32_t direct;                 // sum: steps with a row outside the factored tanh's range
  int32_t remaining;              // items to choose from; below two the row needs no more network
  int32_t last;                   // item chosen last; -1: none
  int32_t slot;                   // that its h and c come from before the next step; -1: it has them
  uint16_t taken;                 // choices that are part of the order
  uint16_t learnt;                // of them made among two items or more
  uint16_t begin, samples;        // of DecodeTree::samples, or of the tile's rows
  uint16_t first_pushed, pushed;  // slots that this step's h and c go to
  bool flipped;                   // which of the two lists of samples
  bool infeasible;                // a forced order asked for what cannot be chosen
  bool stopped;                   // before its end
};
static_assert(kTileRows * sizeof(DecodeRow) % sizeof(float4) == 0);  // what follows is read four at a time

POINTSMAN_HOST_DEVICE constexpr int padded_items(int n) { return (n + 15) / 16 * 16; }
POINTSMAN_HOST_DEVICE constexpr int64_t decode_reference_bytes(int n, int projections) {
  return static_cast<int64_t>(projections) * n * kHidden * 4;
}
POINTSMAN_HOST_DEVICE constexpr int64_t decode_row_bytes(int n) {
  return (2 * kHidden + 3 * static_cast<int64_t>(padded_items(n))) * 4 +
         static_cast<int64_t>(sizeof(DecodeRow));
}

// What the block works at; not in registers, which are scarce.
struct alignas(sizeof(float4)) DecodeBlock {
  DecodeTile tile;
  int32_t index;    // the tile's
  int32_t pending;  // slots of the tree in use
};
inline constexpr int64_t kDecodeBlockBytes = sizeof(DecodeBlock);

// The block's shared memory.
struct DecodeMemory {
  int padded;
  float* h;         // [rows][H]
  float* query;     // [rows][H]
  DecodeRow* rows;  // [rows]
  DecodeBlock* block;
  float* logits;      // [rows][padded]
  float* prefix;      // [rows][padded]
  int32_t* items;     // [rows][padded] the remaining ones first; behind the n-th some item
  float* references;  // [projections][n][H], or nothing

  __device__ __forceinline__ DecodeMemory(float* shared, int row_count, int n) : padded(padded_items(n)) {
    h = shared;
    query = h + row_count * kHidden;
    rows = reinterpret_cast<DecodeRow*>(query + row_count * kHidden);
    block = reinterpret_cast<DecodeBlock*>(rows + row_count);
    logits = reinterpret_cast<float*>(block + 1);
    prefix = logits + row_count * padded;
    items = reinterpret_cast<int32_t*>(prefix + row_count * padded);
    references = reinterpret_cast<float*>(items + row_count * padded);
  }
};

// What a row leaves behind where its samples part: the state in which the choice was made, and the choice.
struct PushedRow {
  double log_prob, gain;  // before the choice, and of it
  double capacity_left;
  int32_t remaining, position;
  uint16_t taken, begin, samples;
  bool flipped;
};

POINTSMAN_HOST_DEVICE constexpr int64_t tree_bytes(int n, int slots) {
  const int64_t slot = sizeof(PushedRow) + (2 * kHidden + padded_items(n) + 3) * sizeof(float);
  return (slots * slot + 15) / 16 * 16;
}

// The block's device memory for the tree of its samples' prefixes (algebra identity 8): rows that wait, a
// stack of slots, and the samples of each row side by side. No more rows wait than there are samples.
// Made anew where it is asked.
struct DecodeTree {
  PushedRow* rows;   // [slots]
  float *h, *c;      // [slots][H]
  int32_t* items;    // [slots][padded_items(n)]
  int32_t* lists;    // [2][slots] numbers in the tile
  int32_t* choices;  // [slots] positions that the samples have just chosen

  __device__ __forceinline__ explicit DecodeTree(const DecodeArgs& args) {
    const int slots = args.tree_samples, padded = padded_items(args.n);
    rows = reinterpret_cast<PushedRow*>(args.tree + blockIdx.x * tree_bytes(args.n, slots));
    h = reinterpret_cast<float*>(rows + slots);
    c = h + static_cast<int64_t>(slots) * kHidden;
    items = reinterpret_cast<int32_t*>(c + static_cast<int64_t>(slots) * kHidden);
    lists = items + static_cast<int64_t>(slots) * padded;
    choices = lists + 2 * slots;
  }
  __device__ __forceinline__ int32_t* samples(const DecodeArgs& args, bool flipped) const {
    return lists + (flipped ? args.tree_samples : 0);
  }
};

// Whether the tile's rollouts share prefixes; else each of them has a row of its own.
__device__ __forceinline__ bool shares_prefixes(const DecodeArgs& args, const DecodeTile& tile) {
  return args.tree != nullptr && tile.sequence_step == 0;
}

// ---------------------------------------------------------------------------- one row, by its half-warp

// Made anew: else every address of the row is kept for all steps.
__device__ __forceinline__ int own_row() { return static_cast<int>(made_here(threadIdx.x) / kHalfWarp); }
__device__ __forceinline__ int sequence_of(const DecodeTile& tile, int row) {
  return tile.sequence + row * tile.sequence_step;
}

// [projections][n][H]
__device__ __forceinline__ int64_t references_size(const DecodeArgs& args) {
  return static_cast<int64_t>(args.projections.count) * args.n * kHidden;
}
__device__ __forceinline__ const float* references_of(const DecodeArgs& args, int sequence) {
  return args.references + sequence * references_size(args);
}

// The rules as they stand, made anew where they are asked: registers are scarce in between.
template <typename Rules>
__device__ __forceinline__ Rules rules_of(const DecodeArgs& args, const DecodeTile& tile,
                                          const DecodeMemory& memory) {
  if constexpr (Rules::kHasCapacity) {
    return Rules::make(
        args.rules.inputs(sequence_of(tile, own_row()), args.n, memory.rows[own_row()].capacity_left));
  } else {
    return Rules::make({});
  }
}

// How many rows begin: one of all the tile's samples where they share prefixes.
__device__ __forceinline__ int rows_at_start(const DecodeTile& tile, bool shares) {
  return shares ? 1 : tile.rows;
}

// Number in the tile of the row's i-th sample.
__device__ __forceinline__ int sample_of(const DecodeArgs& args, const DecodeMemory& memory, bool shares,
                                         int i) {
  const DecodeRow& row = memory.rows[own_row()];
  return shares ? DecodeTree(args).samples(args, row.flipped)[row.begin + i] : row.begin + i;
}

// A half-warp without a row has nothing to choose.
template <typename Rules>
__device__ __forceinline__ int start_rollout(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                             bool shares, const DecodeMemory& memory) {
  const int row = own_row();
  int remaining = 0;
  if (w.lane == 0) {
    DecodeRow& state = memory.rows[row];
    state = {};
    state.last = state.slot = -1;
    const bool begins = row < rows_at_start(tile, shares);
    int32_t* items = memory.items + row * memory.padded;
    for (int j = begins ? args.n : 0; j < memory.padded; ++j) items[j] = 0;
    if (begins) {
      state.begin = static_cast<uint16_t>(row);
      state.samples = static_cast<uint16_t>(shares ? tile.rows : 1);
      if constexpr (Rules::kHasCapacity) state.capacity_left = args.rules.capacities[sequence_of(tile, row)];
      remaining = initial_remaining(rules_of<Rules>(args, tile, memory), items, args.n);
    }
    state.remaining = remaining;
  }
  __syncwarp(w.mask);
  remaining = __shfl_sync(w.mask, remaining, 0, kHalfWarp);
  return remaining;
}

struct Softmax {
  float largest;    // logit
  float log_total;  // log of the last running sum
};

// prefix: exp(logit - max) -> running sums in list order. Returns the entropy where it is wanted. By one
// lane.
__device__ __forceinline__ double accumulate_prefix(const float* logits, float largest, int count,
                                                    bool want_entropy, float* prefix) {
  float running = 0.0f;
  double weighted = 0.0;  // sum of e (logit - max)
#pragma unroll 4
  for (int j = 0; j < count; ++j) {
    const float e = prefix[j];
    if (want_entropy) weighted += static_cast<double>(e) * static_cast<double>(logits[j] - largest);
    running += e;
    prefix[j] = running;
  }
  return want_entropy ? static_cast<double>(log_f32(running)) - weighted / running : 0.0;
}

template <typename Rules>
__device__ __forceinline__ Prior<Rules> prior_of(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                                 const DecodeMemory& memory, int remaining) {
  const int at = own_row();
  const float* features = args.features + 2 * static_cast<int64_t>(sequence_of(tile, at)) * args.n;
  return prior_of(w, args.prior, tile.set, rules_of<Rules>(args, tile, memory),
                  {features, memory.items + at * memory.padded, remaining, memory.rows[at].last});
}

// totals[j]: the prior of the row's remaining item j; each lane stores what it will read.
template <typename Rules>
__device__ __forceinline__ void store_priors(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int remaining, float* totals) {
  const Prior<Rules> prior = prior_of<Rules>(w, args, tile, memory, remaining);
  for (int j = w.lane; j < remaining; j += kHalfWarp) totals[j] = prior.total(prior.step.items[j]);
}

// Scores relative to the first one's, `first` -> logits. totals: what store_priors() stored, of rules that
// look ahead: there are not registers for their prior and the logits at once.
template <typename Rules>
__device__ __forceinline__ PointerStatistics make_logits(HalfWarp w, const DecodeArgs& args,
                                                         const DecodeTile& tile, const DecodeMemory& memory,
                                                         int remaining, float first, const float* totals) {
  float* logits = memory.logits + own_row() * memory.padded;
  const AttentionWeights& p = args.attention;
  if constexpr (Rules::kLooksAhead) {
    return clipped_logits(w, logits, remaining, first, p.centre,
                          [&](int j, float t) { return fmaf(t, p.scale, totals[j]); });
  } else {
    const Prior<Rules> prior = prior_of<Rules>(w, args, tile, memory, remaining);
    return clipped_logits(w, logits, remaining, first, p.centre,
                          [&](int j, float t) { return prior.logit(t, p.scale, prior.step.items[j]); });
  }
}

// Logits and running sums of the row's remaining items.
template <typename Rules, Precision kPrecision, bool kShared>
__device__ __forceinline__ Softmax weigh_items(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                               const DecodeMemory& memory, int remaining) {
  const int at = own_row(), count = remaining;
  const AttentionWeights& p = args.attention;
  const float* bounds = args.bounds + 2 * static_cast<int64_t>(sequence_of(tile, at));
  const AttentionView view{kShared ? memory.references : references_of(args, sequence_of(tile, at)),
                           args.projections,
                           args.n,
                           bounds[0],
                           bounds[1],
                           p.glimpse_v.data + tile.set * p.glimpse_v.stride,
                           p.pointer_v.data + tile.set * p.pointer_v.stride,
                           p.glimpses};
  float* logits = memory.logits + at * memory.padded;
  float* prefix = memory.prefix + at * memory.padded;
  if constexpr (Rules::kLooksAhead) store_priors<Rules>(w, args, tile, memory, remaining, prefix);
  float query[kOwned];
  load_owned(w, memory.query + at * kHidden, query);
  const PointerScores scores = pointer_scores<kPrecision != Precision::kFp32>(
      w, view, query, memory.items + at * memory.padded, count, logits);
  const PointerStatistics statistics =
      make_logits<Rules>(w, args, tile, memory, remaining, scores.first, prefix);
  const float largest = largest_of(w, logits, count);
  exponentials(w, logits, count, largest, prefix);
  if (w.lane == 0) {
    DecodeRow& row = memory.rows[at];
    row.entropy += row.samples * accumulate_prefix(logits, largest, count, args.want_entropy, prefix);
    row.mean_logit += row.samples * static_cast<double>(statistics.mean_u);
    row.saturated += row.samples * static_cast<double>(statistics.saturated);
    row.direct += scores.direct;
    ++row.weighed;
  }
  __syncwarp(w.mask);
  return {largest, log_f32(prefix[count - 1])};
}

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

// What sample `sample` of the tile draws in this step.
__device__ __forceinline__ float uniform_of(const DecodeArgs& args, const DecodeTile& tile,
                                            const DecodeMemory& memory, int sample) {
  const int sequence = sequence_of(tile, own_row());
  const uint32_t first = args.first_samples == nullptr ? 0 : args.first_samples[sequence];
  const uint32_t index = tile.first + (tile.sequence_step == 0 ? sample : 0);
  return sampling_uniform(args.seed, args.instance_keys[sequence], first + index * args.sample_stride,
                          memory.rows[own_row()].taken);
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

// Position in the list; -1 when a forced order has ended, `count` when it asks for what cannot be chosen.
__device__ __forceinline__ int pick_position(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                             bool shares, const DecodeMemory& memory, int count) {
  const int at = own_row() * memory.padded;
  const int32_t* items = memory.items + at;
  if (args.mode == Decode::kForced) {
    const int32_t item = args.forced[(tile.result + sample_of(args, memory, shares, 0)) * args.n +
                                     memory.rows[own_row()].taken];
    return item < 0 ? -1 : first_position(w, count, [&](int j) { return items[j] == item; });
  }
  if (count == 1) return 0;
  if (args.mode == Decode::kGreedy) return greedy_position(w, memory.logits + at, items, count);
  const float u = uniform_of(args, tile, memory, sample_of(args, memory, shares, 0));
  return sampled_position(w, memory.prefix + at, count, u);
}

// After rules.step(items[position]): the new count. Looking for misfits is shared by the lanes, moving them
// is not.
template <typename Rules>
__device__ __forceinline__ int remove_chosen(HalfWarp w, const Rules& rules, const DecodeMemory& memory,
                                             int count, int position) {
  int32_t* items = memory.items + own_row() * memory.padded;
  bool misfit = false;
  if constexpr (Rules::kDropsItems) {
    for (int j = w.lane; j < count; j += kHalfWarp) misfit |= j != position && !rules.feasible(items[j]);
    misfit = __any_sync(w.mask, misfit) != 0;
  }
  __syncwarp(w.mask);
  int left = 0;
  if (w.lane == 0) {
    if constexpr (Rules::kHasCapacity) memory.rows[own_row()].capacity_left = rules.capacity_left;
    left = remove_item(items, count, position);
    if (misfit) left = filter_remaining(rules, items, left);
  }
  __syncwarp(w.mask);
  return __shfl_sync(w.mask, left, 0, kHalfWarp);
}

// log p of the choice.
__device__ __forceinline__ double gain_of(const DecodeMemory& memory, const Softmax& softmax, int position) {
  const float logit = memory.logits[own_row() * memory.padded + position];
  return static_cast<double>((logit - softmax.largest) - softmax.log_total);
}

// The choice of all samples of the row, made among `remaining` items; `remaining` is 0 when they ended.
template <typename Rules>
__device__ __forceinline__ void take_choice(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                            bool shares, const DecodeMemory& memory, int position,
                                            double gain, int& remaining) {
  const int row = own_row(), count = remaining, step = memory.rows[row].taken;
  const int32_t item = memory.items[row * memory.padded + position];
  Rules rules = rules_of<Rules>(args, tile, memory);
  remaining = 0;
  if (rules.ends(item)) return;  // the misfit is no part of the order, nor of its log p
  for (int i = w.lane; i < memory.rows[row].samples; i += kHalfWarp) {
    args.results.orders[(tile.result + sample_of(args, memory, shares, i)) * args.n + step] = item;
  }
  __syncwarp(w.mask);
  if (w.lane == 0) {
    DecodeRow& state = memory.rows[row];
    ++state.taken;
    state.last = item;
    state.input = reinterpret_cast<const float2*>(
        args.features)[static_cast<int64_t>(sequence_of(tile, row)) * args.n + item];
    if (count > 1) {
      state.log_prob += gain;
      ++state.learnt;
    }
  }
  rules.step(item);
  remaining = remove_chosen(w, rules, memory, count, position);
}

// ends[j]: where the samples that chose position j end, in the order of positions; in the place of the
// running sums. Their numbers go to the other list in that order.
__device__ __forceinline__ void sort_samples(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int count, int32_t* ends) {
  const DecodeTree tree(args);
  const DecodeRow& row = memory.rows[own_row()];
  const float* prefix = memory.prefix + own_row() * memory.padded;
  const int32_t* from = tree.samples(args, row.flipped) + row.begin;
  int32_t* to = tree.samples(args, !row.flipped) + row.begin;
  int32_t* choices = tree.choices + row.begin;
  for (int i = w.lane; i < row.samples; i += kHalfWarp) {
    choices[i] = sampled_position(prefix, count, uniform_of(args, tile, memory, from[i]));
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

// The samples draw and part. Those of one choice stay in the row, for each other choice a slot is filled.
// Returns the choice of those that stay.
__device__ __forceinline__ int part_samples(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                            const DecodeMemory& memory, const Softmax& softmax, int count) {
  const DecodeTree tree(args);
  const int at = own_row() * memory.padded;
  DecodeRow& row = memory.rows[own_row()];
  int32_t* const ends = reinterpret_cast<int32_t*>(memory.prefix + at);
  sort_samples(w, args, tile, memory, count, ends);
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
    int32_t* const items = tree.items + static_cast<int64_t>(slot) * memory.padded;
    for (int j = w.lane; j < count; j += kHalfWarp) items[j] = memory.items[at + j];
    if (w.lane == 0) {
      tree.rows[slot] = {row.log_prob,
                         gain_of(memory, softmax, position),
                         row.capacity_left,
                         count,
                         position,
                         row.taken,
                         static_cast<uint16_t>(row.begin + begin),
                         static_cast<uint16_t>(end - begin),
                         !row.flipped};
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

// One choice. The rollout's `remaining` is 0 when it ended.
template <typename Rules, Precision kPrecision, bool kShared>
__device__ __forceinline__ void choose(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                       bool shares, const DecodeMemory& memory, int& remaining) {
  const int count = remaining;
  DecodeRow& row = memory.rows[own_row()];
  Softmax softmax{};
  if (count > 1) softmax = weigh_items<Rules, kPrecision, kShared>(w, args, tile, memory, remaining);
  if (w.lane == 0) row.steps += row.samples;
  const int position = shares && count > 1 && row.samples > 1
                           ? part_samples(w, args, tile, memory, softmax, count)
                           : pick_position(w, args, tile, shares, memory, count);
  if (position < 0 || position == count) {
    if (position == count && w.lane == 0) row.infeasible = true;
    remaining = 0;
    return;
  }
  const double gain = count > 1 ? gain_of(memory, softmax, position) : 0.0;
  take_choice<Rules>(w, args, tile, shares, memory, position, gain, remaining);
}

// Does the host want the launch to end? It may have said so since the last question, and the half-warps of a
// block need not hear of it in the same step.
__device__ __forceinline__ bool is_stopped(HalfWarp w, const DecodeArgs& args) {
  if (args.stop == nullptr) return false;
  const int32_t stop = w.lane == 0 ? *static_cast<const volatile int32_t*>(args.stop) : 0;
  return __shfl_sync(w.mask, stop, 0, kHalfWarp) != 0;
}

// Nothing of the row's rollouts is kept.
__device__ __forceinline__ void give_up(HalfWarp w, const DecodeMemory& memory, int& remaining) {
  remaining = 0;
  if (w.lane != 0) return;
  DecodeRow& row = memory.rows[own_row()];
  const uint16_t begin = row.begin, samples = row.samples;
  const bool flipped = row.flipped;
  row = {};
  row.begin = begin, row.samples = samples, row.flipped = flipped;
  row.slot = -1;
  row.stopped = true;
}

__device__ __forceinline__ void fill_zero(HalfWarp w, float* begin, const float* end) {
  for (float* x = begin + 4 * w.lane; x < end; x += 4 * kHalfWarp) {
    *reinterpret_cast<float4*>(x) = float4{0.0f, 0.0f, 0.0f, 0.0f};
  }
}

// Zeros in the record where nothing was computed.
__device__ __forceinline__ void finish_record(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                              const DecodeRow& row) {
  const int n = args.n;
  const int64_t result = tile.result + own_row(), state = result * (n + 1), step = result * n;
  if (w.lane == 0) args.record.row_steps[result] = row.learnt;
  fill_zero(w, args.record.h + (state + row.weighed + 1) * kHidden,
            args.record.h + (state + n + 1) * kHidden);
  fill_zero(w, args.record.c + (state + row.weighed + 1) * kHidden,
            args.record.c + (state + n + 1) * kHidden);
  fill_zero(w, args.record.cells + (step + row.weighed) * kLstmCell,
            args.record.cells + (step + n) * kLstmCell);
  fill_zero(w, args.record.queries + (step + row.weighed) * kHidden,
            args.record.queries + (step + n) * kHidden);
}

// The end of the row's rollouts: the end of each order, cost and log p. An order that ended in what cannot be
// chosen, or a tour that ended early, has no log p and no cost. One that was given up costs more than all.
template <typename Rules>
__device__ __forceinline__ void finish_rollouts(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                                bool shares, const DecodeMemory& memory) {
  const int n = args.n;
  const DecodeRow& row = memory.rows[own_row()];
  __syncwarp(w.mask);
  for (int i = w.lane; i < row.samples; i += kHalfWarp) {
    const int64_t result = tile.result + sample_of(args, memory, shares, i);
    int32_t* order = args.results.orders + result * n;
    for (int step = row.taken; step < n; ++step) order[step] = -1;
    const bool whole = (Rules::kDropsItems || row.taken == n) && !row.infeasible && !row.stopped;
    const float* features = args.features + 2 * static_cast<int64_t>(sequence_of(tile, own_row())) * n;
    args.results.log_probs[result] = whole ? row.log_prob : nan("");
    args.results.costs[result] = whole ? Rules::cost(features, order, n) : row.stopped ? INFINITY : nan("");
  }
  if (args.record.h != nullptr) finish_record(w, args, tile, row);
}

// What follows a choice: those that need no network, and the end.
template <typename Rules, Precision kPrecision, bool kShared>
__device__ __forceinline__ void settle(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                       bool shares, const DecodeMemory& memory, int& remaining) {
  while (remaining == 1) {
    choose<Rules, kPrecision, kShared>(w, args, tile, shares, memory, remaining);
  }
  if (w.lane == 0) memory.rows[own_row()].remaining = remaining;
  if (remaining == 0) finish_rollouts<Rules>(w, args, tile, shares, memory);
}

// A choice that needs the network, or the end of it all.
template <typename Rules, Precision kPrecision, bool kShared>
__device__ __forceinline__ void advance(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                        bool shares, const DecodeMemory& memory, int& remaining) {
  if (is_stopped(w, args)) {
    give_up(w, memory, remaining);
  } else {
    choose<Rules, kPrecision, kShared>(w, args, tile, shares, memory, remaining);
  }
  settle<Rules, kPrecision, kShared>(w, args, tile, shares, memory, remaining);
}

// A waiting row's state and choice for a half-warp that has nothing to do; false: none waits.
template <typename Rules>
__device__ __forceinline__ bool pop_row(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                        const DecodeMemory& memory, int& remaining) {
  const DecodeTree tree(args);
  int slot = 0;
  if (w.lane == 0) {
    slot = atomicSub(&memory.block->pending, 1) - 1;
    if (slot < 0) atomicAdd(&memory.block->pending, 1);
  }
  slot = __shfl_sync(w.mask, slot, 0, kHalfWarp);
  if (slot < 0) return false;
  const PushedRow& from = tree.rows[slot];
  const int32_t* items = tree.items + static_cast<int64_t>(slot) * memory.padded;
  for (int j = w.lane; j < from.remaining; j += kHalfWarp)
    memory.items[own_row() * memory.padded + j] = items[j];
  if (w.lane == 0) {
    DecodeRow& row = memory.rows[own_row()];
    row.log_prob = from.log_prob;
    row.capacity_left = from.capacity_left;
    row.slot = slot;
    row.taken = from.taken;
    row.begin = from.begin;
    row.samples = from.samples;
    row.flipped = from.flipped;
    row.infeasible = row.stopped = false;
  }
  __syncwarp(w.mask);
  remaining = from.remaining;
  if (is_stopped(w, args)) {
    give_up(w, memory, remaining);
  } else {
    take_choice<Rules>(w, args, tile, true, memory, from.position, from.gain, remaining);
  }
  return true;
}

// A row that has finished takes what waits.
template <typename Rules, Precision kPrecision, bool kShared>
__device__ __forceinline__ void refill(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                       const DecodeMemory& memory, int& remaining) {
  while (remaining == 0 && pop_row<Rules>(w, args, tile, memory, remaining)) {
    settle<Rules, kPrecision, kShared>(w, args, tile, true, memory, remaining);
  }
}

// ---------------------------------------------------------------------------- eight rows, by their group

// One thread's unit of the group's rows.
struct DecodeGroup {
  int unit, first_row;
  float c[kTileRows];

  __device__ __forceinline__ DecodeGroup()
      : unit(static_cast<int>(threadIdx.x % kHidden)),
        first_row(static_cast<int>(threadIdx.x / kHidden) * kTileRows),
        c{} {}
};

__device__ __forceinline__ bool chooses(const DecodeMemory& memory, int row) {
  return memory.rows[row].remaining > 1;
}

// Does some of these 8 rows still choose?
__device__ __forceinline__ bool any_chooses(const DecodeMemory& memory, int first_row) {
  bool any = false;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) any |= chooses(memory, first_row + r);
  return any;
}

__device__ __forceinline__ bool group_chooses(const DecodeMemory& memory, const DecodeGroup& group) {
  return any_chooses(memory, group.first_row);
}

// Rollout of the group's row r.
__device__ __forceinline__ int64_t recorded_as(const DecodeTile& tile, const DecodeGroup& group, int r) {
  return tile.result + made_here(group.first_row) + r;
}

// What the encoder made of the sequence.
__device__ __forceinline__ void load_start(const DecodeArgs& args, const DecodeTile& tile, bool shares,
                                           const DecodeMemory& memory, DecodeGroup& group) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    float h = 0.0f, c = 0.0f;
    if (row < rows_at_start(tile, shares)) {
      const int64_t sequence = sequence_of(tile, row);
      h = args.start_h[sequence * args.start_stride + group.unit];
      c = args.start_c[sequence * kHidden + group.unit];
      if (args.record.h != nullptr) {
        const int64_t at = (tile.result + row) * (args.n + 1) * kHidden + group.unit;
        args.record.h[at] = h;
        args.record.c[at] = c;
      }
    }
    memory.h[row * kHidden + group.unit] = h;
    group.c[r] = c;
  }
}

// State t + 1 from state t and the item chosen in step t - 1; the first step has no input but start_bias.
__device__ __forceinline__ void step_network(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int step, DecodeGroup& group,
                                             float (&new_h)[kTileRows]) {
  const int unit = group.unit;
  const float* fold = args.fold.data + tile.set * args.fold.stride + unit;
  const SetArray& biases = step == 0 ? args.start_bias : args.bias;
  const float* bias = biases.data + tile.set * biases.stride + unit;
  float product[4][kTileRows];
  tile_multiply<4>(memory.h + group.first_row * kHidden, kHidden,
                   args.recurrent.data + tile.set * args.recurrent.stride + unit, kGates, product);
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    const float2 input = memory.rows[row].input;
    float gate[4];
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      const float sum = product[g][r] + bias[g * kHidden];
      gate[g] = step == 0 ? sum
                          : lstm_gate(product[g][r], bias[g * kHidden], fold[g * kHidden],
                                      fold[kGates + g * kHidden], input);
    }
    const LstmUnit cell = lstm_unit(gate[0], gate[1], gate[2], gate[3], group.c[r]);
    group.c[r] = cell.c;
    new_h[r] = cell.h;
    if (args.record.h == nullptr || !chooses(memory, row)) continue;
    const int64_t rollout = recorded_as(tile, group, r), state = rollout * (args.n + 1) + step + 1;
    args.record.h[state * kHidden + unit] = cell.h;
    args.record.c[state * kHidden + unit] = cell.c;
    store_lstm_cell(cell, args.record.cells + (rollout * args.n + step) * kLstmCell + unit);
  }
}

__device__ __forceinline__ void store_h(const DecodeMemory& memory, const DecodeGroup& group,
                                        const float (&h)[kTileRows]) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) memory.h[(group.first_row + r) * kHidden + group.unit] = h[r];
}

// Calls each(row, unit, place in memory.h, c) for the thread's units.
template <typename Each>
__device__ __forceinline__ void for_each_unit(DecodeGroup& group, const Each& each) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    each(row, group.unit, row * kHidden + group.unit, group.c[r]);
  }
}

__device__ __forceinline__ void make_queries(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int step, const DecodeGroup& group) {
  float product[1][kTileRows];
  tile_multiply<1>(memory.h + group.first_row * kHidden, kHidden,
                   args.query.data + tile.set * args.query.stride + group.unit, kHidden, product);
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    memory.query[row * kHidden + group.unit] = product[0][r];
    if (args.record.queries == nullptr || !chooses(memory, row)) continue;
    args.record.queries[(recorded_as(tile, group, r) * args.n + step) * kHidden + group.unit] = product[0][r];
  }
}

// ---------------------------------------------------------------------------- the same, on tensor cores

// Units and rows as gate_share() says, which is made anew where it is asked: c[2 p + r] is of pair p's r-th
// row.
template <Precision kPrecision, bool kWhole>
struct MmaGroup {
  float c[kTileRows] = {};
};

// A block of 32 rows makes its products for all of them.
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ bool group_chooses(const DecodeMemory& memory,
                                              const MmaGroup<kPrecision, kWhole>&) {
  return kWhole || any_chooses(memory, threadIdx.x / kHidden * kTileRows);
}

template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void store_h(const DecodeMemory& memory, const MmaGroup<kPrecision, kWhole>&,
                                        const float (&h)[kTileRows]) {
  const MmaShare share = gate_share<kWhole>();
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    memory.h[swizzled(share.row_of(at / 2, at % 2), share.unit_of(at / 2))] = h[at];
  }
}

// Rows that the tile does not have start as the first one.
template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void load_start(const DecodeArgs& args, const DecodeTile& tile, bool shares,
                                           const DecodeMemory& memory, MmaGroup<kPrecision, kWhole>& group) {
  const MmaShare share = gate_share<kWhole>();
  float h[kTileRows];
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    const int row = share.row_of(at / 2, at % 2), unit = share.unit_of(at / 2);
    const int64_t sequence = sequence_of(tile, row < rows_at_start(tile, shares) ? row : 0);
    h[at] = args.start_h[sequence * args.start_stride + unit];
    group.c[at] = args.start_c[sequence * kHidden + unit];
  }
  store_h(memory, group, h);
}

template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void step_network(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int step,
                                             MmaGroup<kPrecision, kWhole>& group, float (&new_h)[kTileRows]) {
  const SetArray& biases = step == 0 ? args.start_bias : args.bias;
  const MmaShare share = gate_share<kWhole>();
  float product[4][4];
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    if (at % 4 == 0) {
      multiply_gates<kPrecision, kWhole>(args.weight_hh.data + tile.set * args.weight_hh.stride, memory.h,
                                         at / 4, product);
    }
    const int pair = at / 2, r = at % 2, unit = share.unit_of(pair);
    const float* fold = args.fold.data + tile.set * args.fold.stride + unit;
    const float* bias = biases.data + tile.set * biases.stride + unit;
    const float2 input = memory.rows[share.row_of(pair, r)].input;  // zeros before the first choice
    float gate[4];
#pragma unroll
    for (int g = 0; g < 4; ++g) {
      const float sum = product[2 * (pair % 2) + g / 2][g % 2 * 2 + r];
      gate[g] = lstm_gate(sum, bias[g * kHidden], fold[g * kHidden], fold[kGates + g * kHidden], input);
    }
    const LstmUnit cell = lstm_unit(gate[0], gate[1], gate[2], gate[3], group.c[at]);
    group.c[at] = cell.c;
    new_h[at] = cell.h;
  }
}

template <Precision kPrecision, bool kWhole, typename Each>
__device__ __forceinline__ void for_each_unit(MmaGroup<kPrecision, kWhole>& group, const Each& each) {
  const MmaShare share = gate_share<kWhole>();
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    const int row = share.row_of(at / 2, at % 2), unit = share.unit_of(at / 2);
    each(row, unit, swizzled(row, unit), group.c[at]);
  }
}

template <Precision kPrecision, bool kWhole>
__device__ __forceinline__ void make_queries(const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int,
                                             const MmaGroup<kPrecision, kWhole>&) {
  const MmaShare share = query_share<kWhole>();
  float product[2][4];
  multiply_queries<kPrecision, kWhole>(args.query_weight.data + tile.set * args.query_weight.stride, memory.h,
                                       product);
#pragma unroll
  for (int p = 0; p < 2; ++p) {
#pragma unroll
    for (int i = 0; i < 4; ++i) {
      const int row = share.row_of(p, i % 2), unit = share.unit_of(p) + i / 2 * 8;
      memory.query[row * kHidden + unit] = product[p][i];
    }
  }
}

// ---------------------------------------------------------------------------- the block

// States go to the slots that the rows have just filled, and come from those that they have emptied.
template <typename Group>
__device__ __forceinline__ void save_pushed(const DecodeArgs& args, const DecodeMemory& memory,
                                            Group& group) {
  const DecodeTree tree(args);
  for_each_unit(group, [&](int row, int unit, int place, const float& c) {
    const DecodeRow& from = memory.rows[row];
    for (int i = 0; i < from.pushed; ++i) {
      const int64_t to = static_cast<int64_t>(from.first_pushed + i) * kHidden + unit;
      tree.h[to] = memory.h[place];
      tree.c[to] = c;
    }
  });
}

template <typename Group>
__device__ __forceinline__ void load_popped(const DecodeArgs& args, const DecodeMemory& memory,
                                            Group& group) {
  const DecodeTree tree(args);
  for_each_unit(group, [&](int row, int unit, int place, float& c) {
    const int slot = memory.rows[row].slot;
    if (slot < 0) return;
    const int64_t from = static_cast<int64_t>(slot) * kHidden + unit;
    memory.h[place] = tree.h[from];
    c = tree.c[from];
  });
}

__device__ __forceinline__ void copy_references(const DecodeArgs& args, const DecodeTile& tile,
                                                const DecodeMemory& memory) {
  const float4* const from = reinterpret_cast<const float4*>(references_of(args, tile.sequence));
  float4* const to = reinterpret_cast<float4*>(memory.references);
  for (int64_t at = threadIdx.x; at < references_size(args) / 4; at += blockDim.x) to[at] = from[at];
}

__device__ __forceinline__ PolicyStatistics sum_statistics(const DecodeMemory& memory, int rows) {
  PolicyStatistics sum;
  for (int r = 0; r < rows; ++r) {
    const DecodeRow& row = memory.rows[r];
    sum.entropy += row.entropy;
    sum.mean_logit += row.mean_logit;
    sum.saturated += row.saturated;
    sum.steps += row.steps;
    sum.evaluations += row.weighed;
    sum.direct_rows += row.direct;
  }
  return sum;
}

// The tile's samples begin in one row.
__device__ __forceinline__ void plant_tree(const DecodeArgs& args, const DecodeTile& tile) {
  const DecodeTree tree(args);
  for (int i = threadIdx.x; i < tile.rows; i += blockDim.x) tree.samples(args, false)[i] = i;
  __syncthreads();
}

// kShared: the tile's references are in shared memory.
template <typename Rules, Precision kPrecision, bool kWhole, bool kShared>
__device__ __forceinline__ void decode_tile(const DecodeArgs& args, const DecodeTile& tile,
                                            const DecodeMemory& memory) {
  const HalfWarp w = this_half_warp();
  const bool shares = shares_prefixes(args, tile);
  if (shares) plant_tree(args, tile);
  int remaining = start_rollout<Rules>(w, args, tile, shares, memory);
  if constexpr (kShared) copy_references(args, tile, memory);
  if (memory.rows[own_row()].samples > 0)
    settle<Rules, kPrecision, kShared>(w, args, tile, shares, memory, remaining);
  std::conditional_t<kPrecision == Precision::kFp32, DecodeGroup, MmaGroup<kPrecision, kWhole>> group;
  load_start(args, tile, shares, memory, group);
  for (int step = 0; __syncthreads_or(remaining > 1) != 0;
       step = kPrecision == Precision::kFp32 ? step + 1 : 1) {
    if (shares) {
      load_popped(args, memory, group);
      __syncthreads();
    }
    if (w.lane == 0) {
      memory.rows[own_row()].slot = -1;
      memory.rows[own_row()].pushed = 0;
    }
    const bool busy = group_chooses(memory, group);
    float new_h[kTileRows];
    if (busy) step_network(args, tile, memory, step, group, new_h);
    __syncthreads();
    if (busy) store_h(memory, group, new_h);
    __syncthreads();
    if (busy) make_queries(args, tile, memory, step, group);
    __syncthreads();
    if (remaining > 1) advance<Rules, kPrecision, kShared>(w, args, tile, shares, memory, remaining);
    if (!shares) continue;
    __syncthreads();
    save_pushed(args, memory, group);
    refill<Rules, kPrecision, kShared>(w, args, tile, memory, remaining);
  }
}

// Where tensor cores do not have 32 rows, blocks are smaller and their threads may take more than 128
// registers.
constexpr int decode_threads(Precision precision, bool whole) {
  return precision == Precision::kFp32 || whole ? kMaxDecodeThreads : kMaxDecodeThreads - kHidden;
}

// references_fit: the launch has shared memory for the references of one sequence. kWhole: blocks have 32
// rows, which makes a difference on tensor cores only.
template <typename Rules, Precision kPrecision, bool kWhole>
__global__ void __launch_bounds__(decode_threads(kPrecision, kWhole),
                                  1)  // 1: else nvcc spills to fit two blocks
    decode_kernel(DecodeArgs args, bool references_fit) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const int rows = kWhole ? kMaxDecodeRows : blockDim.x / kHalfWarp;
  const DecodeMemory memory(shared, rows, args.n);
  if (threadIdx.x == 0) memory.block->index = static_cast<int32_t>(blockIdx.x);
  __syncthreads();
  while (memory.block->index < args.tile_count) {
    if (threadIdx.x == 0) {
      memory.block->tile = args.tiles[memory.block->index];
      memory.block->pending = 0;
    }
    __syncthreads();
    const DecodeTile& tile = memory.block->tile;
    if (references_fit && tile.sequence_step == 0) {
      decode_tile<Rules, kPrecision, kWhole, true>(args, tile, memory);
    } else {
      decode_tile<Rules, kPrecision, kWhole, false>(args, tile, memory);
    }
    if (threadIdx.x == 0) {
      args.results.statistics[memory.block->index] = sum_statistics(memory, rows);
      memory.block->index += static_cast<int32_t>(gridDim.x);
    }
    __syncthreads();  // the next tile's rows go over these
  }
}

namespace {

using Kernel = void (*)(DecodeArgs, bool);

Kernel kernel_of(const DecodeArgs& args) {
  return with_rules(args.problem, [&]<typename Rules>() {
    return with_precision(args.precision, [&]<Precision kPrecision>() -> Kernel {
      if constexpr (kPrecision == Precision::kFp32) {
        return decode_kernel<Rules, kPrecision, false>;
      } else {
        return args.tile_rows == kMaxDecodeRows ? decode_kernel<Rules, kPrecision, true>
                                                : decode_kernel<Rules, kPrecision, false>;
      }
    });
  });
}

int64_t shared_limit() {
  int device = 0, bytes = 0;
  require(cudaGetDevice(&device), "current device");
  require(cudaDeviceGetAttribute(&bytes, cudaDevAttrMaxSharedMemoryPerBlockOptin, device),
          "shared memory limit");
  return bytes;
}

}  // namespace

int decode_tile_rows(int n, bool few) {
  const int64_t limit = shared_limit();
  int rows = few ? kTileRows : kMaxDecodeRows;
  while (rows > 0 && rows * decode_row_bytes(n) + kDecodeBlockBytes > limit) rows -= kTileRows;
  return rows;
}

int decode_blocks(int tile_rows) {
  int device = 0, multiprocessors = 0;
  require(cudaGetDevice(&device), "current device");
  require(cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, device),
          "multiprocessors");
  return multiprocessors * (kMaxDecodeRows / tile_rows);
}

int64_t decode_tree_bytes(int n, int samples) { return tree_bytes(n, samples); }

void decode(const DecodeArgs& args, cudaStream_t stream) {
  if (args.tile_count == 0) return;
  const int64_t rows = args.tile_rows * decode_row_bytes(args.n) + kDecodeBlockBytes;
  const int64_t with_references = rows + decode_reference_bytes(args.n, args.projections.count);
  const bool fit = with_references <= shared_limit();
  const dim3 threads(args.tile_rows * kHalfWarp);
  const dim3 blocks(args.tree == nullptr ? args.tile_count
                                         : std::min(args.tile_count, decode_blocks(args.tile_rows)));
  if (args.precision != Precision::kFp32 && args.record.h != nullptr) {
    throw std::invalid_argument("decode: activations are recorded in fp32 only");
  }
  launch(kernel_of(args), blocks, threads, fit ? with_references : rows, stream, args, fit);
}

}  // namespace pointsman::cuda
