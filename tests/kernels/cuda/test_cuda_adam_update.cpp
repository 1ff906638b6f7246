// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/cpu/cpu_operations.h"
#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {
namespace {

constexpr int kSets = 3;  // the first is left out
constexpr float kBeta1 = 0.9f, kBeta2 = 0.999f, kEpsilon = 1e-8f, kLearningRate = 1e-3f;

struct State {
  std::vector<float> parameters, first, second, gradient;
};

State random_state(size_t size) {
  State s{random_floats(size, 1), random_floats(size, 2, 0.1f), random_floats(size, 3, 0.01f),
          random_floats(size, 4)};
  for (float& v : s.second) v = std::abs(v);
  return s;
}

const std::vector<int64_t> kSteps{7, 1, 1234};

struct Updated {
  State state;
  std::vector<double> norms;
};

Updated run(const State& before, int64_t stride, int64_t offset, int64_t count, float max_norm) {
  DeviceArray<float> parameters(before.parameters), first(before.first), second(before.second);
  DeviceArray<float> gradient(before.gradient);
  const DeviceArray<int64_t> steps(kSteps);
  DeviceArray<double> norms(kSets - 1), scratch(adam_update_scratch(count, kSets - 1));
  adam_update({{parameters.data(), stride},
               {first.data(), stride},
               {second.data(), stride},
               {gradient.data(), stride},
               offset,
               count,
               1,
               kSets - 1,
               max_norm,
               kLearningRate,
               kBeta1,
               kBeta2,
               kEpsilon,
               steps.data(),
               norms.data(),
               scratch.data()},
              nullptr);
  return {{parameters.download(), first.download(), second.download(), gradient.download()},
          norms.download()};
}

float correction(float beta, int64_t step) {
  return static_cast<float>(1.0 - std::pow(static_cast<double>(beta), static_cast<double>(step)));
}

// The CPU's update of [offset, offset + count) of one set with the norm that the kernel found.
void cpu_update(State& s, size_t at, int64_t count, double norm, float max_norm, int64_t step) {
  const double scale = norm > max_norm ? max_norm / norm : 1.0;
  cpu::adam_update({s.parameters.data() + at, s.first.data() + at, s.second.data() + at,
                    s.gradient.data() + at, count, static_cast<float>(scale), kLearningRate, kBeta1, kBeta2,
                    kEpsilon, correction(kBeta1, step), correction(kBeta2, step)});
}

// SSE4 has no fma and rounds once more.
bool same(const std::vector<float>& a, const std::vector<float>& b) {
  if (std::string(cpu::instruction_set()) != "SSE4") return same_bits(a, b);
  for (size_t i = 0; i < a.size(); ++i) {
    if (std::abs(a[i] - b[i]) > 1e-6f) return false;
  }
  return a.size() == b.size();
}

void check_update(int64_t count, float max_norm) {
  INFO(count << " parameters, clipped to " << max_norm);
  const int64_t offset = 5, stride = count + 11;
  const State before = random_state(kSets * stride);
  const Updated after = run(before, stride, offset, count, max_norm);
  State expected = before;
  for (int s = 1; s < kSets; ++s) {
    const size_t at = s * stride + offset;
    double sum = 0.0;  // the squares are exact, and each addition rounds once, here as in the kernel
    for (int64_t i = 0; i < count; ++i) {
      sum += static_cast<double>(before.gradient[at + i]) * static_cast<double>(before.gradient[at + i]);
    }
    CHECK(std::abs(after.norms[s - 1] - std::sqrt(sum)) <= (count + 2) * 0x1p-53 * std::sqrt(sum));
    cpu_update(expected, at, count, after.norms[s - 1], max_norm, kSteps[s]);
  }
  CHECK(same(after.state.parameters, expected.parameters));
  CHECK(same(after.state.first, expected.first));
  CHECK(same(after.state.second, expected.second));
  CHECK(same(after.state.gradient, expected.gradient));
}

TEST_CASE("adam_update: the CPU's bits with the clip and without, nothing else touched") {
  for (int64_t count : {1, 2, 31, 257, 8192, 8193, 20000}) {
    check_update(count, 0.25f);
    check_update(count, 1e6f);
  }
}

TEST_CASE("adam_update gives the same norm from run to run and sums it in double", "[race]") {
  const int64_t count = 20000;
  State state = random_state(kSets * count);
  std::fill(state.gradient.begin(), state.gradient.end(), 1.0f);
  state.gradient[count] = 0x1p15f;  // in single precision the ones beside 2^30 would be lost
  const double exact = std::sqrt(0x1p30 + (count - 1));
  const Updated once = run(state, count, 0, count, 1.0f), again = run(state, count, 0, count, 1.0f);
  CHECK(std::abs(once.norms[0] - exact) <= 0x1p-52 * exact);
  CHECK(once.norms == again.norms);
  CHECK(same_bits(once.state.parameters, again.state.parameters));
}

}  // namespace
}  // namespace pointsman::cuda
