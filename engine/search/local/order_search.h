// SPDX-License-Identifier: Apache-2.0
// Local search of a user's own problem, which knows nothing but what orders cost: exchanges of two items,
// moves of one, reversals of a stretch. Many neighbours are costed by one call of the user's function, those
// of all instances together.
#pragma once

#include <cstdint>
#include <span>

#include "engine/problem/instance.h"
#include "engine/search/limits.h"
#include "models/config.h"

namespace pointsman {

struct OrderSearchOptions {
  // Of each order after its first local optimum: two of these changes at random, and down again; an order
  // that is worse than before is taken back.
  int64_t kicks = 0;
  uint64_t seed = kDefaultSeed;
};

// Improves a valid answer to each instance of a user's own problem, all of them of one problem; those without
// an answer stay. keys: [instances] what each one's draws depend on beside the seed. Answers depend on seed
// and key, not on the other instances. Where `control` says stop, they are the best so far, and their status
// says so.
void improve_orders(std::span<const Instance> instances, std::span<const uint64_t> keys,
                    std::span<Solution> solutions, const OrderSearchOptions& options,
                    const SearchControl& control);

}  // namespace pointsman
