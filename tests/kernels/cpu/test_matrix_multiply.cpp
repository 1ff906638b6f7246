// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {
namespace {

constexpr float kUntouched = 12345.0f;

struct Product {
  int rows, k, columns, ldx, ldy;
  std::vector<float> x, weights, packed, before;

  Product(int rows_, int k_, int columns_)
      : rows(rows_),
        k(k_),
        columns(columns_),
        ldx(k_ + 3),
        ldy(columns_ + 5),
        x(random_floats(static_cast<size_t>(rows_) * ldx, 1)),
        weights(random_floats(static_cast<size_t>(columns_) * k_, 2)),
        packed(static_cast<size_t>(columns_) * k_),
        before(random_floats(static_cast<size_t>(rows_) * ldy, 3)) {
    cpu::pack({weights.data(), k, columns, k, false, packed.data()});
    for (int row = 0; row < rows; ++row)
      std::fill_n(before.begin() + row * ldy + columns, ldy - columns, kUntouched);
  }

  std::vector<float> run(bool accumulate) const {
    std::vector<float> y = before;
    cpu::multiply({x.data(), ldx, packed.data(), y.data(), ldy, rows, k, columns, accumulate});
    return y;
  }
};

// A sum of k products has at most k + 1 roundings on the way of each (SSE4: product and sum), one more with
// the old y.
void check_against_double(const Product& p, const std::vector<float>& y, bool accumulate) {
  double worst = 0.0;  // error over its bound
  for (int row = 0; row < p.rows; ++row) {
    for (int c = 0; c < p.columns; ++c) {
      const double old = accumulate ? p.before[row * p.ldy + c] : 0.0;
      double sum = old, absolute = std::abs(old);
      for (int t = 0; t < p.k; ++t) {
        const double term =
            static_cast<double>(p.x[row * p.ldx + t]) * static_cast<double>(p.weights[c * p.k + t]);
        sum += term;
        absolute += std::abs(term);
      }
      worst = worse(worst, std::abs(y[row * p.ldy + c] - sum) / ((p.k + 2) * kUnit * absolute));
    }
  }
  CHECK(worst <= 1.0);
}

// k walks upward from 0, one multiply-add a step; what was in y is added at the end. Beside the columns
// nothing is written.
void check_bits(const Product& p, const CpuTarget& target, const std::vector<float>& y, bool accumulate) {
  int different = 0;
  for (int row = 0; row < p.rows; ++row) {
    for (int c = 0; c < p.ldy; ++c) {
      float expected = kUntouched;
      if (c < p.columns) {
        expected = 0.0f;
        for (int t = 0; t < p.k; ++t) {
          expected = target.multiply_add(p.x[row * p.ldx + t], p.weights[c * p.k + t], expected);
        }
        if (accumulate) expected = p.before[row * p.ldy + c] + expected;
      }
      different += !same_bits(y[row * p.ldy + c], expected);
    }
  }
  CHECK(different == 0);
}

void check_product(const Product& p, const CpuTarget& target) {
  INFO(p.rows << " rows, k = " << p.k << ", " << p.columns << " columns");
  for (bool accumulate : {false, true}) {
    const std::vector<float> y = p.run(accumulate);
    check_against_double(p, y, accumulate);
    check_bits(p, target, y, accumulate);
  }
}

TEST_CASE("pack lays panels of 16 columns, of the matrix or of its transpose") {
  constexpr int kColumns = 48, kK = 33, kLd = 50;
  const std::vector<float> stored = random_floats(kLd * kLd, 1);
  for (bool transposed : {false, true}) {
    std::vector<float> packed(kColumns * kK + 1, kUntouched);
    cpu::pack({stored.data(), kLd, kColumns, kK, transposed, packed.data()});
    int different = 0;
    for (int c = 0; c < kColumns; ++c) {
      for (int k = 0; k < kK; ++k) {
        const float expected = transposed ? stored[k * kLd + c] : stored[c * kLd + k];
        different += packed[(c / 16 * kK + k) * 16 + c % 16] != expected;
      }
    }
    CHECK(different == 0);
    CHECK(packed.back() == kUntouched);
  }
}

TEST_CASE("multiply: any number of rows, every width of tile") {
  on_each_target([](const CpuTarget& target) {
    for (int rows = 1; rows <= 33; ++rows) {
      for (int columns : {16, 32, 48, 64, 80, 112, 128}) check_product(Product(rows, 33, columns), target);
    }
  });
}

TEST_CASE("multiply: any depth") {
  on_each_target([](const CpuTarget& target) {
    for (int k : {1, 2, 15, 16, 17, 31, 32, 33, 100, 127, 128, 512}) check_product(Product(7, k, 80), target);
  });
}

TEST_CASE("multiply: bias, residual and ReLU are added to the finished sums") {
  on_each_target([](const CpuTarget&) {
    const Product p(19, 33, 80);
    const std::vector<float> bias = random_floats(p.columns, 4), sums = p.run(false);
    for (const bool residual : {false, true}) {
      for (const bool relu : {false, true}) {
        std::vector<float> y = p.before;  // the residual too, which y may be
        cpu::multiply({p.x.data(), p.ldx, p.packed.data(), y.data(), p.ldy, p.rows, p.k, p.columns, false,
                       bias.data(), residual ? y.data() : nullptr, relu});
        int different = 0;
        for (int i = 0; i < p.rows * p.ldy; ++i) {
          const int c = i % p.ldy;
          float expected = kUntouched;
          if (c < p.columns) {
            expected = (residual ? p.before[i] + bias[c] : bias[c]) + sums[i];
            if (relu) expected = std::max(expected, 0.0f);
          }
          different += !same_bits(y[i], expected);
        }
        INFO("residual " << residual << ", relu " << relu);
        CHECK(different == 0);
      }
    }
  });
}

TEST_CASE("multiply: a row's bits do not depend on the rows beside it") {
  on_each_target([](const CpuTarget&) {
    const Product all(13, 128, 128);
    const std::vector<float> together = all.run(false);
    for (int row = 0; row < all.rows; ++row) {
      std::vector<float> alone(all.columns);
      cpu::multiply({all.x.data() + row * all.ldx, all.ldx, all.packed.data(), alone.data(), all.columns, 1,
                     all.k, all.columns, false});
      const auto begin = together.begin() + row * all.ldy;
      CHECK(same_bits(alone, {begin, begin + all.columns}));
    }
  });
}

struct Outer {
  int rows, m, n, ldx, ldy, ldsum;
  std::vector<float> x, y, before;

