// SPDX-License-Identifier: Apache-2.0
// The factored tanh (docs/algebra.md, identity 4): tanh(a + q) = 1 - 2 / x, x = 1 + exp(2a) exp(2q). Where
// |a| and |q| lie decides how x is formed, on every device alike.
#pragma once

#include "kernels/common/host_device.h"

namespace pointsman {

inline constexpr float kFactoredLimit = 20.0f;  // |a| and |q| up to which exp(2a) exp(2q) is exact
inline constexpr float kUncappedLimit = 10.0f;  // max|a| + max|q| up to which no cap is needed
inline constexpr float kDenominatorCap = 1e9f;  // four joined denominators stay finite

enum class Range {
  kUncapped,  // max|a| + max|q| <= 10: four x multiply to less than 6e34
  kCapped,    // each within 20: x = min(x, 1e9), at most 2e-9 wrong in the tanh
  kDirect,    // beyond: exp(2 (a + q)) element by element, since exp(2a) alone would overflow
};

// From the largest |a| and the largest |q|.
POINTSMAN_HOST_DEVICE inline Range range_of(float references, float query) {
  if (references > kFactoredLimit || query > kFactoredLimit) return Range::kDirect;
  return references + query <= kUncappedLimit ? Range::kUncapped : Range::kCapped;
}

}  // namespace pointsman
