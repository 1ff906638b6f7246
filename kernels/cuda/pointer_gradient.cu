// SPDX-License-Identifier: Apache-2.0
// Backward of the pointer and its glimpses, all steps of all rows at once (algebra identity 7): the forward
// is computed again, tanh is never stored. A "pass" is one set of scores: the glimpses 0 .. glimpses - 1,
// then the pointer.
//
// list_choices_kernel: a warp a row; when each item was chosen, and the capacity before each step.
// step_gradients_kernel: a half-warp a (row, step), 8 a block; forward, then back to the gradients of the
//   scores and of the query.
// item_gradients_kernel: a half-warp a (sequence, projection, item), 8 a block; the sums over rows and steps,
//   in order (identity 9).
// sum_v_kernel: a block a sequence; gradients of v, over the items in order.
// sum_prior_kernel: a warp a sequence; gradients of the prior's weights, over rows and steps.
#include "kernels/common/rules.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/prior.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/tools/placement.h"

namespace pointsman::cuda {

inline constexpr int kGradientThreads = 128;
inline constexpr int kGradientHalfWarps = kGradientThreads / kHalfWarp;
inline constexpr int kMostPriors = 3;  // of any rules

// What the kernels hand to each other.
struct PointerGradientScratch {
  PointerGradientScratch(Placement& placement, size_t rows, size_t sequences, size_t n, size_t glimpses) {
    const size_t steps = rows * n, passes = glimpses + 1;
    chosen_at = placement.take<int32_t>(steps);
    capacity = placement.take<double>(steps);
    du = placement.take<float>(steps * passes * n);
    p = placement.take<float>(steps * glimpses * n);
    factors = placement.take<float>(steps * passes * kHidden);
    direct = placement.take<int32_t>(steps * passes);
    dout = placement.take<float>(steps * glimpses * kHidden);
    dv = placement.take<double>(sequences * n * 2 * kHidden);
    dprior = placement.take<double>(steps * kMostPriors);
  }

  int32_t* chosen_at;  // [rows][n] step that took the item; n: none
  double* capacity;    // [rows][n] left before the step; of rules with capacities
  float* du;  // [rows][passes][n steps][n items] gradient of the score; 0 where the item was not in the list
  float* p;   // [rows][glimpses][n steps][n items] softmax of the glimpse; 0 likewise
  float* factors;   // [rows][passes][n][H] the query as Query::factor, reference_index order
  int32_t* direct;  // [rows][passes][n] the query's range is kDirect
  float* dout;      // [rows][glimpses][n][H] gradient of the readout, reference_index order
  double* dv;       // [sequences][n][2][H] an item's share of the gradients of glimpse_v and pointer_v
  double* dprior;   // [rows][n][kMostPriors] a step's share of the gradient of the prior's weights
};

// ---------------------------------------------------------------------------- small things

__device__ __forceinline__ int set_of_row(const PointerGradientArgs& a, int row) {
  return a.ranges.data[find_range(a.ranges.count, row, [&](int r) { return a.ranges.data[r].first_row; })]
      .set;
}

// Number of (row, pass, step) where a row has `passes` of them.
__device__ __forceinline__ int64_t step_index(const PointerGradientArgs& a, int row, int passes, int pass,
                                              int step) {
  return (int64_t{row} * passes + pass) * a.n + step;
}

// Calls each(k, x of lane k) for the lanes whose x is not 0, upward.
template <typename Each>
__device__ __forceinline__ void for_each_nonzero(HalfWarp w, float x, const Each& each) {
  for (unsigned left = ballot_lanes(w, x != 0.0f); left != 0; left &= left - 1) {
    const int k = __ffs(left) - 1;
    each(k, __shfl_sync(w.mask, x, k, kHalfWarp));
  }
}

// sum += du tanh', dv += du tanh of the lane's elements of one item.
template <bool kDirect>
__device__ __forceinline__ void add_tanh_gradient(const float (&reference)[kOwned], const Query& q, float du,
                                                  float (&sum)[kOwned], float (&dv)[kOwned]) {
  // Uncapped denominators stay below the cap.
  constexpr TanhRange kRange = kDirect ? TanhRange::kDirect : TanhRange::kCapped;
#pragma unroll
  for (int i = 0; i < kOwned; i += 4) {
    float x[4], s[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) x[t] = denominator<kRange>(reference[i + t], q, i + t);
    const float d01 = x[0] * x[1], d23 = x[2] * x[3];
    const float inverse = approximate_reciprocal(d01 * d23);  // at least 1e-36
    const float inverse01 = inverse * d23, inverse23 = inverse * d01;
    s[0] = inverse01 * x[1], s[1] = inverse01 * x[0];
    s[2] = inverse23 * x[3], s[3] = inverse23 * x[2];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      const float minus_tanh = (2.0f - x[t]) * s[t];  // exact to the last bits also where tanh is small
      sum[i + t] = fmaf(du, fmaf(-minus_tanh, minus_tanh, 1.0f), sum[i + t]);
      dv[i + t] = fmaf(-du, minus_tanh, dv[i + t]);
    }
  }
}

