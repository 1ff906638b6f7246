// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/network_input.h"

#include <cstddef>
#include <numeric>
#include <utility>

#include "kernels/common/philox.h"

namespace pointsman {

void apply_dihedral(int copy, float* point) {
  if (copy & 1) point[0] = 1.0f - point[0];
  if (copy & 2) point[1] = 1.0f - point[1];
  if (copy & 4) std::swap(point[0], point[1]);
}

std::vector<int32_t> input_order(uint64_t seed, uint64_t instance_key, uint32_t replica, int n) {
  std::vector<int32_t> order(static_cast<size_t>(n));
  std::iota(order.begin(), order.end(), 0);
  uint64_t counter = 0;
  for (int i = n - 1; i > 0; --i) {
    const uint32_t choices = static_cast<uint32_t>(i) + 1;
    // Multiply and shift, with the few words that would favour some choices drawn again: exactly uniform.
    const uint32_t refused_below = (0u - choices) % choices;
    uint64_t product;
    do {
      const PhiloxBlock block =
          philox4x32(seed ^ stream::kInputOrder, (instance_key << 32) | replica, counter++);
      product = static_cast<uint64_t>(block.word[0]) * choices;
    } while (static_cast<uint32_t>(product) < refused_below);
    std::swap(order[i], order[product >> 32]);
  }
  return order;
}

}  // namespace pointsman
