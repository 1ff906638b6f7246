// SPDX-License-Identifier: Apache-2.0
// Solutions in one pass, without a network. All have passed validate_solution; their log_prob and
// network_objective are NaN. std::invalid_argument for an instance of another problem.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"
#include "engine/problem/packing_units.h"
#include "engine/search/limits.h"

namespace pointsman {

// Throws std::invalid_argument, naming `who`, unless the instance's problem suits.
void require_problem(bool suits, const Instance& instance, const char* who);

// The solution of this order. Throws std::logic_error where it is invalid.
Solution checked_solution(const Instance& instance, std::vector<int32_t> order);

// A solution, mostly in n log n time: TSP along a Hilbert curve, by number without coordinates; CVRP along
// the curve, a route as far as a vehicle carries; TSPTW by closing times, up to kMostPairedItems (in n^3
// time) as far as the rules let; KnapSack: ratio_packing(); colouring: DSATUR, in n^2 time; a user's own
// problem: by number, as declared.
Solution quick_answer(const Instance& instance, Status status = Status::kDone);

// KnapSack: takes the items by falling ratio of value to weight, passing over what does not fit.
Solution ratio_packing(const Instance& instance);

// An item in the units of packing_units.h.
struct RatioItem {
  int64_t weight, value;
  int32_t number;
};

// KnapSack: by falling ratio of value to weight. What weighs nothing comes first; ties by number.
std::vector<RatioItem> items_by_ratio(const WeightUnits& packing, const ValueUnits& values);

// The best of `samples` (1 to 2^32 - 1) uniformly random orders, of which every item is taken that is
// feasible in its turn; of a graph it gives each node the first free colour. Sample s is input_order(seed,
// key, s), with key from instance_key(). Its status says whether `control` ended it early.
Solution random_search(const Instance& instance, uint64_t key, int64_t samples, uint64_t seed,
                       const SearchControl& control);

}  // namespace pointsman