// ---------------------------------------------------------------------------- what was chosen when

// capacity[t] = what is left before step t. All lanes take the same steps.
template <typename Rules>
__device__ __forceinline__ void list_capacities(const PointerGradientArgs& a, int row, const int32_t* order,
                                                int steps, double* capacity) {
  const int lane = threadIdx.x % 32, sequence = a.sequence_of[row];
  Rules rules = Rules::make(a.rules.inputs(sequence, a.n, a.rules.capacities[sequence]));
  for (int base = 0; base < steps; base += 32) {
    const int step = base + lane, item = step < steps ? order[step] : 0;
    for (int k = 0; k < 32 && base + k < steps; ++k) {
      if (k == lane) capacity[step] = rules.capacity_left;
      rules.step(__shfl_sync(0xFFFFFFFFu, item, k));
    }
  }
}

template <typename Rules>
__global__ void __launch_bounds__(kGradientThreads)
    list_choices_kernel(PointerGradientArgs a, PointerGradientScratch s) {
  const int row = blockIdx.x * (kGradientThreads / 32) + threadIdx.x / 32, lane = threadIdx.x % 32;
  if (row >= a.ranges.rows) return;
  const int64_t first = int64_t{row} * a.n;
  const int steps = a.row_steps[row];
  for (int item = lane; item < a.n; item += 32) s.chosen_at[first + item] = a.n;
  __syncwarp();
  for (int step = lane; step < steps; step += 32) s.chosen_at[first + a.orders[first + step]] = step;
  if constexpr (Rules::kHasCapacity) {
    list_capacities<Rules>(a, row, a.orders + first, steps, s.capacity + first);
  }
}

// ---------------------------------------------------------------------------- a step

// One (row, step) with the places of its numbers.
struct StepGradient {
  HalfWarp w;
  const PointerGradientArgs& a;
  const PointerGradientScratch& s;
  AttentionView<float> view;
  int row, step, count;
  int32_t* items;  // shared memory, as `scores`
  float* scores;

  __device__ __forceinline__ int passes() const { return view.glimpses + 1; }
  __device__ __forceinline__ float* du_of(int pass) const {
    return s.du + step_index(a, row, passes(), pass, step) * a.n;
  }
  __device__ __forceinline__ float* p_of(int glimpse) const {
    return s.p + step_index(a, row, view.glimpses, glimpse, step) * a.n;
  }

  // The rules before the step.
  template <typename Rules>
  __device__ __forceinline__ Rules rules_of() const {
    if constexpr (Rules::kHasCapacity) {
      const double left = s.capacity[int64_t{row} * a.n + step];
      return Rules::make(a.rules.inputs(a.sequence_of[row], a.n, left));
    } else {
      return Rules::make({});
    }
  }

