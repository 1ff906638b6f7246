// SPDX-License-Identifier: Apache-2.0
// The shortest tour with time windows.
#pragma once

#include "engine/problem/instance.h"
#include "engine/search/limits.h"

namespace pointsman {

// The shortest tour of a TSPTW in time, by dynamic programming over the sets of visited places (Dumas et al.
// 1995): of equal sets and last places those tours go on that none other beats in both time and length. Where
// there is no tour in time, the one with the least sum of delays, up to 13 places; of more quick_answer().
// Some 10 microseconds for 20 places with narrow windows; without windows half a minute and 0.6 GB at 21
// places. Unsolved where `control` ends it early, or where it would take more than about 1 GB. Throws
// std::invalid_argument for another problem or more than kMostExactPlaces (engine/problem/timed_places.h).
Solution exact_timed_tour(const Instance& instance, const SearchControl& control);

}  // namespace pointsman
