// SPDX-License-Identifier: Apache-2.0
// LSTM cell, pointwise part. Three divisions a unit instead of five: sigmoid(i) tanh(g) and sigmoid(o)
// tanh(c) are each one quotient of products.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/lstm.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

// sigmoid(x) = 1 / (1 + e^-x); beyond 60 it is 0 or 1 to 1e-26, and products of two denominators stay finite.
inline constexpr float kSigmoidLimit = 60.0f;

HWY_INLINE F16 sigmoid_denominator(const F16& x) {
  const F16 limited = clamp16(x, -kSigmoidLimit, kSigmoidLimit);
  return exp16_bounded(splat(0.0f) - limited) + splat(1.0f);
}

HWY_INLINE F16 gate(const LstmCellArgs& a, const float* products, const F16& x, const F16& y, int at) {
  const F16 sum = load16(products + at) + load16(a.bias + at);
  if (a.inputs == nullptr) return sum;
  return fma(load16(a.fold + kGates + at), y, fma(load16(a.fold + at), x, sum));
}

// What the second half of a cell needs of the first, of one row.
struct HalfCell {
  F16 c[kHidden / 16], d_o[kHidden / 16];
};

// c = sigmoid(f) c_in + sigmoid(i) tanh(g), and the output gate's denominator.
HWY_INLINE HalfCell next_states(const LstmCellArgs& a, int64_t row) {
  const F16 one = splat(1.0f), two = splat(2.0f);
  const float* products = a.products + row * a.ld;
  const F16 x = splat(a.inputs == nullptr ? 0.0f : a.inputs[2 * row]);
  const F16 y = splat(a.inputs == nullptr ? 0.0f : a.inputs[2 * row + 1]);
  HalfCell half;
  for (int d = 0; d < kHidden; d += 16) {
    const F16 di = sigmoid_denominator(gate(a, products, x, y, d));
    const F16 df = sigmoid_denominator(gate(a, products, x, y, kHidden + d));
    const F16 ng = tanh_numerator16(gate(a, products, x, y, 2 * kHidden + d));
    const F16 d_o = sigmoid_denominator(gate(a, products, x, y, 3 * kHidden + d));
    const F16 dg = ng + two;
    half.c[d / 16] = load16(a.c_in + row * kHidden + d) / df + ng / (di * dg);
    half.d_o[d / 16] = d_o;
    if (a.cells == nullptr) continue;
    float* cells = a.cells + row * kLstmCell + d;
    store16(one / di, cells);
    store16(one / df, cells + kHidden);
    store16(ng / dg, cells + 2 * kHidden);
    store16(one / d_o, cells + 3 * kHidden);
  }
  return half;
}

// In two passes: tanh(c) waits for the longest chain of the first, and would keep the next units' gates out
// of the processor's window.
void LstmCell(const LstmCellArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    const HalfCell half = next_states(a, row);
    for (int d = 0; d < kHidden; d += 16) {
      const F16 c = half.c[d / 16], nc = tanh_numerator16(c), dc = nc + splat(2.0f);
      store16(c, a.c_out + row * kHidden + d);
      store16(nc / (half.d_o[d / 16] * dc), a.h_out + row * kHidden + d);
      if (a.cells != nullptr) store16(nc / dc, a.cells + row * kLstmCell + 4 * kHidden + d);
    }
  }
}

void LstmCellBackward(const LstmCellBackwardArgs& a) {
  for (int64_t row = 0; row < a.rows; ++row) {
    for (int d = 0; d < kHidden; d += 16) {
      float* cells = a.cells + row * kLstmCell + d;
      const F16 i = load16(cells), f = load16(cells + kHidden), g = load16(cells + 2 * kHidden);
      const F16 o = load16(cells + 3 * kHidden), tanh_c = load16(cells + 4 * kHidden);
      const F16 dh = load16(a.dh + row * kHidden + d);
      const F16 dh_o = dh * o;
      const F16 dc = load16(a.dc + row * kHidden + d) + fnma(dh_o * tanh_c, tanh_c, dh_o);
      const F16 dc_i = dc * i;
      const F16 d_i = dc_i * g;  // still without the factor (1 - i)
      const F16 d_f = dc * load16(a.c_prev + row * kHidden + d) * f;
      const F16 d_o = dh_o * tanh_c;
      store16(fnma(d_i, i, d_i), cells);
      store16(fnma(d_f, f, d_f), cells + kHidden);
      store16(fnma(dc_i * g, g, dc_i), cells + 2 * kHidden);
      store16(fnma(d_o, o, d_o), cells + 3 * kHidden);
      store16(dc * f, a.dc + row * kHidden + d);
    }
  }
}

HWY_INLINE void add_to(const F16& x, float* sum) { store16(load16(sum) + x, sum); }

// Rows first .. last - 1 of one block.
HWY_INLINE void column_sums_block(const ColumnSumsArgs& a, int first, int last) {
  const bool start = first < a.start_rows;
  for (int j = 0; j < kGates; j += 16) {
    F16 sum = splat(0.0f), x = sum, y = sum;
    for (int64_t row = first; row < last; ++row) {
      const F16 g = load16(a.dgates + row * a.ld + j);
      sum = sum + g;
      if (start) continue;
      x = fma(g, splat(a.inputs[2 * row]), x);
      y = fma(g, splat(a.inputs[2 * row + 1]), y);
    }
    add_to(sum, a.bias + j);
    if (start) {
      add_to(sum, a.start + j);
    } else {
      add_to(x, a.fold + j);
      add_to(y, a.fold + kGates + j);
    }
  }
}

void ColumnSums(const ColumnSumsArgs& a) {
  constexpr int kBlock = 128;
  for (int first = 0; first < a.rows;) {
    const int end = first < a.start_rows ? a.start_rows : a.rows;
    const int last = first + kBlock < end ? first + kBlock : end;
    column_sums_block(a, first, last);
    first = last;
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(LstmCell);
HWY_EXPORT(LstmCellBackward);
HWY_EXPORT(ColumnSums);

void lstm_cell(const LstmCellArgs& args) { HWY_DYNAMIC_DISPATCH(LstmCell)(args); }
void lstm_cell_backward(const LstmCellBackwardArgs& args) { HWY_DYNAMIC_DISPATCH(LstmCellBackward)(args); }
void accumulate_columns(const ColumnSumsArgs& args) { HWY_DYNAMIC_DISPATCH(ColumnSums)(args); }

}  // namespace pointsman::cpu
#endif
