// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/instance.h"

namespace pointsman {

uint64_t instance_key(const Instance& instance, uint64_t row) {
  if (!instance.has_id) return row;
  uint64_t hash = 0xcbf29ce484222325;
  for (const char c : instance.id) {
    hash ^= static_cast<unsigned char>(c);
    hash *= 0x100000001b3;
  }
  return hash;
}

}  // namespace pointsman
