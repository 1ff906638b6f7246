// SPDX-License-Identifier: Apache-2.0
// Glimpse and pointer with the factored tanh (docs/algebra.md, identities 2, 4, 5, 9). A score is
//   u_i = sum_d v_d tanh(a_id + q_d) = sum_d v_d - 2 sum_d v_d / x_id,  x = 1 + exp(2a) exp(2q),
// four denominators (d, d+16, d+32, d+48) joined over one division: some 3.5 fma-class operations an element.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/pointer_attention.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

inline constexpr int kVectors = kHidden / 16;

// Rows of the references, in the order of the remaining list.
struct Items {
  const int32_t* list;
  int count;
};

// A query, and what scores it against the items.
struct Query {
  F16 factor[kVectors];         // exp(2q); kDirect: q
  const float *references, *v;  // [n][H], [H]
  TanhRange range;
  bool references_are_raw;  // kDirect: the references hold a, not exp(2a)
};

HWY_NOINLINE Query prepare_query(const float* query, const float* references, float bound, const float* v) {
  F16 largest = splat(0.0f);
  for (int i = 0; i < kVectors; ++i) largest = max16(largest, abs16(load16(query + 16 * i)));
  const float query_bound = largest_lane(largest);
  Query q{{}, references, v, range_of(bound, query_bound), bound > kFactoredLimit};
  for (int i = 0; i < kVectors; ++i) {
    const F16 value = load16(query + 16 * i);
    q.factor[i] = q.range == TanhRange::kDirect ? value : exp16_bounded(value + value);
  }
  return q;
}

// exp(2 (a + q)) of 16 elements.
HWY_INLINE F16 direct_factor(const float* reference, const F16& q, bool raw) {
  const F16 held = load16(reference), a = raw ? held : splat(0.5f) * log16(held);
  return exp16(splat(2.0f) * (a + q));
}

template <TanhRange kRange>
HWY_INLINE F16 denominator(const float* reference, const Query& q, int i) {
  const F16 one = splat(1.0f);
  if constexpr (kRange == TanhRange::kDirect) {
    return min16(direct_factor(reference + 16 * i, q.factor[i], q.references_are_raw) + one,
                 splat(kDenominatorCap));
  } else {
    const F16 x = fma(load16(reference + 16 * i), q.factor[i], one);
    return kRange == TanhRange::kCapped ? min16(x, splat(kDenominatorCap)) : x;
  }
}

// 16 partial sums of v_d / x_d over one row.
template <TanhRange kRange>
HWY_INLINE F16 joined_quotients(const float* reference, const Query& q, const F16* v) {
  F16 sum[2];
  for (int half = 0; half < 2; ++half) {
    const int i = 4 * half;
    const F16 x0 = denominator<kRange>(reference, q, i), x1 = denominator<kRange>(reference, q, i + 1);
    const F16 x2 = denominator<kRange>(reference, q, i + 2), x3 = denominator<kRange>(reference, q, i + 3);
    const F16 n01 = fma(v[i], x1, v[i + 1] * x0), d01 = x0 * x1;
    const F16 n23 = fma(v[i + 2], x3, v[i + 3] * x2), d23 = x2 * x3;
    sum[half] = fma(n01, d23, n23 * d01) / (d01 * d23);
  }
  return sum[0] + sum[1];
}

// sum_d v_d in the written order of sums over H.
HWY_INLINE float sum_of(const F16* v) {
  F16 sum = v[0];
  for (int i = 1; i < kVectors; ++i) sum = sum + v[i];
  return sum16(sum);
}

