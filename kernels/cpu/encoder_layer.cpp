// SPDX-License-Identifier: Apache-2.0
// What a layer of the attention encoder does beside its products. Rows have H floats unless noted.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/encoder_layer.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cmath>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

using Row = Vectors<kHidden / kLanes>;

HWY_INLINE float sum_row(const Row& row) {
  F16 sum;
#pragma GCC unroll 32
  for (int p = 0; p < Row::kSize; ++p) {
    V& part = sum.part[p % kParts];
    part = p < kParts ? row.part[p] : hn::Add(part, row.part[p]);
  }
  return sum16(sum);
}
HWY_INLINE float mean_of_row(const Row& row) { return sum_row(row) * (1.0f / kHidden); }

void Embed(const float* features, int width, const float* embedding, int rows, float* out) {
  if (width == 2) {
    const Row e0 = load<Row>(embedding), e1 = load<Row>(embedding + kHidden);
    for (int64_t r = 0; r < rows; ++r)
      store16(fma(e1, splat<Row>(features[2 * r + 1]), e0 * splat<Row>(features[2 * r])), out + r * kHidden);
    return;
  }
  for (int64_t r = 0; r < rows; ++r, features += width) {
    Row sum = load<Row>(embedding) * splat<Row>(features[0]);
    for (int i = 1; i < width; ++i)
      sum = fma(load<Row>(embedding + i * kHidden), splat<Row>(features[i]), sum);
    store16(sum, out + r * kHidden);
  }
}

void EmbedBackward(const float* features, int width, const float* dout, int rows, float* sum) {
  for (int i = 0; i < width; ++i) {
    Row own = load<Row>(sum + i * kHidden);
    for (int64_t r = 0; r < rows; ++r)
      own = fma(load<Row>(dout + r * kHidden), splat<Row>(features[r * width + i]), own);
    store16(own, sum + i * kHidden);
  }
}

void LayerNorm(const LayerNormArgs& a) {
  const Row weight = load<Row>(a.weight), bias = load<Row>(a.bias);
  for (int64_t r = 0; r < a.rows; ++r) {
    Row x = load<Row>(a.x + r * kHidden);
    const float mean = mean_of_row(x);
    x = x - splat<Row>(mean);
    const float inverse = 1.0f / std::sqrt(mean_of_row(x * x) + kNormEpsilon);
    store16(fma(x * splat<Row>(inverse), weight, bias), a.y + r * kHidden);
    a.statistics[2 * r] = mean;
    a.statistics[2 * r + 1] = inverse;
  }
}

void LayerNormBackward(const LayerNormBackwardArgs& a) {
  const Row weight = load<Row>(a.weight);
  Row dweight = load<Row>(a.dweight), dbias = load<Row>(a.dbias);
  for (int64_t r = 0; r < a.rows; ++r) {
    const Row scale = splat<Row>(a.statistics[2 * r + 1]), dy = load<Row>(a.dy + r * kHidden);
    const Row x = (load<Row>(a.x + r * kHidden) - splat<Row>(a.statistics[2 * r])) * scale, g = dy * weight;
    dweight = fma(dy, x, dweight);
    dbias = dbias + dy;
    const Row mean_g = splat<Row>(mean_of_row(g)), mean_gx = splat<Row>(mean_of_row(g * x));
    float* dx = a.dx + r * kHidden;
    store16(fma(scale, fnma(x, mean_gx, g - mean_g), load<Row>(dx)), dx);
  }
  store16(dweight, a.dweight);
  store16(dbias, a.dbias);
}

void AddBias(float* x, const float* bias, int rows, int width) {
  for (int r = 0; r < rows; ++r, x += width) {
    for (int j = 0; j < width; j += 16) store16(load16(x + j) + load16(bias + j), x + j);
  }
}

void SumColumns(const float* x, int rows, int width, float* sum) {
  for (int j = 0; j < width; j += 16) {
    F16 total = load16(sum + j);
    for (int r = 0; r < rows; ++r) total = total + load16(x + int64_t{r} * width + j);
    store16(total, sum + j);
  }
}

void ReluBackward(const float* y, float* dy, int64_t count) {
  const D d;
  for (int64_t i = 0; i < count; i += kLanes) {
    const auto positive = hn::Gt(hn::LoadU(d, y + i), hn::Zero(d));
    hn::StoreU(hn::IfThenElseZero(positive, hn::LoadU(d, dy + i)), d, dy + i);
  }
}

// One head: its columns begin at `column` of q, k and v.
struct Head {
  int n, padded_n, width, column;
  float scale;  // 1 / sqrt(width)

