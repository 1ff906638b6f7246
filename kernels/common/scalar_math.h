// SPDX-License-Identifier: Apache-2.0
// exp, tanh and log in single precision from fma, compare and integer operations only, so that the CPU's
// vectors, the CUDA kernels and this scalar form give the same bits. kernels/cpu/simd-inl.h writes the same
// steps on vectors.
//
// exp(x) = 2^k exp(r), k = round(x / ln 2), |r| <= ln 2 / 2, exp(r) = 1 + r + r^2 P(r) with P of degree 4
// (minimax, 1.4e-8 relative to r); log(x) = e ln 2 + log1p(t), t in [sqrt(1/2) - 1, sqrt(2) - 1].
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "kernels/common/host_device.h"

namespace pointsman {

namespace math {
inline constexpr float kLog2E = 1.44269504f;
inline constexpr float kLn2Hi = 0.693115234375f;  // 12 bits, so that k * kLn2Hi is exact
inline constexpr float kLn2Lo = 3.1946183e-5f;
inline constexpr float kRoundMagic = 12582912.0f;  // 1.5 * 2^23: adding it rounds to the nearest integer
// Scalars, not arrays: device code may not name a constant array of the host.
inline constexpr float kExpP0 = 0.5f, kExpP1 = 0.16666541993618011f, kExpP2 = 0.04166628047823906f,
                       kExpP3 = 0.008366644382476807f, kExpP4 = 0.0013946554390713573f;
inline constexpr float kExpMin = -87.0f, kExpMax = 88.0f;  // the result stays normal and finite
inline constexpr float kTanhMax = 9.2f;                    // tanh(9.2) = 1 - 2.0e-8, 1 in single precision
inline constexpr float kLogP0 = 0.33333316445350647f, kLogP1 = -0.25000810623168945f,
                       kLogP2 = 0.2000228613615036f, kLogP3 = -0.16624553501605988f,
                       kLogP4 = 0.14181192219257355f, kLogP5 = -0.13128754496574402f,
                       kLogP6 = 0.12881647050380707f, kLogP7 = -0.07859611511230469f;
}  // namespace math

POINTSMAN_HOST_DEVICE inline float clamp_f32(float x, float low, float high) {
  return x < low ? low : (x > high ? high : x);
}

struct ExpParts {
  float scale;      // 2^k
  float remainder;  // exp(r) - 1
};

// x within [kExpMin, kExpMax].
POINTSMAN_HOST_DEVICE inline ExpParts exp_parts(float x) {
  const float shifted = ::fmaf(x, math::kLog2E, math::kRoundMagic);
  const float k = shifted - math::kRoundMagic;
  const float r = ::fmaf(-k, math::kLn2Lo, ::fmaf(-k, math::kLn2Hi, x));
  float p = ::fmaf(math::kExpP4, r, math::kExpP3);
  p = ::fmaf(p, r, math::kExpP2);
  p = ::fmaf(p, r, math::kExpP1);
  p = ::fmaf(p, r, math::kExpP0);
  uint32_t bits;
  std::memcpy(&bits, &shifted, 4);
  bits = (bits + 127u) << 23;
  ExpParts parts;
  std::memcpy(&parts.scale, &bits, 4);
  parts.remainder = ::fmaf(r * r, p, r);
  return parts;
}

// x within [kExpMin, kExpMax].
POINTSMAN_HOST_DEVICE inline float exp_bounded_f32(float x) {
  const ExpParts e = exp_parts(x);
  return (e.remainder + 1.0f) * e.scale;
}

POINTSMAN_HOST_DEVICE inline float exp_f32(float x) {
  return exp_bounded_f32(clamp_f32(x, math::kExpMin, math::kExpMax));
}

// tanh(x) = m / (m + 2), m = exp(2x) - 1: full relative accuracy near 0.
POINTSMAN_HOST_DEVICE inline float tanh_f32(float x) {
  const float limited = clamp_f32(x, -math::kTanhMax, math::kTanhMax);
  const ExpParts e = exp_parts(limited + limited);
  const float m = ::fmaf(e.scale, e.remainder, e.scale - 1.0f);
  return m / (m + 2.0f);
}

// x positive, normal and finite.
POINTSMAN_HOST_DEVICE inline float log_f32(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  // Subtracting sqrt(1/2)'s bits makes the mantissa split at sqrt(2).
  const int32_t exponent = static_cast<int32_t>(bits - 0x3F3504F3u) >> 23;
  bits -= static_cast<uint32_t>(exponent) << 23;
  float mantissa;
  std::memcpy(&mantissa, &bits, 4);
  const float t = mantissa - 1.0f;
  float p = ::fmaf(math::kLogP7, t, math::kLogP6);
  p = ::fmaf(p, t, math::kLogP5);
  p = ::fmaf(p, t, math::kLogP4);
  p = ::fmaf(p, t, math::kLogP3);
  p = ::fmaf(p, t, math::kLogP2);
  p = ::fmaf(p, t, math::kLogP1);
  p = ::fmaf(p, t, math::kLogP0);
  const float k = static_cast<float>(exponent);
  const float t2 = t * t;
  const float small = ::fmaf(t2 * t, p, k * math::kLn2Lo);
  return ::fmaf(k, math::kLn2Hi, ::fmaf(-0.5f, t2, small) + t);
}

// The factored tanh (docs/algebra.md, identity 4): tanh(a + q) = 1 - 2 / x, x = 1 + exp(2a) exp(2q). Where
// |a| and |q| lie decides how x is formed, on every device alike.
inline constexpr float kFactoredLimit = 20.0f;  // |a| and |q| up to which exp(2a) exp(2q) is exact
inline constexpr float kUncappedLimit = 10.0f;  // max|a| + max|q| up to which no cap is needed
inline constexpr float kDenominatorCap = 1e9f;  // four joined denominators stay finite

enum class TanhRange {
  kUncapped,  // max|a| + max|q| <= 10: four x multiply to less than 6e34
  kCapped,    // each within 20: x = min(x, 1e9), at most 2e-9 wrong in the tanh
  kDirect,    // beyond: exp(2 (a + q)) element by element, since exp(2a) alone would overflow
};

// From the largest |a| and the largest |q|.
POINTSMAN_HOST_DEVICE inline TanhRange range_of(float references, float query) {
  if (references > kFactoredLimit || query > kFactoredLimit) return TanhRange::kDirect;
  return references + query <= kUncappedLimit ? TanhRange::kUncapped : TanhRange::kCapped;
}

}  // namespace pointsman
