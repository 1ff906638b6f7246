// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"
#include "tests/kernels/cpu/self_attention_case.h"

namespace pointsman {
namespace {

void check_forward(const AttentionCase& c, float scale) {
  std::vector<float> out(c.dout.size(), -7.0f), scratch(cpu::self_attention_scratch(c.n), NAN);
  cpu::self_attention({c.qkv.data(), out.data(), c.n, c.heads, scratch.data()});
  INFO("n " << c.n << " heads " << c.heads << " scale " << scale);
  CHECK(is_attended(c, out.data()));
}

TEST_CASE("self-attention against double") {
  on_each_target([](const CpuTarget&) {
    for (const auto& [n, heads] : kAttentionShapes) {
      for (float scale : {0.1f, 1.0f, 8.0f}) check_forward(AttentionCase(n, heads, scale), scale);
    }
  });
}

void check_backward(const AttentionCase& c) {
  std::vector<float> dqkv(c.qkv.size(), -7.0f), scratch(cpu::self_attention_scratch(c.n), NAN);
  cpu::self_attention_backward(
      {{c.qkv.data(), nullptr, c.n, c.heads, scratch.data()}, c.dout.data(), dqkv.data()});
  INFO("n " << c.n << " heads " << c.heads);
  CHECK(is_attention_gradient(c, dqkv.data()));
}

TEST_CASE("self-attention's gradient against double") {
  on_each_target([](const CpuTarget&) {
    for (const auto& [n, heads] : kAttentionShapes) check_backward(AttentionCase(n, heads, 1.0f));
  });
}

// --- Layer norm ---

TEST_CASE("layer norm and its gradient against double") {
  on_each_target([](const CpuTarget&) {
    constexpr int kRows = 9;
    std::vector<float> x = random_floats(kRows * kH, 1, 3.0f);
    for (int d = 0; d < kH; ++d) x[d] += 40.0f;  // a large mean
    std::fill_n(x.begin() + kH, kH, 0.5f);       // no variance
    const std::vector<float> weight = random_floats(kH, 2), bias = random_floats(kH, 3);
    const std::vector<float> dy = random_floats(kRows * kH, 4), before = random_floats(kRows * kH, 5);
    std::vector<float> y(x.size()), statistics(2 * kRows), dx = before, dweight(kH, 0.25f), dbias(kH, -1.0f);
    cpu::layer_norm({x.data(), weight.data(), bias.data(), y.data(), statistics.data(), kRows});
    cpu::layer_norm_backward({x.data(), statistics.data(), weight.data(), dy.data(), dx.data(),
                              dweight.data(), dbias.data(), kRows});
    std::vector<Sum> expected_dweight(kH), expected_dbias(kH);
    bool all = true;
    for (int r = 0; r < kRows; ++r) {
      double mean = 0.0, variance = 0.0, size = 0.0;
      for (int d = 0; d < kH; ++d) {
        mean += static_cast<double>(x[r * kH + d]) / kH;
        size += std::abs(static_cast<double>(x[r * kH + d])) / kH;
      }
      for (int d = 0; d < kH; ++d) variance += std::pow(x[r * kH + d] - mean, 2) / kH;
      const double deviation = std::sqrt(variance + 1e-5);
      const auto normed = [&](int d) { return (x[r * kH + d] - mean) / deviation; };
      // The mean is 12 roundings off; that much a difference to it, and it moves the deviation as well.
      const double off = 12 * size / deviation;
      double sum = 0.0, sum_x = 0.0, most = 0.0, most_x = 0.0;
      for (int d = 0; d < kH; ++d) {
        const double g = static_cast<double>(dy[r * kH + d]) * weight[d];
        sum += g / kH;
        sum_x += g * normed(d) / kH;
        most = std::max(most, std::abs(g));
        most_x = std::max(most_x, std::abs(normed(d)));
      }
      for (int d = 0; d < kH; ++d) {
        const double g = static_cast<double>(dy[r * kH + d]) * weight[d];
        const double reach = std::abs(normed(d)) + 1.0;
        Sum value{normed(d) * weight[d] + bias[d], reach * (std::abs(weight[d]) + std::abs(bias[d]))};
        all = all && within(y[r * kH + d], value, 16 * (off + 1.0) + 16);
        Sum back{before[r * kH + d] + (g - sum - normed(d) * sum_x) / deviation,
                 std::abs(before[r * kH + d]) + most * (2.0 + reach * (most_x + 1.0)) / deviation};
        all = all && within(dx[r * kH + d], back, 32 * (off + 1.0));
        expected_dweight[d].add(dy[r * kH + d] * normed(d),
                                std::abs(dy[r * kH + d]) * reach * (16 * (off + 1.0) + kRows));
        expected_dbias[d].add(dy[r * kH + d]);
      }
    }
    for (int d = 0; d < kH; ++d) {
      expected_dweight[d].add(0.25);
      expected_dbias[d].add(-1.0);
      all = all && within(dweight[d], expected_dweight[d], 1.0) && within(dbias[d], expected_dbias[d], kRows);
    }
    CHECK(all);
  });
}

// --- The small ones, in their written order ---

TEST_CASE("embedding, bias, the way back through a ReLU, and column sums") {
  on_each_target([](const CpuTarget& target) {
    constexpr int kRows = 7;
    constexpr int kWidth = 3;
    const std::vector<float> features = random_floats(kWidth * kRows, 1),
                             table = random_floats(kWidth * kH, 2);
    std::vector<float> x(kRows * kH), sums = table, columns = table;
    cpu::embed(features.data(), kWidth, table.data(), kRows, x.data());
    std::vector<float> out = x;
    cpu::add_bias(out.data(), table.data(), kRows, kH);
    cpu::embed_backward(features.data(), kWidth, x.data(), kRows, sums.data());
    cpu::sum_columns(x.data(), kRows, kH, columns.data());
    bool all = true;
    for (int d = 0; d < kH; ++d) {
      float sum[kWidth] = {table[d], table[kH + d], table[2 * kH + d]}, column = table[d];
      for (int r = 0; r < kRows; ++r) {
        float expected = table[d] * features[kWidth * r];
        for (int i = 1; i < kWidth; ++i)
          expected = target.multiply_add(table[i * kH + d], features[kWidth * r + i], expected);
        all = all && x[r * kH + d] == expected && out[r * kH + d] == expected + table[d];
        for (int i = 0; i < kWidth; ++i)
          sum[i] = target.multiply_add(expected, features[kWidth * r + i], sum[i]);
        column += expected;
      }
      for (int i = 0; i < kWidth; ++i) all = all && sums[i * kH + d] == sum[i];
      all = all && columns[d] == column;
    }
    CHECK(all);
    std::vector<float> y = x, dy = out;
    for (float& value : y) value = std::max(value, 0.0f);
    cpu::relu_backward(y.data(), dy.data(), kRows * kH);
    for (size_t i = 0; i < x.size(); ++i) all = all && dy[i] == (x[i] > 0.0f ? out[i] : 0.0f);
    CHECK(all);
  });
}

}  // namespace
}  // namespace pointsman
