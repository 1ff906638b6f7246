// SPDX-License-Identifier: Apache-2.0
// `bench decode --check FILE`: the rows of a run beside those of an earlier one.
#pragma once

#include <string>
#include <vector>

#include "bench/measure.h"

namespace pointsman::bench {

// The largest relative fall of a ratio that passes; a row with a larger spread cannot be judged.
inline constexpr double kMostFall = 0.1;

// Reads what `bench decode --json` wrote. Throws InputError for anything else.
Json read_baseline(const std::string& file);

struct Comparison {
  int compared = 0;
  std::vector<std::string> fallen;    // rows that fell by more than kMostFall, with found and expected
  std::vector<std::string> unpaired;  // rows that only one run has, or that have no ratio to compare
};

// Compares the ratio to PyTorch where both rows have one; else the rate per GFLOP/s of the measured peak,
// where both ran on the same instruction set. Rows of threads are left out: their ratio is the machine's.
Comparison compare_with_baseline(const Json& answer, const Json& baseline);

}  // namespace pointsman::bench
