// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <iterator>
#include <numeric>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

double coordinate_sum(int n) {
  double sum = 0.0;
  for (const Instance& instance : generate_like_numpy(ProblemKind::kTsp, n, 1234, 10000)) {
    sum = std::accumulate(instance.values.begin(), instance.values.end(), sum);
  }
  return sum;
}

// The data of a version 1 .npy file of doubles; empty, after a word about it, without benchmark data.
std::vector<double> benchmark_data(const std::string& name) {
  const char* folder = std::getenv("POINTSMAN_BENCHMARK_DATA");
  if (folder == nullptr) {
    std::cout << "skipped: no benchmark data\n";
    return {};
  }
  std::ifstream file(std::string(folder) + "/" + name, std::ios::binary);
  const std::string bytes{std::istreambuf_iterator<char>(file), {}};
  REQUIRE(bytes.size() > 128);
  const size_t start = 10 + static_cast<unsigned char>(bytes[8]) + 256 * static_cast<unsigned char>(bytes[9]);
  std::vector<double> values((bytes.size() - start) / sizeof(double));
  std::memcpy(values.data(), bytes.data() + start, values.size() * sizeof(double));
  return values;
}

void check_equal(const InstanceBatch& batch, const std::vector<double>& expected) {
  std::vector<double> values;
  for (const Instance& instance : batch) {
    values.insert(values.end(), instance.values.begin(), instance.values.end());
  }
  REQUIRE(values.size() == expected.size());
  CHECK(std::memcmp(values.data(), expected.data(), values.size() * sizeof(double)) == 0);
}

std::vector<double> stored_optima(const std::string& set) {
  std::ifstream file(POINTSMAN_SOURCE_DIR "/tests/data/" + set + "_first100.opt.txt");
  return {std::istream_iterator<double>(file), {}};
}

double nearest_neighbour_length(const Instance& instance) {
  Solution solution;
  solution.order.resize(instance.n());
  std::iota(solution.order.begin(), solution.order.end(), 0);
  for (int i = 1; i < instance.n(); ++i) {
    const auto nearer = [&, from = solution.order[i - 1]](int a, int b) {
      return city_distance(instance, from, a) < city_distance(instance, from, b);
    };
    std::iter_swap(solution.order.begin() + i,
                   std::min_element(solution.order.begin() + i, solution.order.end(), nearer));
  }
  REQUIRE(validate_solution(instance, solution) == "");
  return solution.objective;
}

double ratio_greedy_value(const Instance& instance) {
  std::vector<int> items(instance.n());
  std::iota(items.begin(), items.end(), 0);
  std::sort(items.begin(), items.end(), [&](int a, int b) {
    return instance.second(a) * instance.first(b) > instance.second(b) * instance.first(a);
  });
  Solution solution;
  double left = instance.capacity;
  for (const int item : items) {
    if (instance.first(item) > left) continue;
    left -= instance.first(item);
    solution.order.push_back(item);
  }
  REQUIRE(validate_solution(instance, solution) == "");
  return solution.objective;
}

}  // namespace

TEST_CASE("like numpy: the widely used test sets") {
  const InstanceBatch batch = generate_like_numpy(ProblemKind::kTsp, 20, 1234, 1);
  CHECK(batch[0].first(0) == Approx(0.19151945).margin(5e-9));
  CHECK(batch[0].second(0) == Approx(0.62210877).margin(5e-9));
  // Sums over the 10,000 instances of each set, known to about 1e-4.
  CHECK(coordinate_sum(20) == Approx(199797.4829).epsilon(0).margin(1e-3));
  CHECK(coordinate_sum(50) == Approx(499879.8424).epsilon(0).margin(1e-3));
  CHECK(coordinate_sum(100) == Approx(999869.9573).epsilon(0).margin(1e-3));
}

TEST_CASE("like numpy: bit for bit the stored sets") {
  for (const int n : {20, 50, 100}) {
    const auto expected = benchmark_data("tsp" + std::to_string(n) + "_test.npy");
    if (expected.empty()) return;
    check_equal(generate_like_numpy(ProblemKind::kTsp, n, 1234, 1000), expected);
  }
}

