// SPDX-License-Identifier: Apache-2.0
// The items of random instances, the same on every device: two numbers of 53 bits in [0, 1) each.
#pragma once

#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/philox.h"

namespace pointsman {

// 53 random bits from two words, [0, 1). The words' use is that of MT19937's authors (and so of numpy).
// Exact: no rounding can differ between devices.
POINTSMAN_HOST_DEVICE inline double uniform_double(uint32_t high, uint32_t low) {
  return ((high >> 5) * 67108864.0 + (low >> 6)) / 9007199254740992.0;
}

struct UniformItem {
  double first, second;
};

// Item `item` of instance `index`: one Philox block holds both its numbers.
POINTSMAN_HOST_DEVICE inline UniformItem uniform_item(uint64_t seed, uint64_t index, int item) {
  const PhiloxBlock block = philox4x32(seed ^ stream::kInstances, index, static_cast<uint64_t>(item));
  return {uniform_double(block.word[0], block.word[1]), uniform_double(block.word[2], block.word[3])};
}

}  // namespace pointsman
