// SPDX-License-Identifier: Apache-2.0
// A tour of TwoOptRequest by one thread.
#pragma once

#include <cstdint>

#include "engine/backend/backend.h"

namespace pointsman {

// xy: [n][2]; order: [n] out. Returns TwoOptResult::kicks of it.
int search_tour(const float* xy, int n, uint64_t key, const TwoOptRequest& request, int32_t* order);

}  // namespace pointsman
