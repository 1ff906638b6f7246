// SPDX-License-Identifier: Apache-2.0
// Attention of one query by a half-warp, with the bits of kernels/cpu/pointer_attention.cpp and
// sample_next.cpp. A half-warp is 16 threads, which call every function together. Lane l holds the elements
// d = l + 16 i, i = 0 .. 7, of every vector of length H. Lists and scores lie in shared memory; a function
// that writes them ends with a barrier of the half-warp.
//
// An element of a score in the uncapped range costs 4.8 operations: 1 for its denominator; with four
// denominators joined over one division 9/4 to join and 5/4 to divide; 5/32 in the tree, 1/8 in the sum.
#pragma once

#include "kernels/common/scalar_math.h"
#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device.cuh"

namespace pointsman::cuda {

inline constexpr int kHalfWarp = 16;
inline constexpr int kOwned = kHidden / kHalfWarp;  // elements of a vector that a lane holds

struct HalfWarp {
  unsigned mask;
  int lane;  // 0 .. 15
};

// What a half-warp takes of a list that `members` of them share.
struct Share {
  int member = 0, members = 1;
};

// Of a one-dimensional block.
__device__ __forceinline__ HalfWarp this_half_warp() {
  return {0xFFFFu << (threadIdx.x & 16), static_cast<int>(threadIdx.x & 15)};
}

// Calls each(j) for the lane's items of a share: 16 items in turn for each half-warp.
template <typename Each>
__device__ __forceinline__ void for_each_item(HalfWarp w, int count, Share share, const Each& each) {
  for (int j = share.member * kHalfWarp + w.lane; j < count; j += share.members * kHalfWarp) each(j);
}

// ---------------------------------------------------------------------------- over the lanes

__device__ __forceinline__ float largest_lane(HalfWarp w, float x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) x = fmaxf(x, __shfl_xor_sync(w.mask, x, step));
  return x;
}

__device__ __forceinline__ int smallest_lane(HalfWarp w, int x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) x = min(x, __shfl_xor_sync(w.mask, x, step));
  return x;
}

// The tree (l, l+8), (l, l+4), (l, l+2), (l, l+1); every lane gets the sum.
template <typename T>
__device__ __forceinline__ T sum_lanes(HalfWarp w, T x) {
#pragma unroll
  for (int step = 8; step > 0; step /= 2) x += __shfl_xor_sync(w.mask, x, step);
  return x;
}

// The same trees over four values at once: lane l gets the sum of value l / 4.
__device__ __forceinline__ float sum_lanes_of_four(HalfWarp w, const float (&x)[4]) {
  const bool upper = (w.lane & 8) != 0, odd = (w.lane & 4) != 0;
  float a = upper ? x[2] : x[0], b = upper ? x[3] : x[1];
  a += __shfl_xor_sync(w.mask, upper ? x[0] : x[2], 8);
  b += __shfl_xor_sync(w.mask, upper ? x[1] : x[3], 8);
  float sum = odd ? b : a;
  sum += __shfl_xor_sync(w.mask, odd ? a : b, 4);
  sum += __shfl_xor_sync(w.mask, sum, 2);
  sum += __shfl_xor_sync(w.mask, sum, 1);
  return sum;
}

// The sum of this lane's and all lower lanes' numbers.
__device__ __forceinline__ int running_sum(HalfWarp w, int x) {
#pragma unroll
  for (int step = 1; step < kHalfWarp; step *= 2) {
    const int lower = __shfl_up_sync(w.mask, x, step, kHalfWarp);
    if (w.lane >= step) x += lower;
  }
  return x;
}

// Bit l: lane l's flag.
__device__ __forceinline__ unsigned ballot_lanes(HalfWarp w, bool flag) {
  const unsigned all = __ballot_sync(w.mask, flag);
  return (all >> (threadIdx.x & 16)) & 0xFFFFu;
}

// ---------------------------------------------------------------------------- vectors

// The lane's elements of a vector in natural order ..
__device__ __forceinline__ void load_owned(HalfWarp w, const float* vector, float (&x)[kOwned]) {
#pragma unroll
  for (int i = 0; i < kOwned; ++i) x[i] = vector[w.lane + kHalfWarp * i];
}

