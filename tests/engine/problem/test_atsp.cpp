// SPDX-License-Identifier: Apache-2.0
// What a network reads of a matrix of ways: shares of an assignment problem, features of its cities, and the
// numbers that its rules know of a candidate, also of matrices that nobody would draw.
#include <algorithm>
#include <cmath>
#include <memory>
#include <numeric>
#include <random>
#include <vector>

#include "engine/problem/atsp.h"
#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "engine/search/sequence_packer.h"
#include "kernels/common/atsp.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

template <typename Way>
Instance matrix_of(int n, const Way& way) {
  DistanceMatrix matrix{n, {}, {}};
  for (int a = 0; a < n; ++a) {
    for (int b = a + 1; b < n; ++b) {
      matrix.above.push_back(way(a, b));
      matrix.back.push_back(way(b, a));
    }
  }
  Instance instance;
  instance.problem = ProblemKind::kAtsp;
  instance.metric = Metric::kExplicit;
  instance.matrix = std::make_shared<const DistanceMatrix>(std::move(matrix));
  return instance;
}

Instance generated(int n, uint64_t seed) { return generate_instances(ProblemKind::kAtsp, n, seed, 0, 1)[0]; }

// Walks through an order; every number of every candidate must be finite.
void check_priors(const Instance& instance, const std::vector<int32_t>& order) {
  const InstanceRules made(instance);
  const int n = instance.n();
  AtspRules rules = AtspRules::make(made.inputs());
  std::vector<uint32_t> words(AtspRules::words(n));
  rules.use_words(words.data());
  std::vector<int32_t> left(order);
  for (size_t t = 0; t < order.size(); ++t) {
    const Candidates step{nullptr, left.data(), static_cast<int>(left.size()), t == 0 ? -1 : order[t - 1]};
    const auto seen = rules.outlook(step);
    for (const int32_t item : left) {
      float numbers[AtspRules::kPriors];
      rules.priors(step, seen, item, numbers);
      for (const float number : numbers) {
        INFO("step " << t << ", item " << item << ": " << number);
        CHECK(std::abs(number) <= 80.0f);
        CHECK((t > 0 || number == 0.0f));
      }
    }
    rules.step(order[t]);
    left.erase(std::find(left.begin(), left.end(), order[t]));
  }
}

}  // namespace

TEST_CASE("atsp: shares are the ways' exponentials, each row and column scaled, the columns to sum 1") {
  std::mt19937 random(2);
  const int n = 12;
  const Instance instance =
      matrix_of(n, [&](int, int) { return 1.0 + static_cast<double>(random()) / 4294967296.0; });
  const RuleNumbers numbers = matrix_numbers(instance);
  REQUIRE(numbers.weights.size() == static_cast<size_t>(2 * n * n));
  const double *const ways = numbers.weights.data(), *const shares = ways + n * n;
  for (int a = 0; a < n; ++a) {
    double row = 0.0, column = 0.0;
    for (int b = 0; b < n; ++b) row += shares[a * n + b], column += shares[b * n + a];
    CHECK(std::abs(row - 1.0) < 1e-3);
    CHECK(std::abs(column - 1.0) < 1e-9);
    CHECK(shares[a * n + a] == 0.0);
    // No scaling of rows and columns changes what four entries at the corners of a rectangle make.
    const int b = (a + 1) % n, c = (a + 2) % n, d = (a + 3) % n;
    const auto corners = [&](const auto& at) { return at(a, c) + at(b, d) - at(a, d) - at(b, c); };
    CHECK(corners([&](int from, int to) { return std::log(shares[from * n + to]); }) ==
          Approx(corners([&](int from, int to) { return -n * ways[from * n + to]; })).margin(1e-5));
  }
}

TEST_CASE("atsp: short ways have the large shares, whatever the unit") {
  const auto way = [](int a, int b) { return b == (a + 1) % 6 ? 1.0 : 10.0 + a + b; };
  const RuleNumbers numbers = matrix_numbers(matrix_of(6, way));
  for (int a = 0; a < 6; ++a) CHECK(numbers.weights[static_cast<size_t>(36 + a * 6 + (a + 1) % 6)] > 0.95);
  const RuleNumbers scaled = matrix_numbers(matrix_of(6, [&](int a, int b) { return 1024.0 * way(a, b); }));
  CHECK(scaled.weights == numbers.weights);  // by a power of two
}

