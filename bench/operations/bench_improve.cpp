// SPDX-License-Identifier: Apache-2.0
// Local search on 10,000 tours of as many random instances, from random orders.
#include <cmath>
#include <numeric>
#include <random>

#include "bench/operations/device_batch.h"
#include "kernels/common/tour_improvement.h"
#include "kernels/common/tsp.h"

namespace pointsman::bench {

namespace {

constexpr int kSizes[] = {20, 50, 100, 200};
constexpr int kKicksPerCity[] = {0, 4, 32};
constexpr int kTours = 10000;

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
  std::vector<int32_t> places(kTours), fresh(size_t{1} * n * kTours);
  std::vector<uint64_t> numbers(kTours);
  std::iota(places.begin(), places.end(), 0);
  std::iota(numbers.begin(), numbers.end(), uint64_t{0});
  for (size_t i = 0; i < fresh.size(); ++i) fresh[i] = static_cast<int32_t>(i % n);
  const DeviceArray<float> xy(coordinates);
  const DeviceArray<int32_t> instance_of(places), start(fresh);
  const DeviceArray<uint64_t> keys(numbers);
  const DeviceArray<int32_t> orders(fresh.size());
  const DeviceArray<uint16_t> neighbours(fresh.size() * kTourNeighbours);
  const auto restart = [&] {
    cuda::require(
        cudaMemcpyAsync(orders.data(), start.data(), start.bytes(), cudaMemcpyDeviceToDevice, context.stream),
        "tours");
  };
  const auto improve = [&] {
    cuda::improve_tours({.xy = xy.data(),
                         .neighbours = neighbours.data(),
                         .instance_of = instance_of.data(),
                         .keys = keys.data(),
                         .instances = kTours,
                         .tours = kTours,
                         .n = n,
                         .kicks = kicks,
                         .seed = kDefaultSeed,
                         .orders = orders.data()},
                        context.stream);
  };
  const Statistics ms = time_on_device(context.stream, improve, 0.2, restart);
  const double length = mean_length(coordinates, download(orders), n);
  if (!(length < mean_length(coordinates, fresh, n)))
    row.update(Json{{"error", "no shorter tours"}, {"pass", false}});
  row["mean_length"] = length;
  print_row(timed(row, ms));
}

}  // namespace

void bench_improve(const Context& context) {
  for (const int n : kSizes) {
    for (const int per_city : kKicksPerCity) {
      Json row = row_of("improve_tours", "ours", n, kTours);
      row["kicks"] = per_city * n;
      attempt(print_row, row, [&] { bench_tours(context, row, n, per_city * n); });
    }
  }
}

}  // namespace pointsman::bench