  Head(const SelfAttentionArgs& a, int h)
      : n(a.n),
        padded_n(padded(a.n)),
        width(kHidden / a.heads),
        column(h * width),
        scale(1.0f / std::sqrt(static_cast<float>(width))) {}
};

// Rows j of x [n][3H], `width` columns, as multiply() reads W = x: panels of 16 items, zeros behind the last.
HWY_INLINE void pack_items(const float* x, const Head& head, float* packed) {
  for (int first = 0; first < head.padded_n; first += 16) {
    float* panel = packed + int64_t{first} * head.width;
    for (int c = 0; c < 16; ++c) {
      const float* row = x + int64_t{first + c} * 3 * kHidden;
      for (int k = 0; k < head.width; ++k) panel[16 * k + c] = first + c < head.n ? row[k] : 0.0f;
    }
  }
}

// The same x as multiply() reads W = x^T: panels of 16 columns.
HWY_INLINE void pack_columns(const float* x, const Head& head, float* packed) {
  for (int c = 0; c < head.width; c += 16) {
    for (int j = 0; j < head.n; ++j) {
      store16(load16(x + int64_t{j} * 3 * kHidden + c), packed);
      packed += 16;
    }
  }
}

// scores [4][padded_n] -> e, in place; the padding becomes 0. The sums of e go to totals. Four rows at once,
// for each waits for its largest score and its sum.
HWY_INLINE void softmax_four(float* scores, const Head& head, float* totals) {
  const int last = head.padded_n - 16, left = head.n - last;
  F16 shift[4], sum[4];
  for (int i = 0; i < 4; ++i) {
    const float* row = scores + int64_t{i} * head.padded_n;
    F16 largest = first_of(load16(row + last), left, splat(row[last]));
    for (int j = 0; j < last; j += 16) largest = max16(largest, load16(row + j));
    shift[i] = splat(largest_lane(largest));
  }
  const F16 scale = splat(head.scale), zero = splat(0.0f);
  for (int j = 0; j <= last; j += 16) {
    for (int i = 0; i < 4; ++i) {
      float* at = scores + int64_t{i} * head.padded_n + j;
      F16 e = exp16((load16(at) - shift[i]) * scale);
      if (j == last) e = first_of(e, left, zero);
      sum[i] = j == 0 ? e : sum[i] + e;
      store16(e, at);
    }
  }
  hn::StoreU(sum_four(sum[0], sum[1], sum[2], sum[3]), D4(), totals);
}

// The same of `rows` rows, at most kAttentionBlock; behind them room for three.
HWY_INLINE void softmax_weights(float* scores, int rows, const Head& head, float* totals) {
  for (int i = rows; i % 4 != 0; ++i) std::fill_n(scores + int64_t{i} * head.padded_n, head.padded_n, 0.0f);
  for (int i = 0; i < rows; i += 4) softmax_four(scores + int64_t{i} * head.padded_n, head, totals + i);
}

void SelfAttention(const SelfAttentionArgs& a) {
  float* const keys = a.scratch;
  float* const values = keys + int64_t{padded(a.n)} * kHidden;
  float* const scores = values + int64_t{padded(a.n)} * kHidden;
  StopMeter meter(a.stop);
  for (int h = 0; h < a.heads; ++h) {
    const Head head(a, h);
    pack_items(a.qkv + kHidden + head.column, head, keys);
    pack_columns(a.qkv + 2 * kHidden + head.column, head, values);
    for (int first = 0; first < a.n; first += kAttentionBlock) {
      meter.check(a.n);
      const int rows = std::min(kAttentionBlock, a.n - first);
      const float* q = a.qkv + int64_t{first} * 3 * kHidden + head.column;
      float* out = a.out + int64_t{first} * kHidden + head.column;
      multiply({q, 3 * kHidden, keys, scores, head.padded_n, rows, head.width, head.padded_n, false});
      float totals[kAttentionBlock];
      softmax_weights(scores, rows, head, totals);
      multiply({scores, head.padded_n, values, out, kHidden, rows, a.n, head.width, false});
      for (int i = 0; i < rows; ++i) {
        const F16 total = splat(totals[i]);
        for (int c = 0; c < head.width; c += 16) {
          float* at = out + int64_t{i} * kHidden + c;
          store16(load16(at) / total, at);
        }
      }
    }
  }
}

// e and the gradient of the weights p = e / total -> p and the gradient of the scores, in place.
HWY_INLINE void softmax_backward(float* e, float total, float* dp, const Head& head) {
  const F16 inverse = splat(1.0f / total), scale = splat(head.scale);
  F16 sum = splat(0.0f);
  for (int j = 0; j < head.padded_n; j += 16) {
    const F16 p = load16(e + j) * inverse;
    store16(p, e + j);
    sum = fma(p, load16(dp + j), sum);
  }
  const F16 mean = splat(sum16(sum));
  for (int j = 0; j < head.padded_n; j += 16)
    store16(load16(e + j) * (load16(dp + j) - mean) * scale, dp + j);
}

