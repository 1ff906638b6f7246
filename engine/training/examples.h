// SPDX-License-Identifier: Apache-2.0
// Given answers to learn from: supervised learning (Vinyals et al. 2015), which Bello et al. 2017,
// section 5.2, compare with policy gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "models/config.h"

namespace pointsman {

struct Examples {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 0;
  std::vector<float> features;  // [count][n][2] as the network reads them (network_input.h)
  std::vector<int32_t> orders;  // [count][n] the answers; -1 after the last item taken
  // What was left out: packings that the network cannot make, as it packs until nothing fits.
  size_t unreachable = 0;
  uint64_t fingerprint = 0;  // FNV-1a over features and orders, never 0: what a checkpoint remembers

  size_t count() const { return n == 0 ? 0 : orders.size() / static_cast<size_t>(n); }
};

// One solution for each instance, each valid (validate.h), each instance of config.n items. Throws
// std::invalid_argument naming the first row that is not, or when nothing is left to learn from.
Examples make_examples(const ModelConfig& config, const InstanceBatch& instances,
                       const SolutionBatch& solutions);

}  // namespace pointsman
