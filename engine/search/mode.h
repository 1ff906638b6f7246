// SPDX-License-Identifier: Apache-2.0
// The ways to an answer that a user may name: one table for `solve`, `eval` and the docs.
#pragma once

#include <span>
#include <string_view>

#include "engine/problem/problem.h"

namespace pointsman {

enum class Mode { kAuto, kGreedy, kSample, kActive, kLocal, kTwoOpt, kRandom, kRatio, kExact };

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

std::span<const ModeInfo> all_modes();
const ModeInfo& info_of(Mode mode);
const ModeInfo* find_mode(std::string_view name);  // null: there is none of that name

}  // namespace pointsman
