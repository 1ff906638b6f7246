// SPDX-License-Identifier: Apache-2.0
// The ways to an answer that a user may name: one table for `solve`, `eval` and the docs.
#pragma once

#include <algorithm>
#include <span>
#include <string_view>

#include "engine/problem/problem.h"

namespace pointsman {

enum class Mode {
  kAuto,
  kGreedy,
  kSample,
  kActive,
  kLocal,
  kTwoOpt,
  kRandom,
  kRatio,
  kSavings,
  kDsatur,
  kExact
};

// What a number behind a mode's name counts, in `eval`. Modes of kKicks take --kicks.
enum class ModeNumber { kNone, kSamples, kKicks };

struct ModeInfo {
  Mode mode;
  const char* name;
  const char* summary;
  bool has_network;  // the rest needs no model
  bool only_rival;   // a yardstick of `eval`, nothing that `solve` offers
  bool draws;        // samples of the policy: a temperature means something
  ModeNumber number;
  bool Problem::*needs;  // of the problem; null: nothing
};

// In the order of the enumerators.
inline constexpr ModeInfo kModes[] = {
    {Mode::kAuto, "auto",
     "KnapSack as exact, then sample; the rest as local, or with a flag of the network from its samples",
     true, false, true, ModeNumber::kSamples, nullptr},
    {Mode::kGreedy, "greedy", "one pass of the network", true, false, false, ModeNumber::kSamples, nullptr},
    {Mode::kSample, "sample", "the best of many samples", true, false, true, ModeNumber::kSamples, nullptr},
    {Mode::kActive, "active", "train on the instance (Algorithm 2)", true, false, false, ModeNumber::kSamples,
     nullptr},
    {Mode::kLocal, "local",
     "tours: greedy edges, Lin-Kernighan moves, then kicks; CVRP: savings, TSPTW: closing times, colouring: "
     "DSATUR, then kicks",
     false, false, false, ModeNumber::kKicks, &Problem::has_local_search},
    {Mode::kTwoOpt, "2opt", "2-opt and Or-opt moves, then kicks: many instances at once, for a GPU", false,
     false, false, ModeNumber::kKicks, &Problem::has_two_opt},
    {Mode::kRandom, "random", "the best of many random orders", false, true, false, ModeNumber::kSamples,
     nullptr},
    {Mode::kRatio, "ratio", "items by falling value per weight", false, true, false, ModeNumber::kNone,
     &Problem::has_packing},
    {Mode::kSavings, "savings", "routes joined where that saves most", false, true, false, ModeNumber::kNone,
     &Problem::has_depot},
    {Mode::kDsatur, "dsatur", "nodes by saturation, each its first colour", false, true, false,
     ModeNumber::kNone, &Problem::has_labels},
    {Mode::kExact, "exact", "KnapSack, colouring: branch and bound; TSPTW: dynamic programming", false, false,
     false, ModeNumber::kNone, &Problem::has_exact},
};

inline std::span<const ModeInfo> all_modes() { return kModes; }
inline const ModeInfo& info_of(Mode mode) { return kModes[static_cast<size_t>(mode)]; }

// Null: there is none of that name.
inline const ModeInfo* find_mode(std::string_view name) {
  const auto found = std::ranges::find(kModes, name, &ModeInfo::name);
  return found == std::end(kModes) ? nullptr : found;
}

}  // namespace pointsman
