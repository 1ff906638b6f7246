// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <utility>

#include "engine/search/distances.h"

namespace pointsman {
namespace {

// Where along the Hilbert curve through a square of 2^32 x 2^32 cells a cell lies. Without branches, which
// nobody could predict.
uint64_t hilbert_place(uint32_t x, uint32_t y) {
  uint64_t place = 0;
  for (int bit = 31; bit >= 0; --bit) {
    const uint32_t right = (x >> bit) & 1, up = (y >> bit) & 1;
    place = 4 * place + ((3 * right) ^ up);
    const uint32_t turned = -(right & ~up), swapped = (x ^ y) & (up - 1);  // turned: the last quarter's cells
    x ^= swapped ^ turned;
    y ^= swapped ^ turned;
  }
  return place;
}

// Each city's place and number, with the cities' bounding square as the curve's.
std::vector<std::pair<uint64_t, int32_t>> curve_places(const Instance& instance) {
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
  std::vector<std::pair<uint64_t, int32_t>> places;
  places.reserve(static_cast<size_t>(instance.n()));
  for (int city = 0; city < instance.n(); ++city)
    places.emplace_back(hilbert_place(cell(instance.first(city), 0), cell(instance.second(city), 1)), city);
  return places;
}

}  // namespace

std::vector<int32_t> along_curve(const Instance& instance) {
  std::vector<int32_t> order(static_cast<size_t>(instance.n()));
  std::iota(order.begin(), order.end(), 0);
  if (!instance.has_coordinates()) return order;
  auto places = curve_places(instance);
  std::sort(places.begin(), places.end());
  std::transform(places.begin(), places.end(), order.begin(), [](const auto& place) { return place.second; });
  return order;
}

}  // namespace pointsman
