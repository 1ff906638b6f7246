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
#include "tests/kernels/cuda/set_ranges_test.h"
#include "tests/reference/reference.h"

namespace pointsman::cuda {
namespace {

// Sets of LSTM weights as the model holds them; W_hh as stored, the kernels' transposed copy beside it.
struct Weights {
  int sets, width;                                   // width: numbers of an item
  std::vector<float> stored, recurrent, fold, bias;  // [sets] each

  explicit Weights(int sets_, float scale, int width_ = 2)
      : sets(sets_),
        width(width_),
        stored(random_floats(static_cast<size_t>(sets_) * kGates * kHidden, 1, scale)),
        recurrent(stored.size()),
        fold(random_floats(static_cast<size_t>(sets_) * width_ * kGates, 2)),
        bias(random_floats(static_cast<size_t>(sets_) * kGates, 3)) {
    for (int s = 0; s < sets; ++s) {
      const size_t base = static_cast<size_t>(s) * kGates * kHidden;
      for (int j = 0; j < kGates; ++j) {
        for (int k = 0; k < kHidden; ++k) {
          recurrent[base + index_in_fours(k, j, kGates)] = stored[base + j * kHidden + k];
        }
      }
    }
  }
  const float* stored_of(int set) const {
    return stored.data() + static_cast<size_t>(set) * kGates * kHidden;
  }
  const float* fold_of(int set) const { return fold.data() + set * width * kGates; }
  const float* bias_of(int set) const { return bias.data() + set * kGates; }
};

bool equal(const float* a, const float* b, size_t count) {
  return std::equal(a, a + count, b, [](float x, float y) { return same_bits(x, y); });
}

// ------------------------------------------------------------------------------ forward

struct Forward {
  std::vector<float> h, c, cells, c_last;
};

Forward run_forward(const Weights& w, const std::vector<SetRange>& ranges, int steps,
                    const std::vector<float>& inputs, bool keep, bool want_c_last) {
  const size_t rows = rows_of(ranges), states = rows * (steps + 1) * kHidden;
  const DeviceArray<float> recurrent(w.recurrent), fold(w.fold), bias(w.bias), x(inputs);
  DeviceArray<SetRange> device_ranges(ranges);
  DeviceArray<float> h(states), c(keep ? states : 0), cells(keep ? rows * steps * kLstmCell : 0);
  DeviceArray<float> c_last(want_c_last ? rows * kHidden : 0);
  lstm_forward({{recurrent.data(), kGates * kHidden},
                {fold.data(), w.width * kGates},
                {bias.data(), kGates},
                x.data(),
                h.data(),
                c_last.data(),
                c.data(),
                cells.data(),
                {device_ranges.data(), static_cast<int>(ranges.size()), static_cast<int>(rows)},
                steps,
                Precision::kFp32,
                {},
                w.width},
               nullptr);
  return {h.download(), c.download(), cells.download(), c_last.download()};
}

// One row on the CPU, in the same layout.
Forward cpu_row(const Weights& w, int set, int steps, const float* inputs) {
  std::vector<float> packed(static_cast<size_t>(kGates) * kHidden), products(kGates);
  cpu::pack({w.stored_of(set), kHidden, kGates, kHidden, false, packed.data()});
  Forward out{std::vector<float>((steps + 1) * kHidden),
              std::vector<float>((steps + 1) * kHidden),
              std::vector<float>(steps * kLstmCell),
              {}};
  for (int step = 0; step < steps; ++step) {
    float *h = out.h.data() + step * kHidden, *c = out.c.data() + step * kHidden;
    if (step > 0)
      cpu::multiply({h, kHidden, packed.data(), products.data(), kGates, 1, kHidden, kGates, false});
    cpu::lstm_cell({1, products.data(), kGates, w.fold_of(set), w.bias_of(set), inputs + w.width * step,
                    w.width, c, h + kHidden, c + kHidden, out.cells.data() + step * kLstmCell});
  }
  return out;
}

void check_against_cpu(const Forward& out, const Weights& w, const std::vector<SetRange>& ranges, int steps,
                       const std::vector<float>& inputs) {
  if (!cpu_has_fma()) return;
  const size_t states = static_cast<size_t>(steps + 1) * kHidden;
  int different = 0;
  for (int row = 0; row < rows_of(ranges); ++row) {
    const Forward expected = cpu_row(w, set_of(ranges, row), steps, inputs.data() + w.width * row * steps);
    different += !equal(out.h.data() + row * states, expected.h.data(), states);
    if (!out.c.empty()) {
      different += !equal(out.c.data() + row * states, expected.c.data(), states);
      different += !equal(out.cells.data() + static_cast<size_t>(row) * steps * kLstmCell,
                          expected.cells.data(), expected.cells.size());
    }
    if (!out.c_last.empty()) {
      different += !equal(out.c_last.data() + row * kHidden, expected.c.data() + steps * kHidden, kHidden);
    }
  }
  CHECK(different == 0);
}

// Every step from the kernel's own state before it, in double. A gate is off by its 128 + 4 roundings of
// terms that sum to at most `gate` in magnitude; sigmoids pass on a quarter of that, tanh all of it; the
// cell's own arithmetic adds what tests/kernels/cpu/test_lstm.cpp derives.
double worst_step(const Forward& out, const Weights& w, const std::vector<SetRange>& ranges, int steps,
                  const std::vector<float>& inputs, int row) {
  const int set = set_of(ranges, row);
  std::vector<double> weight_ih(2 * kGates), weight_hh(w.stored_of(set), w.stored_of(set) + kGates * kHidden);
  const std::vector<double> bias(w.bias_of(set), w.bias_of(set) + kGates);
  double gate = 0.0;
  for (int j = 0; j < kGates; ++j) {
    double sum = std::abs(bias[j]);
    for (int c = 0; c < 2; ++c) {
      weight_ih[2 * j + c] = double{w.fold_of(set)[c * kGates + j]};
      sum += std::abs(weight_ih[2 * j + c]);
    }
    for (int k = 0; k < kHidden; ++k) sum += std::abs(weight_hh[j * kHidden + k]);
    gate = std::max(gate, sum);
  }
  const double off = 132 * kUnit * gate;
  double worst = 0.0;
  for (int step = 0; step < steps; ++step) {
    const size_t at = (static_cast<size_t>(row) * (steps + 1) + step) * kHidden;
    const float* x = inputs.data() + 2 * (static_cast<size_t>(row) * steps + step);
    const reference::LstmStep exact =
        reference::lstm_step(weight_ih.data(), weight_hh.data(), bias.data(), {double{x[0]}, double{x[1]}},
                             {out.h.begin() + at, out.h.begin() + at + kHidden},
                             {out.c.begin() + at, out.c.begin() + at + kHidden});
    for (int d = 0; d < kHidden; ++d) {
      const double c_off = std::abs(exact.cell_before[d]) * (off / 4 + 6 * kUnit) + 1.25 * off + 20 * kUnit;
      worst = worse(worst, std::abs(out.c[at + kHidden + d] - exact.cell[d]) / c_off);
      worst =
          worse(worst, std::abs(out.h[at + kHidden + d] - exact.hidden[d]) / (c_off + off / 4 + 20 * kUnit));
      const float* cells = out.cells.data() + (static_cast<size_t>(row) * steps + step) * kLstmCell + d;
      worst = worse(worst, std::abs(cells[0] - exact.i[d]) / (off / 4 + 4 * kUnit));
      worst = worse(worst, std::abs(cells[kHidden] - exact.f[d]) / (off / 4 + 4 * kUnit));
      worst = worse(worst, std::abs(cells[2 * kHidden] - exact.g[d]) / (off + 10 * kUnit));
      worst = worse(worst, std::abs(cells[3 * kHidden] - exact.o[d]) / (off / 4 + 4 * kUnit));
      worst = worse(worst, std::abs(cells[4 * kHidden] - std::tanh(exact.cell[d])) / (c_off + 10 * kUnit));
    }
  }
  return worst;
}

void check_forward(const std::vector<int>& lengths, int steps, float scale) {
  const std::vector<SetRange> ranges = make_ranges(lengths);
  const int rows = rows_of(ranges);
  INFO(rows << " rows in " << ranges.size() << " ranges, " << steps << " steps");
  const Weights w(static_cast<int>(ranges.size()), scale);
  const std::vector<float> inputs = random_floats(2 * static_cast<size_t>(rows) * steps, 4);
  const Forward kept = run_forward(w, ranges, steps, inputs, true, false);
  check_against_cpu(kept, w, ranges, steps, inputs);
  double worst = 0.0;
  for (const SetRange& r : ranges) {
    for (int row : {r.first_row, r.first_row + r.rows - 1}) {
      worst = worse(worst, worst_step(kept, w, ranges, steps, inputs, row));
    }
  }
  CHECK(worst <= 1.0);
}

TEST_CASE("lstm_forward: the CPU's bits, and the oracle's values") {
  check_forward({1}, 1, 0.08f);
  check_forward({2}, 2, 1.0f);
  check_forward({7, 1, 8}, 5, 0.3f);
  check_forward({9, 15, 1}, 33, 0.08f);
  check_forward({3}, 100, 0.3f);
}

// Rows that an H200's clusters do not hold at once in tiles of 4, nor of 8, nor of 16.
constexpr int kMoreRows = 139, kManyRows = 270, kMostRows = 529;

TEST_CASE("lstm_forward in larger tiles") {
  check_forward({kMoreRows}, 3, 0.3f);
  check_forward({1, kManyRows}, 3, 0.3f);
  check_forward({kMostRows}, 2, 0.3f);
}

TEST_CASE("lstm_forward in blocks of 32 rows", "[large]") { check_forward({33, 2, 2790, 31}, 2, 0.3f); }

TEST_CASE("lstm_forward without a cells gives the same states and the last c", "[race]") {
  const std::vector<SetRange> ranges = make_ranges({5, 12});
  const Weights w(2, 0.3f);
  const int steps = 7;
  const std::vector<float> inputs = random_floats(2 * 17 * steps, 4);
  const Forward kept = run_forward(w, ranges, steps, inputs, true, true);
  const Forward bare = run_forward(w, ranges, steps, inputs, false, true);
  CHECK(same_bits(bare.h, kept.h));
  CHECK(same_bits(bare.c_last, kept.c_last));
  for (int row = 0; row < 17; ++row) {
    const float* last = kept.c.data() + (row * (steps + 1) + steps) * kHidden;
    CHECK(equal(bare.c_last.data() + row * kHidden, last, kHidden));
  }
}

TEST_CASE("lstm_forward of three numbers an item: the CPU's bits, and no cells", "[race]") {
  const std::vector<SetRange> ranges = make_ranges({5, 12});
  const Weights w(2, 0.3f, 3);
  for (const int steps : {1, 5}) {
    const std::vector<float> inputs = random_floats(3 * 17 * static_cast<size_t>(steps), 4);
    check_against_cpu(run_forward(w, ranges, steps, inputs, false, true), w, ranges, steps, inputs);
    CHECK_THROWS_AS(run_forward(w, ranges, steps, inputs, true, false), std::invalid_argument);
  }
}

// ------------------------------------------------------------------------------ backward

double sigmoid(double x) { return 1.0 / (1.0 + std::exp(-x)); }

// What lstm_backward reads. Gates and cells are random but fit together.
struct BackwardCase {
  std::vector<SetRange> ranges;
  int rows, steps;
  Weights weights;
  std::vector<float> cells, c, dh, dc_last;
  std::vector<int32_t> row_steps;

