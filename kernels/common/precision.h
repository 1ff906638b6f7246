// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <stdexcept>

namespace pointsman {

// How products of rollouts, and of an attention encoder in training, are made (docs/numbers.md). Everything
// but kFp32 needs tensor cores.
enum class Precision : int32_t {
  kFp32,    // one written order for every sum: the same bits everywhere
  kTf32,    // factors rounded to 11 bits
  kTf32x3,  // factors as sums of two such numbers: nearly fp32's error
  kBf16,    // factors rounded to 8 bits, and what the attention reads
};

inline constexpr const char* kPrecisionNames[] = {"fp32", "tf32", "tf32x3", "bf16"};
constexpr const char* name_of(Precision precision) { return kPrecisionNames[static_cast<int>(precision)]; }

// f.template operator()<kPrecision>() of that precision.
template <typename F>
decltype(auto) with_precision(Precision precision, F&& f) {
  switch (precision) {
    case Precision::kFp32:
      return f.template operator()<Precision::kFp32>();
    case Precision::kTf32:
      return f.template operator()<Precision::kTf32>();
    case Precision::kTf32x3:
      return f.template operator()<Precision::kTf32x3>();
    case Precision::kBf16:
      return f.template operator()<Precision::kBf16>();
  }
  throw std::logic_error("with_precision: no such precision");
}

}  // namespace pointsman