// Scores relative to the first item's, scores[j] = u_j - u_0: what the rows share (in a trained network most
// of a score) goes before it can round the rest away. Returns u_0. sum: what they add up to, in list order;
// null: not wanted.
template <TanhRange kRange>
HWY_INLINE float scores_in_range(const Query& query, Items items, float* scores, float* sum) {
  const D4 d4;
  float total = 0.0f;
  const Query q = query;  // local: the stores below cannot alias it, so it stays in registers
  F16 v[kVectors];
  for (int i = 0; i < kVectors; ++i) v[i] = load16(q.v + 16 * i);
  const auto [list, count] = items;
  const F16 base = joined_quotients<kRange>(q.references + int64_t{list[0]} * kHidden, q, v);
  for (int j = 0; j < count; j += 4) {
    const float* row[4];
    for (int t = 0; t < 4; ++t) {
      row[t] = q.references + int64_t{list[j + t < count ? j + t : count - 1]} * kHidden;
    }
    const F16 s0 = joined_quotients<kRange>(row[0], q, v) - base,
              s1 = joined_quotients<kRange>(row[1], q, v) - base;
    const F16 s2 = joined_quotients<kRange>(row[2], q, v) - base,
              s3 = joined_quotients<kRange>(row[3], q, v) - base;
    hn::StoreU(hn::Mul(hn::Set(d4, -2.0f), sum_four(s0, s1, s2, s3)), d4, scores + j);
    // Here the chain of additions hides behind the next rows.
    if (sum != nullptr)
      for (int t = j; t < std::min(j + 4, count); ++t) total += scores[t];
  }
  if (sum != nullptr) *sum = total;
  return sum_of(v) - 2.0f * sum16(base);
}

// u_j - u_0 of each item; the last group of 16 is padded with the first score. Returns u_0. Not inlined: it
// is much code.
HWY_NOINLINE float attention_scores(const Query& q, Items items, float* scores, float* sum = nullptr) {
  const float first =
      q.range == TanhRange::kUncapped ? scores_in_range<TanhRange::kUncapped>(q, items, scores, sum)
      : q.range == TanhRange::kCapped ? scores_in_range<TanhRange::kCapped>(q, items, scores, sum)
                                      : scores_in_range<TanhRange::kDirect>(q, items, scores, sum);
  for (int j = items.count; j % 16 != 0; ++j) scores[j] = scores[0];
  return first;
}

// In place: u -> exp(u - max). Padding included.
HWY_NOINLINE void exponentials(float* u, int count) {
  F16 largest = load16(u);
  for (int j = 16; j < count; j += 16) largest = max16(largest, load16(u + j));
  const F16 shift = splat(largest_lane(largest));
  for (int j = 0; j < count; j += 16) store16(exp16(load16(u + j) - shift), u + j);
}

// out = sum_j e_j values[items[j]] / sum_j e_j; returns the sum of e.
HWY_INLINE float readout(const float* values, const float* e, const int32_t* items, int count, float* out) {
  F16 sum[kVectors];
  for (int i = 0; i < kVectors; ++i) sum[i] = splat(0.0f);
  float total = 0.0f;
  for (int j = 0; j < count; ++j) {
    const float* row = values + int64_t{items[j]} * kHidden;
    const F16 weight = splat(e[j]);
    total += e[j];
    for (int i = 0; i < kVectors; ++i) sum[i] = fma(weight, load16(row + 16 * i), sum[i]);
  }
  const F16 divisor = splat(total);
  for (int i = 0; i < kVectors; ++i) store16(sum[i] / divisor, out + 16 * i);
  return total;
}

// One step's activations inside their buffer.
template <typename Float>
struct Activations {
  Activations(Float* buffer, int count, int glimpses)
      : tanh_u(buffer),
        exponentials(tanh_u + padded(count)),
        readouts(exponentials + glimpses * padded(count)),
        sums(readouts + glimpses * kHidden) {}

  Float* tanh_u;        // [padded count] tanh(u - mean) of the pointer
  Float* exponentials;  // [glimpses][padded count] exp(u - max)
  Float* readouts;      // [glimpses][H]
  Float* sums;          // [glimpses] of the exponentials
};

// Scores, exponentials and readout of one glimpse. e: [count rounded up to 16] out. Returns the sum of e.
HWY_NOINLINE float glimpse_step(const Query& q, const float* values, Items items, float* e, float* out) {
  attention_scores(q, items, e);
  exponentials(e, items.count);
  return readout(values, e, items.list, items.count, out);
}

// Scores relative to `first`, which add up to `sum` -> tanh(u - mean), or tanh(u) without `centre`. Returns
// the mean of u over the items either way.
HWY_NOINLINE float centred_tanh(float* u, int count, float first, float sum, bool centre) {
  const float mean = sum / static_cast<float>(count);
  const F16 shift = splat(centre ? mean : -first);
  for (int j = 0; j < count; j += 16) store16(tanh16(load16(u + j) - shift), u + j);
  return mean + first;
}

