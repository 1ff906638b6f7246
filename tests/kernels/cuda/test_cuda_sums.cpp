// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"
#include "tests/kernels/cuda/device_test.h"
#include "tests/kernels/cuda/set_ranges_test.h"

namespace pointsman::cuda {
namespace {

// A sum in double with the magnitude of its terms.
struct Sum {
  double value = 0.0, absolute = 0.0;
  int terms = 0;

  void add(double term) {
    value += term;
    absolute += std::abs(term);
    ++terms;
  }
  // |found - value| over its bound: each term rounds once itself and once for every sum it goes through,
  // which are at most as many as there are terms.
  double error(float found) const {
    return std::abs(found - value) / ((terms + 2) * kUnit * absolute + 1e-30);
  }
};

void check_sum_rows(const std::vector<int>& lengths, int width) {
  const std::vector<SetRange> ranges = make_ranges(lengths);
  const int rows = ranges.back().first_row + ranges.back().rows, ld = width + 3, stride = width + 5;
  INFO(rows << " rows in " << ranges.size() << " ranges, width " << width);
  const std::vector<float> in = random_floats(static_cast<size_t>(rows) * ld, 1);
  const std::vector<float> before = random_floats(ranges.size() * stride, 2);
  const DeviceArray<float> device_in(in);
  DeviceArray<SetRange> device_ranges(ranges);
  DeviceArray<float> out(before);
  sum_rows({device_in.data(),
            ld,
            width,
            {out.data(), stride},
            {device_ranges.data(), static_cast<int>(ranges.size()), rows}},
           nullptr);
  const std::vector<float> after = out.download();
  double worst = 0.0;
  for (const SetRange& r : ranges) {
    for (int j = 0; j < stride; ++j) {
      Sum sum;
      sum.add(before[r.set * stride + j]);
      for (int row = r.first_row; j < width && row < r.first_row + r.rows; ++row) sum.add(in[row * ld + j]);
      worst = worse(worst, sum.error(after[r.set * stride + j]));
    }
  }
  CHECK(worst <= 1.0);
}

TEST_CASE("sum_rows against double", "[race]") {
  check_sum_rows({1}, 1);
  check_sum_rows({2, 127, 1}, 128);
  check_sum_rows({128, 129, 300}, 33);
  check_sum_rows({2500, 31}, 64);
}

TEST_CASE("sum_rows sums blocks of 128 rows upward, one after the other") {
  const int rows = 1300;
  const std::vector<float> in = random_floats(rows, 1);
  const DeviceArray<float> device_in(in);
  DeviceArray<SetRange> ranges(std::vector<SetRange>{{0, 0, rows}});
  DeviceArray<float> out(std::vector<float>{0.0f});
  sum_rows({device_in.data(), 1, 1, {out.data(), 1}, {ranges.data(), 1, rows}}, nullptr);
  float expected = 0.0f;
  for (int first = 0; first < rows; first += 128) {
    float block = 0.0f;
    for (int row = first; row < std::min(first + 128, rows); ++row) block += in[row];
    expected += block;
  }
  CHECK(same_bits(out.download()[0], expected));
}

TEST_CASE("add_rows adds one row after the other to the first", "[race]") {
  for (const auto& [rows, width] : {std::pair{1, 1}, {3, 256}, {150, 300}}) {
    INFO(rows << " rows of " << width);
    std::vector<float> in = random_floats(static_cast<size_t>(rows) * width, 1);
    for (int row = 0; row < rows; ++row) in[static_cast<size_t>(row) * width] = -0.0f;
    const DeviceArray<float> device_in(in);
    DeviceArray<float> out(width);
    add_rows({device_in.data(), rows, width, out.data()}, nullptr);
    std::vector<float> expected(in.begin(), in.begin() + width);
    for (int row = 1; row < rows; ++row) {
      for (int i = 0; i < width; ++i) expected[i] += in[static_cast<size_t>(row) * width + i];
    }
    CHECK(same_bits(out.download(), expected));
  }
}

TEST_CASE("start_gradient sums the rows of each sequence", "[race]") {
  const std::vector<int32_t> first_row{0, 1, 1, 6, 140};  // the second sequence has no rows
  const int sequences = 4, n = 3;
  const std::vector<float> dh_start = random_floats(140 * kHidden, 1),
                           dc_start = random_floats(140 * kHidden, 2);
  const std::vector<float> before = random_floats(sequences * (n + 1) * kHidden, 3);
  const DeviceArray<float> device_h(dh_start), device_c(dc_start);
  const DeviceArray<int32_t> device_first(first_row);
  DeviceArray<float> dh(before), dc_last(static_cast<size_t>(sequences) * kHidden);
  start_gradient({device_h.data(), device_c.data(), device_first.data(), dh.data() + n * kHidden,
                  (n + 1) * kHidden, dc_last.data(), sequences},
                 nullptr);
  const std::vector<float> h = dh.download(), c = dc_last.download();
  double worst = 0.0;
  for (int s = 0; s < sequences; ++s) {
    for (int d = 0; d < kHidden; ++d) {
      Sum sum_h, sum_c;
      sum_h.add(before[(s * (n + 1) + n) * kHidden + d]);
      for (int row = first_row[s]; row < first_row[s + 1]; ++row) {
        sum_h.add(dh_start[row * kHidden + d]);
        sum_c.add(dc_start[row * kHidden + d]);
      }
      worst =
          std::max({worst, sum_h.error(h[(s * (n + 1) + n) * kHidden + d]), sum_c.error(c[s * kHidden + d])});
    }
    const size_t at = static_cast<size_t>(s) * (n + 1) * kHidden;
    CHECK(std::equal(h.begin() + at, h.begin() + at + n * kHidden, before.begin() + at));
  }
  CHECK(worst <= 1.0);
}

// ------------------------------------------------------------------------------ input_gradient

struct InputCase {
  std::vector<SetRange> ranges;
  int rows, steps;
  bool decoder;
  std::vector<float> dgates, features;
  std::vector<int32_t> orders, sequence_of;

