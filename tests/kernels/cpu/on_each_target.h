// SPDX-License-Identifier: Apache-2.0
// What the tests of the CPU operations share: every instruction set of this processor in turn, and random
// numbers.
#pragma once

#include <hwy/targets.h>

#include <cmath>
#include <cstring>
#include <random>
#include <vector>

#include "tests/catch.h"

namespace pointsman {

inline constexpr double kUnit = 0x1p-24;  // unit roundoff of single precision

struct CpuTarget {
  const char* name;
  int64_t bit, disabled;
  bool has_fma;

  // One step of the written order: fma, or on SSE4 its two roundings.
  float multiply_add(float a, float b, float c) const { return has_fma ? std::fma(a, b, c) : a * b + c; }
};

// Calls body(target) with the kernels running on each target that this processor has.
template <typename Body>
void on_each_target(const Body& body) {
  const CpuTarget targets[] = {{"AVX-512", HWY_AVX3, 0, true},
                               {"AVX2", HWY_AVX2, HWY_AVX3, true},
                               {"SSE4", HWY_SSE4, HWY_AVX3 | HWY_AVX2, false}};
  hwy::DisableTargets(0);
  const int64_t supported = hwy::SupportedTargets();
  for (const CpuTarget& target : targets) {
    if ((supported & target.bit) == 0) continue;
    hwy::DisableTargets(target.disabled);
    hwy::GetChosenTarget().DeInit();
    INFO("on " << target.name);
    body(target);
  }
  hwy::DisableTargets(0);
  hwy::GetChosenTarget().DeInit();
}

// Whether the CPU's bits are the written ones: without fma it rounds twice.
inline bool cpu_has_fma() { return (hwy::SupportedTargets() & (HWY_AVX3 | HWY_AVX2)) != 0; }

// Uniform in (-scale, scale), the same on every machine.
inline std::vector<float> random_floats(size_t count, uint32_t seed, float scale = 1.0f) {
  std::mt19937 random(seed);
  std::vector<float> values(count);
  for (float& x : values) x = scale * (static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f);
  return values;
}

inline bool same_bits(float a, float b) { return std::memcmp(&a, &b, sizeof a) == 0; }

inline bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The written tree of sums over H: 16 partial sums, lanes l + 8, then l + 4, l + 2, l + 1.
inline float tree_sum(const float* lanes) {
  float sum[16];
  std::memcpy(sum, lanes, sizeof sum);
  for (int width = 8; width >= 1; width /= 2) {
    for (int l = 0; l < width; ++l) sum[l] = sum[l] + sum[l + width];
  }
  return sum[0];
}

}  // namespace pointsman