// How many values of tanh are beyond .99 or below -.99.
HWY_INLINE int saturated_of(const float* t, int count) {
  size_t saturated = 0;
  for (int j = 0; j < count; j += 16) {
    const F16 size = abs16(first_of(load16(t + j), count - j, splat(0.0f)));
    for (int p = 0; p < kParts; ++p)
      saturated += hn::CountTrue(D(), hn::Gt(size.part[p], hn::Set(D(), 0.99f)));
  }
  return static_cast<int>(saturated);
}

const float* next_values(const References& r, int g, int glimpses) {
  return g + 1 < glimpses ? r.requeries : r.values;
}

// logits = scale tanh (+ prior)
HWY_INLINE void scale_logits(const float* t, const F16& scale, const float* prior, int count, float* logits) {
  for (int j = 0; j < count; j += 16) {
    const F16 value = load16(t + j);
    store16(prior == nullptr ? value * scale : fma(value, scale, load16(prior + j)), logits + j);
  }
}

void PointerLogits(const PointerLogitsArgs& a) {
  const References& r = *a.references;
  const AttentionWeights& w = *a.weights;
  const Activations<float> to(a.activations, a.count, w.glimpses);
  const Items items{a.items, a.count};
  const float* query = a.query;
  bool direct = false;
  for (int g = 0; g < w.glimpses; ++g) {
    const Query q = prepare_query(query, r.glimpse, r.glimpse_bound, w.glimpse_v);
    direct |= q.range == TanhRange::kDirect;
    float* out = to.readouts + g * kHidden;
    to.sums[g] =
        glimpse_step(q, next_values(r, g, w.glimpses), items, to.exponentials + g * padded(a.count), out);
    query = out;
  }
  const Query q = prepare_query(query, r.pointer, r.pointer_bound, w.pointer_v);
  direct |= q.range == TanhRange::kDirect;
  float* t = to.tanh_u;
  float sum;
  const float first = attention_scores(q, items, t, &sum);
  a.statistics->mean_u = centred_tanh(t, a.count, first, sum, w.centre);
  a.statistics->saturated = static_cast<float>(saturated_of(t, a.count)) / static_cast<float>(a.count);
  a.statistics->direct = direct;
  scale_logits(t, splat(w.scale), a.prior, a.count, a.logits);
}

void Glimpse(const GlimpseArgs& a) {
  glimpse_step(prepare_query(a.query, a.references, a.bound, a.v), a.values, {a.items, a.count}, a.scratch,
               a.out);
}

// s = 1 / x of four joined denominators.
HWY_INLINE void joined_reciprocals(const F16 x[4], F16 s[4]) {
  const F16 d01 = x[0] * x[1], d23 = x[2] * x[3];
  const F16 inverse = splat(1.0f) / (d01 * d23);
  const F16 inverse01 = inverse * d23, inverse23 = inverse * d01;
  s[0] = inverse01 * x[1];
  s[1] = inverse01 * x[0];
  s[2] = inverse23 * x[3];
  s[3] = inverse23 * x[2];
}

struct ScoreGradients {
  float* references;  // [n][H] += du_j tanh' in row items[j]
  float* v;           // [H] += sum_j du_j tanh
  float* query;       // [H] v sum_j du_j tanh'
};

