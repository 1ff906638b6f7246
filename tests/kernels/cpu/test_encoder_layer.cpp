// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {
namespace {

constexpr int kH = kHidden;

// A double value, and the sum of the absolute values that it was added up from: what roundings are relative
// to.
struct Sum {
  double value = 0.0, magnitude = 0.0;
  void add(double term, double term_magnitude) {
    value += term;
    magnitude += term_magnitude;
  }
  void add(double term) { add(term, std::abs(term)); }
};

bool within(float found, const Sum& sum, double roundings) {
  return std::abs(static_cast<double>(found) - sum.value) <= roundings * kUnit * sum.magnitude + 1e-38;
}

// --- Self-attention in plain loops ---

struct AttentionCase {
  int n, heads, width;
  std::vector<float> qkv, dout;

  AttentionCase(int n_, int heads_, float scale)
      : n(n_),
        heads(heads_),
        width(kH / heads_),
        qkv(random_floats(static_cast<size_t>(n_) * 3 * kH, 1, scale)),
        dout(random_floats(static_cast<size_t>(n_) * kH, 2)) {}

  double q(int i, int d) const { return qkv[i * 3 * kH + d]; }
  double k(int j, int d) const { return qkv[j * 3 * kH + kH + d]; }
  double v(int j, int d) const { return qkv[j * 3 * kH + 2 * kH + d]; }

