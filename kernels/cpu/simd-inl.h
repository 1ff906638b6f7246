// SPDX-License-Identifier: Apache-2.0
// Sixteen floats at a time on any target, one AVX-512 vector, two of AVX2, four of SSE4; or any number of
// vectors. Every sum over the hidden size is 16 strided partial sums joined by one fixed tree, so all targets
// with fma give the same bits. Included once per target by Highway's foreach_target, so its guard toggles
// with the target.

#include <hwy/highway.h>

#include <algorithm>

#include "kernels/common/scalar_math.h"

#if defined(POINTSMAN_CPU_SIMD_INL_H) == defined(HWY_TARGET_TOGGLE)
#ifdef POINTSMAN_CPU_SIMD_INL_H
#undef POINTSMAN_CPU_SIMD_INL_H
#else
#define POINTSMAN_CPU_SIMD_INL_H
#endif

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

using D = hn::CappedTag<float, 16>;
using DI = hn::RebindToSigned<D>;
using D4 = hn::CappedTag<float, 4>;
using V = hn::Vec<D>;
using V4 = hn::Vec<D4>;
inline constexpr int kLanes = static_cast<int>(hn::MaxLanes(D()));
inline constexpr int kParts = 16 / kLanes;

// Vectors that take every step together.
template <int kCount>
struct Vectors {
  static constexpr int kSize = kCount, kFloats = kCount * kLanes;
  V part[kCount];
};
using F16 = Vectors<kParts>;

// Vectors of part(0), part(1), ..
template <typename X, typename Part>
HWY_INLINE X made_of(const Part& part) {
  X r;
#pragma GCC unroll 32
  for (int p = 0; p < X::kSize; ++p) r.part[p] = part(p);
  return r;
}

template <typename X = F16>
HWY_INLINE X splat(float x) {
  return made_of<X>([&](int) HWY_ATTR { return hn::Set(D(), x); });
}
template <typename X>
HWY_INLINE X load(const float* x) {
  return made_of<X>([&](int p) HWY_ATTR { return hn::LoadU(D(), x + p * kLanes); });
}
HWY_INLINE F16 load16(const float* x) { return load<F16>(x); }
template <int K>
HWY_INLINE void store16(const Vectors<K>& a, float* x) {
#pragma GCC unroll 32
  for (int p = 0; p < K; ++p) hn::StoreU(a.part[p], D(), x + p * kLanes);
}
template <int K>
HWY_INLINE Vectors<K> operator+(const Vectors<K>& a, const Vectors<K>& b) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::Add(a.part[p], b.part[p]); });
}
template <int K>
HWY_INLINE Vectors<K> operator-(const Vectors<K>& a, const Vectors<K>& b) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::Sub(a.part[p], b.part[p]); });
}
template <int K>
HWY_INLINE Vectors<K> operator*(const Vectors<K>& a, const Vectors<K>& b) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::Mul(a.part[p], b.part[p]); });
}
template <int K>
HWY_INLINE Vectors<K> operator/(const Vectors<K>& a, const Vectors<K>& b) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::Div(a.part[p], b.part[p]); });
}
// a * b + c in one rounding (two on SSE4, which has no fma).
template <int K>
HWY_INLINE Vectors<K> fma(const Vectors<K>& a, const Vectors<K>& b, const Vectors<K>& c) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::MulAdd(a.part[p], b.part[p], c.part[p]); });
}
// c - a * b
template <int K>
HWY_INLINE Vectors<K> fnma(const Vectors<K>& a, const Vectors<K>& b, const Vectors<K>& c) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::NegMulAdd(a.part[p], b.part[p], c.part[p]); });
}
template <int K>
HWY_INLINE Vectors<K> min16(const Vectors<K>& a, const Vectors<K>& b) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::Min(a.part[p], b.part[p]); });
}
template <int K>
HWY_INLINE Vectors<K> max16(const Vectors<K>& a, const Vectors<K>& b) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::Max(a.part[p], b.part[p]); });
}
template <int K>
HWY_INLINE Vectors<K> abs16(const Vectors<K>& a) {
  return made_of<Vectors<K>>([&](int p) HWY_ATTR { return hn::Abs(a.part[p]); });
}
template <int K>
HWY_INLINE Vectors<K> clamp16(const Vectors<K>& x, float low, float high) {
  return min16(max16(x, splat<Vectors<K>>(low)), splat<Vectors<K>>(high));
}
HWY_INLINE float largest_lane(const F16& a) {
  V m = a.part[0];
  for (int p = 1; p < kParts; ++p) m = hn::Max(m, a.part[p]);
  return hn::GetLane(hn::MaxOfLanes(D(), m));
}

// The first `count` of x, and for the rest y.
HWY_INLINE F16 first_of(const F16& x, int count, const F16& y) {
  F16 r;
  for (int p = 0; p < kParts; ++p) {
    const auto taken = hn::FirstN(D(), static_cast<size_t>(std::clamp(count - p * kLanes, 0, kLanes)));
    r.part[p] = hn::IfThenElse(taken, x.part[p], y.part[p]);
  }
  return r;
}