  // The items that could be chosen, upward, and zeros in the scratch for the others.
  template <typename Rules>
  __device__ __forceinline__ void list_items() {
    const int64_t first = int64_t{row} * a.n;
    const Rules rules = rules_of<Rules>();
    count = 0;
    for (int base = 0; base < a.n; base += kHalfWarp) {
      const int item = base + w.lane;
      const bool listed = item < a.n && s.chosen_at[first + item] >= step && rules.feasible(item);
      const unsigned all = ballot_lanes(w, listed);
      if (listed) {
        items[count + __popc(all & ((1u << w.lane) - 1u))] = item;
      } else if (item < a.n) {
        for (int pass = 0; pass < passes(); ++pass) du_of(pass)[item] = 0.0f;
        for (int glimpse = 0; glimpse < view.glimpses; ++glimpse) p_of(glimpse)[item] = 0.0f;
      }
      count += __popc(all);
    }
    __syncwarp(w.mask);
    if (w.lane < (4 - count % 4) % 4) items[count + w.lane] = items[0];
    __syncwarp(w.mask);
  }

  __device__ __forceinline__ void store_query(int pass, const Query& q) const {
    const int64_t at = step_index(a, row, passes(), pass, step);
    store_reference(w, q.factor, s.factors + at * kHidden);
    if (w.lane == 0) s.direct[at] = q.range == TanhRange::kDirect;
  }

  // As pointer_scores(), storing what the way back needs. Leaves the pointer's scores, relative to the first
  // item's u, in scores and returns that u.
  __device__ __forceinline__ float forward_again() const {
    float query[kOwned];
    load_owned(w, a.queries + step_index(a, row, 1, 0, step) * kHidden, query);
#pragma unroll 1
    for (int pass = 0;; ++pass) {
      const Query q = prepare_query(w, query, view.bound(pass));
      store_query(pass, q);
      float v[kOwned];
      load_owned(w, view.v(pass), v);
      const float first = attention_scores(w, view.scored(pass), q, v, items[0], {items, count}, scores);
      if (pass == view.glimpses) return first;
      const float inverse = 1.0f / softmax_readout(w, view.values(pass), items, count, scores, query);
      float* p = p_of(pass);
      for (int j = w.lane; j < count; j += kHalfWarp) p[items[j]] = scores[j] * inverse;
      __syncwarp(w.mask);
    }
  }

  // The prior as it was in the step.
  template <typename Rules>
  __device__ __forceinline__ Prior<Rules> prior_of() const {
    const int64_t sequence = a.sequence_of[row];
    const int last = step > 0 ? a.orders[int64_t{row} * a.n + step - 1] : -1;
    return cuda::prior_of(a.prior, set_of_row(a, row), rules_of<Rules>(),
                          {a.features + 2 * sequence * a.n, items, count, last});
  }

  // The step's share of the gradient of the prior's weights; dlogit(j): gradient of the logit in log p.
  template <typename Rules, typename Gradient>
  __device__ __forceinline__ void prior_gradient(const Prior<Rules>& prior, const Gradient& dlogit) const {
    static_assert(Rules::kPriors <= kMostPriors);
    double sum[Rules::kPriors] = {};
    for (int j = w.lane; j < count; j += kHalfWarp) {
      float raw[Rules::kPriors];
      prior.rules.priors(prior.step, prior.seen, items[j], raw);
      const double gradient = static_cast<double>(a.weights[row]) * dlogit(j);
#pragma unroll
      for (int k = 0; k < Rules::kPriors; ++k) sum[k] += gradient * static_cast<double>(raw[k]);
    }
    double* out = s.dprior + (int64_t{row} * a.n + step) * kMostPriors;
#pragma unroll
    for (int k = 0; k < Rules::kPriors; ++k) {
      sum[k] = sum_lanes(w, sum[k]);
      if (w.lane == 0) out[k] = sum[k];
    }
  }

