// SPDX-License-Identifier: Apache-2.0
// Products of the network's fixed widths. multiply: 8 rows x 48 columns (AVX-512) or 6 x 16 (AVX2) or 6 x 8
// (SSE4) stay in registers while k walks upward; a panel of 48 columns is 24 KB at k = 128, so L1 keeps it
// for the next rows. Of one vector's columns it takes twice the rows, to hide the latency of fma.
// accumulate_outer: the tall products of the weight gradients, as many sums in registers over blocks of 128
// rows. A sum is one chain of fma whatever the tile, so its shape changes no bit.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matrix_multiply.cpp"
#include <hwy/cache_control.h>
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

// Vectors of a register tile's width and rows of it: 24 sums on AVX-512 (32 registers), 12 elsewhere (16).
inline constexpr int kTileVectors = kLanes == 16 ? 3 : 2;
inline constexpr int kTileRows = kLanes == 16 ? 8 : 6;
constexpr int rows_of_tile(int vectors) { return vectors == 1 ? 2 * kTileRows : kTileRows; }

// Vectors of the next tile where `left` are left of the row. A tile of one vector has too few sums to hide
// the latency of fma, so a last one that could have been two is avoided.
HWY_INLINE int next_vectors(int left) {
  if (left == kTileVectors + 1) return 2;
  return left < kTileVectors ? left : kTileVectors;
}

// What a row's sums become, and where they go.
template <int kVectors>
HWY_INLINE void store_sums(const MultiplyArgs& a, int row, int column, const V* sum) {
  const D d;
  const int64_t at = int64_t{row} * a.ldy + column;
#pragma GCC unroll 4
  for (int j = 0; j < kVectors; ++j) {
    float* y = a.y + at + j * kLanes;
    V value = sum[j];
    if (a.bias != nullptr) {
      V base = hn::LoadU(d, a.bias + column + j * kLanes);
      if (a.residual != nullptr) base = hn::Add(hn::LoadU(d, a.residual + at + j * kLanes), base);
      value = hn::Add(base, value);
      if (a.relu) value = hn::Max(value, hn::Zero(d));
    } else if (a.accumulate) {
      value = hn::Add(hn::LoadU(d, y), value);
    }
    hn::StoreU(value, d, y);
  }
}

template <int kRows, int kVectors>
HWY_INLINE void multiply_tile(const MultiplyArgs& a, int row, int column) {
  const D d;
  const float* x = a.x + int64_t{row} * a.ldx;
  const float* panel[kVectors];
  V sum[kRows][kVectors];
  for (int j = 0; j < kVectors; ++j) {
    const int c = column + j * kLanes;
    panel[j] = a.packed + int64_t{c / 16} * a.k * 16 + c % 16;
    for (int i = 0; i < kRows; ++i) sum[i][j] = hn::Zero(d);
  }
#pragma GCC unroll 2
  for (int k = 0; k < a.k; ++k) {
    V b[kVectors];
    for (int j = 0; j < kVectors; ++j) b[j] = hn::LoadU(d, panel[j] + 16 * k);
    for (int i = 0; i < kRows; ++i) {
      const V s = hn::Set(d, x[int64_t{i} * a.ldx + k]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(s, b[j], sum[i][j]);
    }
  }
#pragma GCC unroll 16
  for (int i = 0; i < kRows; ++i) store_sums<kVectors>(a, row + i, column, sum[i]);
}

// The last rows, kRows of them or fewer.
template <int kRows, int kVectors>
HWY_INLINE void multiply_rest(const MultiplyArgs& a, int row, int column) {
  if (a.rows - row == kRows) {
    multiply_tile<kRows, kVectors>(a, row, column);
  } else if constexpr (kRows > 1) {
    multiply_rest<kRows - 1, kVectors>(a, row, column);
  }
}

// One panel: `vectors`, kVectors or fewer.
template <int kVectors>
HWY_INLINE void multiply_panel(const MultiplyArgs& a, int vectors, int column) {
  if (vectors == kVectors) {
    constexpr int kRows = rows_of_tile(kVectors);
    int row = 0;
    for (; row + kRows <= a.rows; row += kRows) multiply_tile<kRows, kVectors>(a, row, column);
    multiply_rest<kRows - 1, kVectors>(a, row, column);
  } else if constexpr (kVectors > 1) {
    multiply_panel<kVectors - 1>(a, vectors, column);
  }
}

void Multiply(const MultiplyArgs& a) {
  for (int column = 0; column < a.columns;) {
    const int vectors = next_vectors((a.columns - column) / kLanes);
    multiply_panel<kTileVectors>(a, vectors, column);
    column += vectors * kLanes;
  }
}

inline constexpr int kOuterBlock = 128;
inline constexpr int kPrefetchRows = 12;  // of x, ahead: they lie too far apart for the processor to guess

// sum[0..kRows)[0..kVectors) += x^T panel over a.rows rows; panel: [rows][kVectors * kLanes].
template <int kRows, int kVectors>
HWY_INLINE void outer_tile(const OuterArgs& a, const float* panel) {
  const D d;
  V acc[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      acc[i][j] = hn::Zero(d);
      hwy::Prefetch(a.sum + int64_t{i} * a.ldsum + j * kLanes);  // wanted at the end
    }
  }
  const float* x = a.x;
  for (int r = 0; r < a.rows; ++r) {
    hwy::Prefetch(x + kPrefetchRows * int64_t{a.ldx});
    V b[kVectors];
    for (int j = 0; j < kVectors; ++j) b[j] = hn::LoadU(d, panel + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const V s = hn::Set(d, x[i]);
      for (int j = 0; j < kVectors; ++j) acc[i][j] = hn::MulAdd(s, b[j], acc[i][j]);
    }
    x += a.ldx;
    panel += kVectors * kLanes;
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      float* out = a.sum + int64_t{i} * a.ldsum + j * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, out), acc[i][j]), d, out);
    }
  }
}