  Outer(int rows_, int m_, int n_)
      : rows(rows_),
        m(m_),
        n(n_),
        ldx(m_ + 3),
        ldy(n_ + 5),
        ldsum(n_ + 7),
        x(random_floats(static_cast<size_t>(rows_) * ldx, 1)),
        y(random_floats(static_cast<size_t>(rows_) * ldy, 2)),
        before(random_floats(static_cast<size_t>(m_) * ldsum, 3)) {}
};

// Blocks of 128 rows, each from 0 upward, added to the sum in order. Beside the n columns nothing is written.
void check_outer(const Outer& o, const CpuTarget& target) {
  INFO(o.rows << " rows, m = " << o.m << ", n = " << o.n);
  std::vector<float> sum = o.before;
  cpu::accumulate_outer({o.x.data(), o.ldx, o.y.data(), o.ldy, sum.data(), o.ldsum, o.rows, o.m, o.n});
  double worst = 0.0;
  int different = 0;
  for (int i = 0; i < o.m; ++i) {
    for (int j = 0; j < o.ldsum; ++j) {
      float expected = o.before[i * o.ldsum + j];
      double exact = expected, absolute = std::abs(exact);
      for (int first = 0; first < o.rows && j < o.n; first += 128) {
        float block = 0.0f;
        for (int r = first; r < std::min(first + 128, o.rows); ++r) {
          const float a = o.x[r * o.ldx + i], b = o.y[r * o.ldy + j];
          block = target.multiply_add(a, b, block);
          exact += static_cast<double>(a) * static_cast<double>(b);
          absolute += std::abs(static_cast<double>(a) * static_cast<double>(b));
        }
        expected = expected + block;
      }
      different += !same_bits(sum[i * o.ldsum + j], expected);
      // Roundings of a term: its product, up to 128 sums in its block, one sum for each block.
      const double roundings = std::min(o.rows, 128) + 1 + (o.rows + 127) / 128;
      worst = worse(worst, std::abs(sum[i * o.ldsum + j] - exact) / (roundings * kUnit * absolute));
    }
  }
  CHECK(different == 0);
  CHECK(worst <= 1.0);
}

TEST_CASE("accumulate_outer: blocks of 128 rows in order, any m, every width") {
  on_each_target([](const CpuTarget& target) {
    for (int rows : {0, 1, 2, 15, 17, 100, 127, 128, 129, 300}) check_outer(Outer(rows, 7, 80), target);
    for (int m = 1; m <= 17; ++m) {
      for (int n : {16, 32, 48, 64, 112}) check_outer(Outer(33, m, n), target);
    }
  });
}

}  // namespace
}  // namespace pointsman
