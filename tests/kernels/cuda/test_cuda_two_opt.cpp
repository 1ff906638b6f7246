// SPDX-License-Identifier: Apache-2.0
// The warps' local search against the same search of one thread: the same tours.
#include <algorithm>
#include <random>
#include <string>
#include <vector>

#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cuda/device_test.h"
#include "tests/kernels/lone_search.h"

namespace pointsman::cuda {
namespace {

constexpr uint64_t kSeed = 1234;

struct Cities {
  std::vector<float> xy;  // [instances][n][2]
  std::vector<uint64_t> keys;
};

// With `levels` the coordinates have so many different values, and many moves gain the same.
Cities make_cities(int instances, int n, int levels) {
  std::mt19937 random(n + levels);
  Cities made;
  for (int i = 0; i < instances * n * 2; ++i) {
    const auto word = static_cast<uint32_t>(random());
    made.xy.push_back(levels == 0 ? uniform_from_word(word)
                                  : static_cast<float>(word % levels) / static_cast<float>(levels));
  }
  for (int i = 0; i < instances; ++i) made.keys.push_back((uint64_t{random()} << 32) + i);
  return made;
}

struct Found {
  std::vector<uint16_t> neighbours;
  std::vector<int32_t> orders, kicks;
};

// stop: null, or what the word that stops it is.
Found search(const Cities& cities, int n, int kicks, const int32_t* stop = nullptr) {
  const auto instances = static_cast<int>(cities.keys.size());
  const DeviceArray<float> xy(cities.xy);
  const DeviceArray<uint64_t> keys(cities.keys);
  DeviceArray<uint16_t> neighbours(static_cast<size_t>(instances) * n * kTourNeighbours);
  DeviceArray<int32_t> orders(static_cast<size_t>(instances) * n), kicks_made(instances);
  const DeviceArray<int32_t> word(std::vector<int32_t>{stop == nullptr ? 0 : *stop});
  two_opt({.xy = xy.data(),
           .neighbours = neighbours.data(),
           .keys = keys.data(),
           .tours = instances,
           .n = n,
           .kicks = kicks,
           .seed = kSeed,
           .stop = stop == nullptr ? nullptr : word.data(),
           .orders = orders.data(),
           .kicks_made = kicks_made.data()},
          nullptr);
  return {neighbours.download(), orders.download(), kicks_made.download()};
}

void check_tours(int instances, int n, int kicks, int levels = 0) {
  INFO(instances << " instances, n = " << n << ", " << kicks << " kicks, " << levels << " levels");
  const Cities cities = make_cities(instances, n, levels);
  const int32_t go_on = 0;
  const Found found = search(cities, n, kicks, instances % 2 == 0 ? &go_on : nullptr);
  for (int i = 0; i < instances; ++i) {
    const float* const xy = &cities.xy[static_cast<size_t>(i) * n * 2];
    const std::vector<uint16_t> neighbours = neighbours_of(xy, n);
    REQUIRE(std::equal(neighbours.begin(), neighbours.end(),
                       found.neighbours.begin() + static_cast<std::ptrdiff_t>(i * neighbours.size())));
    LoneSearch lone({xy, neighbours.data(), n});
    CHECK(found.kicks[i] == lone.search.search(kicks, kSeed, cities.keys[i], kNeverStops));
    const auto first = found.orders.begin() + static_cast<std::ptrdiff_t>(i) * n;
    REQUIRE(std::vector<int32_t>(first, first + n) == lone.best());
  }
}

TEST_CASE("cuda: a warp's local search finds the tours of one thread", "[race]") {
  check_tours(1, kFewestTourCities, 3);
  check_tours(5, 33, 4);
  check_tours(2, 20, 2, 4);
}

TEST_CASE("cuda: local search for tours of many sizes") {
  check_tours(4, 11, 60);
  check_tours(3, 64, 30);
  check_tours(2, 100, 100);
  check_tours(1, 333, 10);
  check_tours(6, 40, 40, 5);
  check_tours(1, 2500, 0);  // one tour a block
}

TEST_CASE("cuda: local search that is stopped before it begins says so", "[race]") {
  const int32_t stop = 1;
  const Found found = search(make_cities(3, 20, 0), 20, 9, &stop);
  CHECK(found.kicks == std::vector<int32_t>(3, kNotBegun));
  CHECK(found.orders == std::vector<int32_t>(3 * 20, -1));
}

TEST_CASE("cuda: local search refuses tours that no block has room for, and those without neighbours") {
  for (const int n : {kFewestTourCities - 1, kMostTourCities + 1}) {
    TwoOptArgs args{};  // nothing is read
    args.tours = 1;
    args.n = n;
    REQUIRE_THROWS_WITH(two_opt(args, nullptr), has_text("for a tour of " + std::to_string(n) + " cities"));
  }
}

}  // namespace
}  // namespace pointsman::cuda