// Backward of u_j = v . tanh(a_j + q) for all items, with tanh = (x - 2) / x.
template <TanhRange kRange>
HWY_INLINE void scores_gradient_in_range(const Query& query, Items items, const float* du,
                                         const ScoreGradients& to) {
  const Query q = query;
  const auto [sums, v_sums, dquery] = to;
  F16 dq[kVectors], dv[kVectors];
  for (int i = 0; i < kVectors; ++i) dq[i] = dv[i] = splat(0.0f);
  for (int j = 0; j < items.count; ++j) {
    const int64_t at = int64_t{items.list[j]} * kHidden;
    const F16 weight = splat(du[j]);
    for (int i = 0; i < kVectors; i += 4) {
      F16 x[4], s[4];
      for (int t = 0; t < 4; ++t) x[t] = denominator<kRange>(q.references + at, q, i + t);
      joined_reciprocals(x, s);
      for (int t = 0; t < 4; ++t) {
        float* sum = sums + at + 16 * (i + t);
        // Exact to the last bits also where tanh is small.
        const F16 minus_tanh = (splat(2.0f) - x[t]) * s[t];
        const F16 g = weight * fnma(minus_tanh, minus_tanh, splat(1.0f));
        store16(load16(sum) + g, sum);
        dq[i + t] = dq[i + t] + g;
        dv[i + t] = fnma(weight, minus_tanh, dv[i + t]);
      }
    }
  }
  for (int i = 0; i < kVectors; ++i) {
    store16(load16(q.v + 16 * i) * dq[i], dquery + 16 * i);
    store16(load16(v_sums + 16 * i) + dv[i], v_sums + 16 * i);
  }
}

HWY_NOINLINE void scores_gradient(const Query& q, Items items, const float* du, const ScoreGradients& to) {
  if (q.range == TanhRange::kUncapped) {
    scores_gradient_in_range<TanhRange::kUncapped>(q, items, du, to);
  } else if (q.range == TanhRange::kCapped) {
    scores_gradient_in_range<TanhRange::kCapped>(q, items, du, to);
  } else {
    scores_gradient_in_range<TanhRange::kDirect>(q, items, du, to);
  }
}

// Not normalised: exp(u - max), and their sum.
struct Softmax {
  const float* e;
  float total;
};

struct ReadoutGradients {
  float* values;  // [n][H] += p_j dout in row items[j]
  float* du;      // of the scores; may be the exponentials
};

// Backward of the softmax readout. dp: scratch.
HWY_NOINLINE void readout_gradient(const float* values, Items items, const Softmax& softmax,
                                   const float* dout, const ReadoutGradients& to, float* dp) {
  const int count = items.count;
  const auto [value_sums, du] = to;
  const D4 d4;
  F16 d[kVectors];
  for (int i = 0; i < kVectors; ++i) d[i] = load16(dout + 16 * i);
  // Relative to the first item's value, as the scores: only differences of dp matter.
  const float* base = values + int64_t{items.list[0]} * kHidden;
  for (int j = 0; j < count; j += 4) {
    F16 dot[4];
    for (int t = 0; t < 4; ++t) {
      const float* row = values + int64_t{items.list[j + t < count ? j + t : count - 1]} * kHidden;
      dot[t] = d[0] * (load16(row) - load16(base));
      for (int i = 1; i < kVectors; ++i) {
        dot[t] = fma(d[i], load16(row + 16 * i) - load16(base + 16 * i), dot[t]);
      }
    }
    hn::StoreU(sum_four(dot[0], dot[1], dot[2], dot[3]), d4, dp + j);
  }
  const float inverse = 1.0f / softmax.total;
  double weighted = 0.0, weights = 0.0;  // what the gradient cancels over must be the weights as rounded
  for (int j = 0; j < count; ++j) {
    du[j] = softmax.e[j] * inverse;
    weights += static_cast<double>(du[j]);
    weighted += static_cast<double>(du[j]) * static_cast<double>(dp[j]);
    const F16 p = splat(du[j]);
    float* sum = value_sums + int64_t{items.list[j]} * kHidden;
    for (int i = 0; i < kVectors; ++i) store16(fma(p, d[i], load16(sum + 16 * i)), sum + 16 * i);
  }
  const double mean = weighted / weights;
  for (int j = 0; j < count; ++j) {
    du[j] = static_cast<float>(static_cast<double>(du[j]) * (static_cast<double>(dp[j]) - mean));
  }
}