TEST_CASE("atsp: a sequence in another order has the numbers of a matrix in that order") {
  const int n = 9;
  const Instance instance = generated(n, 8);
  std::vector<int32_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::shuffle(order.begin(), order.end(), std::mt19937(3));
  const Instance permuted =
      matrix_of(n, [&](int a, int b) { return instance.matrix->at(order[a], order[b]); });
  Sequences sequences{ProblemKind::kAtsp, n};
  sequences.add_numbers(matrix_numbers(instance).weights.data(), 0.0, order);
  const RuleNumbers expected = matrix_numbers(permuted);
  REQUIRE(sequences.weights.size() == expected.weights.size());
  for (size_t i = 0; i < expected.weights.size(); ++i)
    CHECK(sequences.weights[i] == Approx(expected.weights[i]).epsilon(1e-9));
  const std::vector<float> features = matrix_features(instance, 0.0), moved = matrix_features(permuted, 0.0);
  for (int city = 0; city < n; ++city) {
    for (int f = 0; f < AtspRules::kFeatures; ++f)
      CHECK(moved[city * AtspRules::kFeatures + f] ==
            Approx(features[order[city] * AtspRules::kFeatures + f]).margin(1e-5));
  }
}

TEST_CASE("atsp: the rules' cost is the tour's length in means of all ways") {
  const int n = 12;
  const Instance instance = generated(n, 5);
  Solution solution;
  solution.order.resize(n);
  std::iota(solution.order.begin(), solution.order.end(), 0);
  REQUIRE(validate_solution(instance, solution).empty());
  double total = 0.0;
  for (int a = 0; a < n; ++a)
    for (int b = 0; b < n; ++b) total += instance.matrix->at(a, b);
  const InstanceRules made(instance);
  const AtspRules rules = AtspRules::make(made.inputs());
  CHECK(rules.cost(nullptr, solution.order.data(), n) ==
        Approx(solution.objective / (total / (n * (n - 1)))).epsilon(1e-12));
}

TEST_CASE("atsp: any matrix has finite features and priors") {
  std::mt19937 random(7);
  const auto uniform = [&] { return static_cast<double>(random()) / 4294967296.0; };
  for (const int n : {2, 3, 8, 33, 60}) {
    const Instance hostile[] = {matrix_of(n, [](int, int) { return 0.0; }),
                                matrix_of(n, [](int, int) { return 3.0; }),
                                matrix_of(n, [&](int, int) { return uniform() < 0.5 ? 0.0 : 1e100; }),
                                matrix_of(n, [&](int, int) { return std::pow(10.0, 20.0 * uniform()); }),
                                matrix_of(n, [&](int a, int b) { return a % 2 == b % 2 ? uniform() : 1e6; }),
                                matrix_of(n, [](int, int b) { return b == 0 ? 1e9 : 1.0; }),
                                generated(n, 6)};
    for (const Instance& instance : hostile) {
      for (const float number : matrix_features(instance, 0.0)) CHECK(std::abs(number) <= 1e6f);
      std::vector<int32_t> order(n);
      std::iota(order.begin(), order.end(), 0);
      for (int repeat = 0; repeat < 3; ++repeat) {
        std::shuffle(order.begin(), order.end(), random);
        check_priors(instance, order);
      }
    }
  }
}

TEST_CASE("atsp: random orders need no network's numbers") {
  const Instance gaps = matrix_of(5, [](int a, int b) { return b == (a + 1) % 5 ? 1.0 : INFINITY; });
  CHECK(random_search(gaps, 0, 1000, 1, {}).objective == 5.0);
  const Instance large = matrix_of(600, [](int a, int b) { return a < b ? 1.0 : 2.0; });
  CHECK(random_search(large, 0, 10, 1, {}).order.size() == 600);
}

TEST_CASE("atsp: a network reads no forbidden ways") {
  Instance instance = matrix_of(4, [](int a, int b) { return a == 0 && b == 2 ? INFINITY : 1.0; });
  CHECK(std::string(instance.beyond_networks()) == "forbidden ways");
  CHECK_THROWS_AS(matrix_numbers(instance), std::invalid_argument);
  instance = generated(4, 1);
  CHECK(instance.suits_networks());
  instance.forced = {{0, 1}};
  CHECK(std::string(instance.beyond_networks()) == "forced edges");
}

TEST_CASE("atsp: a tour to learn begins where the ways are short, and keeps its direction") {
  std::vector<float> features(5 * AtspRules::kFeatures, 1.0f);
  features[3 * AtspRules::kFeatures] = 0.5f;
  std::vector<int32_t> tour = {0, 2, 3, 1, 4};
  make_circuit_example(5, features.data(), tour.data());
  CHECK(tour == std::vector<int32_t>({3, 1, 4, 0, 2}));
}
