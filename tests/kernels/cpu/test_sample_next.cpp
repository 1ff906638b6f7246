// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include "kernels/common/philox.h"
#include "kernels/common/scalar_math.h"
#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {
namespace {

constexpr int kSizes[] = {1, 2, 15, 16, 17, 31, 32, 33, 100, 127};

struct Softmax {
  std::vector<float> prefix;
  float largest = 0.0f;
  double entropy = -1.0;
};

// What lies behind the logits, up to the next 16, may be anything: here NaN.
Softmax run(const std::vector<float>& logits, bool entropy = true) {
  const int count = static_cast<int>(logits.size());
  std::vector<float> padded((count + 15) / 16 * 16, std::numeric_limits<float>::quiet_NaN());
  std::copy(logits.begin(), logits.end(), padded.begin());
  Softmax result;
  result.prefix.resize(padded.size());
  result.largest =
      cpu::softmax_prefix(padded.data(), count, result.prefix.data(), entropy ? &result.entropy : nullptr);
  result.prefix.resize(count);
  return result;
}

TEST_CASE("softmax_prefix: running sums, maximum and entropy against double") {
  on_each_target([](const CpuTarget&) {
    for (int count : kSizes) {
      for (float scale : {0.0f, 0.1f, 10.0f, 60.0f}) {
        INFO(count << " logits up to " << scale);
        const std::vector<float> logits = random_floats(count, 7 + count, scale);
        const Softmax found = run(logits);
        const double largest = *std::max_element(logits.begin(), logits.end());
        CHECK(found.largest == largest);
        double running = 0.0, weighted = 0.0, worst = 0.0;
        for (int j = 0; j < count; ++j) {
          const double e = std::exp(logits[j] - largest);
          running += e;
          weighted += e * (logits[j] - largest);
          // e: the difference of logits rounds (up to 120 units of 2^-24 in the exponent), 4 roundings in
          // exp; each of the j sums rounds once. Beyond -87 exp stays at its smallest normal value.
          const double bound = (2 * scale + 4 + j) * kUnit * running + (j + 1) * std::exp(-87.0);
          worst = worse(worst, std::abs(found.prefix[j] - running) / bound);
        }
        CHECK(worst <= 1.0);
        const double entropy = std::log(running) - weighted / running;
        CHECK(std::abs(found.entropy - entropy) <=
              (2 * scale + 8 + count) * kUnit * (1.0 + std::log(count)) * 2);
      }
    }
  });
}

TEST_CASE("softmax_prefix adds in list order") {
  on_each_target([](const CpuTarget& target) {
    if (!target.has_fma) return;
    for (int count : kSizes) {
      const std::vector<float> logits = random_floats(count, count, 20.0f);
      const Softmax found = run(logits);
      std::vector<float> expected(count);
      float sum = 0.0f;
      for (int j = 0; j < count; ++j) expected[j] = sum += exp_f32(logits[j] - found.largest);
      CHECK(same_bits(found.prefix, expected));
    }
  });
}

TEST_CASE("softmax_prefix: one item is certain, equal items are uniform, a lost one adds nothing") {
  on_each_target([](const CpuTarget&) {
    const Softmax one = run({-3.0f});
    CHECK(one.prefix[0] == 1.0f);
    CHECK(one.entropy == 0.0);
    const Softmax equal = run(std::vector<float>(33, 2.5f));
    for (int j = 0; j < 33; ++j) CHECK(equal.prefix[j] == static_cast<float>(j + 1));
    CHECK(equal.entropy == Approx(std::log(33.0)).epsilon(1e-6));
    const Softmax lost = run({50.0f, -1000.0f, 50.0f});
    CHECK(lost.prefix[1] == 1.0f);
    CHECK(lost.prefix[2] == 2.0f);
  });
}

TEST_CASE("softmax_prefix without entropy leaves the same sums") {
  const std::vector<float> logits = random_floats(20, 5, 10.0f);
  CHECK(same_bits(run(logits, true).prefix, run(logits, false).prefix));
  CHECK(run(logits, false).entropy == -1.0);
}

TEST_CASE("sampling_uniforms: the bits of sampling_uniform") {
  constexpr uint64_t kSeed = 0x0123456789ABCDEF, kInstance = 0xFEDCBA9876543210;
  on_each_target([](const CpuTarget&) {
    for (int count : {1, 15, 16, 17, 100'000}) {
      const uint32_t step = 3 * static_cast<uint32_t>(count);
      const auto room = static_cast<size_t>(cpu::padded(count));
      std::vector<uint32_t> instances(room), samples(room);
      std::vector<float> found(room), expected;
      for (int i = 0; i < count; ++i) {
        instances[i] = static_cast<uint32_t>(kInstance + i / 3);
        samples[i] = 0xFFFFFFF0u + static_cast<uint32_t>(i);  // the first ones wrap
        expected.push_back(sampling_uniform(kSeed, kInstance + i / 3, samples[i], step));
      }
      cpu::sampling_uniforms({kSeed, step, count, instances.data(), samples.data(), found.data()});
      found.resize(count);
      CHECK(same_bits(found, expected));
    }
  });
}

TEST_CASE("draw_positions: the first running sum that is not below the target") {
  on_each_target([](const CpuTarget&) {
    for (int items : kSizes) {
      std::vector<float> prefix = run(random_floats(items, 5 * items, 30.0f)).prefix;
      if (items > 2) prefix[items / 2] = prefix[items / 2 - 1];  // an item that adds nothing
      const float total = prefix.back();
      std::vector<float> uniforms = {kUniformShift, 0.5f, 1.0f};
      for (float sum : prefix) uniforms.push_back(sum / total);
      for (float u : random_floats(50, 6, 0.5f)) uniforms.push_back(u + 0.5f);
      std::vector<int32_t> found(uniforms.size()), expected;
      for (float u : uniforms) {
        const auto at = std::lower_bound(prefix.begin(), prefix.end(), u * total) - prefix.begin();
        expected.push_back(std::min(static_cast<int32_t>(at), items - 1));
      }
      prefix.resize(cpu::padded(items), -1.0f);
      const int count = static_cast<int>(uniforms.size());
      cpu::draw_positions(prefix.data(), items, uniforms.data(), count, found.data());
      CHECK(found == expected);
    }
  });
}

}  // namespace
}  // namespace pointsman
