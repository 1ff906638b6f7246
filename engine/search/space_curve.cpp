// SPDX-License-Identifier: Apache-2.0
#include "engine/search/space_curve.h"

#include <algorithm>
#include <numeric>
#include <utility>

namespace pointsman {

namespace {

// Where along the Hilbert curve through a square of 2^32 x 2^32 cells a cell lies.
uint64_t hilbert_place(uint32_t x, uint32_t y) {
  uint64_t place = 0;
  for (uint32_t side = uint32_t{1} << 31; side > 0; side /= 2) {
    const bool right = (x & side) != 0, up = (y & side) != 0;
    place = 4 * place + (right ? (up ? 2 : 3) : (up ? 1 : 0));
    if (up) continue;
    if (right) {  // the last quarter runs through its cells turned over
      x = ~x;
      y = ~y;
    }
    std::swap(x, y);
  }
  return place;
}

// Of each city, with the cities' bounding square as the curve's.
std::vector<uint64_t> curve_places(const Instance& instance) {
  double low[2] = {instance.first(0), instance.second(0)}, high[2] = {low[0], low[1]};
  for (int city = 1; city < instance.n(); ++city) {
    const double point[2] = {instance.first(city), instance.second(city)};
    for (const int axis : {0, 1}) {
      low[axis] = std::min(low[axis], point[axis]);
      high[axis] = std::max(high[axis], point[axis]);
    }
  }
  const double extent = std::max(high[0] - low[0], high[1] - low[1]);
  const auto cell = [&](double x, int axis) {
    return extent > 0.0 ? static_cast<uint32_t>((x - low[axis]) / extent * 0xffffffffp0) : 0;
  };
  std::vector<uint64_t> places;
  for (int city = 0; city < instance.n(); ++city)
    places.push_back(hilbert_place(cell(instance.first(city), 0), cell(instance.second(city), 1)));
  return places;
}

}  // namespace

std::vector<int32_t> along_curve(const Instance& instance) {
  std::vector<int32_t> order(static_cast<size_t>(instance.n()));
  std::iota(order.begin(), order.end(), 0);
  if (!instance.has_coordinates()) return order;
  const std::vector<uint64_t> places = curve_places(instance);
  std::stable_sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return places[a] < places[b]; });
  return order;
}

}  // namespace pointsman
