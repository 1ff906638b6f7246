// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {
namespace {

constexpr int kSets = 3;
constexpr int kSquare = kHidden * kHidden;

// Flat parameters of some sets: odd offsets and an odd stride, as a model with a critic has.
struct Parameters {
  LstmOffsets offsets;
  int64_t square, size;
  std::vector<float> values;

  explicit Parameters(bool start, int features = 2, int contexts = 0) {
    offsets.features = features;
    offsets.contexts = contexts;
    offsets.embedding = 3;
    offsets.context = offsets.embedding + features * kHidden;
    offsets.weight_ih = offsets.context + contexts * kHidden;
    offsets.weight_hh = offsets.weight_ih + kGates * kHidden + 1;
    offsets.bias = offsets.weight_hh + kGates * kHidden;
    if (start) offsets.start = offsets.bias + kGates;
    square = offsets.bias + kGates + kHidden;
    size = square + kSquare + 2;
    values = random_floats(static_cast<size_t>(kSets * size), 1);
  }
  const float* set(int s) const { return values.data() + s * size; }
};

// sum over d of w[d] x[d step] in the written order.
float fold(const float* w, const float* x, int step) {
  float sum = 0.0f;
  for (int d = 0; d < kHidden; ++d) sum = std::fma(w[d], x[d * step], sum);
  return sum;
}

void check_prepared_set(const Parameters& p, int s, const float* recurrent, const float* folded,
                        const float* bias, const float* start_bias) {
  const float* v = p.set(s);
  int different = 0;
  for (int j = 0; j < kGates; ++j) {
    const float* w = v + p.offsets.weight_ih + j * kHidden;
    const int features = p.offsets.features, contexts = p.offsets.contexts;
    for (int f = 0; f < features; ++f) {
      different += !same_bits(folded[f * kGates + j], fold(w, v + p.offsets.embedding + f, features));
    }
    for (int c = 0; c < contexts; ++c) {
      different +=
          !same_bits(folded[(features + c) * kGates + j], fold(w, v + p.offsets.context + c, contexts));
    }
    different += !same_bits(bias[j], v[p.offsets.bias + j]);
    if (p.offsets.start >= 0) {
      different += !same_bits(start_bias[j], fold(w, v + p.offsets.start, 1) + v[p.offsets.bias + j]);
    }
    for (int k = 0; k < kHidden; ++k) {
      different +=
          !same_bits(recurrent[index_in_fours(k, j, kGates)], v[p.offsets.weight_hh + j * kHidden + k]);
    }
  }
  CHECK(different == 0);
}

TEST_CASE("prepare_lstm: the CPU's bits of every set") {
  const Parameters cases[] = {Parameters(false), Parameters(true), Parameters(true, 3, 1),
                              Parameters(false, 5, 2)};
  for (const Parameters& p : cases) {
    const bool start = p.offsets.start >= 0;
    const DeviceArray<float> parameters(p.values);
    const int64_t recurrent_stride = kGates * kHidden + 4, fold_stride = p.offsets.inputs() * kGates + 8,
                  bias_stride = kGates + 4;
    DeviceArray<float> recurrent(kSets * recurrent_stride), folded(kSets * fold_stride),
        bias(kSets * bias_stride);
    DeviceArray<float> start_bias(start ? kSets * bias_stride : 0);
    prepare_lstm({parameters.data(), p.size}, p.offsets,
                 {{recurrent.data(), recurrent_stride},
                  {folded.data(), fold_stride},
                  {bias.data(), bias_stride},
                  {start_bias.data(), bias_stride}},
                 kSets, nullptr);
    const std::vector<float> r = recurrent.download(), f = folded.download(), b = bias.download();
    const std::vector<float> sb = start_bias.download();
    for (int s = 0; s < kSets; ++s) {
      check_prepared_set(p, s, r.data() + s * recurrent_stride, f.data() + s * fold_stride,
                         b.data() + s * bias_stride, start ? sb.data() + s * bias_stride : nullptr);
    }
  }
}

TEST_CASE("prepare_square transposes into its columns and touches no others", "[race]") {
  const Parameters p(false);
  const int width = 3 * kHidden;
  const int64_t stride = kHidden * width + 4;
  const std::vector<float> before = random_floats(kSets * stride, 2);
  const DeviceArray<float> parameters(p.values);
  DeviceArray<float> out(before);
  prepare_square({parameters.data(), p.size}, p.square, {out.data(), stride}, kHidden, width, kSets, nullptr);
  const std::vector<float> after = out.download();
  int different = 0;
  for (int s = 0; s < kSets; ++s) {
    std::vector<float> expected(before.begin() + s * stride, before.begin() + (s + 1) * stride);
    for (int k = 0; k < kHidden; ++k) {
      for (int j = 0; j < kHidden; ++j)
        expected[index_in_fours(k, kHidden + j, width)] = p.set(s)[p.square + j * kHidden + k];
    }
    for (int64_t at = 0; at < stride; ++at) different += !same_bits(after[s * stride + at], expected[at]);
  }
  CHECK(different == 0);
}

// The worst error of what unfold_input added, in units of its bound: a term for each sum's roundings.
// Elements that belong to no sum must keep their bits.
double worst_unfolded(const Parameters& p, const float* v, const float* before, const float* after,
                      const float* dm, const float* d1) {
  std::vector<double> sum(before, before + p.size), size(p.size);
  const auto add = [&](int64_t at, double term) {
    sum[at] += term;
    size[at] += std::abs(term);
  };
  for (int j = 0; j < kGates; ++j) {
    const int64_t row = p.offsets.weight_ih + j * kHidden;
    for (int d = 0; d < kHidden; ++d) {
      for (int c = 0; c < 2; ++c) {
        const int64_t e = p.offsets.embedding + 2 * d + c;
        add(row + d, double{dm[c * kGates + j]} * double{v[e]});
        add(e, double{v[row + d]} * double{dm[c * kGates + j]});
      }
      if (d1 == nullptr) continue;
      add(row + d, double{d1[j]} * double{v[p.offsets.start + d]});
      add(p.offsets.start + d, double{v[row + d]} * double{d1[j]});
    }
  }
  double worst = 0.0;
  for (int64_t i = 0; i < p.size; ++i) {
    // 4 roundings of W_ih's three terms; of E and s those of 64 terms upward, 8 groups and the last sum.
    const bool weight = i >= p.offsets.weight_ih && i < p.offsets.weight_ih + kGates * kHidden;
    const double bound =
        (weight ? 4 : 74) * kUnit * size[i] + (size[i] > 0 ? kUnit * std::abs(sum[i]) : 1e-30);
    worst = worse(worst, std::abs(after[i] - sum[i]) / bound);
  }
  return worst;
}

TEST_CASE("unfold_input against double, with a start and without") {
  for (bool start : {false, true}) {
    const Parameters p(start);
    const std::vector<float> before = random_floats(p.values.size(), 2);
    const std::vector<float> dm = random_floats(kSets * 2 * kGates, 3), d1 = random_floats(kSets * kGates, 4);
    const DeviceArray<float> parameters(p.values), fold_sums(dm), start_sums(d1);
    DeviceArray<float> gradient(before);
    unfold_input({{parameters.data(), p.size},
                  {gradient.data(), p.size},
                  p.offsets,
                  {fold_sums.data(), 2 * kGates},
                  {start ? start_sums.data() : nullptr, kGates},
                  1,
                  kSets - 1},
                 nullptr);
    const std::vector<float> after = gradient.download();
    CHECK(std::equal(after.begin(), after.begin() + p.size, before.begin()));  // set 0 is left out
    for (int s = 1; s < kSets; ++s) {
      CHECK(worst_unfolded(p, p.set(s), before.data() + s * p.size, after.data() + s * p.size,
                           dm.data() + s * 2 * kGates, start ? d1.data() + s * kGates : nullptr) <= 1.0);
    }
  }
}

}  // namespace
}  // namespace pointsman::cuda
