// SPDX-License-Identifier: Apache-2.0
// How far products on tensor cores may be from double.
#pragma once

#include "kernels/common/precision.h"
#include "kernels/cuda/cuda_operations.h"

namespace pointsman {

inline constexpr Precision kPrecisions[] = {Precision::kTf32, Precision::kTf32x3, Precision::kBf16};

// Most that a product of two factors can be wrong by, of itself. tf32 keeps 11 bits of each and bf16 8, the
// nearest; tf32x3 loses 2^-22 of each factor's rest and the product of the rests.
inline double factor_error(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return 2 * 0x1p-11 + 0x1p-22;
    case Precision::kTf32x3:
      return 3 * 0x1p-22;
    case Precision::kBf16:
      return 2 * 0x1p-8 + 0x1p-16;
    case Precision::kFp32:
      break;
  }
  return 0.0;
}

// Most that a number of a reference row can be wrong by, of itself.
inline double reference_error(Precision precision) {
  return cuda::packs_references(precision) ? 0x1p-8 : 0.0;
}

// Sums of `terms` products, three each in tf32x3, in adders that may truncate: 2^-23 an addition.
inline double sum_error(Precision precision, int terms) {
  return (precision == Precision::kTf32x3 ? 3 : 1) * terms * 0x1p-23;
}

}  // namespace pointsman
