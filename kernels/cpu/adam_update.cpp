// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma & Ba 2015), the gradient's L2 clip folded in: one pass over parameters, moments, gradient.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/adam_update.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

HWY_INLINE F16 sqrt16(const F16& a) {
  F16 r;
  for (int p = 0; p < kParts; ++p) r.part[p] = hn::Sqrt(a.part[p]);
  return r;
}

// Sixteen parameters. m <- b1 m + (1 - b1) g, v <- b2 v + (1 - b2) g^2,
// p <- p - lr (m / c1) / (sqrt(v / c2) + eps).
HWY_INLINE void adam16(const AdamArgs& a, float* p, float* m1, float* m2, float* gradient) {
  const F16 g = load16(gradient) * splat(a.gradient_scale);
  const F16 m = fma(splat(a.beta1), load16(m1), splat(1.0f - a.beta1) * g);
  const F16 v = fma(splat(a.beta2), load16(m2), splat(1.0f - a.beta2) * (g * g));
  const F16 denominator = sqrt16(v / splat(a.correction2)) + splat(a.epsilon);
  store16(fnma(splat(a.learning_rate), (m / splat(a.correction1)) / denominator, load16(p)), p);
  store16(m, m1);
  store16(v, m2);
  store16(splat(0.0f), gradient);
}

void Adam(const AdamArgs& a) {
  int64_t i = 0;
  for (; i + 16 <= a.count; i += 16) {
    adam16(a, a.parameters + i, a.first_moment + i, a.second_moment + i, a.gradient + i);
  }
  if (i == a.count) return;
  float tail[4][16] = {};
  float* arrays[4] = {a.parameters + i, a.first_moment + i, a.second_moment + i, a.gradient + i};
  for (int t = 0; t < 4; ++t) std::copy_n(arrays[t], a.count - i, tail[t]);
  adam16(a, tail[0], tail[1], tail[2], tail[3]);
  for (int t = 0; t < 4; ++t) std::copy_n(tail[t], a.count - i, arrays[t]);
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(Adam);

void adam_update(const AdamArgs& args) { HWY_DYNAMIC_DISPATCH(Adam)(args); }

double squared_norm(const float* x, int64_t count) {
  double sum[8] = {};
  int64_t i = 0;
  for (; i + 8 <= count; i += 8) {
    for (int t = 0; t < 8; ++t) sum[t] += static_cast<double>(x[i + t]) * static_cast<double>(x[i + t]);
  }
  for (int t = 0; i < count; ++i, ++t) sum[t] += static_cast<double>(x[i]) * static_cast<double>(x[i]);
  return ((sum[0] + sum[4]) + (sum[2] + sum[6])) + ((sum[1] + sum[5]) + (sum[3] + sum[7]));
}

}  // namespace pointsman::cpu
#endif