  BackwardCase(const std::vector<int>& lengths, int steps_)
      : ranges(make_ranges(lengths)),
        rows(rows_of(ranges)),
        steps(steps_),
        weights(static_cast<int>(lengths.size()), 0.2f),
        cells(static_cast<size_t>(rows) * steps * kLstmCell),
        c(random_floats(static_cast<size_t>(rows) * (steps + 1) * kHidden, 11)),
        dh(random_floats(c.size(), 12)),
        dc_last(random_floats(static_cast<size_t>(rows) * kHidden, 13)),
        row_steps(rows) {
    const std::vector<float> gates = random_floats(static_cast<size_t>(rows) * steps * kGates, 14, 3.0f);
    for (int row = 0; row < rows; ++row) {
      row_steps[row] = (row * 7 + steps) % (steps + 1);
      for (int step = 0; step < steps; ++step) fill_step(row, step, gates.data());
    }
  }

  size_t slot(int row, int step) const { return static_cast<size_t>(row) * (steps + 1) + step; }
  const float* cells_of(int row, int step) const {
    return cells.data() + (static_cast<size_t>(row) * steps + step) * kLstmCell;
  }

  void fill_step(int row, int step, const float* gates) {
    const size_t at = static_cast<size_t>(row) * steps + step;
    for (int d = 0; d < kHidden; ++d) {
      const float* x = gates + at * kGates + d;
      const double i = sigmoid(x[0]), f = sigmoid(x[kHidden]), g = std::tanh(x[2 * kHidden]);
      const double o = sigmoid(x[3 * kHidden]), cell = f * c[slot(row, step) * kHidden + d] + i * g;
      const double values[5] = {i, f, g, o, std::tanh(cell)};
      for (int t = 0; t < 5; ++t) cells[at * kLstmCell + t * kHidden + d] = static_cast<float>(values[t]);
      c[slot(row, step + 1) * kHidden + d] = static_cast<float>(cell);
    }
  }
};

struct Backward {
  std::vector<float> dgates, dh_start, dc_start;
};

// An encoder has a dc_last, all its steps, and no start; a decoder the opposite.
Backward run_backward(const BackwardCase& k, bool decoder) {
  // W_hh lies where the layout puts it: behind a prior of one to three weights it is not aligned.
  std::vector<float> layout(1, 0.0f);
  layout.insert(layout.end(), k.weights.stored.begin(), k.weights.stored.end());
  const DeviceArray<float> stored(layout), cells(k.cells), c(k.c), dh(k.dh), dc_last(k.dc_last);
  const DeviceArray<int32_t> row_steps(k.row_steps);
  DeviceArray<SetRange> ranges(k.ranges);
  const size_t start = decoder ? static_cast<size_t>(k.rows) * kHidden : 0;
  DeviceArray<float> dgates(static_cast<size_t>(k.rows) * (k.steps + 1) * kGates), dh_start(start),
      dc_start(start);
  lstm_backward({{stored.data() + 1, kGates * kHidden},
                 cells.data(),
                 c.data(),
                 dh.data(),
                 decoder ? nullptr : dc_last.data(),
                 decoder ? row_steps.data() : nullptr,
                 dgates.data(),
                 dh_start.data(),
                 dc_start.data(),
                 {ranges.data(), static_cast<int>(k.ranges.size()), k.rows},
                 k.steps},
                nullptr);
  return {dgates.download(), dh_start.download(), dc_start.download()};
}

// dgates W_hh in double from the kernel's own dgates, and the bound of its 512 + 1 roundings.
void recurrent_part(const float* dgates, const float* w, double* sum, double* off) {
  std::fill_n(sum, kHidden, 0.0);
  std::fill_n(off, kHidden, 0.0);
  for (int j = 0; j < kGates; ++j) {
    for (int d = 0; d < kHidden; ++d) {
      const double term = double{dgates[j]} * double{w[j * kHidden + d]};
      sum[d] += term;
      off[d] += 513 * kUnit * std::abs(term);
    }
  }
}

// One row. dh of each step is taken from the kernel's own dgates of the step after it, dc runs on in double
// with the sum of its errors; the cell's own roundings are those of tests/kernels/cpu/test_lstm.cpp.
double worst_row(const BackwardCase& k, const Backward& out, int row, bool decoder) {
  const float* w = k.weights.stored_of(set_of(k.ranges, row));
  const int made = decoder ? k.row_steps[row] : k.steps;
  std::vector<double> dc(kHidden), dc_off(kHidden), sum(kHidden), off(kHidden);
  for (int d = 0; d < kHidden; ++d) dc[d] = decoder ? 0.0 : k.dc_last[row * kHidden + d];
  double worst = 0.0;
  for (int step = made - 1; step >= 0; --step) {
    const float *cells = k.cells_of(row, step), *dgates = out.dgates.data() + k.slot(row, step) * kGates;
    recurrent_part(dgates + kGates, w, sum.data(), off.data());
    for (int d = 0; d < kHidden; ++d) {
      const double i = cells[d], f = cells[kHidden + d], g = cells[2 * kHidden + d],
                   o = cells[3 * kHidden + d];
      const double tanh_c = cells[4 * kHidden + d], before = k.c[k.slot(row, step) * kHidden + d];
      const double dh = k.dh[k.slot(row, step + 1) * kHidden + d] + sum[d];
      const double size = std::max(1.0, std::abs(before));
      const double dh_off = off[d] + kUnit * std::abs(dh),
                   cell = 12 * kUnit * (2 * std::abs(dh) + std::abs(dc[d]));
      const double total = dc[d] + dh * o * (1 - tanh_c * tanh_c);
      const double bound = (dh_off + dc_off[d] + cell) * size + 1e-30;
      const double expected[4] = {total * g * i * (1 - i), total * before * f * (1 - f),
                                  total * i * (1 - g * g), dh * tanh_c * o * (1 - o)};
      for (int t = 0; t < 4; ++t)
        worst = worse(worst, std::abs(dgates[t * kHidden + d] - expected[t]) / bound);
      dc[d] = total * f;
      dc_off[d] = (dh_off + dc_off[d] + cell) * f;
    }
  }
  if (!decoder) return worst;
  recurrent_part(out.dgates.data() + k.slot(row, 0) * kGates, w, sum.data(), off.data());
  for (int d = 0; d < kHidden; ++d) {
    const int at = row * kHidden + d;
    worst = worse(worst, std::abs(out.dh_start[at] - sum[d]) / (off[d] + 1e-30));
    worst = worse(worst, std::abs(out.dc_start[at] - dc[d]) / (dc_off[d] + 1e-30));
  }
  return worst;
}

void check_backward(const std::vector<int>& lengths, int steps, int stride = 1) {
  const BackwardCase k(lengths, steps);
  for (bool decoder : {false, true}) {
    INFO(k.rows << " rows, " << steps << " steps, " << (decoder ? "decoder" : "encoder"));
    const Backward out = run_backward(k, decoder);
    double worst = 0.0;
    for (int row = 0; row < k.rows; row += stride) worst = worse(worst, worst_row(k, out, row, decoder));
    CHECK(worst <= 1.0);
    int not_zero = 0;
    for (int row = 0; row < k.rows; ++row) {
      const size_t made = decoder ? k.row_steps[row] : steps;
      for (size_t at = k.slot(row, 0) * kGates + made * kGates; at < k.slot(row + 1, 0) * kGates; ++at) {
        not_zero += !same_bits(out.dgates[at], 0.0f);
      }
    }
    CHECK(not_zero == 0);
  }
}

TEST_CASE("lstm_backward against double, steps that were not made, several sets") {
  check_backward({1}, 1);
  check_backward({2}, 2);
  check_backward({9, 1, 8}, 5);
  check_backward({3, 11}, 33);
}

TEST_CASE("lstm_backward in larger tiles") {
  check_backward({kMoreRows}, 3);
  check_backward({1, kManyRows}, 3);
  check_backward({kMostRows}, 2, 41);
}

TEST_CASE("lstm_backward: a small call", "[race]") { check_backward({9, 1}, 3); }

TEST_CASE("lstm_backward in blocks of 32 rows", "[large]") { check_backward({33, 2, 2790, 31}, 2, 41); }

}  // namespace
}  // namespace pointsman::cuda
