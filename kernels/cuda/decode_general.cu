// SPDX-License-Identifier: Apache-2.0
// Decoding of problems that are not plain (kernels/common/rules.h): any number of features and of context,
// items that come back, orders longer than n. In fp32, with the CPU's bits. It serves every problem, at the
// price of speed: references stay in device memory, and rollouts share neither prefixes nor a cluster.
//
// A block of 128 threads takes a tile of up to 8 rollouts ("rows") through all steps. Thread t makes unit t
// of all rows' states and queries; half-warp w chooses for row w from the list that the rules let through.
#include <cmath>

#include "kernels/cuda/decode_general.h"
#include "kernels/cuda/decode_row.cuh"
#include "kernels/cuda/lstm_cell.cuh"
#include "kernels/cuda/tile_multiply.cuh"

namespace pointsman::cuda {

static_assert(kHidden == kTileRows * kHalfWarp);

// A row, written by lane 0 of its half-warp.
template <typename Rules>
struct GeneralRow {
  Rules rules;  // as they stand
  PolicyStatistics sums;
  double log_prob;
  int32_t taken;                                    // choices that are part of the order
  int32_t last;                                     // item chosen last; -1: none
  float input[Rules::kFeatures + Rules::kContext];  // of the decoder's next step
};

// The block's shared memory.
template <typename Rules>
struct GeneralMemory {
  static_assert(kTileRows * sizeof(GeneralRow<Rules>) % sizeof(float4) == 0);  // logits are read as float4

  int padded, words;        // a row's
  float *h, *query;         // [rows][H]
  GeneralRow<Rules>* rows;  // [rows]
  float *logits, *prefix;   // [rows][padded]
  int32_t* items;           // [rows][padded] what may be chosen; behind it some item
  uint32_t* rule_words;     // [rows][words]

  __device__ __forceinline__ GeneralMemory(float* shared, int n)
      : padded(padded_items(n)), words(Rules::words(n)) {
    h = shared;
    query = h + kTileRows * kHidden;
    rows = reinterpret_cast<GeneralRow<Rules>*>(query + kTileRows * kHidden);
    logits = reinterpret_cast<float*>(rows + kTileRows);
    prefix = logits + kTileRows * padded;
    items = reinterpret_cast<int32_t*>(prefix + kTileRows * padded);
    rule_words = reinterpret_cast<uint32_t*>(items + kTileRows * padded);
  }
};

template <typename Rules>
int64_t general_memory_bytes(int n) {
  const int64_t words = 2 * kHidden + 3 * int64_t{padded_items(n)} + Rules::words(n);
  return kTileRows * (words * 4 + int64_t{sizeof(GeneralRow<Rules>)});
}

enum class RolloutEnd { kOrdinary, kInfeasible, kStopped };  // kInfeasible: a forced order's

// A row's rollout, by its half-warp.
template <typename Rules>
struct GeneralRollout {
  HalfWarp w;
  const DecodeArgs& args;
  const DecodeTile& tile;
  int index;  // of the row in the tile
  GeneralRow<Rules>& row;
  float *logits, *prefix;
  int32_t* items;
  uint32_t* rule_words;

  __device__ __forceinline__ GeneralRollout(const DecodeArgs& args_, const DecodeTile& tile_,
                                            const GeneralMemory<Rules>& memory)
      : w(this_half_warp()),
        args(args_),
        tile(tile_),
        index(threadIdx.x / kHalfWarp),
        row(memory.rows[index]),
        logits(memory.logits + index * memory.padded),
        prefix(memory.prefix + index * memory.padded),
        items(memory.items + index * memory.padded),
        rule_words(memory.rule_words + index * memory.words) {}

  __device__ __forceinline__ int64_t sequence() const { return tile.sequence + index * tile.sequence_step; }
  __device__ __forceinline__ int64_t result() const { return tile.result + index; }
  __device__ __forceinline__ const float* features() const {
    return args.features + sequence() * args.n * Rules::kFeatures;
  }