  InputCase(const std::vector<int>& lengths, int steps_, bool decoder_)
      : ranges(make_ranges(lengths)),
        rows(ranges.back().first_row + ranges.back().rows),
        steps(steps_),
        decoder(decoder_),
        dgates(random_floats(static_cast<size_t>(rows) * (steps + 1) * kGates, 1)),
        features(random_floats(static_cast<size_t>(rows) * steps * 2, 2)) {
    for (int row = 0; decoder && row < rows; ++row) {
      sequence_of.push_back((row * 5 + 1) % rows);
      for (int t = 0; t < steps; ++t)
        orders.push_back(t > 2 && t > steps - 1 - row % 4 ? -1 : (t * 3 + row) % steps);
    }
  }

  float input(int row, int step, int c) const {
    if (!decoder) return features[2 * (row * steps + step) + c];
    if (step == 0 || orders[row * steps + step - 1] < 0) return 0.0f;
    return features[2 * (sequence_of[row] * steps + orders[row * steps + step - 1]) + c];
  }
};

void check_input_gradient(const InputCase& k) {
  INFO(k.rows << " rows, " << k.steps << " steps, " << (k.decoder ? "decoder" : "encoder"));
  const int sets = static_cast<int>(k.ranges.size()), stride = 4 * kGates + 7;
  const std::vector<float> before = random_floats(static_cast<size_t>(sets) * stride, 3);
  const DeviceArray<float> dgates(k.dgates), features(k.features);
  const DeviceArray<int32_t> orders(k.orders), sequence_of(k.sequence_of);
  DeviceArray<SetRange> ranges(k.ranges);
  DeviceArray<float> scratch(input_gradient_scratch(k.rows, sets)), sums(before);
  float* start = k.decoder ? sums.data() + 3 * kGates : nullptr;
  input_gradient({dgates.data(),
                  features.data(),
                  orders.data(),
                  sequence_of.data(),
                  {sums.data(), stride},
                  {sums.data() + kGates, stride},
                  {start, stride},
                  scratch.data(),
                  {ranges.data(), sets, k.rows},
                  k.steps},
                 nullptr);
  const std::vector<float> after = sums.download();
  double worst = 0.0;
  for (const SetRange& r : k.ranges) {
    for (int j = 0; j < kGates; ++j) {
      Sum sum[4];
      for (int part = 0; part < 4; ++part) sum[part].add(before[r.set * stride + part * kGates + j]);
      for (int row = r.first_row; row < r.first_row + r.rows; ++row) {
        const float* d = k.dgates.data() + static_cast<size_t>(row) * (k.steps + 1) * kGates + j;
        if (k.decoder) sum[3].add(d[0]);
        for (int t = 0; t < k.steps; ++t) {
          sum[0].add(d[t * kGates]);
          for (int c = 0; c < 2; ++c) sum[1 + c].add(double{d[t * kGates]} * double{k.input(row, t, c)});
        }
      }
      for (int part = 0; part < 4; ++part) {
        worst = worse(worst, sum[part].error(after[r.set * stride + part * kGates + j]));
      }
    }
  }
  CHECK(worst <= 1.0);
}

TEST_CASE("input_gradient against double, of encoder and decoder") {
  for (bool decoder : {false, true}) {
    check_input_gradient(InputCase({1}, 1, decoder));
    check_input_gradient(InputCase({2, 7, 4}, 5, decoder));
    check_input_gradient(InputCase({3, 1}, 127, decoder));
    check_input_gradient(InputCase({1}, 131, decoder));
    check_input_gradient(InputCase({600, 33}, 3, decoder));
  }
}

}  // namespace
}  // namespace pointsman::cuda
