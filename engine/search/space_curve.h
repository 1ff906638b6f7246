// SPDX-License-Identifier: Apache-2.0
// An order of the items in which near ones mostly follow each other.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

// The n cities along a Hilbert curve through their bounding square; by number where they have no coordinates.
// O(n log n).
std::vector<int32_t> along_curve(const Instance& instance);

}  // namespace pointsman