  // Returns how many items the row chooses from; 0 where it has ended, or the tile does not have it.
  __device__ __forceinline__ int start() const {
    const bool exists = index < tile.rows;
    for (int i = w.lane; i < padded_items(args.n); i += kHalfWarp) items[i] = 0;
    for (int i = w.lane; i < Rules::words(args.n); i += kHalfWarp) rule_words[i] = 0;
    if (w.lane == 0) {
      row = {};
      row.last = -1;
      if (exists) {
        row.rules = Rules::make(args.rules.template inputs_of<Rules>(sequence(), args.n));
        row.rules.use_words(rule_words);
        row.rules.context(row.input + Rules::kFeatures);
      }
    }
    __syncwarp(w.mask);
    if (!exists) return 0;
    const int count = list_items(0, -1);
    if (count == 0) finish(RolloutEnd::kOrdinary);
    return count;
  }

  // What may be chosen, at the start (position -1) or after items[position] of `count`. Returns how many.
  __device__ __forceinline__ int list_items(int count, int position) const {
    const int n = args.n;
    const Rules rules = row.rules;
    if constexpr (Rules::kMonotone) {  // its order is a chain of swaps
      if (w.lane == 0) {
        count = position < 0 ? initial_remaining(rules, items, n)
                             : next_remaining(rules, items, count, position, n);
      }
      count = __shfl_sync(w.mask, count, 0, kHalfWarp);
    } else {  // list_feasible()
      count = list_all([&](int item) { return rules.feasible(item); });
      if constexpr (kHasLastResort<Rules>) {
        if (count == 0) count = list_all([&](int item) { return rules.last_resort(item); });
      }
    }
    __syncwarp(w.mask);
    return count;
  }

  // The items that may be listed, upward, 16 at a time. Returns how many.
  template <typename May>
  __device__ __forceinline__ int list_all(const May& may) const {
    int count = 0;
    for (int first = 0; first < args.n; first += kHalfWarp) {
      const int item = first + w.lane;
      const bool is_listed = item < args.n && may(item);
      const unsigned all = ballot_lanes(w, is_listed);
      if (is_listed) items[count + __popc(all & ((1u << w.lane) - 1))] = item;
      count += __popc(all);
    }
    return count;
  }

  // Logits and running sums of the row's items, from its query.
  __device__ __forceinline__ Softmax weigh(const float* queries, int count) const {
    const AttentionWeights& p = args.attention;
    const float* bounds = args.bounds + 2 * sequence();
    const int64_t references = sequence() * args.projections.count * args.n * kHidden;
    float query[kOwned];
    load_owned(w, queries + index * kHidden, query);
    const AttentionView<float> view{
        args.references + references, args.projections,         args.n,    bounds[0], bounds[1],
        p.glimpse_v.of(tile.set),     p.pointer_v.of(tile.set), p.glimpses};
    const PointerScores scores = pointer_scores(w, view, query, items, count, logits);
    const float mean = mean_of(logits, count);
    const Prior<Rules> prior =
        prior_of(args.prior, tile.set, row.rules, {features(), items, count, row.last});
    __syncwarp(w.mask);
    const int saturated = clipped_logits(w, logits, count, p.centre ? mean : -scores.first, {},
                                         [&](int j, float t) { return prior.logit(t, p.scale, items[j]); });
    const float largest = largest_of(w, logits, count);
    exponentials(w, logits, count, largest, prefix);
    if (w.lane == 0) {
      row.sums += {accumulate_prefix(logits, largest, count, args.want_entropy, prefix),
                   static_cast<double>(mean + scores.first),
                   static_cast<double>(static_cast<float>(saturated) / static_cast<float>(count)),
                   0,
                   1,
                   scores.direct};
    }
    __syncwarp(w.mask);
    return {largest, log_f32(prefix[count - 1])};
  }

