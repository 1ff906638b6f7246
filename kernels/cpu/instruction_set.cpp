// SPDX-License-Identifier: Apache-2.0
// Which instruction set the kernels run on, how to force one, and how fast its fma is.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "kernels/cpu/instruction_set.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include <algorithm>
#include <cstdlib>
#include <ctime>
#include <stdexcept>
#include <string>
#include <string_view>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cpu/simd-inl.h"

HWY_BEFORE_NAMESPACE();
namespace pointsman::cpu {
namespace HWY_NAMESPACE {

int64_t TargetInUse() { return HWY_TARGET; }

// Fma operations (two flops each) done; the sums leave through *sink so that they are computed.
double FmaChains(int64_t rounds, float* sink) {
  constexpr int kChains = 12;
  const D d;
  V sum[kChains];
  for (int i = 0; i < kChains; ++i) sum[i] = hn::Set(d, static_cast<float>(i));
  const V a = hn::Set(d, 0.999f), b = hn::Set(d, 0.001f);
  for (int64_t r = 0; r < rounds; ++r) {
    for (int i = 0; i < kChains; ++i) sum[i] = hn::MulAdd(sum[i], a, b);
  }
  for (int i = 1; i < kChains; ++i) sum[0] = hn::Add(sum[0], sum[i]);
  *sink = hn::GetLane(sum[0]);
  return static_cast<double>(rounds) * kChains * kLanes;
}

}  // namespace HWY_NAMESPACE
}  // namespace pointsman::cpu
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pointsman::cpu {

HWY_EXPORT(TargetInUse);
HWY_EXPORT(FmaChains);

namespace {

// CPU time of this thread: what other programs take from the core does not count.
double thread_seconds() {
  timespec now;
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) + 1e-9 * static_cast<double>(now.tv_nsec);
}

struct InstructionSet {
  std::string_view word;  // of POINTSMAN_SIMD
  const char* name;
  int64_t target, better;  // better ones: without these Highway picks this one
};

const char* choose_instruction_set() {
  constexpr InstructionSet kSets[] = {{"avx512", "AVX-512", HWY_AVX3, 0},
                                      {"avx2", "AVX2", HWY_AVX2, HWY_AVX3},
                                      {"sse4", "SSE4", HWY_SSE4, HWY_AVX3 | HWY_AVX2}};
  const char* variable = std::getenv("POINTSMAN_SIMD");
  const std::string word = variable == nullptr ? "" : variable;
  const auto wanted = std::ranges::find(kSets, word, &InstructionSet::word);
  if (wanted != std::end(kSets)) {
    hwy::DisableTargets(wanted->better);
  } else if (!word.empty()) {
    throw std::invalid_argument("POINTSMAN_SIMD: expected avx512, avx2 or sse4, found \"" + word + "\"");
  }
  hwy::GetChosenTarget().DeInit();
  const int64_t target = HWY_DYNAMIC_DISPATCH(TargetInUse)();
  const auto chosen = std::ranges::find(kSets, target, &InstructionSet::target);
  const char* const name = chosen == std::end(kSets) ? hwy::TargetName(target) : chosen->name;
  if (wanted != std::end(kSets) && chosen != wanted) {
    throw std::runtime_error("POINTSMAN_SIMD=" + word + ": this processor has no " + wanted->name +
                             ", best is " + name);
  }
  return name;
}

}  // namespace

double fma_peak_gflops() {
  double best = 0.0;
  volatile float sink = 0.0f;
  for (int attempt = 0; attempt < 7; ++attempt) {
    float out;
    const double start = thread_seconds();
    const double operations = HWY_DYNAMIC_DISPATCH(FmaChains)(2'000'000, &out);
    const double seconds = thread_seconds() - start;
    sink = sink + out;
    best = std::max(best, 2.0 * operations / seconds * 1e-9);
  }
  return best;
}

const char* instruction_set() {
  static const char* const name = choose_instruction_set();
  return name;
}

}  // namespace pointsman::cpu
#endif
