// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/scalar_math.h"
#include "kernels/cpu/cpu_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"

namespace pointsman {
namespace {

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

struct Cell {
  int rows, width, ld = kGates + 24;
  bool with_inputs;
  std::vector<float> products, fold, bias, inputs, c_in;

  Cell(int rows_, bool with_inputs_, float scale, int width_ = 2)
      : rows(rows_),
        width(width_),
        with_inputs(with_inputs_),
        products(random_floats(static_cast<size_t>(rows_) * ld, 1, scale)),
        fold(random_floats(width_ * kGates, 2, scale)),
        bias(random_floats(kGates, 3, scale)),
        inputs(random_floats(width_ * rows_, 4)),
        c_in(random_floats(static_cast<size_t>(rows_) * kHidden, 5, 2.0f)) {}

  struct Output {
    std::vector<float> h, c, cells;
  };

  Output run(bool want_cells = true, bool in_place = false) const {
    Output out{std::vector<float>(c_in.size()), in_place ? c_in : std::vector<float>(c_in.size()), {}};
    if (want_cells) out.cells.resize(static_cast<size_t>(rows) * kLstmCell);
    cpu::lstm_cell({rows, products.data(), ld, with_inputs ? fold.data() : nullptr, bias.data(),
                    with_inputs ? inputs.data() : nullptr, width, in_place ? out.c.data() : c_in.data(),
                    out.h.data(), out.c.data(), want_cells ? out.cells.data() : nullptr});
    return out;
  }

  // The argument of gate j (of 4H) and the bound of its rounding: two roundings and one of each input, or two
  // without fma.
  double gate(int row, int j, double* off) const {
    std::vector<double> terms{products[row * ld + j], bias[j]};
    for (int i = 0; i < width && with_inputs; ++i)
      terms.push_back(double{fold[i * kGates + j]} * double{inputs[width * row + i]});
    double sum = 0.0, absolute = 0.0;
    for (double term : terms) {
      sum += term;
      absolute += std::abs(term);
    }
    *off = (2 + 2 * width) * kUnit * absolute;
    return sum;
  }