  // Position of the mode's choice: -1 when a forced order has ended, `count` when it cannot be chosen.
  __device__ __forceinline__ int pick(int step, int count) const {
    if (args.mode == Decode::kForced) {
      const int32_t item = args.forced[result() * Rules::max_steps(args.n) + step];
      return item < 0 ? -1 : first_position(w, count, [&](int j) { return items[j] == item; });
    }
    if (count == 1) return 0;
    if (args.mode == Decode::kGreedy) return greedy_position(w, logits, items, count);
    const uint32_t first = args.first_samples == nullptr ? 0 : args.first_samples[sequence()];
    const uint32_t sample = tile.first + (tile.sequence_step == 0 ? index : 0);
    return sampled_position(w, prefix, count,
                            sampling_uniform(args.seed, args.instance_keys[sequence()],
                                             first + sample * args.sample_stride, step));
  }

  // The row's choice among `count` items. Returns how many there are for the next one; 0: it has ended.
  __device__ __forceinline__ int advance(const float* queries, int step, int count) const {
    if (is_stopped()) return finish(RolloutEnd::kStopped);
    Softmax softmax{};
    if (count > 1) softmax = weigh(queries, count);
    const int position = pick(step, count);
    if (w.lane == 0) ++row.sums.steps;
    // The item that ends an order is no part of it, nor of its log p.
    if (position < 0 || position >= count || row.rules.ends(items[position]))
      return finish(position < count ? RolloutEnd::kOrdinary : RolloutEnd::kInfeasible);
    take(softmax, step, count, position);
    const int left = list_items(count, position);
    return left > 0 ? left : finish(RolloutEnd::kOrdinary);
  }

  __device__ __forceinline__ void take(const Softmax& softmax, int step, int count, int position) const {
    const int32_t item = items[position];
    __syncwarp(w.mask);  // the rules have been read
    if (w.lane == 0) {
      if (count > 1)
        row.log_prob += static_cast<double>((logits[position] - softmax.largest) - softmax.log_total);
      args.results.orders[result() * Rules::max_steps(args.n) + step] = item;
      row.rules.step(item);
      row.last = item;
      row.taken = step + 1;
      for (int f = 0; f < Rules::kFeatures; ++f) row.input[f] = features()[item * Rules::kFeatures + f];
      row.rules.context(row.input + Rules::kFeatures);
    }
    __syncwarp(w.mask);
  }

  // Whether the host wants the launch to end.
  __device__ __forceinline__ bool is_stopped() const {
    const int32_t stop =
        args.stop != nullptr && w.lane == 0 ? *static_cast<const volatile int32_t*>(args.stop) : 0;
    return __shfl_sync(w.mask, stop, 0, kHalfWarp) != 0;
  }

  // The end of the order, cost and log p: none of an order that ended too early or in what cannot be chosen.
  // Of a rollout that was stopped nothing is kept. Returns 0.
  __device__ __forceinline__ int finish(RolloutEnd end) const {
    if (w.lane != 0) return 0;
    const int steps = Rules::max_steps(args.n);
    int32_t* const order = args.results.orders + result() * steps;
    if (end == RolloutEnd::kStopped) {
      row.taken = 0;
      row.sums = {};
    }
    for (int step = row.taken; step < steps; ++step) order[step] = -1;
    const bool whole =
        end == RolloutEnd::kOrdinary && row.rules.complete(row.taken, args.n) && !isnan(row.log_prob);
    args.results.log_probs[result()] = whole ? row.log_prob : nan("");
    args.results.costs[result()] = whole                         ? row.rules.cost(features(), order, steps)
                                   : end == RolloutEnd::kStopped ? INFINITY
                                                                 : nan("");
    return 0;
  }
};

// Unit t of all rows: h into shared memory, c.
template <typename Rules>
__device__ __forceinline__ void load_starts(const DecodeArgs& args, const DecodeTile& tile,
                                            const GeneralMemory<Rules>& memory, float (&c)[kTileRows]) {
  const int unit = threadIdx.x;
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    const bool exists = r < tile.rows;
    const int64_t sequence = tile.sequence + (exists ? r : 0) * tile.sequence_step;
    memory.h[r * kHidden + unit] = exists ? args.start_h[sequence * args.start_stride + unit] : 0.0f;
    c[r] = exists ? args.start_c[sequence * kHidden + unit] : 0.0f;
  }
}