template <typename X>
struct ExpParts {
  X scale, remainder;
};
// The steps of exp_parts() in kernels/common/scalar_math.h.
template <typename X>
HWY_INLINE ExpParts<X> exp_parts16(const X& x) {
  const X magic = splat<X>(math::kRoundMagic);
  const X shifted = fma(x, splat<X>(math::kLog2E), magic);
  const X k = shifted - magic;
  const X r = fnma(k, splat<X>(math::kLn2Lo), fnma(k, splat<X>(math::kLn2Hi), x));
  X poly = fma(splat<X>(math::kExpP4), r, splat<X>(math::kExpP3));
  poly = fma(poly, r, splat<X>(math::kExpP2));
  poly = fma(poly, r, splat<X>(math::kExpP1));
  poly = fma(poly, r, splat<X>(math::kExpP0));
  ExpParts<X> e;
  for (int p = 0; p < X::kSize; ++p) {
    const auto bits = hn::Add(hn::BitCast(DI(), shifted.part[p]), hn::Set(DI(), 127));
    e.scale.part[p] = hn::BitCast(D(), hn::ShiftLeft<23>(bits));
  }
  e.remainder = fma(r * r, poly, r);
  return e;
}
template <typename X>
HWY_INLINE X exp_of(const ExpParts<X>& e) {
  return (e.remainder + splat<X>(1.0f)) * e.scale;
}
template <typename X>
HWY_INLINE X exp_minus_one(const ExpParts<X>& e) {
  return fma(e.scale, e.remainder, e.scale - splat<X>(1.0f));
}
// x already within [kExpMin, kExpMax].
template <typename X>
HWY_INLINE X exp16_bounded(const X& x) {
  return exp_of(exp_parts16(x));
}
template <typename X>
HWY_INLINE X exp16(const X& x) {
  return exp16_bounded(clamp16(x, math::kExpMin, math::kExpMax));
}
// x positive, normal and finite: the steps of log_f32() in kernels/common/scalar_math.h.
HWY_INLINE F16 log16(const F16& x) {
  F16 t, k;
  for (int p = 0; p < kParts; ++p) {
    const auto bits = hn::BitCast(DI(), x.part[p]);
    const auto exponent = hn::ShiftRight<23>(hn::Sub(bits, hn::Set(DI(), 0x3F3504F3)));
    t.part[p] = hn::BitCast(D(), hn::Sub(bits, hn::ShiftLeft<23>(exponent)));
    k.part[p] = hn::ConvertTo(D(), exponent);
  }
  t = t - splat(1.0f);
  F16 poly = fma(splat(math::kLogP7), t, splat(math::kLogP6));
  for (const float coefficient :
       {math::kLogP5, math::kLogP4, math::kLogP3, math::kLogP2, math::kLogP1, math::kLogP0})
    poly = fma(poly, t, splat(coefficient));
  const F16 t2 = t * t, small = fma(t2 * t, poly, k * splat(math::kLn2Lo));
  return fma(k, splat(math::kLn2Hi), fma(splat(-0.5f), t2, small) + t);
}
// exp(2x) - 1 with |x| limited to where tanh is 1.
template <typename X>
HWY_INLINE X tanh_numerator16(const X& x) {
  const X limited = clamp16(x, -math::kTanhMax, math::kTanhMax);
  return exp_minus_one(exp_parts16(limited + limited));
}
HWY_INLINE F16 tanh16(const F16& x) {
  const F16 m = tanh_numerator16(x);
  return m / (m + splat(2.0f));
}

// First two levels of the tree: lanes l, l+8 then l, l+4. Leaves four partial sums. Templates, so that each
// target compiles just its own branch.
template <typename V8>
HWY_INLINE V4 fold_eight(const V8& v) {
  return hn::Add(hn::LowerHalf(D4(), v), hn::UpperHalf(D4(), v));
}
template <typename F>
HWY_INLINE V4 fold_to_four(const F& a) {
  if constexpr (kParts == 4) {
    return hn::Add(hn::Add(a.part[0], a.part[2]), hn::Add(a.part[1], a.part[3]));
  } else if constexpr (kParts == 2) {
    return fold_eight(hn::Add(a.part[0], a.part[1]));
  } else {
    const hn::CappedTag<float, 8> d8;
    return fold_eight(hn::Add(hn::LowerHalf(d8, a.part[0]), hn::UpperHalf(d8, a.part[0])));
  }
}
// The sums of four vectors: lanes l, l+2 then l, l+1 of each.
HWY_INLINE V4 sum_four(const F16& a, const F16& b, const F16& c, const F16& d) {
  const D4 d4;
  const V4 a4 = fold_to_four(a), b4 = fold_to_four(b), c4 = fold_to_four(c), d4v = fold_to_four(d);
  const V4 ab = hn::Add(hn::ConcatLowerLower(d4, b4, a4), hn::ConcatUpperUpper(d4, b4, a4));
  const V4 cd = hn::Add(hn::ConcatLowerLower(d4, d4v, c4), hn::ConcatUpperUpper(d4, d4v, c4));
  return hn::Add(hn::ConcatEven(d4, cd, ab), hn::ConcatOdd(d4, cd, ab));
}
HWY_INLINE float sum16(const F16& a) { return hn::GetLane(sum_four(a, a, a, a)); }

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();
#endif