  // gate = .. fma(fold1, y, fma(fold0, x, product + bias)), in single precision.
  float gate_in_written_order(int row, int j) const {
    float sum = products[row * ld + j] + bias[j];
    for (int i = 0; i < width && with_inputs; ++i)
      sum = std::fma(fold[i * kGates + j], inputs[width * row + i], sum);
    return sum;
  }
};

// Bounds. exp is good to 4u (u = 2^-24, twice that without fma), so a sigmoid is off by s (1 - s) 8u + 2u <=
// 4u plus a quarter of its argument's error; a tanh by 10u plus its argument's error; the products and sums
// that join them round a few times more.
void check_cell(const Cell& cell) {
  const Cell::Output out = cell.run();
  double worst = 0.0;
  const auto compare = [&](float found, double exact, double bound) {
    worst = worse(worst, std::abs(found - exact) / bound);
  };
  for (int row = 0; row < cell.rows; ++row) {
    for (int d = 0; d < kHidden; ++d) {
      double off[4];
      const double i = sigmoid(cell.gate(row, d, off)), f = sigmoid(cell.gate(row, kHidden + d, off + 1));
      const double g = std::tanh(cell.gate(row, 2 * kHidden + d, off + 2));
      const double o = sigmoid(cell.gate(row, 3 * kHidden + d, off + 3));
      const double before = cell.c_in[row * kHidden + d];
      const double c = f * before + i * g, tanh_c = std::tanh(c);
      const double c_off = std::abs(before) * (off[1] / 4 + 6 * kUnit) + off[0] / 4 + off[2] + 20 * kUnit;
      compare(out.c[row * kHidden + d], c, c_off);
      compare(out.h[row * kHidden + d], o * tanh_c, c_off + off[3] / 4 + 20 * kUnit);
      const float* cells = out.cells.data() + row * kLstmCell + d;
      compare(cells[0], i, off[0] / 4 + 4 * kUnit);
      compare(cells[kHidden], f, off[1] / 4 + 4 * kUnit);
      compare(cells[2 * kHidden], g, off[2] + 10 * kUnit);
      compare(cells[3 * kHidden], o, off[3] / 4 + 4 * kUnit);
      compare(cells[4 * kHidden], tanh_c, c_off + 10 * kUnit);
    }
  }
  CHECK(worst <= 1.0);
}

TEST_CASE("lstm_cell against double, with inputs and without") {
  on_each_target([](const CpuTarget&) {
    for (int rows : {1, 2, 5, 16, 17}) {
      for (bool with_inputs : {true, false}) {
        for (float scale : {0.1f, 1.0f, 8.0f}) {
          INFO(rows << " rows" << (with_inputs ? " with inputs" : "") << ", scale " << scale);
          check_cell(Cell(rows, with_inputs, scale));
          check_cell(Cell(rows, with_inputs, scale, 5));
        }
      }
    }
  });
}

TEST_CASE("lstm_cell stays finite where every gate is saturated") {
  on_each_target([](const CpuTarget&) {
    for (float sign : {-1.0f, 1.0f}) {
      Cell cell(3, true, 1.0f);
      for (float& x : cell.products) x = sign * 1e6f;
      const Cell::Output out = cell.run();
      for (size_t k = 0; k < out.h.size(); ++k) {
        // All gates 1: c' = c + 1. All gates 0: nothing of c is left.
        const float expected = sign > 0 ? cell.c_in[k] + 1.0f : 0.0f;
        if (std::abs(out.c[k] - expected) > 1e-6f) FAIL("c' " << out.c[k] << ", expected " << expected);
        if (!(std::abs(out.h[k]) <= 1.0f)) FAIL("h " << out.h[k]);
      }
    }
  });
}

TEST_CASE("lstm_cell: the same bits without a cells and with c in place") {
  on_each_target([](const CpuTarget&) {
    const Cell cell(5, true, 1.0f);
    const Cell::Output out = cell.run();
    for (bool in_place : {false, true}) {
      const Cell::Output other = cell.run(in_place, in_place);
      CHECK(same_bits(out.h, other.h));
      CHECK(same_bits(out.c, other.c));
    }
  });
}

TEST_CASE("lstm_cell: the written order of a gate") {
  on_each_target([](const CpuTarget& target) {
    if (!target.has_fma) return;
    for (bool with_inputs : {true, false}) {
      const Cell cell(3, with_inputs, 1.0f);
      const Cell::Output out = cell.run();
      int different = 0;
      for (int row = 0; row < cell.rows; ++row) {
        for (int d = 0; d < kHidden; ++d) {
          const auto denominator = [&](int gate) {
            return exp_f32(0.0f - cell.gate_in_written_order(row, gate * kHidden + d)) + 1.0f;
          };
          const float* cells = out.cells.data() + row * kLstmCell + d;
          for (int gate : {0, 1, 3}) different += !same_bits(cells[gate * kHidden], 1.0f / denominator(gate));
          different +=
              !same_bits(cells[2 * kHidden], tanh_f32(cell.gate_in_written_order(row, 2 * kHidden + d)));
          different += !same_bits(cells[4 * kHidden], tanh_f32(out.c[row * kHidden + d]));
        }
      }
      CHECK(different == 0);
    }
  });
}

// What lstm_cell_backward differentiates: dh . h' + dc . c' of one unit as a function of its four gates and
// c.
double unit_loss(const double* gates, double c_prev, double dh, double dc) {
  const double c = sigmoid(gates[1]) * c_prev + sigmoid(gates[0]) * std::tanh(gates[2]);
  return dh * sigmoid(gates[3]) * std::tanh(c) + dc * c;
}

TEST_CASE("lstm_cell_backward against central differences in double") {
  on_each_target([](const CpuTarget&) {
    for (int rows : {1, 2, 17}) {
      const size_t states = static_cast<size_t>(rows) * kHidden;
      const std::vector<float> gates = random_floats(states * 4, 1, 3.0f),
                               c_prev = random_floats(states, 2, 2.0f);
      const std::vector<float> dh = random_floats(states, 3), dc_out = random_floats(states, 4);
      std::vector<float> cells(states * 5), dc = dc_out;
      const auto gates_of = [&](int row, int d, double* to) {
        for (int t = 0; t < 4; ++t) to[t] = gates[row * kGates + t * kHidden + d];
      };
      for (int row = 0; row < rows; ++row) {
        for (int d = 0; d < kHidden; ++d) {
          double x[4];
          gates_of(row, d, x);
          const double i = sigmoid(x[0]), f = sigmoid(x[1]), g = std::tanh(x[2]), o = sigmoid(x[3]);
          const double values[5] = {i, f, g, o, std::tanh(f * c_prev[row * kHidden + d] + i * g)};
          for (int t = 0; t < 5; ++t)
            cells[row * kLstmCell + t * kHidden + d] = static_cast<float>(values[t]);
        }
      }
      cpu::lstm_cell_backward(rows, cells.data(), c_prev.data(), dh.data(), dc.data());
      double worst = 0.0;
      for (int row = 0; row < rows; ++row) {
        for (int d = 0; d < kHidden; ++d) {
          const int at = row * kHidden + d;
          const double h = dh[at], c = dc_out[at], previous = c_prev[at], step = 1e-5;
          // The cells's values are rounded to u, and up to eight products and differences follow; no factor
          // but c is above 1. The differences themselves are good to 1e-9.
          const double bound =
              12 * kUnit * (2 * std::abs(h) + std::abs(c)) * std::max(1.0, std::abs(previous)) + 1e-9;
          double x[4];
          for (int t = 0; t < 4; ++t) {
            gates_of(row, d, x);
            x[t] += step;
            const double above = unit_loss(x, previous, h, c);
            x[t] -= 2 * step;
            const double slope = (above - unit_loss(x, previous, h, c)) / (2 * step);
            worst = worse(worst, std::abs(cells[row * kLstmCell + t * kHidden + d] - slope) / bound);
          }
          gates_of(row, d, x);
          const double slope =
              (unit_loss(x, previous + step, h, c) - unit_loss(x, previous - step, h, c)) / (2 * step);
          worst = worse(worst, std::abs(dc[at] - slope) / bound);
        }
      }
      CHECK(worst <= 1.0);
    }
  });
}

struct ColumnSums {
  std::vector<float> start, bias, fold;
};

// One column in the written order: blocks of 128 rows that do not cross the end of the start rows.
template <typename Term>
float block_sums(float sum, int first, int end, const Term& term) {
  for (; first < end; first += 128) {
    float block = 0.0f;
    for (int row = first; row < std::min(first + 128, end); ++row) block = term(block, row);
    sum = sum + block;
  }
  return sum;
}

void check_column_sums(int start_rows, int rows, int width, const CpuTarget& target) {
  constexpr int kLd = kLstmCell;  // where the backward pass leaves them
  INFO(start_rows << " start rows of " << rows);
  const std::vector<float> dgates = random_floats(static_cast<size_t>(rows) * kLd, 1);
  const std::vector<float> inputs = random_floats(width * static_cast<size_t>(rows), 2);
  const ColumnSums before{random_floats(kGates, 3), random_floats(kGates, 4),
                          random_floats(width * kGates, 5)};
  ColumnSums sums = before;
  cpu::accumulate_columns({dgates.data(), kLd, inputs.data(), width, start_rows, rows,
                           start_rows == 0 ? nullptr : sums.start.data(), sums.bias.data(),
                           sums.fold.data()});
  int different = 0;
  double worst = 0.0;
  const auto compare = [&](float found, float before_it, int first, int end, int j, int coordinate) {
    double exact = before_it, absolute = std::abs(exact);
    for (int row = first; row < end; ++row) {
      const double term =
          double{dgates[row * kLd + j]} * (coordinate < 0 ? 1.0 : double{inputs[width * row + coordinate]});
      exact += term;
      absolute += std::abs(term);
    }
    // Roundings of a term: its product, the rows of its block, one for each block.
    const int roundings = 1 + std::min(end - first, 128) + (end - first + 127) / 128 + 1;
    worst = worse(worst, std::abs(found - exact) / (roundings * kUnit * absolute));
  };
  const auto plain = [&](int j) {
    return [&, j](float sum, int row) { return sum + dgates[row * kLd + j]; };
  };
  for (int j = 0; j < kGates; ++j) {
    const float start = block_sums(before.start[j], 0, start_rows, plain(j));
    const float bias =
        block_sums(block_sums(before.bias[j], 0, start_rows, plain(j)), start_rows, rows, plain(j));
    different += !same_bits(sums.start[j], start) + !same_bits(sums.bias[j], bias);
    compare(sums.start[j], before.start[j], 0, start_rows, j, -1);
    compare(sums.bias[j], before.bias[j], 0, rows, j, -1);
    for (int c = 0; c < width; ++c) {
      const int at = c * kGates + j, first = c < 2 ? start_rows : 0;
      const auto term = [&](float sum, int row) {
        return target.multiply_add(dgates[row * kLd + j], inputs[width * row + c], sum);
      };
      const float fold =
          block_sums(block_sums(before.fold[at], first, start_rows, term), start_rows, rows, term);
      different += !same_bits(sums.fold[at], fold);
      compare(sums.fold[at], before.fold[at], first, rows, j, c);
    }
  }
  CHECK(different == 0);
  CHECK(worst <= 1.0);
}

TEST_CASE("accumulate_columns: bias, fold and start sums in blocks of 128 rows") {
  on_each_target([](const CpuTarget& target) {
    for (int rows : {1, 2, 33, 127, 128, 129, 300}) {
      for (int start_rows : {0, 1, 16, 128, 200}) {
        for (int width : {2, 4}) {
          if (start_rows <= rows) check_column_sums(start_rows, rows, width, target);
        }
      }
    }
  });
}

}  // namespace
}  // namespace pointsman