  // Scores -> du of weight * log p(chosen), as log_softmax_gradient() on the CPU: in double up to the last
  // rounding, for over nearly equal references the gradient of v is what is left after du cancels over the
  // items. Until then du holds the logits.
  template <typename Rules>
  __device__ __forceinline__ void log_softmax_gradient(float first) const {
    float* t = scores;
    const float shift = a.attention.centre ? mean_of(t, count) : -first, scale = a.attention.scale;
    const Prior<Rules> prior = prior_of<Rules>();
    float* du = du_of(view.glimpses);
    __syncwarp(w.mask);
    float largest = -INFINITY;
    for (int j = w.lane; j < count; j += kHalfWarp) {
      t[j] = tanh_f32(t[j] - shift);
      du[items[j]] = prior.logit(t[j], scale, items[j]);
      largest = fmaxf(largest, du[items[j]]);
    }
    largest = largest_lane(w, largest);
    const auto exponential = [&](int j) { return static_cast<double>(exp_f32(du[items[j]] - largest)); };
    double total = 0.0;
    for (int j = w.lane; j < count; j += kHalfWarp) total += exponential(j);
    const double inverse = 1.0 / sum_lanes(w, total);
    const double factor = static_cast<double>(a.weights[row]) * static_cast<double>(scale);
    const int chosen = a.orders[int64_t{row} * a.n + step];
    const auto dlogit = [&](int j) { return (items[j] == chosen ? 1.0 : 0.0) - exponential(j) * inverse; };
    const auto dcentred = [&](int j) {
      const double slope = 1.0 - static_cast<double>(t[j]) * static_cast<double>(t[j]);
      return factor * dlogit(j) * slope;
    };
    double mean = 0.0;
    if (a.attention.centre) {
      for (int j = w.lane; j < count; j += kHalfWarp) mean += dcentred(j);
      mean = sum_lanes(w, mean) / count;
    }
    if (prior.exists()) prior_gradient(prior, dlogit);
    for (int j = w.lane; j < count; j += kHalfWarp) {
      t[j] = static_cast<float>(dcentred(j) - mean);
      du[items[j]] = t[j];
    }
    __syncwarp(w.mask);
  }

  // scores[j] = dout . (values of item j less those of the first): only differences of dp matter.
  __device__ __forceinline__ void products_with_values(const float* values,
                                                       const float (&dout)[kOwned]) const {
    float base[kOwned];
    load_reference(w, values + items[0] * kHidden, base);
#pragma unroll 1
    for (int j = 0; j < count; j += 4) {
      float dot[4];
#pragma unroll
      for (int t = 0; t < 4; ++t) {
        float value[kOwned];
        load_reference(w, values + items[j + t] * kHidden, value);
        dot[t] = dout[0] * (value[0] - base[0]);
#pragma unroll
        for (int i = 1; i < kOwned; ++i) dot[t] = fmaf(dout[i], value[i] - base[i], dot[t]);
      }
      const float sum = sum_lanes_of_four(w, dot);
      const int at = j + w.lane / 4;
      if (w.lane % 4 == 0 && at < count) scores[at] = sum;
    }
    __syncwarp(w.mask);
  }

  // Back through the softmax readout of a glimpse: du = p (dp - mean dp) into scores. The mean in double and
  // over the sum of p as rounded: dp is nearly the same for all items of a fresh network, and du must cancel.
  __device__ __forceinline__ void readout_gradient(int glimpse, const float (&dout)[kOwned]) const {
    store_reference(w, dout, s.dout + step_index(a, row, view.glimpses, glimpse, step) * kHidden);
    products_with_values(view.values(glimpse), dout);
    const float* p = p_of(glimpse);  // each lane reads what it wrote
    double weighted = 0.0, total = 0.0;
    for (int j = w.lane; j < count; j += kHalfWarp) {
      const double weight = static_cast<double>(p[items[j]]);
      total += weight;
      weighted += weight * static_cast<double>(scores[j]);
    }
    weighted = sum_lanes(w, weighted);
    total = sum_lanes(w, total);
    const double mean = weighted / total;
    float* du = du_of(glimpse);
    for (int j = w.lane; j < count; j += kHalfWarp) {
      const int item = items[j];
      scores[j] = static_cast<float>(static_cast<double>(p[item]) * (static_cast<double>(scores[j]) - mean));
      du[item] = scores[j];
    }
    __syncwarp(w.mask);
  }

  template <bool kDirect>
  __device__ __forceinline__ void sum_over_items(const float* references, const Query& q,
                                                 float (&sum)[kOwned]) const {
    float unused[kOwned] = {};
#pragma unroll 2
    for (int j = 0; j < count; ++j) {
      float reference[kOwned];
      load_reference(w, references + items[j] * kHidden, reference);
      add_tanh_gradient<kDirect>(reference, q, scores[j], sum, unused);
    }
  }