  // p [n][n] of a head, and how far a weight may be off, relatively: twice the error of a score over
  // sqrt(width), two roundings there and those of exp, sum and division.
  std::vector<double> weights(int head, double* off) const {
    std::vector<double> p(static_cast<size_t>(n) * n);
    const double root = std::sqrt(static_cast<double>(width));
    double largest = 0.0;
    for (int i = 0; i < n; ++i) {
      double highest = -1e300, total = 0.0;
      for (int j = 0; j < n; ++j) {
        Sum score;
        for (int d = head * width; d < (head + 1) * width; ++d) score.add(q(i, d) * k(j, d));
        largest = std::max(largest, score.magnitude / root);
        p[i * n + j] = score.value / root;
        highest = std::max(highest, p[i * n + j]);
      }
      for (int j = 0; j < n; ++j) total += p[i * n + j] = std::exp(p[i * n + j] - highest);
      for (int j = 0; j < n; ++j) p[i * n + j] /= total;
    }
    *off = 2 * (2 * width + 4) * largest + n + 16;
    return p;
  }
};

const std::pair<int, int> kShapes[] = {{1, 8}, {2, 8}, {15, 8}, {16, 4}, {33, 8}, {47, 2}, {70, 1}};

void check_forward(const AttentionCase& c, float scale) {
  std::vector<float> out(c.dout.size(), -7.0f), scratch(cpu::self_attention_scratch(c.n), NAN);
  cpu::self_attention({c.qkv.data(), out.data(), c.n, c.heads, scratch.data()});
  bool all = true;
  for (int h = 0; h < c.heads; ++h) {
    double off = 0.0;
    const std::vector<double> p = c.weights(h, &off);
    for (int i = 0; i < c.n; ++i) {
      for (int d = h * c.width; d < (h + 1) * c.width; ++d) {
        Sum sum;
        for (int j = 0; j < c.n; ++j) sum.add(p[i * c.n + j] * c.v(j, d));
        all = all && within(out[i * kH + d], sum, 2 * off + 2 * c.n);
      }
    }
  }
  INFO("n " << c.n << " heads " << c.heads << " scale " << scale);
  CHECK(all);
}

TEST_CASE("self-attention against double") {
  on_each_target([](const CpuTarget&) {
    for (const auto& [n, heads] : kShapes) {
      for (float scale : {0.1f, 1.0f, 8.0f}) check_forward(AttentionCase(n, heads, scale), scale);
    }
  });
}

// dp_ij and its mean under p.
struct WeightGradients {
  std::vector<Sum> dp;
  std::vector<Sum> mean;
};

WeightGradients weight_gradients(const AttentionCase& c, int head, const std::vector<double>& p) {
  WeightGradients g{std::vector<Sum>(static_cast<size_t>(c.n) * c.n), std::vector<Sum>(c.n)};
  for (int i = 0; i < c.n; ++i) {
    for (int j = 0; j < c.n; ++j) {
      Sum& dp = g.dp[i * c.n + j];
      for (int d = head * c.width; d < (head + 1) * c.width; ++d) dp.add(c.dout[i * kH + d] * c.v(j, d));
      g.mean[i].add(p[i * c.n + j] * dp.value, p[i * c.n + j] * dp.magnitude);
    }
  }
  return g;
}

void check_backward(const AttentionCase& c) {
  const int n = c.n;
  std::vector<float> dqkv(c.qkv.size(), -7.0f), scratch(cpu::self_attention_scratch(n), NAN);
  cpu::self_attention_backward(
      {{c.qkv.data(), nullptr, n, c.heads, scratch.data()}, c.dout.data(), dqkv.data()});
  bool all = true;
  for (int h = 0; h < c.heads; ++h) {
    double off = 0.0;
    const std::vector<double> p = c.weights(h, &off);
    const WeightGradients g = weight_gradients(c, h, p);
    const auto ds = [&](int i, int j) {
      const Sum &dp = g.dp[i * n + j], &mean = g.mean[i];
      const double factor = p[i * n + j] / std::sqrt(static_cast<double>(c.width));
      return Sum{factor * (dp.value - mean.value), factor * (dp.magnitude + mean.magnitude)};
    };
    const double roundings = 3 * off + 2 * (2 * n + 2 * c.width + 16);
    for (int i = 0; i < n; ++i) {
      for (int d = h * c.width; d < (h + 1) * c.width; ++d) {
        Sum dq, dk, dv;
        for (int j = 0; j < n; ++j) {
          const Sum row = ds(i, j), column = ds(j, i);
          dq.add(row.value * c.k(j, d), row.magnitude * std::abs(c.k(j, d)));
          dk.add(column.value * c.q(j, d), column.magnitude * std::abs(c.q(j, d)));
          dv.add(p[j * n + i] * c.dout[j * kH + d]);
        }
        const float* found = dqkv.data() + i * 3 * kH + d;
        all = all && within(found[0], dq, roundings) && within(found[kH], dk, roundings) &&
              within(found[2 * kH], dv, roundings);
      }
    }
  }
  INFO("n " << n << " heads " << c.heads);
  CHECK(all);
}

TEST_CASE("self-attention's gradient against double") {
  on_each_target([](const CpuTarget&) {
    for (const auto& [n, heads] : kShapes) check_backward(AttentionCase(n, heads, 1.0f));
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
    const std::vector<float> features = random_floats(2 * kRows, 1), table = random_floats(2 * kH, 2);
    std::vector<float> x(kRows * kH), out(kRows * kH), sums = table, columns = table;
    cpu::embed({features.data(), table.data(), x.data(), kRows});
    cpu::add_bias({x.data(), table.data(), out.data(), kRows, kH});
    cpu::embed_backward(features.data(), x.data(), kRows, sums.data());
    cpu::sum_columns(x.data(), kRows, kH, columns.data());
    bool all = true;
    for (int d = 0; d < kH; ++d) {
      float s0 = table[d], s1 = table[kH + d], column = table[d];
      for (int r = 0; r < kRows; ++r) {
        const float expected =
            target.multiply_add(table[kH + d], features[2 * r + 1], table[d] * features[2 * r]);
        all = all && x[r * kH + d] == expected && out[r * kH + d] == expected + table[d];
        s0 = target.multiply_add(expected, features[2 * r], s0);
        s1 = target.multiply_add(expected, features[2 * r + 1], s1);
        column += expected;
      }
      all = all && sums[d] == s0 && sums[kH + d] == s1 && columns[d] == column;
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
