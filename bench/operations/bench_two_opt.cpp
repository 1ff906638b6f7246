// SPDX-License-Identifier: Apache-2.0
// 2-opt and Or-opt for tours of 10,000 random instances.
#include <cmath>
#include <numeric>
#include <random>

#include "bench/operations/device_batch.h"
#include "kernels/common/tsp.h"
#include "kernels/common/two_opt.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100, 200};
constexpr int kKicksPerCity[] = {0, 4, 64};
constexpr int kTours = 10000;
constexpr int64_t kMostWork = 160'000;  // kicks times cities: beyond, a row takes tens of seconds

// Mean length; NaN: one of them is no tour.
double mean_length(const std::vector<float>& xy, const std::vector<int32_t>& orders, int n) {
  double sum = 0.0;
  for (size_t first = 0; first < orders.size(); first += n) {
    if (!is_permutation(&orders[first], n)) return std::nan("");
    sum += tour_length(&xy[2 * first], &orders[first], n);
  }
  return sum / kTours;
}

void bench_tours(const Context& context, Json row, int n, int kicks) {
  std::minstd_rand random;
  std::vector<float> coordinates(size_t{2} * n * kTours);
  for (float& x : coordinates) x = std::generate_canonical<float, 24>(random);
  std::vector<uint64_t> numbers(kTours);
  std::iota(numbers.begin(), numbers.end(), uint64_t{0});
  const DeviceArray<float> xy(coordinates);
  const DeviceArray<uint64_t> keys(numbers);
  const size_t cities = size_t{1} * n * kTours;
  const DeviceArray<int32_t> orders(cities), kicks_made(kTours);
  const DeviceArray<uint16_t> neighbours(cities * kTourNeighbours);
  const auto search = [&] {
    cuda::two_opt({.xy = xy.data(),
                   .neighbours = neighbours.data(),
                   .keys = keys.data(),
                   .tours = kTours,
                   .n = n,
                   .kicks = kicks,
                   .seed = kDefaultSeed,
                   .stop = nullptr,
                   .orders = orders.data(),
                   .kicks_made = kicks_made.data()},
                  context.stream);
  };
  const Statistics ms = time_on_device(context.stream, search, 0.2);
  const double length = mean_length(coordinates, download(orders), n);
  // The shortest tours have 0.86 sqrt(n) at n = 20 and less of more cities, those of random orders 0.52 n.
  if (!(length < 0.95 * std::sqrt(n))) row.update(Json{{"error", "no short tours"}, {"pass", false}});
  row["mean_length"] = length;
  print_row(timed(row, ms));
}

}  // namespace

void bench_two_opt(const Context& context) {
  for (const int n : kSizes) {
    for (const int per_city : kKicksPerCity) {
      if (int64_t{n} * n * per_city > kMostWork) continue;
      Json row = row_of("two_opt", "ours", n, kTours);
      row["kicks"] = per_city * n;
      attempt(print_row, row, [&] { bench_tours(context, row, n, per_city * n); });
    }
  }
}

}  // namespace pointsman::bench
