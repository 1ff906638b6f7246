// SPDX-License-Identifier: Apache-2.0
#include "engine/search/mode.h"

#include <algorithm>

namespace pointsman {
namespace {

// In the order of the enumerators.
constexpr ModeInfo kModes[] = {
    {Mode::kAuto, "auto",
     "TSP as local, or with a flag of the network from its samples; KnapSack as exact, then sample", true,
     false, true, ModeNumber::kSamples, nullptr},
    {Mode::kGreedy, "greedy", "one pass of the network", true, false, false, ModeNumber::kSamples, nullptr},
    {Mode::kSample, "sample", "the best of many samples", true, false, true, ModeNumber::kSamples, nullptr},
    {Mode::kActive, "active", "train on the instance (Algorithm 2)", true, false, false, ModeNumber::kSamples,
     nullptr},
    {Mode::kLocal, "local", "greedy edges, Lin-Kernighan moves, then kicks", false, false, false,
     ModeNumber::kKicks, &Problem::has_local_search},
    {Mode::kTwoOpt, "2opt", "2-opt and Or-opt moves, then kicks: many instances at once, for a GPU", false,
     false, false, ModeNumber::kKicks, &Problem::has_local_search},
    {Mode::kRandom, "random", "the best of many random orders", false, true, false, ModeNumber::kSamples,
     nullptr},
    {Mode::kRatio, "ratio", "items by falling value per weight", false, true, false, ModeNumber::kNone,
     &Problem::has_capacity},
    {Mode::kExact, "exact", "branch and bound", false, false, false, ModeNumber::kNone,
     &Problem::has_capacity},
};

}  // namespace

std::span<const ModeInfo> all_modes() { return kModes; }

const ModeInfo& info_of(Mode mode) { return kModes[static_cast<size_t>(mode)]; }

const ModeInfo* find_mode(std::string_view name) {
  const auto found = std::find_if(std::begin(kModes), std::end(kModes),
                                  [&](const ModeInfo& mode) { return mode.name == name; });
  return found == std::end(kModes) ? nullptr : found;
}

}  // namespace pointsman
