// SPDX-License-Identifier: Apache-2.0
// Self-attention in plain double loops, and how far roundings may take single precision from it: what the
// tests of every device's operation share.
#pragma once

#include <algorithm>
#include <cmath>
#include <utility>
#include <vector>

#include "kernels/common/network.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {

inline constexpr int kH = kHidden;

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

inline bool within(float found, const Sum& sum, double roundings) {
  return std::abs(static_cast<double>(found) - sum.value) <= roundings * kUnit * sum.magnitude + 1e-38;
}

// Self-attention in plain loops.
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

// n and heads.
inline constexpr std::pair<int, int> kAttentionShapes[] = {{1, 8},  {2, 8},  {15, 8}, {16, 4},
                                                           {33, 8}, {47, 2}, {70, 1}};

// Whether `out` [n][H] is what is attended to, up to roundings.
inline bool is_attended(const AttentionCase& c, const float* out) {
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
  return all;
}

// dp_ij and its mean under p.
struct WeightGradients {
  std::vector<Sum> dp;
  std::vector<Sum> mean;
};

inline WeightGradients weight_gradients(const AttentionCase& c, int head, const std::vector<double>& p) {
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

// Whether `dqkv` [n][3H] is the gradient of dout, up to roundings.
inline bool is_attention_gradient(const AttentionCase& c, const float* dqkv) {
  const int n = c.n;
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
        const float* found = dqkv + i * 3 * kH + d;
        all = all && within(found[0], dq, roundings) && within(found[kH], dk, roundings) &&
              within(found[2 * kH], dv, roundings);
      }
    }
  }
  return all;
}

}  // namespace pointsman