// Where the four packed matrices of a head and two blocks of scores lie in the scratch.
struct BackwardScratch {
  float *key_items, *key_columns, *value_items, *p, *dp;

  BackwardScratch(float* scratch, int n)
      : key_items(scratch),
        key_columns(key_items + int64_t{padded(n)} * kHidden),
        value_items(key_columns + int64_t{padded(n)} * kHidden),
        p(value_items + int64_t{padded(n)} * kHidden),
        dp(p + int64_t{padded(n)} * kAttentionBlock) {}
};

void SelfAttentionBackward(const SelfAttentionBackwardArgs& a) {
  const SelfAttentionArgs& f = a.forward;
  const BackwardScratch s(f.scratch, f.n);
  constexpr int kWidth = 3 * kHidden;
  StopMeter meter(f.stop);
  for (int i = 0; i < f.n; ++i) std::fill_n(a.dqkv + int64_t{i} * kWidth, kWidth, 0.0f);
  for (int h = 0; h < f.heads; ++h) {
    const Head head(f, h);
    pack_items(f.qkv + kHidden + head.column, head, s.key_items);
    pack_columns(f.qkv + kHidden + head.column, head, s.key_columns);
    pack_items(f.qkv + 2 * kHidden + head.column, head, s.value_items);
    for (int first = 0; first < f.n; first += kAttentionBlock) {
      meter.check(f.n);
      const int rows = std::min(kAttentionBlock, f.n - first);
      const int64_t at = int64_t{first} * kWidth + head.column;
      const float *q = f.qkv + at, *dout = a.dout + int64_t{first} * kHidden + head.column;
      multiply({q, kWidth, s.key_items, s.p, head.padded_n, rows, head.width, head.padded_n, false});
      multiply({dout, kHidden, s.value_items, s.dp, head.padded_n, rows, head.width, head.padded_n, false});
      float totals[kAttentionBlock];
      softmax_weights(s.p, rows, head, totals);
      for (int i = 0; i < rows; ++i) {
        const int64_t row = int64_t{i} * head.padded_n;
        softmax_backward(s.p + row, totals[i], s.dp + row, head);
      }
      multiply({s.dp, head.padded_n, s.key_columns, a.dqkv + at, kWidth, rows, f.n, head.width, false});
      float* const dk = a.dqkv + kHidden + head.column;
      accumulate_outer({s.dp, head.padded_n, q, kWidth, dk, kWidth, rows, f.n, head.width});
      accumulate_outer({s.p, head.padded_n, dout, kHidden, dk + kHidden, kWidth, rows, f.n, head.width});
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(Embed);
HWY_EXPORT(EmbedBackward);
HWY_EXPORT(LayerNorm);
HWY_EXPORT(LayerNormBackward);
HWY_EXPORT(AddBias);
HWY_EXPORT(SumColumns);
HWY_EXPORT(ReluBackward);
HWY_EXPORT(SelfAttention);
HWY_EXPORT(SelfAttentionBackward);

void embed(const float* features, int width, const float* embedding, int rows, float* out) {
  HWY_DYNAMIC_DISPATCH(Embed)(features, width, embedding, rows, out);
}
void embed_backward(const float* features, int width, const float* dout, int rows, float* sum) {
  HWY_DYNAMIC_DISPATCH(EmbedBackward)(features, width, dout, rows, sum);
}
void layer_norm(const LayerNormArgs& args) { HWY_DYNAMIC_DISPATCH(LayerNorm)(args); }
void layer_norm_backward(const LayerNormBackwardArgs& args) { HWY_DYNAMIC_DISPATCH(LayerNormBackward)(args); }
void add_bias(float* x, const float* bias, int rows, int width) {
  HWY_DYNAMIC_DISPATCH(AddBias)(x, bias, rows, width);
}
void sum_columns(const float* x, int rows, int width, float* sum) {
  HWY_DYNAMIC_DISPATCH(SumColumns)(x, rows, width, sum);
}
void relu_backward(const float* y, float* dy, int64_t count) {
  HWY_DYNAMIC_DISPATCH(ReluBackward)(y, dy, count);
}
void self_attention(const SelfAttentionArgs& args) { HWY_DYNAMIC_DISPATCH(SelfAttention)(args); }
void self_attention_backward(const SelfAttentionBackwardArgs& args) {
  HWY_DYNAMIC_DISPATCH(SelfAttentionBackward)(args);
}

}  // namespace pointsman::cpu
#endif
