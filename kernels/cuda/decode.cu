// SPDX-License-Identifier: Apache-2.0
// The persistent decode kernel. A block takes a tile of rollouts ("rows") through all steps. It has 128
// threads for every 8 rows: in the products thread t makes unit t % 128 of the 8 rows of group t / 128, whose
// c it keeps in registers; in the attention half-warp w owns row w. A step is
//   h, c = cell(h, c, chosen item);  query = W_q h;  logits, choice, list of remaining items,
// with block barriers between. The last item of a list needs no network; rows that have finished wait for the
// others, groups of 8 rows that have finished make no products. Between two steps a half-warp asks whether
// the host wants an end: a read from the L2, some 500 clocks beside the 20,500 of its products.
//
// Shared memory: h and query, 2 x 512 B a row; logits, running sums and the list, 12 B a row and item (items
// rounded up to 16); when all rows are of one sequence and it fits, that sequence's references, 512 B an item
// and projection. 32 rows of n = 100 with three projections: 231,936 B.
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

// A row's results so far, written by lane 0 of its half-warp.
struct DecodeRow {
  double log_prob, entropy, mean_logit, saturated;
  double capacity_left;  // of rules with capacities
  float2 input;          // features of the item chosen last
  int32_t remaining;     // items to choose from; below two the row needs no more network
  int32_t steps;         // choices made
  int32_t taken;         // of them part of the order
  int32_t weighed;       // made among two items or more
  int32_t learnt;        // both
  int32_t direct;        // steps with a row outside the factored tanh's range
  int32_t last;          // item chosen last; -1: none
  bool infeasible;       // a forced order asked for what cannot be chosen
  bool stopped;          // before its end
};
static_assert(kTileRows * sizeof(DecodeRow) % sizeof(float4) == 0);  // the references follow them

POINTSMAN_HOST_DEVICE constexpr int padded_items(int n) { return (n + 15) / 16 * 16; }
POINTSMAN_HOST_DEVICE constexpr int64_t decode_reference_bytes(int n, int projections) {
  return static_cast<int64_t>(projections) * n * kHidden * 4;
}
POINTSMAN_HOST_DEVICE constexpr int64_t decode_row_bytes(int n) {
  return (2 * kHidden + 3 * static_cast<int64_t>(padded_items(n))) * 4 +
         static_cast<int64_t>(sizeof(DecodeRow));
}

// The block's shared memory.
struct DecodeMemory {
  int padded;
  float* h;           // [rows][H]
  float* query;       // [rows][H]
  float* logits;      // [rows][padded]
  float* prefix;      // [rows][padded]
  int32_t* items;     // [rows][padded] the remaining ones first; 0 behind the n-th
  DecodeRow* rows;    // [rows]
  float* references;  // [projections][n][H], or nothing

  __device__ __forceinline__ DecodeMemory(float* shared, int row_count, int n) : padded(padded_items(n)) {
    h = shared;
    query = h + row_count * kHidden;
    logits = query + row_count * kHidden;
    prefix = logits + row_count * padded;
    items = reinterpret_cast<int32_t*>(prefix + row_count * padded);
    rows = reinterpret_cast<DecodeRow*>(items + row_count * padded);
    references = reinterpret_cast<float*>(rows + row_count);
  }
};

// ---------------------------------------------------------------------------- one row, by its half-warp

// What all lanes hold in registers; the rest of a row's state is a DecodeRow.
struct DecodeRollout {
  int remaining = 0;  // items to choose from
  int step = 0;       // of the next choice
};

