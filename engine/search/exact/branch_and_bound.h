// SPDX-License-Identifier: Apache-2.0
// The best packing of a KnapSack.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"

namespace pointsman {

// The best packing that validate_solution accepts, by branch and bound; never worse than ratio_packing().
// Values that are neither integers nor decimals make it the best up to n 2^-60 of the largest. Exponential at
// worst, milliseconds for random items. Its start says whether `most_branches` were enough, its status
// whether `control` ended it early; after either it has a bound. Throws std::invalid_argument for another
// problem.
Solution exact_packing(const Instance& instance, const SearchControl& control,
                       int64_t most_branches = std::numeric_limits<int64_t>::max());

}  // namespace pointsman
