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

// Four vectors go through exp together: one alone would wait for itself at every step.
using Four = Vectors<4>;

// The gates' sums of units at .. at + kLanes - 1 of a row. x, y: its first two inputs.
template <bool kHasMore>
HWY_INLINE Four gate_sums(const LstmCellArgs& a, int64_t row, const float* products, const V& x, const V& y,
                          int at) {
  Four sums;
  for (int gate = 0; gate < 4; ++gate, at += kHidden) {
    V sum = hn::Add(hn::LoadU(D(), products + at), hn::LoadU(D(), a.bias + at));
    if (a.inputs != nullptr) {
      sum = hn::MulAdd(hn::LoadU(D(), a.fold + at), x, sum);
      sum = hn::MulAdd(hn::LoadU(D(), a.fold + kGates + at), y, sum);
    }
    for (int i = 2; kHasMore && i < a.width; ++i) {
      const V input = hn::Set(D(), a.inputs[row * a.width + i]);
      sum = hn::MulAdd(hn::LoadU(D(), a.fold + i * kGates + at), input, sum);
    }
    sums.part[gate] = sum;
  }
  return sums;
}

struct Gates {
  V di, df, d_o;  // denominators of the sigmoids
  V ng, dg;       // tanh(g) = ng / dg
};

// What a gate does not need of what is written for all four is not compiled.
HWY_INLINE Gates activated(const Four& sums) {
  const Four g = clamp16(sums, -math::kTanhMax, math::kTanhMax);
  Four x = splat<Four>(0.0f) - clamp16(sums, -kSigmoidLimit, kSigmoidLimit);
  x.part[2] = (g + g).part[2];
  const ExpParts<Four> e = exp_parts16(x);
  const Four denominators = exp_of(e) + splat<Four>(1.0f);
  const V ng = exp_minus_one(e).part[2];
  return {denominators.part[0], denominators.part[1], denominators.part[3], ng,
          hn::Add(ng, hn::Set(D(), 2.0f))};
}

// What the second half of a cell needs of the first, of one row.
struct HalfCell {
  HWY_ALIGN float c[kHidden], d_o[kHidden];
};

// c = sigmoid(f) c_in + sigmoid(i) tanh(g), and the output gate's denominator.
template <bool kHasMore>
HWY_INLINE void next_states(const LstmCellArgs& a, int64_t row, HalfCell& half) {
  const V one = hn::Set(D(), 1.0f);
  const float* products = a.products + row * a.ld;
  const V x = hn::Set(D(), a.inputs == nullptr ? 0.0f : a.inputs[row * a.width]);
  const V y = hn::Set(D(), a.inputs == nullptr ? 0.0f : a.inputs[row * a.width + 1]);
  for (int d = 0; d < kHidden; d += kLanes) {
    const Gates gates = activated(gate_sums<kHasMore>(a, row, products, x, y, d));
    const V kept = hn::Div(hn::LoadU(D(), a.c_in + row * kHidden + d), gates.df);
    hn::Store(hn::Add(kept, hn::Div(gates.ng, hn::Mul(gates.di, gates.dg))), D(), half.c + d);
    hn::Store(gates.d_o, D(), half.d_o + d);
    if (a.cells == nullptr) continue;
    float* cells = a.cells + row * kLstmCell + d;
    hn::StoreU(hn::Div(one, gates.di), D(), cells);
    hn::StoreU(hn::Div(one, gates.df), D(), cells + kHidden);
    hn::StoreU(hn::Div(gates.ng, gates.dg), D(), cells + 2 * kHidden);
    hn::StoreU(hn::Div(one, gates.d_o), D(), cells + 3 * kHidden);
  }
}

// In two passes: tanh(c) waits for the longest chain of the first, and would keep the next units' gates out
// of the processor's window.
template <bool kHasMore>
HWY_INLINE void lstm_cells(const LstmCellArgs& a) {
  HalfCell half;
  for (int64_t row = 0; row < a.rows; ++row) {
    next_states<kHasMore>(a, row, half);
    for (int d = 0; d < kHidden; d += Four::kFloats) {
      const Four c = load<Four>(half.c + d), nc = tanh_numerator16(c), dc = nc + splat<Four>(2.0f);
      store16(c, a.c_out + row * kHidden + d);
      store16(nc / (load<Four>(half.d_o + d) * dc), a.h_out + row * kHidden + d);
      if (a.cells != nullptr) store16(nc / dc, a.cells + row * kLstmCell + 4 * kHidden + d);
    }
  }
}

void LstmCell(const LstmCellArgs& a) {
  if (a.inputs != nullptr && a.width > 2) {
    lstm_cells<true>(a);
  } else {
    lstm_cells<false>(a);
  }
}

void LstmCellBackward(int rows, float* cells, const float* c_prev, const float* dh, float* dc) {
  for (int64_t row = 0; row < rows; ++row) {
    for (int d = 0; d < kHidden; d += 16) {
      const int64_t at = row * kHidden + d;
      float* gates = cells + row * kLstmCell + d;
      const F16 i = load16(gates), f = load16(gates + kHidden), g = load16(gates + 2 * kHidden);
      const F16 o = load16(gates + 3 * kHidden), tanh_c = load16(gates + 4 * kHidden);
      const F16 dh_o = load16(dh + at) * o;
      const F16 d_c = load16(dc + at) + fnma(dh_o * tanh_c, tanh_c, dh_o);
      const F16 dc_i = d_c * i;
      const F16 d_i = dc_i * g;  // still without the factor (1 - i)
      const F16 d_f = d_c * load16(c_prev + at) * f;
      const F16 d_o = dh_o * tanh_c;
      store16(fnma(d_i, i, d_i), gates);
      store16(fnma(d_f, f, d_f), gates + kHidden);
      store16(fnma(dc_i * g, g, dc_i), gates + 2 * kHidden);
      store16(fnma(d_o, o, d_o), gates + 3 * kHidden);
      store16(d_c * f, dc + at);
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
      x = fma(g, splat(a.inputs[row * a.width]), x);
      y = fma(g, splat(a.inputs[row * a.width + 1]), y);
    }
    add_to(sum, a.bias + j);
    if (start) {
      add_to(sum, a.start + j);
    } else {
      add_to(x, a.fold + j);
      add_to(y, a.fold + kGates + j);
    }
    for (int i = 2; i < a.width; ++i) {
      F16 more = splat(0.0f);
      for (int64_t row = first; row < last; ++row)
        more = fma(load16(a.dgates + row * a.ld + j), splat(a.inputs[row * a.width + i]), more);
      add_to(more, a.fold + i * kGates + j);
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
void lstm_cell_backward(int rows, float* cells, const float* c_prev, const float* dh, float* dc) {
  HWY_DYNAMIC_DISPATCH(LstmCellBackward)(rows, cells, c_prev, dh, dc);
}
void accumulate_columns(const ColumnSumsArgs& args) { HWY_DYNAMIC_DISPATCH(ColumnSums)(args); }

}  // namespace pointsman::cpu
#endif