__device__ __forceinline__ int own_row() { return threadIdx.x / kHalfWarp; }
__device__ __forceinline__ int sequence_of(const DecodeTile& tile, int row) {
  return tile.sequence + row * tile.sequence_step;
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

// A half-warp without a row has nothing to choose.
template <typename Rules>
__device__ __forceinline__ DecodeRollout start_rollout(HalfWarp w, const DecodeArgs& args,
                                                       const DecodeTile& tile, const DecodeMemory& memory) {
  const int row = own_row();
  DecodeRollout rollout;
  if (w.lane == 0) {
    memory.rows[row] = {};
    memory.rows[row].last = -1;
    if (row < tile.rows) {
      if constexpr (Rules::kHasCapacity)
        memory.rows[row].capacity_left = args.rules.capacities[sequence_of(tile, row)];
      int32_t* items = memory.items + row * memory.padded;
      for (int j = args.n; j < memory.padded; ++j) items[j] = 0;
      rollout.remaining = initial_remaining(rules_of<Rules>(args, tile, memory), items, args.n);
    }
    memory.rows[row].remaining = rollout.remaining;
  }
  __syncwarp(w.mask);
  rollout.remaining = __shfl_sync(w.mask, rollout.remaining, 0, kHalfWarp);
  return rollout;
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
                                                 const DecodeMemory& memory, const DecodeRollout& rollout) {
  const int at = own_row();
  const float* features = args.features + 2 * static_cast<int64_t>(sequence_of(tile, at)) * args.n;
  return prior_of(w, args.prior, tile.set, rules_of<Rules>(args, tile, memory),
                  {features, memory.items + at * memory.padded, rollout.remaining, memory.rows[at].last});
}

// totals[j]: the prior of the row's remaining item j; each lane stores what it will read.
template <typename Rules>
__device__ __forceinline__ void store_priors(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, const DecodeRollout& rollout,
                                             float* totals) {
  const Prior<Rules> prior = prior_of<Rules>(w, args, tile, memory, rollout);
  for (int j = w.lane; j < rollout.remaining; j += kHalfWarp) totals[j] = prior.total(prior.step.items[j]);
}

// Scores relative to the first one's, `first` -> logits. totals: what store_priors() stored, of rules that
// look ahead: there are not registers for their prior and the logits at once.
template <typename Rules>
__device__ __forceinline__ PointerStatistics make_logits(HalfWarp w, const DecodeArgs& args,
                                                         const DecodeTile& tile, const DecodeMemory& memory,
                                                         const DecodeRollout& rollout, float first,
                                                         const float* totals) {
  float* logits = memory.logits + own_row() * memory.padded;
  const AttentionWeights& p = args.attention;
  if constexpr (Rules::kLooksAhead) {
    return clipped_logits(w, logits, rollout.remaining, first, p.centre,
                          [&](int j, float t) { return fmaf(t, p.scale, totals[j]); });
  } else {
    const Prior<Rules> prior = prior_of<Rules>(w, args, tile, memory, rollout);
    return clipped_logits(w, logits, rollout.remaining, first, p.centre,
                          [&](int j, float t) { return prior.logit(t, p.scale, prior.step.items[j]); });
  }
}

// Logits and running sums of the row's remaining items.
template <typename Rules, Precision kPrecision>
__device__ __forceinline__ Softmax weigh_items(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                               const float* references, const DecodeMemory& memory,
                                               const DecodeRollout& rollout) {
  const int at = own_row(), count = rollout.remaining;
  const AttentionWeights& p = args.attention;
  const float* bounds = args.bounds + 2 * static_cast<int64_t>(sequence_of(tile, at));
  const AttentionView view{references,
                           args.projections,
                           args.n,
                           bounds[0],
                           bounds[1],
                           p.glimpse_v.data + tile.set * p.glimpse_v.stride,
                           p.pointer_v.data + tile.set * p.pointer_v.stride,
                           p.glimpses};
  float* logits = memory.logits + at * memory.padded;
  float* prefix = memory.prefix + at * memory.padded;
  if constexpr (Rules::kLooksAhead) store_priors<Rules>(w, args, tile, memory, rollout, prefix);
  float query[kOwned];
  load_owned(w, memory.query + at * kHidden, query);
  const PointerScores scores = pointer_scores<kPrecision != Precision::kFp32>(
      w, view, query, memory.items + at * memory.padded, count, logits);
  const PointerStatistics statistics =
      make_logits<Rules>(w, args, tile, memory, rollout, scores.first, prefix);
  const float largest = largest_of(w, logits, count);
  exponentials(w, logits, count, largest, prefix);
  if (w.lane == 0) {
    DecodeRow& row = memory.rows[at];
    row.entropy += accumulate_prefix(logits, largest, count, args.want_entropy, prefix);
    row.mean_logit += static_cast<double>(statistics.mean_u);
    row.saturated += static_cast<double>(statistics.saturated);
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

// The first position whose running sum reaches u times the total.
__device__ __forceinline__ int sampled_position(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                                const float* prefix, int count, int step) {
  const int row = own_row(), sequence = sequence_of(tile, row);
  const uint32_t first = args.first_samples == nullptr ? 0 : args.first_samples[sequence];
  const uint32_t index = tile.first + (tile.sequence_step == 0 ? row : 0);
  const float u =
      sampling_uniform(args.seed, args.instance_keys[sequence], first + index * args.sample_stride, step);
  const float target = u * prefix[count - 1];
  return min(first_position(w, count, [&](int j) { return !(prefix[j] < target); }), count - 1);
}

// Position in the list; -1 when a forced order has ended, `count` when it asks for what cannot be chosen.
__device__ __forceinline__ int pick_position(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                             const DecodeMemory& memory, int count, int step) {
  const int row = own_row(), at = row * memory.padded;
  const int32_t* items = memory.items + at;
  if (args.mode == Decode::kForced) {
    const int32_t item = args.forced[(tile.result + row) * args.n + step];
    return item < 0 ? -1 : first_position(w, count, [&](int j) { return items[j] == item; });
  }
  if (count == 1) return 0;
  if (args.mode == Decode::kGreedy) return greedy_position(w, memory.logits + at, items, count);
  return sampled_position(w, args, tile, memory.prefix + at, count, step);
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

// One choice. The rollout's `remaining` is 0 when it ended.
template <typename Rules, Precision kPrecision>
__device__ __forceinline__ void choose(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                       const float* references, const DecodeMemory& memory,
                                       DecodeRollout& rollout) {
  const int row = own_row(), count = rollout.remaining, step = rollout.step++;
  Softmax softmax{};
  if (count > 1) softmax = weigh_items<Rules, kPrecision>(w, args, tile, references, memory, rollout);
  const int position = pick_position(w, args, tile, memory, count, step);
  rollout.remaining = 0;
  if (position == count && w.lane == 0) memory.rows[row].infeasible = true;
  if (position < 0 || position == count) return;
  int32_t* items = memory.items + row * memory.padded;
  const int32_t item = items[position];
  Rules rules = rules_of<Rules>(args, tile, memory);
  if (rules.ends(item)) return;  // the misfit is no part of the order, nor of its log p
  if (w.lane == 0) {
    DecodeRow& state = memory.rows[row];
    ++state.taken;
    state.last = item;
    state.input = reinterpret_cast<const float2*>(
        args.features)[static_cast<int64_t>(sequence_of(tile, row)) * args.n + item];
    args.results.orders[(tile.result + row) * args.n + step] = item;
    if (count > 1) {
      const float logit = memory.logits[row * memory.padded + position];
      state.log_prob += static_cast<double>((logit - softmax.largest) - softmax.log_total);
      ++state.learnt;
    }
  }
  rules.step(item);
  rollout.remaining = remove_chosen(w, rules, memory, count, position);
}

// A choice, and the one that needs no network when it leaves one item.
template <typename Rules, Precision kPrecision>
__device__ __forceinline__ void advance(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                        const float* references, const DecodeMemory& memory,
                                        DecodeRollout& rollout) {
  do {
    choose<Rules, kPrecision>(w, args, tile, references, memory, rollout);
  } while (rollout.remaining == 1);
  if (w.lane == 0) {
    memory.rows[own_row()].remaining = rollout.remaining;
    memory.rows[own_row()].steps = rollout.step;
  }
}

// Does the host want the launch to end? It may have said so since the last question, and the half-warps of a
// block need not hear of it in the same step.
__device__ __forceinline__ bool is_stopped(HalfWarp w, const DecodeArgs& args) {
  if (args.stop == nullptr) return false;
  const int32_t stop = w.lane == 0 ? *static_cast<const volatile int32_t*>(args.stop) : 0;
  return __shfl_sync(w.mask, stop, 0, kHalfWarp) != 0;
}

// Nothing of the rollout is kept.
__device__ __forceinline__ void give_up(HalfWarp w, const DecodeMemory& memory, DecodeRollout& rollout) {
  rollout.remaining = 0;
  if (w.lane != 0) return;
  memory.rows[own_row()] = {};
  memory.rows[own_row()].stopped = true;
}

__device__ __forceinline__ void fill_zero(HalfWarp w, float* begin, const float* end) {
  for (float* x = begin + 4 * w.lane; x < end; x += 4 * kHalfWarp) {
    *reinterpret_cast<float4*>(x) = float4{0.0f, 0.0f, 0.0f, 0.0f};
  }
}

// The end of the order, cost, log p, and zeros where nothing was computed. An order that ended in what cannot
// be chosen, or a tour that ended early, has no log p and no cost. One that was given up costs more than all.
template <typename Rules>
__device__ __forceinline__ void finish_rollout(HalfWarp w, const DecodeArgs& args, const DecodeTile& tile,
                                               const DecodeRow& row) {
  const int n = args.n;
  const int64_t result = tile.result + own_row();
  if (w.lane == 0) {
    int32_t* order = args.results.orders + result * n;
    for (int step = row.taken; step < n; ++step) order[step] = -1;
    const bool whole = (Rules::kDropsItems || row.taken == n) && !row.infeasible && !row.stopped;
    const float* features = args.features + 2 * static_cast<int64_t>(sequence_of(tile, own_row())) * n;
    args.results.log_probs[result] = whole ? row.log_prob : nan("");
    args.results.costs[result] = whole ? Rules::cost(features, order, n) : row.stopped ? INFINITY : nan("");
    if (args.record.row_steps != nullptr) args.record.row_steps[result] = row.learnt;
  }
  if (args.record.h == nullptr) return;
  const int64_t state = result * (n + 1), step = result * n;
  fill_zero(w, args.record.h + (state + row.weighed + 1) * kHidden,
            args.record.h + (state + n + 1) * kHidden);
  fill_zero(w, args.record.c + (state + row.weighed + 1) * kHidden,
            args.record.c + (state + n + 1) * kHidden);
  fill_zero(w, args.record.cells + (step + row.weighed) * kLstmCell,
            args.record.cells + (step + n) * kLstmCell);
  fill_zero(w, args.record.queries + (step + row.weighed) * kHidden,
            args.record.queries + (step + n) * kHidden);
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

// What the encoder made of the sequence.
__device__ __forceinline__ void load_start(const DecodeArgs& args, const DecodeTile& tile,
                                           const DecodeMemory& memory, DecodeGroup& group) {
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const int row = group.first_row + r;
    float h = 0.0f, c = 0.0f;
    if (row < tile.rows) {
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
    const int64_t rollout = tile.result + row, state = rollout * (args.n + 1) + step + 1;
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
    args.record.queries[((tile.result + row) * args.n + step) * kHidden + group.unit] = product[0][r];
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
__device__ __forceinline__ void load_start(const DecodeArgs& args, const DecodeTile& tile,
                                           const DecodeMemory& memory, MmaGroup<kPrecision, kWhole>& group) {
  const MmaShare share = gate_share<kWhole>();
  float h[kTileRows];
#pragma unroll
  for (int at = 0; at < kTileRows; ++at) {
    const int row = share.row_of(at / 2, at % 2), unit = share.unit_of(at / 2);
    const int64_t sequence = sequence_of(tile, row < tile.rows ? row : 0);
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

__device__ __forceinline__ void copy_references(const float* from, int64_t count, float* to) {
  for (int64_t at = threadIdx.x; at < count / 4; at += blockDim.x) {
    reinterpret_cast<float4*>(to)[at] = reinterpret_cast<const float4*>(from)[at];
  }
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

// kShared: the tile's references are in shared memory.
template <typename Rules, Precision kPrecision, bool kWhole, bool kShared>
__device__ __forceinline__ void decode_tile(const DecodeArgs& args, const DecodeTile& tile,
                                            const DecodeMemory& memory) {
  const HalfWarp w = this_half_warp();
  DecodeRollout rollout = start_rollout<Rules>(w, args, tile, memory);
  const int64_t size = static_cast<int64_t>(args.projections.count) * args.n * kHidden;
  const float* references = args.references + sequence_of(tile, own_row() < tile.rows ? own_row() : 0) * size;
  if constexpr (kShared) {
    copy_references(references, size, memory.references);
    references = memory.references;
  }
  if (rollout.remaining == 1) advance<Rules, kPrecision>(w, args, tile, references, memory, rollout);
  std::conditional_t<kPrecision == Precision::kFp32, DecodeGroup, MmaGroup<kPrecision, kWhole>> group;
  load_start(args, tile, memory, group);
  for (int step = 0; __syncthreads_or(rollout.remaining > 1) != 0; ++step) {
    const bool busy = group_chooses(memory, group);
    float new_h[kTileRows];
    if (busy) step_network(args, tile, memory, step, group, new_h);
    __syncthreads();
    if (busy) store_h(memory, group, new_h);
    __syncthreads();
    if (busy) make_queries(args, tile, memory, step, group);
    __syncthreads();
    if (rollout.remaining < 2) continue;
    if (is_stopped(w, args)) {
      give_up(w, memory, rollout);
    } else {
      advance<Rules, kPrecision>(w, args, tile, references, memory, rollout);
    }
  }
  if (own_row() < tile.rows) finish_rollout<Rules>(w, args, tile, memory.rows[own_row()]);
  if (threadIdx.x == 0) args.results.statistics[blockIdx.x] = sum_statistics(memory, tile.rows);
}

// Where tensor cores do not have 32 rows, blocks are smaller and their threads may take more than 128
// registers.
constexpr int decode_threads(Precision precision, bool whole) {
  return precision == Precision::kFp32 || whole ? kMaxDecodeThreads : kMaxDecodeThreads - kHidden;
}

// references_fit: the launch has shared memory for the references of one sequence. kWhole: the tile has 32
// rows, which makes a difference on tensor cores only.
template <typename Rules, Precision kPrecision, bool kWhole>
__global__ void __launch_bounds__(decode_threads(kPrecision, kWhole),
                                  1)  // 1: else nvcc spills to fit two blocks
    decode_kernel(DecodeArgs args, bool references_fit) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const DecodeTile& tile = args.tiles[blockIdx.x];
  const DecodeMemory memory(shared, blockDim.x / kHalfWarp, args.n);
  if (references_fit && tile.sequence_step == 0) {
    decode_tile<Rules, kPrecision, kWhole, true>(args, tile, memory);
  } else {
    decode_tile<Rules, kPrecision, kWhole, false>(args, tile, memory);
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
  while (rows > 0 && rows * decode_row_bytes(n) > limit) rows -= kTileRows;
  return rows;
}

void decode(const DecodeArgs& args, cudaStream_t stream) {
  if (args.tile_count == 0) return;
  const int64_t rows = args.tile_rows * decode_row_bytes(args.n);
  const int64_t with_references = rows + decode_reference_bytes(args.n, args.projections.count);
  const bool fit = with_references <= shared_limit();
  const dim3 blocks(args.tile_count), threads(args.tile_rows * kHalfWarp);
  if (args.precision != Precision::kFp32 && args.record.h != nullptr) {
    throw std::invalid_argument("decode: activations are recorded in fp32 only");
  }
  launch(kernel_of(args), blocks, threads, fit ? with_references : rows, stream, args, fit);
}

}  // namespace pointsman::cuda
