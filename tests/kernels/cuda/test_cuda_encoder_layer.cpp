// SPDX-License-Identifier: Apache-2.0
// The attention encoder's operations beside the CPU's: forward its bits, backward its values.
#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/common/scalar_math.h"
#include "kernels/cpu/cpu_operations.h"
#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cpu/on_each_target.h"
#include "tests/kernels/cpu/self_attention_case.h"
#include "tests/kernels/cuda/device_test.h"
#include "tests/kernels/cuda/precision_bounds.h"
#include "tests/kernels/cuda/set_ranges_test.h"

namespace pointsman::cuda {
namespace {

// Rows of several parameter sets; a row of the ranges has `items` rows of the arrays.
struct Rows {
  std::vector<SetRange> ranges;
  int items, count, sets;
  DeviceArray<SetRange> device;

  Rows(const std::vector<int>& lengths, int items_)
      : ranges(make_ranges(lengths)),
        items(items_),
        count(rows_of(ranges) * items_),
        sets(static_cast<int>(ranges.size())),
        device(ranges) {}

  SetRanges on_device() { return {device.data(), sets, rows_of(ranges)}; }
  int set(int row) const { return set_of(ranges, row / items); }
  size_t floats(int width) const { return static_cast<size_t>(count) * width; }
};

// A vector or matrix of every set, with a gap behind each.
struct Tensor {
  int size, stride;
  std::vector<float> values;
  DeviceArray<float> device;

  Tensor(int sets, int size_, uint32_t seed, float scale = 1.0f)
      : size(size_),
        stride(size_ + 8),
        values(random_floats(static_cast<size_t>(sets) * stride, seed, scale)),
        device(values) {}

  SetArray on_device() const { return {device.data(), stride}; }
  const float* of(int set) const { return values.data() + static_cast<size_t>(set) * stride; }
};

// ------------------------------------------------------------------------------ embedding and layer norm

void check_embed(const std::vector<int>& lengths, int items, int width) {
  Rows rows(lengths, items);
  const Tensor embedding(rows.sets, width * kHidden, 1);
  const std::vector<float> features = random_floats(rows.floats(width), 2);
  const DeviceArray<float> device_features(features);
  DeviceArray<float> out(rows.floats(kHidden));
  embed({embedding.on_device(), device_features.data(), width, out.data(), rows.on_device(), items}, nullptr);
  const std::vector<float> found = out.download();
  std::vector<float> expected(found.size()), transposed(width * kHidden);
  for (int row = 0; row < rows.count; ++row) {
    for (int d = 0; d < width * kHidden; ++d)
      transposed[d % width * kHidden + d / width] = embedding.of(rows.set(row))[d];
    cpu::embed(features.data() + width * row, width, transposed.data(), 1, expected.data() + row * kHidden);
  }
  INFO(rows.count << " rows");
  if (cpu_has_fma()) CHECK(same_bits(found, expected));
}

TEST_CASE("embed: the CPU's bits") {
  for (const int width : {2, 3, 5}) {
    check_embed({1}, 1, width);
    check_embed({2, 1, 3}, 7, width);
  }
  check_embed({5, 9}, 16, 2);
}

struct NormCase {
  Rows rows;
  Tensor weight, bias;
  std::vector<float> x, dy, dx;

