// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "engine/problem/instance.h"

namespace pointsman {

struct TourMap {
  const Instance* instance = nullptr;  // TSP
  std::vector<int32_t> tour;           // of this instance, cities from 0, open
  std::string caption;
};

// Maps side by side as one SVG document: both axes of a map have one scale, y grows upwards. Geographic
// coordinates (TSPLIB's GEO) are drawn with east on the right, true to scale at the middle latitude.
std::string format_tour_maps(const std::vector<TourMap>& maps, const std::string& title);

}  // namespace pointsman
