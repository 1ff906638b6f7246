// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "engine/problem/instance.h"

namespace pointsman {

// Of all that an answer to the instance depends on: problem, metric, capacity and numbers, to the bit; not
// its id. It tells instances apart that nobody made to have the same one.
uint64_t instance_hash(const Instance& instance);

}  // namespace pointsman
