// SPDX-License-Identifier: Apache-2.0
// project_references() holds the CPU's bits, and packed rows what fits into half of them.
#include <bit>
#include <cmath>

#include "kernels/common/scalar_math.h"
#include "tests/catch.h"
#include "tests/kernels/cuda/encoded_batch.h"

namespace pointsman::cuda {
namespace {

// What the CPU makes of random sequences, and the device of the CPU's states.
struct Projected {
  HostEncoding expected;
  std::vector<float> references, bounds;
};

Projected project(int n, int glimpses, const std::vector<int>& set_of,
                  const std::vector<std::vector<float>>& parameters, bool packed) {
  const HostModel model(config_for(ProblemKind::kTsp, n, glimpses), parameters);
  const int sequences = static_cast<int>(set_of.size());
  const RandomBatch batch(ProblemKind::kTsp, n, sequences, 7);
  const HostEncoding expected(model, batch, set_of);

  const Projections p = model.projections();
  const int width = p.count * kHidden;
  const DeviceArray<float> weights(model.stacked([&](const CpuParameters& set) {
    std::vector<float> out;
    const auto put = [&](int place, size_t offset) {
      if (place >= 0) transpose_into(set.flat, offset, kHidden, place * kHidden, width, out);
    };
    put(p.glimpse, model.layout.glimpse.w_ref);
    put(p.pointer, model.layout.pointer.w_ref);
    put(p.values, model.layout.pointer.w_q);
    put(p.requeries, model.layout.glimpse.w_q);
    return out;
  }));
  const DeviceArray<float> h(expected.h);
  DeviceArray<float> references(expected.references.size()), bounds(expected.bounds.size());
  const std::vector<SetRange> host_ranges = ranges_of(set_of);
  DeviceArray<SetRange> ranges(host_ranges);
  ProjectReferencesArgs args{};
  args.weights = {weights.data(), static_cast<int64_t>(kHidden) * width};
  args.projections = p;
  args.h = h.data();
  args.references = references.data();
  args.bounds = bounds.data();
  args.ranges = {ranges.data(), static_cast<int>(host_ranges.size()), sequences};
  args.n = n;
  args.packed = packed;
  project_references(args, nullptr);
  return {expected, references.download(), bounds.download()};
}

std::vector<std::vector<float>> parameters_of(int n, int glimpses, const std::vector<int>& set_of,
                                              float scale) {
  std::vector<std::vector<float>> parameters;
  for (int set = 0; set <= set_of.back(); ++set)
    parameters.push_back(scaled_parameters(config_for(ProblemKind::kTsp, n, glimpses), scale, set + 1));
  return parameters;
}

void expect_cpu_bits(int n, int glimpses, const std::vector<int>& set_of, float scale) {
  CAPTURE(n, glimpses, scale);
  const Projected made = project(n, glimpses, set_of, parameters_of(n, glimpses, set_of, scale), false);
  const std::vector<float>& bounds = made.expected.bounds;
  CHECK(same_bytes(made.bounds, bounds));
  CHECK(same_bytes(made.references, made.expected.references));
  CHECK((*std::max_element(bounds.begin(), bounds.end()) > kFactoredLimit) == (scale > 50.0f));
}

// Each number within 2^-8 of itself, or the smallest that is packed beside another: half-warp lane l has
// elements l + 16 i of a row, i = 0 .. 7, as two fours of floats, or as four pairs.
void expect_packed(const Projected& made) {
  CHECK(same_bytes(made.bounds, made.expected.bounds));
  int off = 0, same = 0, zeros = 0;
  for (size_t row = 0; row < made.references.size(); row += kHidden) {
    for (int lane = 0; lane < 16; ++lane) {
      for (int i = 0; i < 8; ++i) {
        const double full = made.expected.references[row + i / 4 * 64 + 4 * lane + i % 4];
        const uint32_t word = std::bit_cast<uint32_t>(made.references[row + 4 * lane + i / 2]);
        const double packed = std::bit_cast<float>(i % 2 == 0 ? word << 16 : word);
        off += !(std::fabs(packed - full) <= 0x1p-8 * std::fabs(full) + 0x1p-133);
        same += packed == full;
        zeros += full == 0.0;
      }
    }
  }
  CHECK(off == 0);
  CHECK(same < static_cast<int>(made.references.size()) / 8 + zeros);
}

}  // namespace

TEST_CASE("projected references have the CPU's bits", "[race]") {
  for (const int glimpses : {0, 1, 2}) {
    for (const int n : {1, 3, 33}) expect_cpu_bits(n, glimpses, {0, 0, 1}, 4.0f);
  }
}

TEST_CASE("projected references of long sequences, and beyond the factored limit") {
  expect_cpu_bits(100, 1, {0, 1, 2}, 2.0f);
  expect_cpu_bits(100, 0, {0}, 200.0f);
  expect_cpu_bits(32, 2, {0, 1}, 200.0f);
}

TEST_CASE("packed references are within 2^-8", "[race]") {
  const std::vector<int> set_of = {0, 0, 1};
  for (const int glimpses : {0, 1, 2}) {
    for (const int n : {1, 33}) {
      CAPTURE(glimpses, n);
      expect_packed(project(n, glimpses, set_of, parameters_of(n, glimpses, set_of, 4.0f), true));
    }
  }
}

// Raw references; and values that are zero beside others that are not.
TEST_CASE("packed references beyond the factored limit, and zeros") {
  expect_packed(project(32, 1, {0, 1}, parameters_of(32, 1, {0, 1}, 200.0f), true));
  std::vector<std::vector<float>> parameters = parameters_of(9, 1, {0}, 4.0f);
  const size_t values = ParameterLayout(config_for(ProblemKind::kTsp, 9)).pointer.w_q;
  for (int row = 0; row < kHidden; ++row) {
    if (row / 16 % 2 == 1) std::fill_n(parameters[0].begin() + values + row * kHidden, kHidden, 0.0f);
  }
  expect_packed(project(9, 1, {0}, parameters, true));
}

}  // namespace pointsman::cuda
