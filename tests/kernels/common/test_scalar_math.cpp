// SPDX-License-Identifier: Apache-2.0
// exp, tanh and log of kernels/common/scalar_math.h against double over their whole range (every 397th
// float), and the vector forms against the scalar ones through operations that show them.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "kernels/common/scalar_math.h"
#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {
namespace {

constexpr uint32_t kStride = 397;  // prime: all low bits of the mantissa take their turn

uint32_t bits_of(float x) {
  uint32_t bits;
  std::memcpy(&bits, &x, 4);
  return bits;
}

float float_of(uint32_t bits) {
  float x;
  std::memcpy(&x, &bits, 4);
  return x;
}

// visit(x) for every kStride-th float of [low, high], 0 < low, both ends among them.
template <typename Visit>
void sweep(float low, float high, const Visit& visit) {
  for (uint32_t bits = bits_of(low); bits < bits_of(high); bits += kStride) visit(float_of(bits));
  visit(high);
}

double relative_error(float found, double exact) {
  return std::abs((static_cast<double>(found) - exact) / exact);
}

TEST_CASE("exp_f32 between -87 and 88") {
  double worst = 0.0;
  const auto visit = [&](float x) { worst = worse(worst, relative_error(exp_f32(x), std::exp(double{x}))); };
  sweep(1e-30f, 88.0f, visit);
  sweep(1e-30f, 87.0f, [&](float x) { visit(-x); });
  INFO("largest relative error of exp_f32: " << worst / kUnit << " * 2^-24");
  // 1 + remainder rounds by 2^-24 of a value in [0.7, 1.42]; the polynomial (1.4e-8) and its last step add
  // the rest.
  CHECK(worst <= 1.5 * kUnit);
  CHECK(exp_f32(0.0f) == 1.0f);
  CHECK(exp_f32(-0.0f) == 1.0f);
}

TEST_CASE("exp_f32 is limited to normal, finite results") {
  for (float x : {-87.5f, -104.0f, -1e30f, -std::numeric_limits<float>::infinity()}) {
    CHECK(exp_f32(x) == exp_f32(-87.0f));
  }
  for (float x : {88.5f, 1e30f, std::numeric_limits<float>::infinity()}) CHECK(exp_f32(x) == exp_f32(88.0f));
  CHECK(std::isnormal(exp_f32(-87.0f)));
  CHECK(std::isnormal(exp_f32(88.0f)));
}

TEST_CASE("tanh_f32 is accurate relative to its value, also near 0") {
  double worst = 0.0;
  int beyond_one = 0;
  sweep(1e-30f, 100.0f, [&](float x) {
    worst = worse(worst, relative_error(tanh_f32(x), std::tanh(double{x})));
    worst = worse(worst, relative_error(tanh_f32(-x), -std::tanh(double{x})));
    beyond_one += std::abs(tanh_f32(x)) > 1.0f || std::abs(tanh_f32(-x)) > 1.0f;
  });
  INFO("largest relative error of tanh_f32: " << worst / kUnit << " * 2^-24");
  // m = exp(2x) - 1 is good to two units, m + 2 and the division round once each; m's error counts less than
  // in full.
  CHECK(worst <= 3.0 * kUnit);
  CHECK(beyond_one == 0);
  CHECK(tanh_f32(0.0f) == 0.0f);
  const float infinity = std::numeric_limits<float>::infinity();
  CHECK(tanh_f32(infinity) == 1.0f);
  CHECK(tanh_f32(-infinity) == -1.0f);
  CHECK(tanh_f32(9.2f) == 1.0f);
}

TEST_CASE("log_f32 over all normal numbers") {
  double worst = 0.0;
  sweep(std::numeric_limits<float>::min(), std::numeric_limits<float>::max(), [&](float x) {
    if (x != 1.0f) worst = worse(worst, relative_error(log_f32(x), std::log(double{x})));
  });
  sweep(0.99f, 1.01f, [&](float x) {
    if (x != 1.0f) worst = worse(worst, relative_error(log_f32(x), std::log(double{x})));
  });
  INFO("largest relative error of log_f32: " << worst / kUnit << " * 2^-24");
  CHECK(worst <= 1.5 * kUnit);
  CHECK(log_f32(1.0f) == 0.0f);
}

TEST_CASE("the vectors' exp has the scalar's bits") {
  on_each_target([](const CpuTarget& target) {
    if (!target.has_fma) return;
    std::vector<float> a;
    sweep(1e-6f, kFactoredLimit, [&](float x) {
      if (bits_of(x) % 7 == 0) a.insert(a.end(), {x, -x});
    });
    a.resize(a.size() / 16 * 16);
    std::vector<float> found = a;
    cpu::exp_references(found.data(), static_cast<int>(found.size()));
    int different = 0;
    for (size_t i = 0; i < a.size(); ++i) different += !same_bits(found[i], exp_f32(2.0f * a[i]));
    CHECK(a.size() > 50000);
    CHECK(different == 0);
  });
}

TEST_CASE("the vectors' clamped exp has the scalar's bits") {
  on_each_target([](const CpuTarget& target) {
    if (!target.has_fma) return;
    // The largest logit comes first and the rest are so far below that the running sums would hide them: take
    // pairs.
    int different = 0;
    for (float difference = 0.0f; difference < 120.0f; difference += 0.37f) {
      std::vector<float> logits(16, -difference), prefix(16);
      logits[1] = 0.0f;
      cpu::softmax_prefix(logits.data(), 2, prefix.data(), nullptr);
      different += !same_bits(prefix[0], exp_f32(-difference));
    }
    CHECK(different == 0);
  });
}

TEST_CASE("the vectors' tanh has the scalar's bits") {
  on_each_target([](const CpuTarget& target) {
    if (!target.has_fma) return;
    std::vector<float> x;
    sweep(1e-10f, 20.0f, [&](float value) {
      if (bits_of(value) % 31 == 0) x.insert(x.end(), {value, -value});
    });
    const int rows = static_cast<int>(x.size()) / kHidden;
    std::vector<float> products(static_cast<size_t>(rows) * kGates), bias(kGates), c(rows * kHidden),
        h(rows * kHidden);
    std::vector<float> cells(static_cast<size_t>(rows) * kLstmCell);
    for (int row = 0; row < rows; ++row) {
      std::copy_n(x.begin() + row * kHidden, kHidden, products.begin() + row * kGates + 2 * kHidden);
    }
    cpu::lstm_cell({rows, products.data(), kGates, nullptr, bias.data(), nullptr, 0, c.data(), h.data(),
                    c.data(), cells.data()});
    int different = 0;
    for (int row = 0; row < rows; ++row) {
      for (int d = 0; d < kHidden; ++d) {
        different += !same_bits(cells[row * kLstmCell + 2 * kHidden + d], tanh_f32(x[row * kHidden + d]));
      }
    }
    CHECK(rows > 50);
    CHECK(different == 0);
  });
}

}  // namespace
}  // namespace pointsman