// .. and of a row in reference_index order.
__device__ __forceinline__ void load_reference(HalfWarp w, const float* row, float (&x)[kOwned]) {
  const float4 low = *reinterpret_cast<const float4*>(row + 4 * w.lane);
  const float4 high = *reinterpret_cast<const float4*>(row + kHidden / 2 + 4 * w.lane);
  x[0] = low.x, x[1] = low.y, x[2] = low.z, x[3] = low.w;
  x[4] = high.x, x[5] = high.y, x[6] = high.z, x[7] = high.w;
}

// .. which may be packed.
__device__ __forceinline__ void load_reference(HalfWarp w, const PackedPair* row, float (&x)[kOwned]) {
  const uint4 pairs = *reinterpret_cast<const uint4*>(row + 4 * w.lane);
  const uint32_t words[kOwned / 2] = {pairs.x, pairs.y, pairs.z, pairs.w};
#pragma unroll
  for (int i = 0; i < kOwned / 2; ++i) {
    x[2 * i] = __uint_as_float(words[i] << 16);
    x[2 * i + 1] = __uint_as_float(words[i]);
  }
}

__device__ __forceinline__ void store_owned(HalfWarp w, const float (&x)[kOwned], float* vector) {
#pragma unroll
  for (int i = 0; i < kOwned; ++i) vector[w.lane + kHalfWarp * i] = x[i];
}

__device__ __forceinline__ void store_reference(HalfWarp w, const float (&x)[kOwned], float* row) {
  *reinterpret_cast<float4*>(row + 4 * w.lane) = make_float4(x[0], x[1], x[2], x[3]);
  *reinterpret_cast<float4*>(row + kHidden / 2 + 4 * w.lane) = make_float4(x[4], x[5], x[6], x[7]);
}

// The difference carries into the upper half what the lower one adds to the number. A size below the lower
// half becomes the lower half, at most 2^-133.
__device__ __forceinline__ PackedPair packed_pair(float first, float second) {
  const uint32_t lower = to_bf16_pair(first, 0.0f), bits = __float_as_uint(second);
  const uint32_t sign = bits & 0x80000000u, size = max(bits ^ sign, lower);
  return {sign | ((size - lower + 0x8000u) & 0xFFFF0000u) | lower};
}

// As load_reference() reads it. `row` may be the one that x came from: these are words that the lane read.
__device__ __forceinline__ void store_packed(HalfWarp w, const float (&x)[kOwned], PackedPair* row) {
  *reinterpret_cast<uint4*>(row + 4 * w.lane) =
      make_uint4(packed_pair(x[0], x[1]).bits, packed_pair(x[2], x[3]).bits, packed_pair(x[4], x[5]).bits,
                 packed_pair(x[6], x[7]).bits);
}

// ---------------------------------------------------------------------------- query

struct Query {
  float factor[kOwned];  // exp(2q); kDirect: q
  TanhRange range;
  bool references_are_raw;  // kDirect: the references hold a, not exp(2a)
};

__device__ __forceinline__ Query prepare_query(HalfWarp w, const float (&query)[kOwned], float bound) {
  float largest = 0.0f;
#pragma unroll
  for (int i = 0; i < kOwned; ++i) largest = fmaxf(largest, fabsf(query[i]));
  const float query_bound = largest_lane(w, largest);
  Query q;
  q.references_are_raw = bound > kFactoredLimit;
  q.range = range_of(bound, query_bound);
#pragma unroll
  for (int i = 0; i < kOwned; ++i) {
    q.factor[i] = q.range == TanhRange::kDirect ? query[i] : exp_bounded_f32(query[i] + query[i]);
  }
  return q;
}

template <TanhRange kRange>
__device__ __forceinline__ float denominator(float reference, const Query& q, int i) {
  if constexpr (kRange == TanhRange::kDirect) {
    const float a = q.references_are_raw ? reference : 0.5f * log_f32(reference);
    return fminf(exp_f32(2.0f * (a + q.factor[i])) + 1.0f, kDenominatorCap);
  } else {
    const float x = fmaf(reference, q.factor[i], 1.0f);
    return kRange == TanhRange::kCapped ? fminf(x, kDenominatorCap) : x;
  }
}