// State step + 1 and its query, of all rows.
template <typename Rules>
__device__ __forceinline__ void make_states(const DecodeArgs& args, const DecodeTile& tile,
                                            const GeneralMemory<Rules>& memory, int step,
                                            float (&c)[kTileRows]) {
  const int unit = threadIdx.x;
  const float* bias = (step == 0 ? args.start_bias : args.bias).of(tile.set) + unit;
  const float* fold = args.fold.of(tile.set) + unit;
  float product[4][kTileRows];
  tile_multiply(memory.h, kHidden, WeightsInFours(args.recurrent.of(tile.set), kGates, unit), product);
  __syncthreads();
#pragma unroll
  for (int r = 0; r < kTileRows; ++r) {
    float gate[4] = {product[0][r], product[1][r], product[2][r], product[3][r]};
    add_inputs(bias, fold, memory.rows[r].input, Rules::kFeatures + Rules::kContext, gate);
    const LstmUnit cell = lstm_unit(gate[0], gate[1], gate[2], gate[3], c[r]);
    c[r] = cell.c;
    memory.h[r * kHidden + unit] = cell.h;
  }
  __syncthreads();
  const SquareShare share;
  float query[2][kSquareRows];
  multiply_square(memory.h, args.query.of(tile.set), share, query);
#pragma unroll
  for (int i = 0; i < 2 * kSquareRows; ++i) {
    memory.query[(share.row + i / 2) * kHidden + share.column + i % 2 * (kHidden / 2)] = query[i % 2][i / 2];
  }
  __syncthreads();
}

template <typename Rules>
__global__ void __launch_bounds__(kHidden, 1)  // 1: else nvcc spills to fit four blocks
    decode_general_kernel(DecodeArgs args) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const GeneralMemory<Rules> memory(shared, args.n);
  const DecodeTile tile = args.tiles[blockIdx.x];
  const GeneralRollout<Rules> rollout(args, tile, memory);
  float c[kTileRows];
  load_starts(args, tile, memory, c);
  int count = rollout.start();
  for (int step = 0; __syncthreads_or(count > 0) != 0; ++step) {
    make_states(args, tile, memory, step, c);
    if (count > 0) count = rollout.advance(memory.query, step, count);
  }
  if (threadIdx.x != 0) return;
  PolicyStatistics sum;
  for (int r = 0; r < tile.rows; ++r) sum += memory.rows[r].sums;
  args.results.statistics[blockIdx.x] = sum;
}

namespace {

struct GeneralKernel {
  void (*kernel)(DecodeArgs);
  int64_t (*bytes)(int n);  // of shared memory
};

GeneralKernel kernel_of(ProblemKind problem) {
  return with_rules(problem, [&]<typename Rules>() -> GeneralKernel {
    if constexpr (kIsPlain<Rules> || kIsOnHost<Rules>) {
      throw std::logic_error("decode_general: no kernel for this problem");
    } else {
      return {decode_general_kernel<Rules>, general_memory_bytes<Rules>};
    }
  });
}

}  // namespace

DecodeTiling general_decode_tiling(ProblemKind problem, int n) {
  const bool fits = kernel_of(problem).bytes(n) <= device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);
  return {fits ? kTileRows : 0, false, false};
}

void decode_general(const DecodeArgs& args, cudaStream_t stream) {
  if (args.precision != Precision::kFp32 || args.tree != nullptr || args.record.h != nullptr ||
      args.tiling.in_clusters) {
    throw std::invalid_argument("decode: this problem takes fp32 only, and no tree, record or cluster");
  }
  const GeneralKernel general = kernel_of(args.problem);
  launch(general.kernel, args.tile_count, kHidden, general.bytes(args.n), stream, args);
}

}  // namespace pointsman::cuda
