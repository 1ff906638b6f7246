// SPDX-License-Identifier: Apache-2.0
// The warps' local search against the same search of one thread: the same tours.
#include <algorithm>
#include <numeric>
#include <random>
#include <vector>

#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cuda/device_test.h"
#include "tests/kernels/lone_search.h"

namespace pointsman::cuda {
namespace {

constexpr uint64_t kSeed = 1234;

struct Tours {
  std::vector<float> xy;
  std::vector<int32_t> instance_of, orders;
  std::vector<uint64_t> keys;
};

// Random orders of random cities; with `levels` the coordinates have so many different values, and many moves
// gain the same.
Tours make_tours(int instances, int tours, int n, int levels) {
  std::mt19937 random(n + levels);
  Tours made;
  for (int i = 0; i < instances * n * 2; ++i) {
    const auto word = static_cast<uint32_t>(random());
    made.xy.push_back(levels == 0 ? uniform_from_word(word)
                                  : static_cast<float>(word % levels) / static_cast<float>(levels));
  }
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  for (int t = 0; t < tours; ++t) {
    std::shuffle(order.begin(), order.end(), random);
    made.orders.insert(made.orders.end(), order.begin(), order.end());
    made.instance_of.push_back(static_cast<int32_t>(random() % instances));
    made.keys.push_back((uint64_t{random()} << 32) + t);
  }
  return made;
}

std::vector<int32_t> improved_by_one_thread(const Tours& tours, int tour, int n, int kicks) {
  const float* const xy = &tours.xy[static_cast<size_t>(tours.instance_of[tour]) * n * 2];
  const std::vector<uint16_t> neighbours = neighbours_of(xy, n);
  LoneSearch lone({xy, neighbours.data(), n});
  lone.search.run(&tours.orders[static_cast<size_t>(tour) * n], kicks, kSeed, tours.keys[tour]);
  return lone.best();
}

void check_tours(int instances, int count, int n, int kicks, int levels = 0) {
  INFO(count << " tours of " << instances << " instances, n = " << n << ", " << kicks << " kicks, " << levels
             << " levels");
  const Tours tours = make_tours(instances, count, n, levels);
  const DeviceArray<float> xy(tours.xy);
  const DeviceArray<int32_t> instance_of(tours.instance_of);
  const DeviceArray<uint64_t> keys(tours.keys);
  DeviceArray<int32_t> orders(tours.orders);
  DeviceArray<uint16_t> neighbours(static_cast<size_t>(instances) * n * kTourNeighbours);
  improve_tours({xy.data(), neighbours.data(), instance_of.data(), keys.data(), instances, count, n, kicks,
                 kSeed, orders.data()},
                nullptr);
  const std::vector<int32_t> found = orders.download();
  const std::vector<uint16_t> lists = neighbours.download();
  for (int i = 0; i < instances; ++i) {
    const std::vector<uint16_t> expected = neighbours_of(&tours.xy[static_cast<size_t>(i) * n * 2], n);
    REQUIRE(std::equal(expected.begin(), expected.end(),
                       lists.begin() + static_cast<std::ptrdiff_t>(i * expected.size())));
  }
  for (int t = 0; t < count; ++t) {
    const auto first = found.begin() + static_cast<std::ptrdiff_t>(t) * n;
    REQUIRE(std::vector<int32_t>(first, first + n) == improved_by_one_thread(tours, t, n, kicks));
  }
}

TEST_CASE("cuda: a warp's local search finds the tours of one thread", "[race]") {
  check_tours(1, 1, kFewestTourCities, 3);
  check_tours(2, 5, 33, 4);
  check_tours(1, 2, 20, 2, 4);
}

TEST_CASE("cuda: local search on tours of many sizes") {
  check_tours(3, 4, 11, 60);
  check_tours(1, 3, 64, 30);
  check_tours(2, 2, 100, 100);
  check_tours(1, 1, 333, 10);
  check_tours(1, 6, 40, 40, 5);
  check_tours(1, 1, 5000, 0);  // one tour a block
}

TEST_CASE("cuda: local search refuses a tour that no block has room for") {
  DeviceArray<int32_t> orders(1);  // nothing is read
  REQUIRE_THROWS_WITH(
      improve_tours({nullptr, nullptr, nullptr, nullptr, 1, 1, 30000, 0, kSeed, orders.data()}, nullptr),
      has_text("no room for a tour of 30000 cities"));
}

}  // namespace
}  // namespace pointsman::cuda