// ---------------------------------------------------------------------------- division

// n / d as IEEE rounds it, for d in [1, 1e36], n finite and |n / d| >= kSmallestQuotient, without the check
// of the operands that `/` makes. Why it is that quotient: these are the five steps that nvcc emits for `/`
// (sm_80, sm_90) from the same approximation, once its check has found both exponents harmless; that division
// is IEEE's; and a power of two in n or d changes no digit of any step as long as none leaves the range of
// normal numbers. None does here:
// - 1 / d >= 1e-36 is normal; 1 - d r is exact (r has an error of one unit), a multiple of 2^-47;
// - q is normal, and the remainder n - d q a multiple of ulp(d) ulp(q) >= 2^-23 2^-123: no digit falls below
// 2^-149. Smaller quotients, 0 among them, may lose digits of the remainder, or 0's sign.
inline constexpr float kSmallestQuotient = 7.8886090522101181e-31f;  // 2^-100

__device__ __forceinline__ float quick_quotient(float n, float d) {
  float r = approximate_reciprocal(d);
  r = fmaf(r, fmaf(-d, r, 1.0f), r);
  const float q = n * r;
  return fmaf(fmaf(-d, q, n), r, q);
}

// How n / d is made.
enum class Quotient {
  kExact,        // n / d as IEEE rounds it
  kQuick,        // the same in the range of quick_quotient
  kApproximate,  // n times the approximate reciprocal: up to 3 units in the last place away
};

// ---------------------------------------------------------------------------- scores

// The lane's partial sum of v_d / x_d over one row. Quick division: the smaller of `smallest` and the
// quotients' sizes goes to `smallest`.
template <TanhRange kRange, Quotient kQuotient>
__device__ __forceinline__ float joined_quotients(const float (&reference)[kOwned], const Query& q,
                                                  const float (&v)[kOwned], float& smallest) {
  float sum[2];
#pragma unroll
  for (int half = 0; half < 2; ++half) {
    const int i = 4 * half;
    const float x0 = denominator<kRange>(reference[i], q, i),
                x1 = denominator<kRange>(reference[i + 1], q, i + 1);
    const float x2 = denominator<kRange>(reference[i + 2], q, i + 2),
                x3 = denominator<kRange>(reference[i + 3], q, i + 3);
    const float n01 = fmaf(v[i], x1, v[i + 1] * x0), d01 = x0 * x1;
    const float n23 = fmaf(v[i + 2], x3, v[i + 3] * x2), d23 = x2 * x3;
    const float n = fmaf(n01, d23, n23 * d01), d = d01 * d23;
    if constexpr (kQuotient == Quotient::kQuick) {
      sum[half] = quick_quotient(n, d);
      smallest = fminf(smallest, fabsf(sum[half]));
    } else if constexpr (kQuotient == Quotient::kApproximate) {
      sum[half] = n * approximate_reciprocal(d);
    } else {
      sum[half] = n / d;
    }
  }
  return sum[0] + sum[1];
}

// sum_d v_d in the written order.
__device__ __forceinline__ float sum_of_vector(HalfWarp w, const float (&v)[kOwned]) {
  float sum = v[0];
#pragma unroll
  for (int i = 1; i < kOwned; ++i) sum += v[i];
  return sum_lanes(w, sum);
}

template <TanhRange kRange, Quotient kQuotient, typename Word>
__device__ __forceinline__ void quotients_of_four(HalfWarp w, const Word* references, int4 items,
                                                  const Query& q, const float (&v)[kOwned], float (&sum)[4],
                                                  float& smallest) {
  const int item[4] = {items.x, items.y, items.z, items.w};
#pragma unroll
  for (int t = 0; t < 4; ++t) {
    float reference[kOwned];
    load_reference(w, references + item[t] * kHidden, reference);
    sum[t] = joined_quotients<kRange, kQuotient>(reference, q, v, smallest);
  }
}

