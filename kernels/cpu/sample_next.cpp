// SPDX-License-Identifier: Apache-2.0
// Softmax over the remaining items as running sums in list order: the last is the normaliser, and a draw is
// the first position whose running sum reaches u times it.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sample_next.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

void SoftmaxPrefix(const SoftmaxPrefixArgs& a) {
  // The tail of the last 16 may hold anything: only real logits may decide the maximum.
  float largest = a.logits[0];
  for (int j = 1; j < a.count; ++j) largest = a.logits[j] > largest ? a.logits[j] : largest;
  *a.largest = largest;
  const F16 shift = splat(largest);
  for (int j = 0; j < a.count; j += 16) store16(exp16(load16(a.logits + j) - shift), a.prefix + j);
  double weighted = 0.0;  // sum of e (logit - max)
  if (a.entropy != nullptr) {
    for (int j = 0; j < a.count; ++j) {
      weighted += static_cast<double>(a.prefix[j]) * static_cast<double>(a.logits[j] - largest);
    }
  }
  float running = 0.0f;
  for (int j = 0; j < a.count; ++j) {
    running += a.prefix[j];
    a.prefix[j] = running;
  }
  if (a.entropy != nullptr) *a.entropy = static_cast<double>(log_f32(running)) - weighted / running;
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(SoftmaxPrefix);

void softmax_prefix(const SoftmaxPrefixArgs& args) { HWY_DYNAMIC_DISPATCH(SoftmaxPrefix)(args); }

}  // namespace pointsman::cpu
#endif
