// SPDX-License-Identifier: Apache-2.0
// Softmax over the remaining items as running sums in list order: the last is the normaliser, and a draw is
// the first position whose running sum reaches u times it. Where samples share steps there are many draws for
// one softmax, so the random numbers are made for 16 samples at once.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/sample_next.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "kernels/common/philox.h"
#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

float SoftmaxPrefix(const float* logits, int count, float* prefix, double* entropy) {
  // The tail of the last 16 may hold anything: only real logits may decide the maximum.
  const int last = padded(count) - 16;
  F16 most = first_of(load16(logits + last), count - last, splat(logits[last]));
  for (int j = 0; j < last; j += 16) most = max16(most, load16(logits + j));
  const float largest = largest_lane(most);
  const F16 shift = splat(largest);
  for (int j = 0; j < count; j += 16) store16(exp16(load16(logits + j) - shift), prefix + j);
  double weighted = 0.0;  // sum of e (logit - max)
  for (int j = 0; entropy != nullptr && j < count; ++j)
    weighted += static_cast<double>(prefix[j]) * static_cast<double>(logits[j] - largest);
  float running = 0.0f;
  for (int j = 0; j < count; ++j) {
    running += prefix[j];
    prefix[j] = running;
  }
  if (entropy != nullptr) *entropy = static_cast<double>(log_f32(running)) - weighted / running;
  return largest;
}

using DU = hn::RebindToUnsigned<D>;
using DWide = hn::RepartitionToWide<DU>;
using Words = hn::Vec<DWide>;  // numbers of 32 bits, each in 64; what lies above them may be anything

HWY_INLINE Words wide(uint32_t x) { return hn::Set(DWide(), uint64_t{x}); }
// The whole product of two.
HWY_INLINE Words product(const Words& a, const Words& b) {
  return hn::MulEven(hn::BitCast(DU(), a), hn::BitCast(DU(), b));
}

// The first word of philox4x32(seed, {sample, instance}, step), kernels/common/philox.h, for each lane.
HWY_INLINE Words first_words(const UniformsArgs& a, const Words& samples, const Words& instances) {
  const uint64_t key = a.seed ^ stream::kSampling;
  uint32_t k0 = static_cast<uint32_t>(key), k1 = static_cast<uint32_t>(key >> 32);
  Words c0 = wide(a.step), c1 = wide(0), c2 = samples, c3 = instances;
  for (int round = 0; round < kPhiloxRounds; ++round) {
    const Words product0 = product(c0, wide(kPhiloxMultiplier0));
    const Words product1 = product(c2, wide(kPhiloxMultiplier1));
    c0 = hn::Xor(hn::ShiftRight<32>(product1), hn::Xor(c1, wide(k0)));
    c1 = product1;
    c2 = hn::Xor(hn::ShiftRight<32>(product0), hn::Xor(c3, wide(k1)));
    c3 = product0;
    k0 += kPhiloxKeyStep0;
    k1 += kPhiloxKeyStep1;
  }
  return c0;
}

HWY_INLINE Words first_words_of_half(const UniformsArgs& a, int at) {
  const hn::Half<DU> half;
  return first_words(a, hn::PromoteTo(DWide(), hn::LoadU(half, a.samples + at)),
                     hn::PromoteTo(DWide(), hn::LoadU(half, a.instances + at)));
}

HWY_INLINE V small_to_float(const hn::Vec<DU>& x) { return hn::ConvertTo(D(), hn::BitCast(DI(), x)); }

// uniform_from_word(): the two halves are exact, so that their sum rounds as the word does.
HWY_INLINE V uniforms_from_words(const hn::Vec<DU>& words) {
  const V high = small_to_float(hn::ShiftRight<16>(words));
  const V low = small_to_float(hn::And(words, hn::Set(DU(), 0xFFFF)));
  const V number = hn::Add(hn::Mul(high, hn::Set(D(), 65536.0f)), low);
  return hn::Add(hn::Mul(number, hn::Set(D(), kUniformScale)), hn::Set(D(), kUniformShift));
}

void SamplingUniforms(const UniformsArgs& a) {
  for (int i = 0; i < a.count; i += kLanes) {
    const Words low = first_words_of_half(a, i), high = first_words_of_half(a, i + kLanes / 2);
    const auto words = hn::ConcatEven(DU(), hn::BitCast(DU(), high), hn::BitCast(DU(), low));
    hn::StoreU(uniforms_from_words(words), D(), a.uniforms + i);
  }
}

// The running sums do not fall, so that a position is the number of them below the target.
HWY_INLINE int position_of(const float* prefix, int items, float target) {
  size_t below = 0;
  const V t = hn::Set(D(), target);
  int j = 0;
  for (; j + kLanes <= items; j += kLanes) below += hn::CountTrue(D(), hn::Lt(hn::LoadU(D(), prefix + j), t));
  const auto left = hn::FirstN(D(), static_cast<size_t>(items - j));
  if (j < items) below += hn::CountTrue(D(), hn::And(left, hn::Lt(hn::LoadU(D(), prefix + j), t)));
  return std::min(static_cast<int>(below), items - 1);
}

void DrawPositions(const float* prefix, int items, const float* uniforms, int count, int32_t* positions) {
  const float total = prefix[items - 1];
  for (int i = 0; i < count; ++i) positions[i] = position_of(prefix, items, uniforms[i] * total);
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(SoftmaxPrefix);
HWY_EXPORT(SamplingUniforms);
HWY_EXPORT(DrawPositions);

float softmax_prefix(const float* logits, int count, float* prefix, double* entropy) {
  return HWY_DYNAMIC_DISPATCH(SoftmaxPrefix)(logits, count, prefix, entropy);
}
void sampling_uniforms(const UniformsArgs& args) { HWY_DYNAMIC_DISPATCH(SamplingUniforms)(args); }
void draw_positions(const float* prefix, int items, const float* uniforms, int count, int32_t* positions) {
  HWY_DYNAMIC_DISPATCH(DrawPositions)(prefix, items, uniforms, count, positions);
}

}  // namespace pointsman::cpu
#endif