// The lane's partial sum of the item that scores are relative to.
template <TanhRange kRange, Quotient kQuotient, typename Word>
__device__ __forceinline__ float quotients_of_one(HalfWarp w, const Word* references, int item,
                                                  const Query& q, const float (&v)[kOwned]) {
  float reference[kOwned], unused = 0.0f;
  load_reference(w, references + item * kHidden, reference);
  return joined_quotients<kRange, kQuotient>(reference, q, v, unused);
}

// Positions of items in the references. items: 16-byte aligned and filled up to a multiple of four with
// numbers of existing rows. A share is every members-th four.
struct ItemList {
  const int32_t* items;
  int count;
  Share share = {};
};

template <TanhRange kRange, bool kApproximate, typename Word>
__device__ __forceinline__ float scores_in_range(HalfWarp w, const Word* references, const Query& q,
                                                 const float (&v)[kOwned], int first, ItemList list,
                                                 float* scores) {
  constexpr bool kQuick = kRange != TanhRange::kDirect && !kApproximate;
  constexpr Quotient kSure = kApproximate ? Quotient::kApproximate : Quotient::kExact;
  const float base = quotients_of_one<kRange, kSure>(w, references, first, q, v);
#pragma unroll 1
  for (int j = 4 * list.share.member; j < list.count; j += 4 * list.share.members) {
    const int4 four = *reinterpret_cast<const int4*>(list.items + j);
    float sum[4], smallest = kSmallestQuotient;
    quotients_of_four<kRange, kQuick ? Quotient::kQuick : kSure>(w, references, four, q, v, sum, smallest);
    // Next to never: elements of v that are zero, or cancel to next to nothing.
    if (kQuick && smallest < kSmallestQuotient) {
      quotients_of_four<kRange, kSure>(w, references, four, q, v, sum, smallest);
    }
#pragma unroll
    for (int t = 0; t < 4; ++t) sum[t] -= base;
    const float score = -2.0f * sum_lanes_of_four(w, sum);
    const int at = j + w.lane / 4;
    if (w.lane % 4 == 0 && at < list.count) scores[at] = score;
  }
  return fmaf(-2.0f, sum_lanes(w, base), sum_of_vector(w, v));
}

// Room for a list of n items, or their scores: attention_scores() reads items four at a time.
POINTSMAN_HOST_DEVICE constexpr int list_length(int n) { return (n + 3) / 4 * 4; }

// Each item's u less that of item `first`, the first of the whole list: what all rows share goes before it
// can round the rest away. Returns u of `first`. kApproximate: with Quotient::kApproximate, an operation an
// element less. Word: float, or PackedPair.
template <bool kApproximate = false, typename Word>
__device__ __forceinline__ float attention_scores(HalfWarp w, const Word* references, const Query& q,
                                                  const float (&v)[kOwned], int first, ItemList list,
                                                  float* scores) {
  float u_first = 0.0f;
  switch (q.range) {
    case TanhRange::kUncapped:
      u_first = scores_in_range<TanhRange::kUncapped, kApproximate>(w, references, q, v, first, list, scores);
      break;
    case TanhRange::kCapped:
      u_first = scores_in_range<TanhRange::kCapped, kApproximate>(w, references, q, v, first, list, scores);
      break;
    case TanhRange::kDirect:
      u_first = scores_in_range<TanhRange::kDirect, kApproximate>(w, references, q, v, first, list, scores);
      break;
  }
  __syncwarp(w.mask);
  return u_first;
}

// ---------------------------------------------------------------------------- softmax

__device__ __forceinline__ float largest_of(HalfWarp w, const float* x, int count) {
  float largest = x[0];
  for (int j = w.lane; j < count; j += kHalfWarp) largest = fmaxf(largest, x[j]);
  return largest_lane(w, largest);
}

// out = exp(u - shift) of the half-warp's share; out may be u.
__device__ __forceinline__ void exponentials(HalfWarp w, const float* u, int count, float shift, float* out,
                                             Share share = {}) {
  for_each_item(w, count, share, [&](int j) { out[j] = exp_f32(u[j] - shift); });
  __syncwarp(w.mask);
}

