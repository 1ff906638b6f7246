// SPDX-License-Identifier: Apache-2.0
#include "engine/problem/instance_hash.h"

#include <vector>

#include "engine/problem/problem.h"

namespace pointsman {

uint64_t instance_hash(const Instance& instance) {
  const char metric = static_cast<char>(instance.metric);
  uint64_t hash = fnv1a({&metric, 1}, fnv1a(name_of(instance.problem)));
  hash = hash_array(&instance.capacity, sizeof instance.capacity, hash);
  const std::vector<double>& numbers = instance.matrix ? instance.matrix->above : instance.values;
  return hash_array(numbers.data(), numbers.size() * sizeof(double), hash);
}

}  // namespace pointsman