  // Gradient of the pass's query: v sum_j du_j tanh'.
  __device__ __forceinline__ void query_gradient(int pass, float (&dquery)[kOwned]) const {
    const int64_t at = step_index(a, row, passes(), pass, step);
    Query q;
    load_reference(w, s.factors + at * kHidden, q.factor);  // what the lane itself stored
    q.references_are_raw = view.bound(pass) > kFactoredLimit;
    const bool direct = ballot_lanes(w, w.lane == 0 && s.direct[at] != 0) != 0;
#pragma unroll
    for (int i = 0; i < kOwned; ++i) dquery[i] = 0.0f;
    if (direct) {
      sum_over_items<true>(view.scored(pass), q, dquery);
    } else {
      sum_over_items<false>(view.scored(pass), q, dquery);
    }
    float v[kOwned];
    load_owned(w, view.v(pass), v);
#pragma unroll
    for (int i = 0; i < kOwned; ++i) dquery[i] *= v[i];
  }
};

__device__ __forceinline__ AttentionView<float> attention_view(const PointerGradientArgs& a, int row) {
  const int64_t sequence = a.sequence_of[row], set = set_of_row(a, row);
  const float* references = a.references + sequence * a.projections.count * a.n * kHidden;
  const float* bounds = a.bounds + 2 * sequence;
  return {references,
          a.projections,
          a.n,
          bounds[0],
          bounds[1],
          a.attention.glimpse_v.of(set),
          a.attention.pointer_v.of(set),
          a.attention.glimpses};
}

// Rules that look ahead need more registers than nvcc gives by itself, which is what the 0 leaves to it.
template <typename Rules>
__global__ void __launch_bounds__(kGradientThreads, Rules::kLooksAhead ? 1 : 0)
    step_gradients_kernel(PointerGradientArgs a, PointerGradientScratch s) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const HalfWarp w = this_half_warp();
  const int tiles = (a.n + kGradientHalfWarps - 1) / kGradientHalfWarps;
  const int half_warp = threadIdx.x / kHalfWarp, length = list_length(a.n);
  const int row = blockIdx.x / tiles, step = blockIdx.x % tiles * kGradientHalfWarps + half_warp;
  if (step >= a.n) return;
  float dquery[kOwned] = {};
  float* out = a.dqueries + (int64_t{row} * (a.n + 1) + step + 1) * kHidden;
  if (step == 0) store_owned(w, dquery, out - kHidden);
  if (step < a.row_steps[row]) {
    float* lists = shared + half_warp * 2 * length;
    StepGradient g{
        w, a, s, attention_view(a, row), row, step, 0, reinterpret_cast<int32_t*>(lists), lists + length};
    g.list_items<Rules>();
    const float first = g.forward_again();
#pragma unroll 1
    for (int pass = g.view.glimpses; pass >= 0; --pass) {
      if (pass == g.view.glimpses) {
        g.log_softmax_gradient<Rules>(first);
      } else {
        g.readout_gradient(pass, dquery);
      }
      g.query_gradient(pass, dquery);
      __syncwarp(w.mask);  // the next pass overwrites the scores
    }
  }
  store_owned(w, dquery, out);
}

// ---------------------------------------------------------------------------- an item

// One (sequence, projection, item) with the sums over its rows.
struct ItemGradient {
  const PointerGradientArgs& a;
  const PointerGradientScratch& s;
  int item;
  bool references_are_raw;
  float reference[kOwned];
  float sum[kOwned];  // of du tanh'
  double dv[kOwned];  // of du tanh
};