  NormCase(const std::vector<int>& lengths, int items)
      : rows(lengths, items),
        weight(rows.sets, kHidden, 1),
        bias(rows.sets, kHidden, 2),
        x(random_floats(rows.floats(kHidden), 3, 2.0f)),
        dy(random_floats(x.size(), 4)),
        dx(random_floats(x.size(), 5)) {
    for (int d = 0; d < kHidden; ++d) x[d] += 40.0f;  // a large mean
  }
};

void check_layer_norm(const std::vector<int>& lengths, int items) {
  NormCase c(lengths, items);
  const DeviceArray<float> x(c.x), dy(c.dy);
  DeviceArray<float> y(c.x.size()), dx(c.dx), dweight(c.x.size());
  layer_norm({x.data(), c.weight.on_device(), c.bias.on_device(), y.data(), c.rows.on_device(), items},
             nullptr);
  layer_norm_backward(
      {x.data(), c.weight.on_device(), dy.data(), dx.data(), dweight.data(), c.rows.on_device(), items},
      nullptr);
  const std::vector<float> found_y = y.download(), found_dx = dx.download(),
                           found_dweight = dweight.download();
  std::vector<float> expected(c.x.size()), expected_dx = c.dx;
  double worst = 0.0, worst_weight = 0.0;
  for (int row = 0; row < c.rows.count; ++row) {
    const int set = c.rows.set(row), at = row * kHidden;
    float statistics[2];
    cpu::layer_norm({c.x.data() + at, c.weight.of(set), c.bias.of(set), expected.data() + at, statistics, 1});
    std::vector<float> own_dweight(kHidden), own_dbias(kHidden);
    cpu::layer_norm_backward({c.x.data() + at, statistics, c.weight.of(set), c.dy.data() + at,
                              expected_dx.data() + at, own_dweight.data(), own_dbias.data(), 1});
    for (int d = 0; d < kHidden; ++d) {
      worst = std::max(worst, std::abs(double{found_dx[at + d]} - double{expected_dx[at + d]}));
      worst_weight = std::max(worst_weight, std::abs(double{found_dweight[at + d]} - double{own_dweight[d]}));
    }
  }
  INFO(c.rows.count << " rows");
  if (cpu_has_fma()) CHECK(same_bits(found_y, expected));
  // The same operations in the same order: an fma more or less.
  CHECK(worst <= 1e-5);
  CHECK(worst_weight <= 1e-5);
}

TEST_CASE("layer_norm: the CPU's bits, and its gradient") {
  check_layer_norm({1}, 1);
  check_layer_norm({2, 1, 3}, 7);
  check_layer_norm({5, 9}, 16);
}

// ------------------------------------------------------------------------------ linear layers

struct Shape {
  int columns, depth;
};

// A matrix out of fours.
std::vector<float> plain_matrix(const float* in_fours, Shape shape) {
  std::vector<float> matrix(static_cast<size_t>(shape.columns) * shape.depth);
  for (int k = 0; k < shape.depth; ++k) {
    for (int j = 0; j < shape.columns; ++j)
      matrix[k * shape.columns + j] = in_fours[index_in_fours(k, j, shape.columns)];
  }
  return matrix;
}

// base, function and whether y is a states array go round, and the rows of a tile.
void check_linear(const std::vector<int>& lengths, int items, Shape shape, int variant) {
  using Function = LinearArgs::Function;
  const auto [columns, depth] = shape;
  const bool with_base = variant % 2 == 1, to_states = variant % 4 >= 2;
  const Function function = static_cast<Function>(variant % 3);
  Rows rows(lengths, items);
  const Tensor weight(rows.sets, columns * depth, 1, 0.3f), bias(rows.sets, columns, 2);
  const std::vector<float> x = random_floats(rows.floats(depth), 3),
                           base = random_floats(rows.floats(columns), 4);
  const DeviceArray<float> device_x(x), device_base(base);
  const size_t states = to_states ? static_cast<size_t>(rows_of(rows.ranges)) * columns : 0;
  DeviceArray<float> y(rows.floats(columns) + states);
  linear({weight.on_device(), bias.on_device(), device_x.data(), with_base ? device_base.data() : nullptr,
          y.data(), depth, columns, function, to_states, rows.on_device(), items, Precision::kFp32,
          variant % 5 < 2 ? 128 : 32},
         nullptr);
  const std::vector<float> found = y.download();
  std::vector<float> packed(static_cast<size_t>(columns) * depth), expected(columns);
  int different = 0;
  for (int row = 0; row < rows.count; ++row) {
    const int set = rows.set(row);
    cpu::pack({plain_matrix(weight.of(set), shape).data(), columns, columns, depth, true, packed.data()});
    const float* own = base.data() + static_cast<size_t>(row) * columns;
    cpu::multiply({x.data() + static_cast<size_t>(row) * depth, depth, packed.data(), expected.data(),
                   columns, 1, depth, columns, false, bias.of(set), with_base ? own : nullptr,
                   function == Function::kRelu});
    const size_t number = to_states ? row + row / items + 1 : row;
    for (int j = 0; j < columns; ++j) {
      const float value = function == Function::kTanh ? tanh_f32(expected[j]) : expected[j];
      different += !same_bits(found[number * columns + j], value);
    }
  }
  INFO(rows.count << " rows, " << columns << " columns, depth " << depth << ", variant " << variant);
  if (cpu_has_fma()) CHECK(different == 0);
}

TEST_CASE("linear: the CPU's bits of every width, depth, function and layout") {
  int variant = 0;
  for (const Shape& shape : {Shape{128, 128}, Shape{384, 128}, Shape{512, 128}, Shape{128, 512},
                             Shape{16, 128}, Shape{128, 16}, Shape{208, 144}}) {
    check_linear({1}, 1, shape, variant++);
    check_linear({2, 1, 3}, 7, shape, variant++);
    check_linear({1, 2}, 33, shape, variant++);
  }
  for (const int variant_of_rows : {0, 2}) check_linear({2, 9}, 16, {144, 128}, variant_of_rows);
}

// The worst distance from double, as a share of what the precision may lose; distance: the largest. Tiles of
// both sizes give the same bits.
double worst_linear(Precision precision, const std::vector<int>& lengths, Shape shape, double* distance) {
  const auto [columns, depth] = shape;
  Rows rows(lengths, 7);
  const Tensor weight(rows.sets, columns * depth, 1, 0.3f), bias(rows.sets, columns, 2);
  const std::vector<float> x = random_floats(rows.floats(depth), 3);
  const DeviceArray<float> device_x(x);
  std::vector<float> by_tile[2];
  for (const int large : {0, 1}) {
    DeviceArray<float> y(rows.floats(columns));
    linear({weight.on_device(), bias.on_device(), device_x.data(), nullptr, y.data(), depth, columns,
            LinearArgs::Function::kNone, false, rows.on_device(), rows.items, precision, large ? 128 : 32},
           nullptr);
    by_tile[large] = y.download();
  }
  const std::vector<float>& found = by_tile[0];
  CHECK(same_bits(found, by_tile[1]));
  double worst = 0.0;
  for (int row = 0; row < rows.count; ++row) {
    const std::vector<float> matrix = plain_matrix(weight.of(rows.set(row)), shape);
    for (int j = 0; j < columns; ++j) {
      double sum = bias.of(rows.set(row))[j], size = 0.0;
      for (int k = 0; k < depth; ++k) {
        const double product =
            static_cast<double>(x[static_cast<size_t>(row) * depth + k]) * matrix[k * columns + j];
        sum += product;
        size += std::abs(product);
      }
      const double off = std::abs(found[static_cast<size_t>(row) * columns + j] - sum);
      const double slack = (factor_error(precision) + sum_error(precision, depth)) * size +
                           2 * 0x1p-24 * (size + std::abs(bias.of(rows.set(row))[j]));
      worst = std::max(worst, std::isfinite(off) ? off / slack : 1e30);
      *distance = std::max(*distance, off);
    }
  }
  return worst;
}

TEST_CASE("linear on tensor cores: within what its factors lose") {
  for (const Shape& shape : {Shape{128, 128}, Shape{144, 48}, Shape{16, 16}}) {
    double distance[4] = {};
    for (const Precision precision : kPrecisions) {
      INFO(name_of(precision) << ", " << shape.columns << " x " << shape.depth);
      double& own = distance[static_cast<int>(precision)];
      CHECK(worst_linear(precision, {1, 20, 3}, shape, &own) <= 1.0);
    }
    CHECK(distance[static_cast<int>(Precision::kTf32x3)] > 0.0);
    CHECK(distance[static_cast<int>(Precision::kTf32x3)] * 64 < distance[static_cast<int>(Precision::kTf32)]);
    CHECK(distance[static_cast<int>(Precision::kTf32)] * 2 < distance[static_cast<int>(Precision::kBf16)]);
  }
}

TEST_CASE("linear: a small call", "[race]") {
  for (const int variant : {1, 3}) check_linear({1, 1}, 3, {128, 144}, variant);
  double distance = 0.0;
  CHECK(worst_linear(Precision::kBf16, {1}, {128, 48}, &distance) <= 1.0);
}

// ------------------------------------------------------------------------------ mean and elements

TEST_CASE("mean_items and its gradient") {
  for (int n : {1, 2, 3, 70}) {
    const int sequences = 3, states = n + 1;
    const std::vector<float> h = random_floats(static_cast<size_t>(sequences) * states * kHidden, 1),
                             dmean = random_floats(sequences * kHidden, 2);
    DeviceArray<float> device_h(h), mean(sequences * kHidden);
    mean_items({device_h.data(), mean.data(), sequences, n}, nullptr);
    const std::vector<float> after = device_h.download(), found = mean.download();
    const DeviceArray<float> dh(h), device_dmean(dmean);
    DeviceArray<float> out(static_cast<size_t>(sequences) * n * kHidden);
    mean_backward({dh.data(), device_dmean.data(), out.data(), sequences, n}, nullptr);
    const std::vector<float> back = out.download();
    int different = 0;
    for (int s = 0; s < sequences; ++s) {
      for (int d = 0; d < kHidden; ++d) {
        float sum = 0.0f;
        for (int i = 0; i < n; ++i) {
          const float value = h[(s * states + i + 1) * kHidden + d];
          sum += value;
          const float from_mean = dmean[s * kHidden + d] / static_cast<float>(n);
          different += !same_bits(back[(s * n + i) * kHidden + d], value + from_mean);
          different += !same_bits(after[(s * states + i + 1) * kHidden + d], value);
        }
        different += !same_bits(found[s * kHidden + d], sum / static_cast<float>(n));
        different += !same_bits(after[s * states * kHidden + d], 0.0f);
      }
    }
    INFO("n = " << n);
    CHECK(different == 0);
  }
}

TEST_CASE("fill writes its elements and no other") {
  const std::vector<float> before = random_floats(300, 1);
  DeviceArray<float> x(before);
  fill(x.data() + 3, 2.5f, 290, nullptr);
  const std::vector<float> after = x.download();
  int different = 0;
  for (int i = 0; i < 300; ++i) different += !same_bits(after[i], i < 3 || i >= 293 ? before[i] : 2.5f);
  CHECK(different == 0);
}

TEST_CASE("relu_backward and tanh_backward, element by element") {
  for (int count : {16, 48, 2000}) {
    std::vector<float> y = random_floats(count, 1), dy = random_floats(count, 2);
    for (int i = 0; i < count; i += 3) y[i] = 0.0f;
    const DeviceArray<float> device_y(y);
    DeviceArray<float> relu(dy), tanh(dy);
    relu_backward(device_y.data(), relu.data(), count, nullptr);
    tanh_backward(device_y.data(), tanh.data(), count, nullptr);
    const std::vector<float> found = relu.download(), found_tanh = tanh.download();
    std::vector<float> expected = dy;
    cpu::relu_backward(y.data(), expected.data(), count);
    CHECK(same_bits(found, expected));
    for (int i = 0; i < count; ++i) expected[i] = dy[i] * (1.0f - y[i] * y[i]);
    CHECK(same_bits(found_tanh, expected));
  }
}

// ------------------------------------------------------------------------------ self-attention

// Sequences one behind the other.
std::vector<float> joined(const std::vector<AttentionCase>& cases, std::vector<float> AttentionCase::*part) {
  std::vector<float> all;
  for (const AttentionCase& c : cases) all.insert(all.end(), (c.*part).begin(), (c.*part).end());
  return all;
}

void check_self_attention(const std::vector<AttentionCase>& cases) {
  const int n = cases[0].n, heads = cases[0].heads, sequences = static_cast<int>(cases.size());
  const size_t rows = static_cast<size_t>(sequences) * n;
  const DeviceArray<float> qkv(joined(cases, &AttentionCase::qkv)), dout(joined(cases, &AttentionCase::dout));
  DeviceArray<float> out(rows * kHidden), bare(rows * kHidden), softmax(rows * heads * 2);
  self_attention({qkv.data(), bare.data(), nullptr, sequences, n, heads}, nullptr);
  const SelfAttentionArgs forward{qkv.data(), out.data(), softmax.data(), sequences, n, heads};
  self_attention(forward, nullptr);
  std::vector<float> gradients[2];
  for (std::vector<float>& found : gradients) {
    DeviceArray<float> means(rows * heads), dqkv(rows * 3 * kHidden);
    self_attention_backward({forward, dout.data(), means.data(), dqkv.data()}, nullptr);
    found = dqkv.download();
  }
  const std::vector<float> found = out.download();
  INFO("n " << n << " heads " << heads);
  CHECK(same_bits(bare.download(), found));
  CHECK(same_bits(gradients[0], gradients[1]));
  for (int s = 0; s < sequences; ++s) {
    const AttentionCase& c = cases[s];
    const float* own = found.data() + s * c.dout.size();
    std::vector<float> expected(c.dout.size()), scratch(cpu::self_attention_scratch(n));
    cpu::self_attention({c.qkv.data(), expected.data(), n, heads, scratch.data()});
    if (cpu_has_fma()) CHECK(same_bits({own, own + expected.size()}, expected));
    CHECK(is_attended(c, own));
    CHECK(is_attention_gradient(c, gradients[0].data() + s * c.qkv.size()));
  }
}

TEST_CASE("self_attention: the CPU's bits, and its gradient against double") {
  for (const auto& [n, heads] : kAttentionShapes)
    check_self_attention({AttentionCase(n, heads, 1.0f), AttentionCase(n, heads, 4.0f)});
  for (int n : {1, 2, 3, 32, 65})
    check_self_attention({AttentionCase(n, 4, 0.1f), AttentionCase(n, 4, 8.0f), AttentionCase(n, 4, 1.0f)});
}

// The worst distance from double, as a share of what the precision may lose; distance: the largest.
double worst_attention(Precision precision, const AttentionCase& c, double* distance) {
  const DeviceArray<float> qkv(joined({c, c}, &AttentionCase::qkv));
  const size_t rows = 2 * static_cast<size_t>(c.n);
  DeviceArray<float> out(rows * kHidden), softmax(rows * c.heads * 2);
  self_attention({qkv.data(), out.data(), softmax.data(), 2, c.n, c.heads, precision}, nullptr);
  const std::vector<float> found = out.download(), sums = softmax.download();
  CHECK(same_bits({found.begin(), found.begin() + found.size() / 2},
                  {found.begin() + found.size() / 2, found.end()}));
  double worst = 0.0;
  for (int head = 0; head < c.heads; ++head) {
    double off = 0.0, largest = 0.0;  // largest: of the scores' magnitudes
    const std::vector<double> p = c.weights(head, &off);
    std::vector<double> highest(c.n, -1e300);
    for (int i = 0; i < c.n; ++i) {
      for (int j = 0; j < c.n; ++j) {
        Sum score;
        for (int d = head * c.width; d < (head + 1) * c.width; ++d) score.add(c.q(i, d) * c.k(j, d));
        largest = std::max(largest, score.magnitude);
        highest[i] = std::max(highest[i], score.value);
      }
    }
    // A weight is off by the errors of its own score and of those that it is divided by, then as a factor.
    const double score = (factor_error(precision) + sum_error(precision, c.width)) * largest /
                         std::sqrt(static_cast<double>(c.width));
    const double relative =
        std::expm1(2 * score) + factor_error(precision) + sum_error(precision, c.n) + (off + c.n) * 0x1p-24;
    for (int i = 0; i < c.n; ++i) {
      const float* own = &sums[(static_cast<size_t>(i) * c.heads + head) * 2];
      CHECK(std::abs(own[0] - highest[i]) <= score * std::sqrt(static_cast<double>(c.width)));
      const double total = 1.0 / *std::max_element(&p[i * c.n], &p[i * c.n] + c.n);
      CHECK(std::abs(own[1] - total) <= (std::expm1(2 * score) + (off + c.n) * 0x1p-24) * total);
      for (int d = head * c.width; d < (head + 1) * c.width; ++d) {
        Sum sum;
        for (int j = 0; j < c.n; ++j) sum.add(p[i * c.n + j] * c.v(j, d));
        const double error = std::abs(found[i * kHidden + d] - sum.value);
        worst = std::max(worst, std::isfinite(error) ? error / (relative * sum.magnitude) : 1e30);
        *distance = std::max(*distance, error);
      }
    }
  }
  return worst;
}

TEST_CASE("self_attention on tensor cores: within what its factors lose") {
  const std::pair<int, int> shapes[] = {{1, 8}, {20, 8}, {50, 8}, {65, 8}, {130, 4}, {33, 2}, {70, 1}};
  for (const auto& [n, heads] : shapes) {
    double distance[4] = {};
    for (const Precision precision : kPrecisions) {
      INFO(name_of(precision) << ", n " << n << ", heads " << heads);
      CHECK(worst_attention(precision, AttentionCase(n, heads, 1.0f),
                            &distance[static_cast<int>(precision)]) <= 1.0);
    }
    CHECK(distance[static_cast<int>(Precision::kTf32x3)] * 64 < distance[static_cast<int>(Precision::kTf32)]);
    CHECK(distance[static_cast<int>(Precision::kTf32)] * 2 < distance[static_cast<int>(Precision::kBf16)]);
  }
}

TEST_CASE("self_attention: a small call", "[race]") {
  check_self_attention({AttentionCase(37, 8, 1.0f)});
  double distance = 0.0;
  CHECK(worst_attention(Precision::kBf16, AttentionCase(70, 8, 1.0f), &distance) <= 1.0);
}

}  // namespace
}  // namespace pointsman::cuda