// out = sum_j e_j values[items[j]] / sum_j e_j, items in list order; returns the sum of e.
template <typename Word>
__device__ __forceinline__ float readout(HalfWarp w, const Word* values, const float* e, const int32_t* items,
                                         int count, float (&out)[kOwned]) {
#pragma unroll
  for (int i = 0; i < kOwned; ++i) out[i] = 0.0f;
  float total = 0.0f;
#pragma unroll 4
  for (int j = 0; j < count; ++j) {
    float value[kOwned];
    load_reference(w, values + items[j] * kHidden, value);
    const float weight = e[j];
    total += weight;
#pragma unroll
    for (int i = 0; i < kOwned; ++i) out[i] = fmaf(weight, value[i], out[i]);
  }
#pragma unroll
  for (int i = 0; i < kOwned; ++i) out[i] /= total;
  return total;
}

// Turns scores into exp(u - max), then reads out. Returns the sum of the exponentials.
template <typename Word>
__device__ __forceinline__ float softmax_readout(HalfWarp w, const Word* values, const int32_t* items,
                                                 int count, float* scores, float (&out)[kOwned]) {
  const float largest = largest_of(w, scores, count);
  __syncwarp(w.mask);
  exponentials(w, scores, count, largest, scores);
  const float total = readout(w, values, scores, items, count, out);
  __syncwarp(w.mask);  // the next scores overwrite these
  return total;
}

// In list order.
__device__ __forceinline__ float mean_of(const float* u, int count) {
  float sum = 0.0f;
#pragma unroll 4
  for (int j = 0; j < count; ++j) sum += u[j];
  return sum / static_cast<float>(count);
}

// ---------------------------------------------------------------------------- the whole step

// References of one sequence and the weights that read them.
template <typename Word>
struct AttentionView {
  const Word* references;  // [count][n][H]
  Projections projections;
  int n;
  float glimpse_bound, pointer_bound;
  const float* glimpse_v;  // [H]
  const float* pointer_v;  // [H]
  int glimpses;

  __device__ __forceinline__ const Word* slice(int index) const {
    return references + int64_t{index} * n * kHidden;
  }
  // Of pass g: the glimpses 0 .. glimpses - 1, then the pointer.
  __device__ __forceinline__ float bound(int g) const {
    return g == glimpses ? pointer_bound : glimpse_bound;
  }
  __device__ __forceinline__ const float* v(int g) const { return g == glimpses ? pointer_v : glimpse_v; }
  __device__ __forceinline__ const Word* scored(int g) const {
    return slice(g == glimpses ? projections.pointer : projections.glimpse);
  }
  __device__ __forceinline__ const Word* values(int g) const {
    return slice(g + 1 < glimpses ? projections.requeries : projections.values);
  }
};

struct PointerScores {
  float first;  // u of the first item
  bool direct;  // some row took the direct way
};

// Scores of every item, relative to the first, from the step's query: the glimpses, then the pointer.
template <bool kApproximate = false, typename Word>
__device__ __forceinline__ PointerScores pointer_scores(HalfWarp w, const AttentionView<Word>& a,
                                                        float (&query)[kOwned], const int32_t* items,
                                                        int count, float* scores) {
  PointerScores result{0.0f, false};
#pragma unroll 1
  for (int g = 0; g <= a.glimpses; ++g) {
    const Query q = prepare_query(w, query, a.bound(g));
    result.direct |= q.range == TanhRange::kDirect;
    float v[kOwned];
    load_owned(w, a.v(g), v);
    result.first = attention_scores<kApproximate>(w, a.scored(g), q, v, items[0], {items, count}, scores);
    if (g == a.glimpses) break;
    softmax_readout(w, a.values(g), items, count, scores, query);
  }
  return result;
}

// u -> logit(j, t) of t = tanh(u - shift). Returns how many |t| > 0.99.
template <typename Logit>
__device__ __forceinline__ int clipped_logits(HalfWarp w, float* u, int count, float shift, Share share,
                                              const Logit& logit) {
  int saturated = 0;
  for_each_item(w, count, share, [&](int j) {
    const float t = tanh_f32(u[j] - shift);
    saturated += t > 0.99f || t < -0.99f;
    u[j] = logit(j, t);
  });
  saturated = sum_lanes(w, saturated);
  __syncwarp(w.mask);
  return saturated;
}

}  // namespace pointsman::cuda
