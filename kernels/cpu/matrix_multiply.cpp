// SPDX-License-Identifier: Apache-2.0
// Products of the network's fixed widths. multiply: 6 rows x 64 columns (AVX-512) or x 16 (AVX2) or x 8
// (SSE4) stay in registers while k walks upward; a panel of 64 columns is 32 KB at k = 128, so it is read
// from L2 once per tile of rows. accumulate_outer: the tall products of the weight gradients, 6 x 64 sums in
// registers over blocks of 128 rows.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/matrix_multiply.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

// Vectors of a register tile's width and rows of it: 24 sums on AVX-512 (32 registers), 12 elsewhere (16).
inline constexpr int kTileVectors = kLanes == 16 ? 4 : 2;
inline constexpr int kTileColumns = kTileVectors * kLanes;
inline constexpr int kTileRows = 6;

// columns is what is left of the row: a multiple of 16, so a narrower tile ends it.
template <int kRows, int kVectors>
HWY_INLINE void multiply_tile(const MultiplyArgs& a, int row, int column) {
  const D d;
  const float* x = a.x + static_cast<int64_t>(row) * a.ldx;
  const float* panel[kVectors];
  V sum[kRows][kVectors];
  for (int j = 0; j < kVectors; ++j) {
    const int c = column + j * kLanes;
    panel[j] = a.packed + static_cast<int64_t>(c / 16) * a.k * 16 + c % 16;
    for (int i = 0; i < kRows; ++i) sum[i][j] = hn::Zero(d);
  }
  for (int k = 0; k < a.k; ++k) {
    V b[kVectors];
    for (int j = 0; j < kVectors; ++j) b[j] = hn::LoadU(d, panel[j] + 16 * k);
    for (int i = 0; i < kRows; ++i) {
      const V s = hn::Set(d, x[static_cast<int64_t>(i) * a.ldx + k]);
      for (int j = 0; j < kVectors; ++j) sum[i][j] = hn::MulAdd(s, b[j], sum[i][j]);
    }
  }
  for (int i = 0; i < kRows; ++i) {
    float* y = a.y + static_cast<int64_t>(row + i) * a.ldy + column;
    for (int j = 0; j < kVectors; ++j) {
      V value = sum[i][j];
      if (a.accumulate) value = hn::Add(hn::LoadU(d, y + j * kLanes), value);
      hn::StoreU(value, d, y + j * kLanes);
    }
  }
}

template <int kVectors>
HWY_INLINE void multiply_column(const MultiplyArgs& a, int column) {
  int row = 0;
  for (; row + kTileRows <= a.rows; row += kTileRows) multiply_tile<kTileRows, kVectors>(a, row, column);
  switch (a.rows - row) {
    case 5:
      multiply_tile<5, kVectors>(a, row, column);
      break;
    case 4:
      multiply_tile<4, kVectors>(a, row, column);
      break;
    case 3:
      multiply_tile<3, kVectors>(a, row, column);
      break;
    case 2:
      multiply_tile<2, kVectors>(a, row, column);
      break;
    case 1:
      multiply_tile<1, kVectors>(a, row, column);
      break;
    default:
      break;
  }
}

void Multiply(const MultiplyArgs& a) {
  int column = 0;
  for (; column + kTileColumns <= a.columns; column += kTileColumns) multiply_column<kTileVectors>(a, column);
  for (; column < a.columns; column += kLanes) multiply_column<1>(a, column);
}

inline constexpr int kOuterBlock = 128;

// sum[0..kRows)[0..kVectors) += x^T y over `rows` rows.
template <int kRows, int kVectors>
HWY_INLINE void outer_tile(const float* x, int64_t ldx, const float* y, int ldy, int rows, float* sum,
                           int ldsum) {
  const D d;
  V acc[kRows][kVectors];
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) acc[i][j] = hn::Zero(d);
  }
  for (int r = 0; r < rows; ++r) {
    V b[kVectors];
    for (int j = 0; j < kVectors; ++j) b[j] = hn::LoadU(d, y + j * kLanes);
    for (int i = 0; i < kRows; ++i) {
      const V s = hn::Set(d, x[i]);
      for (int j = 0; j < kVectors; ++j) acc[i][j] = hn::MulAdd(s, b[j], acc[i][j]);
    }
    x += ldx;
    y += ldy;
  }
  for (int i = 0; i < kRows; ++i) {
    for (int j = 0; j < kVectors; ++j) {
      float* out = sum + static_cast<int64_t>(i) * ldsum + j * kLanes;
      hn::StoreU(hn::Add(hn::LoadU(d, out), acc[i][j]), d, out);
    }
  }
}

template <int kVectors>
HWY_INLINE void outer_rows(int m, const float* x, int64_t ldx, const float* y, int ldy, int rows, float* sum,
                           int ldsum) {
  switch (m) {
    case 6:
      outer_tile<6, kVectors>(x, ldx, y, ldy, rows, sum, ldsum);
      break;
    case 5:
      outer_tile<5, kVectors>(x, ldx, y, ldy, rows, sum, ldsum);
      break;
    case 4:
      outer_tile<4, kVectors>(x, ldx, y, ldy, rows, sum, ldsum);
      break;
    case 3:
      outer_tile<3, kVectors>(x, ldx, y, ldy, rows, sum, ldsum);
      break;
    case 2:
      outer_tile<2, kVectors>(x, ldx, y, ldy, rows, sum, ldsum);
      break;
    default:
      outer_tile<1, kVectors>(x, ldx, y, ldy, rows, sum, ldsum);
      break;
  }
}

void AccumulateOuter(const OuterArgs& a) {
  alignas(64) float panel[kOuterBlock * kTileColumns];
  for (int first = 0; first < a.rows; first += kOuterBlock) {
    const int rows = a.rows - first < kOuterBlock ? a.rows - first : kOuterBlock;
    for (int column = 0; column < a.n; column += kTileColumns) {
      const int width = a.n - column < kTileColumns ? a.n - column : kTileColumns;
      const float* y = a.y + static_cast<int64_t>(first) * a.ldy + column;
      // Rows of y may lie a power of two apart: copied together, they do not fight for the same cache sets.
      for (int r = 0; r < rows; ++r) {
        for (int j = 0; j < width; j += kLanes) {
          hn::StoreU(hn::LoadU(D(), y + static_cast<int64_t>(r) * a.ldy + j), D(),
                     panel + r * kTileColumns + j);
        }
      }
      for (int i = 0; i < a.m; i += kTileRows) {
        const int m = a.m - i < kTileRows ? a.m - i : kTileRows;
        const float* x = a.x + static_cast<int64_t>(first) * a.ldx + i;
        float* sum = a.sum + static_cast<int64_t>(i) * a.ldsum + column;
        if (width == kTileColumns) {
          outer_rows<kTileVectors>(m, x, a.ldx, panel, kTileColumns, rows, sum, a.ldsum);
        } else {
          for (int j = 0; j < width; j += kLanes) {
            outer_rows<1>(m, x, a.ldx, panel + j, kTileColumns, rows, sum + j, a.ldsum);
          }
        }
      }
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
  for (int c = 0; c < a.columns; ++c) {
    float* out = a.packed + static_cast<int64_t>(c / 16) * a.k * 16 + c % 16;
    for (int k = 0; k < a.k; ++k) {
      out[16 * k] = a.transposed ? a.weights[static_cast<int64_t>(k) * a.ld + c]
                                 : a.weights[static_cast<int64_t>(c) * a.ld + k];
    }
  }
}

}  // namespace pointsman::cpu
#endif
