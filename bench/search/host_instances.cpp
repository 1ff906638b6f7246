// SPDX-License-Identifier: Apache-2.0
#include "bench/search/make_instances.h"
#include "engine/problem/generate.h"

namespace pointsman::bench {

std::vector<float> make_instances(const std::string&, int n, uint64_t seed, int count) {
  std::vector<float> features(size_t{2} * n * count);
  generate_features(n, seed, 0, count, features.data());
  return features;
}

}  // namespace pointsman::bench
