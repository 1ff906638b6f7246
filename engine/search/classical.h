// SPDX-License-Identifier: Apache-2.0
// Answers without a network, the rivals that every network result is set against. All have passed
// validate_solution; their log_prob and network_objective are NaN. Where `control` ends one early its answer
// is the best so far and its status says so. std::invalid_argument for an instance of the other problem.
#pragma once

#include <cstdint>
#include <limits>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "engine/search/tour_search.h"

namespace pointsman {

// TSP: the tour of greedy edges after local search and its kicks; that of quick_answer() when `control` says
// stop before it is there.
Solution local_search_tour(const Instance& instance, const ImproveOptions& options,
                           const SearchControl& control, WorkerThreads* workers = nullptr);

// The best of `samples` (1 to 2^32 - 1) uniformly random orders; of each order every item is taken that is
// feasible when its turn comes. Sample s is input_order(seed, key, s), with key from instance_key(): a
// function of these three only.
Solution random_search(const Instance& instance, uint64_t key, int64_t samples, uint64_t seed,
                       const SearchControl& control);

// A first answer in n log n time: TSP along a Hilbert curve, by number without coordinates; else the items by
// falling ratio of value to weight, passing over what does not fit.
Solution quick_answer(const Instance& instance, Status status = Status::kDone);

// KnapSack: takes the items by falling ratio of value to weight, passing over what does not fit.
Solution ratio_packing(const Instance& instance);

// KnapSack: the best packing that validate_solution accepts, by branch and bound. Of values that are neither
// integers nor decimals it is the best up to n 2^-60 of the largest. Exponential at worst; of random items
// milliseconds. Never worse than ratio_packing(). Its start says whether `most_branches` were enough.
Solution exact_packing(const Instance& instance, const SearchControl& control,
                       int64_t most_branches = std::numeric_limits<int64_t>::max());

}  // namespace pointsman
