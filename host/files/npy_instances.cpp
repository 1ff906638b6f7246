// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "host/files/formats.h"
#include "host/files/npy_array.h"

namespace pointsman {

InstanceFile parse_npy_instances(std::string_view bytes, const std::string& file,
                                 const ReadOptions& options) {
  const NpyArray array(bytes, file);
  const std::vector<int64_t>& shape = array.shape();
  const bool one = shape.size() == 2;
  if (!array.header().is_float()) {
    array.fail("npy header: descr: expected float32 or float64, found " + array.header().type_text());
  }
  if ((!one && shape.size() != 3) || shape.back() != 2) {
    array.fail("npy header: shape: expected (B, n, 2) or (n, 2), found " + array.header().shape_text());
  }
  const int64_t batch = one ? 1 : shape[0], n = shape[shape.size() - 2];
  if (batch < 1 || n < 1 || n > kLargestSize) {
    array.fail("npy header: shape: expected at least one instance of 1 to " + std::to_string(kLargestSize) +
               " points, found " + array.header().shape_text());
  }
  const bool knapsack = options.problem == ProblemKind::kKnapsack;
  if (knapsack && !options.capacity) {
    throw InputError(file, 0, "an .npy of KnapSack instances needs --capacity W (columns weight, value)");
  }
  InstanceFile out;
  size_t next = 0;
  for (int64_t b = 0; b < batch; ++b) {
    Instance instance;
    instance.problem = knapsack ? ProblemKind::kKnapsack : ProblemKind::kTsp;
    instance.capacity = knapsack ? *options.capacity : 0.0;
    instance.values.resize(static_cast<size_t>(2 * n));
    for (double& value : instance.values) {
      value = array.number(next++);
      if (std::fabs(value) > kLargestNumber || (knapsack && value < 0.0)) {
        array.fail(array.index_text(next - 1) + ": expected a number " +
                   (knapsack ? "from 0 to 1e100" : "within +-1e100") + ", found " + std::to_string(value));
      }
    }
    out.instances.push_back(std::move(instance));
  }
  return out;
}

}  // namespace pointsman
