// SPDX-License-Identifier: Apache-2.0
// The flags of `pointsman generate`, and what they make.
#pragma once

#include <cstdint>
#include <string>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"

namespace CLI {
class App;
}

namespace pointsman {

struct GenerateFlags {
  std::string problem, like;
  int n = 0, count = 1;
  double capacity = 0;
};

void add_generate_flags(CLI::App& app, GenerateFlags& flags);

// Throws UsageError for combinations that mean nothing.
void check_generate_flags(const GenerateFlags& flags, uint64_t seed);
InstanceBatch generate(const GenerateFlags& flags, uint64_t seed, const StopToken& stop = {});

}  // namespace pointsman
