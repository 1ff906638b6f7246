// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/instance.h"

#include "kernels/common/fnv1a.h"

namespace pointsman {

uint64_t instance_key(const Instance& instance, uint64_t row) {
  return instance.has_id ? fnv1a(instance.id) : row;
}

}  // namespace pointsman
