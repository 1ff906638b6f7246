// SPDX-License-Identifier: Apache-2.0
// The critic after its encoder, forward with the bits of engine/backend/cpu/critic.cpp: P = 3 glimpses over
// all items with one set of weights, the encoder's last state as the first query, then two layers. The
// references are project_references()'. A block of 128 threads takes one sequence; thread d holds element d
// of every vector, half-warps share out the items' scores.
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/set_ranges.cuh"
#include "kernels/cuda/tile_multiply.cuh"

namespace pointsman::cuda {

inline constexpr int kCriticThreads = kHidden;
inline constexpr int kCriticHalfWarps = kCriticThreads / kHalfWarp;

// One sequence and its numbers in device memory.
struct CriticSequence {
  int64_t sequence;
  int set, n;
  const float* h;           // [n][H] states of the items
  const float* references;  // [n][H]
  float bound;
};

__device__ __forceinline__ CriticSequence critic_sequence(const CriticArgs& a, const SetRange& tile) {
  const int64_t s = tile.first_row;
  return {s,
          tile.set,
          a.n,
          a.h + (s * (a.n + 1) + 1) * kHidden,
          a.references + s * a.n * kHidden,
          a.bounds[2 * s + 1]};
}

// sum_k x[k] matrix[k][d], upward with fma from 0.
template <typename Weights>
__device__ __forceinline__ float product_element(const float* x, const float* matrix) {
  const Weights weights(matrix, kHidden, threadIdx.x);
  float sum = 0.0f;
#pragma unroll 4
  for (int k = 0; k < kHidden; k += 4) {
    const float4 w = weights.four(k, 0);
    sum = fmaf(x[k], w.x, sum);
    sum = fmaf(x[k + 1], w.y, sum);
    sum = fmaf(x[k + 2], w.z, sum);
    sum = fmaf(x[k + 3], w.w, sum);
  }
  return sum;
}

// A half-warp's share of the items: whole groups of four.
struct ItemShare {
  int first, count;
};
__device__ __forceinline__ ItemShare item_share(int n) {
  const int most = (n + 4 * kCriticHalfWarps - 1) / (4 * kCriticHalfWarps) * 4;
  const int first = static_cast<int>(threadIdx.x / kHalfWarp) * most;
  return {first, max(min(n - first, most), 0)};
}

__device__ __forceinline__ void list_all_items(int n, int32_t* items) {
  for (int j = threadIdx.x; j < list_length(n); j += kCriticThreads) items[j] = min(j, n - 1);
}

// e[j] = exp(u_j - max u) of all items, seen by the whole block. query: [H] anywhere. Returns it prepared.
__device__ __forceinline__ Query process_scores(const CriticSequence& c, const float* query,
                                                const float* v_row, const int32_t* items, float* e) {
  const HalfWarp w = this_half_warp();
  float own[kOwned], v[kOwned];
  load_owned(w, query, own);
  load_owned(w, v_row, v);
  const Query q = prepare_query(w, own, c.bound);
  const ItemShare share = item_share(c.n);
  if (share.count > 0) {
    attention_scores(w, c.references, q, v, items[0], {items + share.first, share.count}, e + share.first);
  }
  __syncthreads();
  const float largest = largest_of(w, e, c.n);
  __syncthreads();
  for (int j = threadIdx.x; j < c.n; j += kCriticThreads) e[j] = exp_f32(e[j] - largest);
  __syncthreads();
  return q;
}

// ---------------------------------------------------------------------------- forward

// Element d of sum_j e_j h_j / sum_j e_j, items in order.
__device__ __forceinline__ float read_out_element(const CriticSequence& c, const float* e) {
  float sum = 0.0f, total = 0.0f;
#pragma unroll 8
  for (int j = 0; j < c.n; ++j) {
    total += e[j];
    sum = fmaf(e[j], c.h[j * kHidden + threadIdx.x], sum);
  }
  return sum / total;
}

__global__ void __launch_bounds__(kCriticThreads) critic_forward_kernel(CriticArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const SetRange tile = find_row_tile(a.ranges, blockIdx.x, 1);
  if (tile.rows <= 0) return;
  const CriticSequence c = critic_sequence(a, tile);
  const int d = threadIdx.x, length = list_length(a.n);
  float* state = shared;
  float* query = state + kHidden;
  float* e = query + kHidden;
  int32_t* items = reinterpret_cast<int32_t*>(e + length);
  list_all_items(a.n, items);
  float* states = a.states + c.sequence * (kProcessSteps + 1) * kHidden + d;
  state[d] = c.h[(a.n - 1) * kHidden + d];
  states[0] = state[d];
  __syncthreads();
  for (int step = 0; step < kProcessSteps; ++step) {
    query[d] = product_element<WeightsInFours>(state, a.query.of(c.set));
    a.queries[(c.sequence * kProcessSteps + step) * kHidden + d] = query[d];
    __syncthreads();
    process_scores(c, query, a.v.of(c.set), items, e);
    state[d] = read_out_element(c, e);
    states[(step + 1) * kHidden] = state[d];
    __syncthreads();
  }
  float* hidden = query;
  hidden[d] =
      fmaxf(product_element<WeightsInFours>(state, a.fc1_weight.of(c.set)) + a.fc1_bias.of(c.set)[d], 0.0f);
  a.hidden[c.sequence * kHidden + d] = hidden[d];
  __syncthreads();
  if (d == 0) {
    const float* weight = a.fc2_weight.of(c.set);
    float value = a.fc2_bias.of(c.set)[0];
#pragma unroll 16
    for (int k = 0; k < kHidden; ++k) value += weight[k] * hidden[k];
    a.values[c.sequence] = value;
  }
}

// ---------------------------------------------------------------------------- gradient

// dp[j] = dstate . h_j.
__device__ __forceinline__ void products_with_states(const CriticSequence& c, const float* dstate,
                                                     float* dp) {
  const HalfWarp w = this_half_warp();
  const ItemShare share = item_share(c.n);
  float dout[kOwned];
  load_owned(w, dstate, dout);
  for (int j = share.first; j < share.first + share.count; j += 4) {
    float dot[4];
#pragma unroll
    for (int t = 0; t < 4; ++t) {
      float h[kOwned];
      load_owned(w, c.h + min(j + t, c.n - 1) * kHidden, h);
      dot[t] = dout[0] * h[0];
#pragma unroll
      for (int i = 1; i < kOwned; ++i) dot[t] = fmaf(dout[i], h[i], dot[t]);
    }
    const float sum = sum_lanes_of_four(w, dot);
    const int at = j + w.lane / 4;
    if (w.lane % 4 == 0 && at < share.first + share.count) dp[at] = sum;
  }
}

// e, dp -> p, du = p (dp - sum p dp), seen by the whole block. Every half-warp makes the sums for itself.
__device__ __forceinline__ void softmax_gradient(int n, float* e, float* dp) {
  const HalfWarp w = this_half_warp();
  double total = 0.0, weighted = 0.0;
  for (int j = w.lane; j < n; j += kHalfWarp) {
    total += static_cast<double>(e[j]);
    weighted += static_cast<double>(e[j]) * static_cast<double>(dp[j]);
  }
  total = sum_lanes(w, total);
  weighted = sum_lanes(w, weighted);
  const double inverse = 1.0 / total, mean = weighted * inverse;
  __syncthreads();
  for (int j = threadIdx.x; j < n; j += kCriticThreads) {
    const double p = static_cast<double>(e[j]) * inverse;
    dp[j] = static_cast<float>(p * (static_cast<double>(dp[j]) - mean));
    e[j] = static_cast<float>(p);
  }
  __syncthreads();
}

// The sums over items that element d of one process step adds to.
struct ElementSums {
  float* dreferences;  // [n][H] at element d
  float* dh;           // [n][H] at element d
  float v;
  float dq = 0.0f, dv = 0.0f;
};

// q holds the element's factor at 0. Steps run backwards: the last one comes first and finds nothing summed
// yet.
template <bool kDirect>
__device__ __forceinline__ void add_process_step(const CriticSequence& c, const Query& q, const float* du,
                                                 const float* p, float dstate, int step, ElementSums& sums) {
  constexpr TanhRange kRange = kDirect ? TanhRange::kDirect : TanhRange::kCapped;
  const bool fresh = step == kProcessSteps - 1;
  const float factor = step == 0 ? sums.v : 1.0f;
  const float* reference = c.references + reference_index(threadIdx.x);
#pragma unroll 4
  for (int j = 0; j < c.n; ++j) {
    const int64_t at = int64_t{j} * kHidden;
    const float x = denominator<kRange>(reference[at], q, 0);
    const float minus_tanh = (2.0f - x) * approximate_reciprocal(x);
    const float g = du[j] * fmaf(-minus_tanh, minus_tanh, 1.0f);
    sums.dq += g;
    sums.dv = fmaf(-du[j], minus_tanh, sums.dv);
    sums.dreferences[at] = ((fresh ? 0.0f : sums.dreferences[at]) + g) * factor;
    sums.dh[at] = fmaf(p[j], dstate, fresh ? 0.0f : sums.dh[at]);
  }
}

// Element d of the gradient of the last process state.
__device__ __forceinline__ float head_gradient(const CriticGradientArgs& a, const CriticSequence& c,
                                               float* vector) {
  const CriticArgs& f = a.forward;
  const int d = threadIdx.x;
  const int64_t at = c.sequence * kHidden + d;
  const float dvalue = 2.0f * a.weight * (f.values[c.sequence] - a.targets[c.sequence]);
  if (d == 0) a.dvalues[c.sequence] = dvalue;
  const float hidden = f.hidden[at];
  a.dfc2[at] = dvalue * hidden;
  vector[d] = hidden > 0.0f ? dvalue * f.fc2_weight.of(c.set)[d] : 0.0f;
  a.dhidden[at] = vector[d];
  __syncthreads();
  const float dstate = product_element<WeightsAsStored>(vector, a.fc1_stored.of(c.set));
  __syncthreads();
  return dstate;
}

__global__ void __launch_bounds__(kCriticThreads, 4) critic_gradient_kernel(CriticGradientArgs a) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const CriticArgs& f = a.forward;
  const SetRange tile = find_row_tile(f.ranges, blockIdx.x, 1);
  if (tile.rows <= 0) return;
  const CriticSequence c = critic_sequence(f, tile);
  const HalfWarp w = this_half_warp();
  const int d = threadIdx.x, length = list_length(f.n);
  float* dstate = shared;
  float* vector = dstate + kHidden;
  float* factors = vector + kHidden;
  float* e = factors + kHidden;
  float* dp = e + length;
  int32_t* items = reinterpret_cast<int32_t*>(dp + length);
  list_all_items(f.n, items);
  const int64_t start = c.sequence * (f.n + 1) * kHidden + d;
  a.dreferences[start] = 0.0f;
  a.dh[start] = 0.0f;
  ElementSums sums{a.dreferences + start + kHidden, a.dh + start + kHidden, f.v.of(c.set)[d]};