// The last rows of the sum, kRows of them or fewer.
template <int kRows, int kVectors>
HWY_INLINE void outer_rest(const OuterArgs& a, const float* panel) {
  if (a.m == kRows) {
    outer_tile<kRows, kVectors>(a, panel);
  } else if constexpr (kRows > 1) {
    outer_rest<kRows - 1, kVectors>(a, panel);
  }
}

// One block of at most kOuterBlock rows and one panel of a.n columns, kVectors * kLanes or fewer.
template <int kVectors>
HWY_INLINE void outer_panel(OuterArgs a, float* panel) {
  if (a.n == kVectors * kLanes) {
    // Rows of y may lie a power of two apart: copied together, they do not fight for the same cache sets.
    for (int r = 0; r < a.rows; ++r) {
      for (int j = 0; j < a.n; j += kLanes) {
        hn::StoreU(hn::LoadU(D(), a.y + int64_t{r} * a.ldy + j), D(), panel + r * a.n + j);
      }
    }
    for (; a.m >= kTileRows; a.m -= kTileRows) {
      outer_tile<kTileRows, kVectors>(a, panel);
      a.x += kTileRows;
      a.sum += kTileRows * int64_t{a.ldsum};
    }
    outer_rest<kTileRows - 1, kVectors>(a, panel);
  } else if constexpr (kVectors > 1) {
    outer_panel<kVectors - 1>(a, panel);
  }
}

void AccumulateOuter(const OuterArgs& a) {
  alignas(64) float panel[kOuterBlock * kTileVectors * kLanes];
  for (int first = 0; first < a.rows; first += kOuterBlock) {
    OuterArgs block = a;
    block.rows = a.rows - first < kOuterBlock ? a.rows - first : kOuterBlock;
    block.x += int64_t{first} * a.ldx;
    for (int column = 0; column < a.n; column += block.n) {
      block.n = next_vectors((a.n - column) / kLanes) * kLanes;
      block.y = a.y + int64_t{first} * a.ldy + column;
      block.sum = a.sum + column;
      outer_panel<kTileVectors>(block, panel);
    }
  }
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(Multiply);
HWY_EXPORT(AccumulateOuter);

void multiply(const MultiplyArgs& args) { HWY_DYNAMIC_DISPATCH(Multiply)(args); }
void accumulate_outer(const OuterArgs& args) { HWY_DYNAMIC_DISPATCH(AccumulateOuter)(args); }

void pack(const PackArgs& a) {
  const int64_t along = a.transposed ? a.ld : 1, across = a.transposed ? 1 : a.ld;
  float* out = a.packed;
  for (int first = 0; first < a.columns; first += 16) {
    for (int k = 0; k < a.k; ++k) {
      for (int c = 0; c < 16; ++c) *out++ = a.weights[(first + c) * across + k * along];
    }
  }
}

}  // namespace pointsman::cpu
#endif
