// SPDX-License-Identifier: Apache-2.0
// What a network that re-reads (ModelConfig::reread) is shown before each stretch of a tour: the city where
// the tour stands, the city where it will close, and the cities left (as Luo et al. 2023 and Drakulic et al.
// 2023), of many only the nearest. So one network serves all sizes.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <iterator>
#include <limits>
#include <span>
#include <utility>
#include <vector>

#include "kernels/common/stretch.h"
#include "kernels/common/tsp.h"

namespace pointsman {

inline constexpr int kStretchWindow = 100;  // cities left that are read, at most

// The kStretchWindow cities nearest to `present`, of equals the lower ones, in the order of `left`.
inline std::vector<int32_t> nearest_left(const float* xy, int32_t present, std::span<const int32_t> left) {
  if (left.size() <= kStretchWindow) return {left.begin(), left.end()};
  std::vector<int32_t> read;
  std::vector<std::pair<float, int32_t>> places;
  places.reserve(left.size());
  for (const int32_t city : left) places.emplace_back(tour_distance(xy, present, city), city);
  std::vector<std::pair<float, int32_t>> sorted = places;
  std::ranges::nth_element(sorted, sorted.begin() + (kStretchWindow - 1));
  const std::pair<float, int32_t> last = sorted[kStretchWindow - 1];
  for (const auto& place : places) {
    if (place <= last) read.push_back(place.second);
  }
  return read;
}

// The shortest and the second shortest distance of a city to those of `others` that are not it; infinite
// where there is none.
inline std::array<float, 2> nearest_distances(const float* xy, int32_t city,
                                              std::span<const int32_t> others) {
  constexpr float kNone = std::numeric_limits<float>::infinity();
  std::array<float, 2> shortest = {kNone, kNone};
  for (const int32_t other : others) {
    const float distance = other == city ? kNone : tour_distance(xy, city, other);
    shortest[1] = std::min(shortest[1], std::max(shortest[0], distance));
    shortest[0] = std::min(shortest[0], distance);
  }
  return shortest;
}

// Appends the input of the next stretch, [items][8] as StretchRules reads it, to `features`, and returns the
// city of each item: present, end, then those of `left` that are read, in the same order. Places are scaled
// so that the items but `end` just fit into the unit square; `end` is moved into a square of twice its side
// around it. Distances are scaled likewise, to at most 2; the two shortest also by the root of
// the number of items, so that they are alike for every n, to at most 3. xy: [n][2]; left: cities, at least
// one.
inline std::vector<int32_t> append_stretch(const float* xy, int32_t present, int32_t end,
                                           std::span<const int32_t> left, std::vector<float>& features) {
  std::vector<int32_t> cities = {present, end};
  std::ranges::copy(nearest_left(xy, present, left), std::back_inserter(cities));
  std::array<float, 2> low{}, high{};
  for (int d = 0; d < 2; ++d) {
    low[d] = high[d] = xy[2 * present + d];
    for (const int32_t city : std::span(cities).subspan(2)) {
      low[d] = std::min(low[d], xy[2 * city + d]);
      high[d] = std::max(high[d], xy[2 * city + d]);
    }
  }
  const float side = std::max({high[0] - low[0], high[1] - low[1], std::numeric_limits<float>::min()});
  const float root = std::sqrt(static_cast<float>(cities.size()));
  for (size_t item = 0; item < cities.size(); ++item) {
    for (int d = 0; d < 2; ++d) {
      const float margin = 0.5f * (side - (high[d] - low[d]));
      features.push_back(std::clamp((xy[2 * cities[item] + d] - low[d] + margin) / side, -0.5f, 1.5f));
    }
    features.push_back(item == 0 ? 1.0f : 0.0f);
    features.push_back(item == 1 ? 1.0f : 0.0f);
    for (const int32_t to : {present, end})
      features.push_back(std::min(tour_distance(xy, cities[item], to) / side, 2.0f));
    for (const float distance : nearest_distances(xy, cities[item], std::span(cities).subspan(2)))
      features.push_back(std::min(distance / side * root, 3.0f));
  }
  return cities;
}

// The order that begins with both ends and goes on to `next`, as far as these are among the cities read;
// then -1. cities: of append_stretch().
inline std::vector<int32_t> stretch_order(const std::vector<int32_t>& cities, std::span<const int32_t> next) {
  std::vector<int32_t> order(cities.size(), -1);
  order[0] = 1;
  order[1] = 0;
  for (size_t i = 0; i < next.size(); ++i) {
    const auto found = std::find(cities.begin() + StretchRules::kEnds, cities.end(), next[i]);
    if (found == cities.end()) break;
    order[StretchRules::kEnds + i] = static_cast<int32_t>(found - cities.begin());
  }
  return order;
}

// Where a tour of greedy or sampled stretches begins: at the city nearest to the corner (0, 0).
inline int32_t first_of_tour(const float* xy, int n) {
  const auto from_corner = [&](int32_t city) {
    return xy[2 * city] * xy[2 * city] + xy[2 * city + 1] * xy[2 * city + 1];
  };
  int32_t first = 0;
  for (int32_t city = 1; city < n; ++city) {
    if (from_corner(city) < from_corner(first)) first = city;
  }
  return first;
}

}  // namespace pointsman