// tanh values t -> du of weight * log p(chosen); e: scratch. In double up to the last rounding: all rows of
// references are nearly alike in a fresh network, and the gradient of v is what is left after du cancels over
// them.
HWY_INLINE void log_softmax_gradient(const PointerGradientArgs& a, const float* t, float* e, float* du) {
  const AttentionWeights& w = *a.weights;
  const int count = a.count;
  scale_logits(t, splat(w.scale), a.prior, count, e);
  exponentials(e, count);
  double total = 0.0;
  for (int j = 0; j < count; ++j) total += static_cast<double>(e[j]);
  const double inverse = 1.0 / total, weight = static_cast<double>(a.weight);
  const double factor = weight * static_cast<double>(w.scale);
  const auto dlogit = [&](int j) {
    return (j == a.chosen ? 1.0 : 0.0) - static_cast<double>(e[j]) * inverse;
  };
  const auto dcentred = [&](int j) {
    return factor * dlogit(j) * (1.0 - static_cast<double>(t[j]) * static_cast<double>(t[j]));
  };
  for (int j = 0; a.dprior != nullptr && j < count; ++j) a.dprior[j] = static_cast<float>(weight * dlogit(j));
  double mean = 0.0;
  if (w.centre) {
    for (int j = 0; j < count; ++j) mean += dcentred(j);
    mean /= count;
  }
  for (int j = 0; j < count; ++j) du[j] = static_cast<float>(dcentred(j) - mean);
}

void PointerGradient(const PointerGradientArgs& a) {
  const References& r = *a.references;
  const AttentionWeights& w = *a.weights;
  const Activations<const float> forward(a.activations, a.count, w.glimpses);
  const Items items{a.items, a.count};
  float* du = a.scratch;
  float* work = du + padded(a.count);
  float* dquery = work + padded(a.count);  // [H]
  const auto query = [&](int g) { return g == 0 ? a.query : forward.readouts + (g - 1) * kHidden; };

  log_softmax_gradient(a, forward.tanh_u, work, du);
  scores_gradient(prepare_query(query(w.glimpses), r.pointer, r.pointer_bound, w.pointer_v), items, du,
                  {a.sums->pointer, a.sums->pointer_v, w.glimpses == 0 ? a.dquery : dquery});
  for (int g = w.glimpses - 1; g >= 0; --g) {
    readout_gradient(next_values(r, g, w.glimpses), items,
                     {forward.exponentials + g * padded(a.count), forward.sums[g]}, dquery,
                     {g + 1 < w.glimpses ? a.sums->requeries : a.sums->values, du}, work);
    scores_gradient(prepare_query(query(g), r.glimpse, r.glimpse_bound, w.glimpse_v), items, du,
                    {a.sums->glimpse, a.sums->glimpse_v, g == 0 ? a.dquery : dquery});
  }
}

void GlimpseGradient(const GlimpseGradientArgs& a) {
  const GlimpseArgs& f = a.forward;
  const Items items{f.items, f.count};
  const Query q = prepare_query(f.query, f.references, f.bound, f.v);
  const float total = glimpse_step(q, f.values, items, f.scratch, f.out);
  readout_gradient(f.values, items, {f.scratch, total}, a.dout, {a.value_sums, f.scratch}, a.scratch);
  scores_gradient(q, items, f.scratch, {a.reference_sums, a.v_sums, a.dquery});
}

float ExpReferences(float* values, int count) {
  F16 largest = splat(0.0f);
  for (int i = 0; i < count; i += 16) largest = max16(largest, abs16(load16(values + i)));
  const float bound = largest_lane(largest);
  if (bound > kFactoredLimit) return bound;
  for (int i = 0; i < count; i += 16) {
    const F16 x = load16(values + i);
    store16(exp16_bounded(x + x), values + i);
  }
  return bound;
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(PointerLogits);
HWY_EXPORT(PointerGradient);
HWY_EXPORT(Glimpse);
HWY_EXPORT(GlimpseGradient);
HWY_EXPORT(ExpReferences);

void pointer_logits(const PointerLogitsArgs& args) { HWY_DYNAMIC_DISPATCH(PointerLogits)(args); }
void pointer_gradient(const PointerGradientArgs& args) { HWY_DYNAMIC_DISPATCH(PointerGradient)(args); }
void glimpse(const GlimpseArgs& args) { HWY_DYNAMIC_DISPATCH(Glimpse)(args); }
void glimpse_gradient(const GlimpseGradientArgs& args) { HWY_DYNAMIC_DISPATCH(GlimpseGradient)(args); }
float exp_references(float* values, int count) { return HWY_DYNAMIC_DISPATCH(ExpReferences)(values, count); }

}  // namespace pointsman::cpu
#endif
