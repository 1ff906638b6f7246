// SPDX-License-Identifier: Apache-2.0
// A user's own instances to train on: with solutions by supervised learning (Vinyals et al. 2015; Bello et
// al. 2017, section 5.2), without by policy gradient.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "engine/problem/instance.h"
#include "models/config.h"

namespace pointsman {

struct Examples {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 0;
  std::vector<float> features;  // [count][n][2] as the network reads them
  std::vector<int32_t> orders;  // [count][n] the answers; -1 after the last item taken; empty: none given
  // Packings left out, as the network packs until nothing fits.
  size_t unreachable = 0;
  uint64_t fingerprint = 0;  // FNV-1a over features and orders, never 0: what a checkpoint remembers

  size_t count() const { return n == 0 ? 0 : features.size() / (2 * static_cast<size_t>(n)); }
  bool have_answers() const { return !orders.empty(); }
};

// instances: of config.n items each. solutions: a valid one for each, or none at all. Throws
// std::invalid_argument naming the first row that is not, or if nothing is left to learn from.
// after(numbers): called for each instance and each piece of the fingerprint; it may throw.
Examples make_examples(const ModelConfig& config, const InstanceBatch& instances,
                       const SolutionBatch& solutions, const std::function<void(size_t)>& after = {});

// The last tenth of them, at most `most`, taken off `examples` for validation; of fewer than ten, a copy of
// all.
Examples split_off(Examples& examples, size_t most);

}  // namespace pointsman