TEST_CASE("like numpy: bit for bit the stored KnapSack sets") {
  for (const int n : {50, 100, 200}) {
    const auto expected = benchmark_data("knap" + std::to_string(n) + "_test.npy");
    if (expected.empty()) return;
    const InstanceBatch batch = generate_like_numpy(ProblemKind::kKnapsack, n, 1234, 1000);
    check_equal(batch, expected);
    CHECK(batch[0].capacity == (n == 50 ? 12.5 : 25.0));
  }
}

TEST_CASE("an instance depends on its seed and number only") {
  const InstanceBatch batch = generate_instances(ProblemKind::kTsp, 7, 5, 0, 10);
  for (const int first : {0, 3, 9}) {
    const InstanceBatch part = generate_instances(ProblemKind::kTsp, 7, 5, first, 1);
    CHECK(part[0].values == batch[first].values);
  }
  CHECK(batch[0].values != batch[1].values);
  CHECK(generate_instances(ProblemKind::kTsp, 7, 6, 0, 1)[0].values != batch[0].values);
  // The first items are those of a larger instance; a KnapSack instance holds the same numbers.
  const Instance larger = generate_instances(ProblemKind::kKnapsack, 60, 5, 0, 1)[0];
  CHECK(std::equal(batch[0].values.begin(), batch[0].values.end(), larger.values.begin()));
  CHECK(larger.capacity == 25.0);
  CHECK_FALSE(larger.has_id);
}

TEST_CASE("features are the instances in single precision") {
  const InstanceBatch batch = generate_instances(ProblemKind::kTsp, 6, 99, 4, 3);
  std::vector<float> features(3 * 6 * 2, -1.0f), expected;
  for (uint64_t i = 0; i < 3; ++i) generate_features(ProblemKind::kTsp, 6, 0.0, 99, 4 + i, &features[12 * i]);
  for (const Instance& instance : batch) {
    expected.insert(expected.end(), instance.values.begin(), instance.values.end());
  }
  CHECK(features == expected);
}

TEST_CASE("generated numbers are uniform from 0 up to 1") {
  double sum = 0.0, squares = 0.0, product = 0.0;
  constexpr int kPairs = 50000;
  for (const Instance& instance : generate_instances(ProblemKind::kTsp, 50, 1234, 0, kPairs / 50)) {
    for (int i = 0; i < 50; ++i) {
      const double x = instance.first(i), y = instance.second(i);
      REQUIRE(std::min(x, y) >= 0.0);
      REQUIRE(std::max(x, y) < 1.0);
      sum += x + y;
      squares += x * x + y * y;
      product += (x - 0.5) * (y - 0.5);
    }
  }
  // Five standard errors; the deviations of u, u^2 and the product are sqrt(1/12), sqrt(4/45) and 1/12.
  CHECK(sum / (2 * kPairs) == Approx(0.5).margin(5 * std::sqrt(1.0 / 12 / (2 * kPairs))));
  CHECK(squares / (2 * kPairs) == Approx(1.0 / 3).margin(5 * std::sqrt(4.0 / 45 / (2 * kPairs))));
  CHECK(product / kPairs == Approx(0.0).margin(5.0 / 12 / std::sqrt(double{kPairs})));
}

TEST_CASE("the stored optima belong to the generated instances") {
  for (const int n : {20, 50, 100}) {
    const auto optima = stored_optima("tsp" + std::to_string(n));
    const InstanceBatch batch = generate_like_numpy(ProblemKind::kTsp, n, 1234, 100);
    REQUIRE(optima.size() == batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      const double length = nearest_neighbour_length(batch[i]);
      CHECK(optima[i] <= length * (1 + 1e-12));
      CHECK(optima[i] >= 0.6 * length);  // nearest neighbour is 25% over the optimum on average
    }
  }
}

TEST_CASE("the stored KnapSack optima belong to the generated instances") {
  for (const int n : {50, 100, 200}) {
    const auto optima = stored_optima("knap" + std::to_string(n));
    const InstanceBatch batch = generate_like_numpy(ProblemKind::kKnapsack, n, 1234, 1000);
    REQUIRE(optima.size() == 100);
    for (size_t i = 0; i < optima.size(); ++i) {
      const double value = ratio_greedy_value(batch[i]);
      CHECK(value <= optima[i] * (1 + 1e-12));
      CHECK(value + 1.0 > optima[i]);  // greedy by ratio loses less than the most valuable item
    }
  }
}