  dstate[d] = head_gradient(a, c, vector);
  __syncthreads();
  for (int step = kProcessSteps - 1; step >= 0; --step) {
    const int64_t at = (c.sequence * kProcessSteps + step) * kHidden;
    const Query q = process_scores(c, f.queries + at, f.v.of(c.set), items, e);
    if (threadIdx.x < kHalfWarp) store_owned(w, q.factor, factors);
    products_with_states(c, dstate, dp);
    __syncthreads();
    softmax_gradient(f.n, e, dp);
    Query element;
    element.factor[0] = factors[d];
    element.references_are_raw = q.references_are_raw;
    sums.dq = 0.0f;
    if (q.range == TanhRange::kDirect) {
      add_process_step<true>(c, element, dp, e, dstate[d], step, sums);
    } else {
      add_process_step<false>(c, element, dp, e, dstate[d], step, sums);
    }
    vector[d] = sums.v * sums.dq;
    a.dqueries[at + d] = vector[d];
    __syncthreads();
    dstate[d] = product_element<WeightsAsStored>(vector, a.query_weight.of(c.set));
    __syncthreads();
  }
  sums.dh[int64_t{f.n - 1} * kHidden] += dstate[d];  // the first state is the last item's
  a.dv[c.sequence * kHidden + d] = sums.dv;
}

void critic_forward(const CriticArgs& args, cudaStream_t stream) {
  project_references(
      {args.reference, projections_of(0), args.h, args.references, args.bounds, args.ranges, args.n}, stream);
  const size_t floats = 2 * kHidden + 2 * list_length(args.n);
  launch(critic_forward_kernel, row_tile_count(args.ranges, 1), kCriticThreads, floats * sizeof(float),
         stream, args);
}

void critic_gradient(const CriticGradientArgs& args, cudaStream_t stream) {
  const size_t floats = 3 * kHidden + 3 * list_length(args.forward.n);
  launch(critic_gradient_kernel, row_tile_count(args.forward.ranges, 1), kCriticThreads,
         floats * sizeof(float), stream, args);
}

}  // namespace pointsman::cuda
