// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdint>
#include <set>

#include "kernels/common/philox.h"
#include "tests/catch.h"

using namespace pointsman;

TEST_CASE("philox gives the published known answers") {
  // The three philox4x32-10 vectors of Random123: counter words c0..c3, key words k0, k1, result.
  struct Vector {
    std::array<uint32_t, 4> counter;
    std::array<uint32_t, 2> key;
    std::array<uint32_t, 4> expected;
  };
  const uint32_t ones = 0xffffffff;
  const Vector vectors[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
      {{ones, ones, ones, ones}, {ones, ones}, {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
      {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
       {0xa4093822, 0x299f31d0},
       {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
  };
  const auto join = [](uint32_t low, uint32_t high) { return uint64_t{high} << 32 | low; };
  for (const Vector& v : vectors) {
    const PhiloxBlock block = philox4x32(join(v.key[0], v.key[1]), join(v.counter[2], v.counter[3]),
                                         join(v.counter[0], v.counter[1]));
    for (int i = 0; i < 4; ++i) CHECK(block.word[i] == v.expected[i]);
  }
}

TEST_CASE("a uniform is above 0 and at most 1") {
  CHECK(uniform_from_word(0) == 0x1p-33f);
  CHECK(uniform_from_word(0xffffffff) == 1.0f);
  CHECK(uniform_from_word(0x80000000) == 0.5f);
}

TEST_CASE("a draw depends on seed, instance, sample and step, each") {
  const std::set<float> draws{sampling_uniform(1234, 7, 3, 5), sampling_uniform(1235, 7, 3, 5),
                              sampling_uniform(1234, 8, 3, 5), sampling_uniform(1234, 7, 4, 5),
                              sampling_uniform(1234, 7, 3, 6)};
  CHECK(draws.size() == 5);
  const PhiloxBlock block = philox4x32(1234, uint64_t{7} << 32 | 3, 5);
  CHECK(sampling_uniform(1234, 7, 3, 5) == uniform_from_word(block.word[0]));
}

TEST_CASE("noise has the moments of a normal number, and all that it is drawn for counts") {
  constexpr int kDraws = 100000;
  double sum = 0.0, squares = 0.0, fourth = 0.0;
  for (uint32_t sample = 0; sample < kDraws; ++sample) {
    const double x = noise_normal(1234, 0, sample, 0, 0);
    sum += x;
    squares += x * x;
    fourth += x * x * x * x;
  }
  // The kurtosis of a sum of m uniforms is 3 - 1.2 / m. Five standard errors of the moments of a normal
  // number.
  CHECK(sum / kDraws == Approx(0.0).margin(5 * std::sqrt(1.0 / kDraws)));
  CHECK(squares / kDraws == Approx(1.0).margin(5 * std::sqrt(2.0 / kDraws)));
  CHECK(fourth / kDraws == Approx(3.0 - 1.2 / 8).margin(5 * std::sqrt(96.0 / kDraws)));
  const std::set<float> draws{noise_normal(1234, 7, 3, 5, 2), noise_normal(1235, 7, 3, 5, 2),
                              noise_normal(1234, 8, 3, 5, 2), noise_normal(1234, 7, 4, 5, 2),
                              noise_normal(1234, 7, 3, 6, 2), noise_normal(1234, 7, 3, 5, 3)};
  CHECK(draws.size() == 6);
}

TEST_CASE("uniforms over samples have the moments of U(0, 1)") {
  constexpr int kDraws = 100000;
  double sum = 0.0, squares = 0.0;
  for (uint32_t sample = 0; sample < kDraws; ++sample) {
    const double u = sampling_uniform(1234, 0, sample, 0);
    sum += u;
    squares += u * u;
  }
  // Five standard errors: the deviations of u and u^2 are sqrt(1/12) and sqrt(4/45).
  CHECK(sum / kDraws == Approx(0.5).margin(5 * std::sqrt(1.0 / 12 / kDraws)));
  CHECK(squares / kDraws == Approx(1.0 / 3).margin(5 * std::sqrt(4.0 / 45 / kDraws)));
}
