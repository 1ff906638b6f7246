// SPDX-License-Identifier: Apache-2.0
// The best rows of sequences against a loop over all of them.
#include <random>
#include <vector>

#include "kernels/cuda/cuda_operations.h"
#include "tests/catch.h"
#include "tests/kernels/cuda/device_test.h"

namespace pointsman::cuda {
namespace {

// Sequences of rows[s] rows, with costs of `levels` different values; the highest of several is infinite, and
// so is every cost of the last sequence.
void check_best_of(const std::vector<int>& rows, int n, int levels) {
  std::mt19937 random(n + levels);
  const int sequences = static_cast<int>(rows.size());
  std::vector<int32_t> first_row{0};
  for (int r : rows) first_row.push_back(first_row.back() + r);
  const size_t all = first_row.back();
  std::vector<int32_t> orders(all * n);
  std::vector<double> costs(all), log_probs(all);
  for (int32_t& item : orders) item = static_cast<int32_t>(random() % 1000);
  for (double& cost : costs) {
    const int level = static_cast<int>(random() % levels);
    cost = level > 0 && level == levels - 1 ? INFINITY : level / 3.0 - 1.0;
  }
  std::fill_n(costs.end() - rows.back(), rows.back(), INFINITY);
  for (double& p : log_probs) p = -static_cast<double>(random());
  const DeviceArray<int32_t> device_first(first_row), device_orders(orders);
  const DeviceArray<double> device_costs(costs), device_log_probs(log_probs);
  DeviceArray<int32_t> winners(sequences), best_orders(static_cast<size_t>(sequences) * n);
  DeviceArray<double> best_costs(sequences), best_log_probs(sequences);
  DeviceArray<unsigned char> scratch(best_of_scratch(sequences));
  best_of({device_first.data(), device_orders.data(), device_costs.data(), device_log_probs.data(), sequences,
           n, scratch.data(), winners.data(), best_orders.data(), best_costs.data(), best_log_probs.data()},
          nullptr);
  const std::vector<int32_t> found = winners.download(), found_orders = best_orders.download();
  const std::vector<double> found_costs = best_costs.download(), found_log_probs = best_log_probs.download();
  for (int s = 0; s < sequences; ++s) {
    INFO("sequence " << s << " of " << rows[s] << " rows, n = " << n << ", " << levels << " levels");
    int best = -1;
    for (int r = 0; r < rows[s]; ++r) {
      if (costs[first_row[s] + r] < (best < 0 ? INFINITY : costs[first_row[s] + best])) best = r;
    }
    REQUIRE(found[s] == best);
    for (int i = 0; i < n; ++i) {
      REQUIRE(found_orders[s * n + i] ==
              (best < 0 ? -1 : orders[static_cast<size_t>(first_row[s] + best) * n + i]));
    }
    REQUIRE(found_costs[s] == (best < 0 ? INFINITY : costs[first_row[s] + best]));
    REQUIRE(found_log_probs[s] == (best < 0 ? -INFINITY : log_probs[first_row[s] + best]));
  }
}

TEST_CASE("cuda: the least cost of every sequence, the first of equal ones", "[race]") {
  for (int levels : {1, 4, 1'000'000}) {
    check_best_of({1}, 1, levels);
    check_best_of({3, 0, 17, 1, 0}, 33, levels);
    check_best_of({0, 5000, 2, 300, 1, 1, 1, 257, 1, 9}, 2, levels);
  }
}

}  // namespace
}  // namespace pointsman::cuda
