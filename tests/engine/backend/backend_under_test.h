// SPDX-License-Identifier: Apache-2.0
// The device that the tests of a Backend run on, chosen when they are linked: the CPU's, the emulated CUDA
// one (small shapes) or a GPU's.
#pragma once

#include <algorithm>
#include <memory>
#include <vector>

#include "engine/backend/backend.h"

namespace pointsman {

std::unique_ptr<Backend> backend_under_test(int threads);

inline std::unique_ptr<Backend> backend_with(const ModelConfig& config, const std::vector<float>& parameters,
                                             int threads = 1) {
  auto backend = backend_under_test(threads);
  backend->configure(config, 1);
  backend->load_parameters(0, parameters);
  return backend;
}

// What the CPU backend can do and a device need not: several threads, sharing the evaluations of equal
// prefixes.
extern const bool kIsCpuBackend;

// A path's kernels are a tour's but for the cost.
inline std::vector<ProblemKind> all_problems() {
  std::vector<ProblemKind> problems;
  for_each_problem([&](ProblemKind kind) {
    if (kind != ProblemKind::kPath) problems.push_back(kind);
  });
  return problems;
}

// Those that the device can learn.
inline std::vector<ProblemKind> learned_problems() {
  std::vector<ProblemKind> problems = all_problems();
  if (!kIsCpuBackend) std::erase_if(problems, [](ProblemKind kind) { return !is_plain(kind); });
  return problems;
}

// Tests divide their numbers of sequences, samples and repetitions by this: 1 except under the emulation.
extern const int kFewer;

inline int fewer(int count, int least = 1) { return std::max(count / kFewer, least); }

}  // namespace pointsman