// Adds the steps of one row and pass.
__device__ __forceinline__ void add_scores_of_row(HalfWarp w, int row, int pass, ItemGradient& g) {
  const int64_t first = step_index(g.a, row, g.a.attention.glimpses + 1, pass, 0);
  const int steps = g.a.row_steps[row];
  for (int base = 0; base < steps; base += kHalfWarp) {
    const int step = base + w.lane;
    const float mine = step < steps ? g.s.du[(first + step) * g.a.n + g.item] : 0.0f;
    const unsigned direct = ballot_lanes(w, step < steps && g.s.direct[first + step] != 0);
    float few[kOwned] = {};  // du of either sign: short sums in float, long ones in double
    for_each_nonzero(w, mine, [&](int k, float du) {
      Query q;
      q.references_are_raw = g.references_are_raw;
      load_reference(w, g.s.factors + (first + base + k) * kHidden, q.factor);
      if ((direct >> k & 1u) != 0) {
        add_tanh_gradient<true>(g.reference, q, du, g.sum, few);
      } else {
        add_tanh_gradient<false>(g.reference, q, du, g.sum, few);
      }
    });
#pragma unroll
    for (int i = 0; i < kOwned; ++i) g.dv[i] += static_cast<double>(few[i]);
  }
}

// Gradient of the item's glimpse or pointer reference.
__device__ __forceinline__ void score_gradients(HalfWarp w, const PointerGradientArgs& a,
                                                const PointerGradientScratch& s, int sequence, int slice,
                                                int item, float (&sum)[kOwned]) {
  const bool pointer = slice == a.projections.pointer;
  const int glimpses = a.attention.glimpses;
  const int first_pass = pointer ? glimpses : 0, end_pass = pointer ? glimpses + 1 : glimpses;
  const int64_t at = ((int64_t{sequence} * a.projections.count + slice) * a.n + item) * kHidden;
  ItemGradient g{a, s, item, a.bounds[2 * sequence + pointer] > kFactoredLimit, {}, {}, {}};
  load_reference(w, a.references + at, g.reference);
  const int first_row = a.first_row[sequence], end_row = a.first_row[sequence + 1];
  for (int row = first_row; row < end_row; ++row) {
    for (int pass = first_pass; pass < end_pass; ++pass) add_scores_of_row(w, row, pass, g);
  }
  double* dv_out = s.dv + ((int64_t{sequence} * a.n + item) * 2 + pointer) * kHidden;
#pragma unroll
  for (int i = 0; i < kOwned; ++i) dv_out[w.lane + kHalfWarp * i] = g.dv[i];
  if (first_row == end_row) return;
  const SetArray& vs = pointer ? a.attention.pointer_v : a.attention.glimpse_v;
  float v[kOwned];
  load_owned(w, vs.of(set_of_row(a, first_row)), v);
#pragma unroll
  for (int i = 0; i < kOwned; ++i) sum[i] = g.sum[i] * v[i];
}

// Gradient of the item's values: the last glimpse's, or of all glimpses before (requeries).
__device__ __forceinline__ void value_gradients(HalfWarp w, const PointerGradientArgs& a,
                                                const PointerGradientScratch& s, int sequence, int slice,
                                                int item, float (&sum)[kOwned]) {
  const int glimpses = a.attention.glimpses;
  const bool last = slice == a.projections.values;
  for (int row = a.first_row[sequence]; row < a.first_row[sequence + 1]; ++row) {
    const int steps = a.row_steps[row];
    for (int glimpse = last ? glimpses - 1 : 0; glimpse < (last ? glimpses : glimpses - 1); ++glimpse) {
      const int64_t first = step_index(a, row, glimpses, glimpse, 0);
      for (int base = 0; base < steps; base += kHalfWarp) {
        const int step = base + w.lane;
        const float mine = step < steps ? s.p[(first + step) * a.n + item] : 0.0f;
        for_each_nonzero(w, mine, [&](int k, float p) {
          float dout[kOwned];
          load_reference(w, s.dout + (first + base + k) * kHidden, dout);
#pragma unroll
          for (int i = 0; i < kOwned; ++i) sum[i] = fmaf(p, dout[i], sum[i]);
        });
      }
    }
  }
}

