// SPDX-License-Identifier: Apache-2.0
// Instances made on the device are those of engine/problem, bit for bit.
#include <cstdint>
#include <vector>

#include "engine/problem/generate.h"
#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {
namespace {

void check_instances(int n, uint64_t seed, uint64_t first, int count) {
  std::vector<float> expected(size_t{2} * n * count);
  pointsman::generate_features(n, seed, first, count, expected.data());
  DeviceArray<float> features(expected.size());
  generate_features({seed, first, n, count, features.data()}, nullptr);
  INFO("n = " << n << ", seed " << seed << ", first " << first << ", " << count << " instances");
  CHECK(features.download() == expected);
}

TEST_CASE("cuda: instances made on the device are the host's", "[race]") {
  for (int n : {1, 2, 31, 100}) {
    for (uint64_t seed : {uint64_t{0}, uint64_t{1234}, ~uint64_t{0}}) {
      check_instances(n, seed, 0, 7);
      check_instances(n, seed, (uint64_t{1} << 32) - 3, 6);  // across 32 bits
      check_instances(n, seed, ~uint64_t{0} - 8, 5);
    }
  }
  check_instances(3, 1, 2, 0);
}

}  // namespace
}  // namespace pointsman::cuda
