// SPDX-License-Identifier: Apache-2.0
// project_references() holds the CPU's bits.
#include "kernels/common/scalar_math.h"
#include "tests/catch.h"
#include "tests/kernels/cuda/encoded_batch.h"

namespace pointsman::cuda {
namespace {

void expect_cpu_bits(int n, int glimpses, const std::vector<int>& set_of, float scale) {
  CAPTURE(n, glimpses, scale);
  const ModelConfig config = config_for(ProblemKind::kTsp, n, glimpses);
  std::vector<std::vector<float>> parameters;
  for (int set = 0; set <= set_of.back(); ++set)
    parameters.push_back(scaled_parameters(config, scale, set + 1));
  const HostModel model(config, parameters);
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
  project_references(args, nullptr);
  CHECK(same_bytes(bounds.download(), expected.bounds));
  CHECK(same_bytes(references.download(), expected.references));
  const bool beyond = *std::max_element(expected.bounds.begin(), expected.bounds.end()) > kFactoredLimit;
  CHECK(beyond == (scale > 50.0f));
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

}  // namespace pointsman::cuda