__global__ void __launch_bounds__(kGradientThreads)
    item_gradients_kernel(PointerGradientArgs a, PointerGradientScratch s) {
  const HalfWarp w = this_half_warp();
  const int tiles = (a.n + kGradientHalfWarps - 1) / kGradientHalfWarps;
  const int item = blockIdx.x % tiles * kGradientHalfWarps + threadIdx.x / kHalfWarp;
  const int slice = blockIdx.x / tiles % a.projections.count,
            sequence = blockIdx.x / tiles / a.projections.count;
  if (item >= a.n) return;
  float sum[kOwned] = {};
  const int64_t width = int64_t{a.projections.count} * kHidden;
  float* out = a.dreferences + (int64_t{sequence} * (a.n + 1) + item + 1) * width + slice * kHidden;
  if (item == 0) store_owned(w, sum, out - width);
  if (slice == a.projections.pointer || slice == a.projections.glimpse) {
    score_gradients(w, a, s, sequence, slice, item, sum);
  } else {
    value_gradients(w, a, s, sequence, slice, item, sum);
  }
  store_owned(w, sum, out);
}

// ---------------------------------------------------------------------------- v

__global__ void __launch_bounds__(2 * kHidden) sum_v_kernel(PointerGradientArgs a, PointerGradientScratch s) {
  const int64_t sequence = blockIdx.x;
  double sum = 0.0;
  if (threadIdx.x >= kHidden || a.projections.glimpse >= 0) {
#pragma unroll 4
    for (int item = 0; item < a.n; ++item) sum += s.dv[(sequence * a.n + item) * 2 * kHidden + threadIdx.x];
  }
  a.dv[sequence * 2 * kHidden + threadIdx.x] = static_cast<float>(sum);
}

// ---------------------------------------------------------------------------- the prior

// The steps that were learnt from, lane by lane; then the tree.
template <typename Rules>
__global__ void __launch_bounds__(32) sum_prior_kernel(PointerGradientArgs a, PointerGradientScratch s) {
  const int64_t sequence = blockIdx.x;
  double sum[Rules::kPriors] = {};
  for (int64_t row = a.first_row[sequence]; row < a.first_row[sequence + 1]; ++row) {
    for (int step = threadIdx.x; step < a.row_steps[row]; step += 32) {
#pragma unroll
      for (int k = 0; k < Rules::kPriors; ++k) sum[k] += s.dprior[(row * a.n + step) * kMostPriors + k];
    }
  }
#pragma unroll
  for (int k = 0; k < Rules::kPriors; ++k) {
#pragma unroll
    for (int distance = 16; distance > 0; distance /= 2)
      sum[k] += __shfl_xor_sync(0xFFFFFFFFu, sum[k], distance);
    if (threadIdx.x == 0)
      a.dprior[sequence * Rules::kPriors + k] = static_cast<float>(sum[k]) * a.prior.inverse_temperature;
  }
}

int64_t pointer_gradient_scratch(int rows, int sequences, int n, int glimpses) {
  Placement counted;
  PointerGradientScratch(counted, rows, sequences, n, glimpses);
  return static_cast<int64_t>(counted.bytes());
}

void pointer_gradient(const PointerGradientArgs& args, cudaStream_t stream) {
  Placement placement(args.scratch);
  const PointerGradientScratch scratch(placement, args.ranges.rows, args.sequences, args.n,
                                       args.attention.glimpses);
  const unsigned tiles = (args.n + kGradientHalfWarps - 1) / kGradientHalfWarps;
  constexpr int kRowsABlock = kGradientThreads / 32;
  if (args.ranges.rows > 0) {
    const size_t shared = size_t{kGradientHalfWarps} * 2 * list_length(args.n) * sizeof(float);
    with_plain_rules(args.problem, [&]<typename Rules>() {
      launch(list_choices_kernel<Rules>, (args.ranges.rows + kRowsABlock - 1) / kRowsABlock, kGradientThreads,
             0, stream, args, scratch);
      launch(step_gradients_kernel<Rules>, args.ranges.rows * tiles, kGradientThreads, shared, stream, args,
             scratch);
    });
  }
  launch(item_gradients_kernel, args.sequences * args.projections.count * tiles, kGradientThreads, 0, stream,
         args, scratch);
  launch(sum_v_kernel, args.sequences, 2 * kHidden, 0, stream, args, scratch);
  if (args.prior.weights.data == nullptr) return;
  with_plain_rules(args.problem, [&]<typename Rules>() {
    static_assert(Rules::kPriors <= kMostPriors);
    launch(sum_prior_kernel<Rules>, args.sequences, 32, 0, stream, args, scratch);
  });
}

}  // namespace pointsman::cuda
