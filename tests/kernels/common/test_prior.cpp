// SPDX-License-Identifier: Apache-2.0
// The numbers that the rules know of a candidate, by hand.
#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

#include "kernels/common/rules.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

struct Sack {
  std::vector<float> features;  // [n][2] weight, value
  std::vector<double> weights;  // [n]
  std::vector<int32_t> items;
};

// Weights are `unit` times those of the features.
Sack sack_of(std::vector<float> features, double unit) {
  Sack sack{std::move(features), {}, {}};
  for (size_t i = 0; 2 * i < sack.features.size(); ++i) {
    sack.weights.push_back(unit * static_cast<double>(sack.features[2 * i]));
    sack.items.push_back(static_cast<int32_t>(i));
  }
  return sack;
}

// The last number of each item.
std::vector<float> looks_ahead(const Sack& sack, double capacity, bool literal = false) {
  const KnapsackRules rules{sack.weights.data(), capacity, literal};
  const Candidates step{sack.features.data(), sack.items.data(), static_cast<int>(sack.items.size()), -1};
  const KnapsackRules::Outlook seen = rules.outlook(step);
  std::vector<float> last;
  for (int32_t item : sack.items) {
    float numbers[KnapsackRules::kPriors];
    rules.priors(step, seen, item, numbers);
    last.push_back(numbers[2]);
  }
  return last;
}

void check_close(const std::vector<float>& found, const std::vector<double>& expected) {
  REQUIRE(found.size() == expected.size());
  for (size_t i = 0; i < found.size(); ++i) {
    INFO("item " << i);
    CHECK(std::abs(static_cast<double>(found[i]) - expected[i]) < 1e-6);
  }
}

}  // namespace

TEST_CASE("KnapSack's prior compares the best packings with each candidate") {
  // In 0.8 fit 1 with 2, worth 0.7, and 0 with 2, worth 0.65; 3 leaves room for nothing.
  const std::vector<float> features = {0.6f, 0.45f, 0.5f, 0.5f, 0.1f, 0.2f, 0.75f, 0.63f};
  for (const double unit : {1.0, 40.0})
    check_close(looks_ahead(sack_of(features, unit), 0.8 * unit), {-0.05, 0.0, 0.0, -0.07});
}

TEST_CASE("KnapSack's prior tries all packings of the eight with most value per weight") {
  std::mt19937_64 random(7);
  const auto uniform = [&] { return 0.01f + 0.99f * std::ldexp(static_cast<float>(random() >> 40), -24); };
  int looks = 0;
  for (int round = 0; round < 500; ++round) {
    std::vector<float> features(2 * (1 + random() % 8));
    for (float& number : features) number = uniform();
    const Sack sack = sack_of(features, 1.0);
    const size_t n = sack.items.size();
    const double room = 0.3 + 3.0 * static_cast<double>(uniform());
    std::vector<double> most(n, 0.0);
    for (size_t choice = 0; choice < size_t{1} << n; ++choice) {
      double weight = 0.0, value = 0.0;
      for (size_t k = 0; k < n; ++k) {
        weight += (choice >> k & 1) != 0 ? sack.weights[k] : 0.0;
        value += (choice >> k & 1) != 0 ? static_cast<double>(features[2 * k + 1]) : 0.0;
      }
      for (size_t k = 0; k < n && weight <= room; ++k)
        if ((choice >> k & 1) != 0) most[k] = std::max(most[k], value);
    }
    const double best = *std::max_element(most.begin(), most.end());
    std::vector<double> expected;
    for (size_t k = 0; k < n; ++k)
      expected.push_back(sack.weights[k] > room ? -0.1 : -std::min(best - most[k], 0.1));
    check_close(looks_ahead(sack, room), expected);
    looks += std::count(expected.begin(), expected.end(), 0.0) < static_cast<int64_t>(n);
  }
  CHECK(looks > 250);
}

TEST_CASE("a candidate beyond the eight with most value per weight is the worst, unless these fit together") {
  std::vector<float> features;
  for (int i = 0; i < 10; ++i)
    features.insert(features.end(), {0.125f, 0.9f - 0.0625f * static_cast<float>(i)});
  const Sack sack = sack_of(features, 1.0);
  CHECK(looks_ahead(sack, 1.0) == std::vector<float>(10, 0.0f));
  // Seven of the eight fit: one that takes the place of the seventh, 0.0625 better than the eighth.
  check_close(looks_ahead(sack, 0.99), {0, 0, 0, 0, 0, 0, 0, -0.0625, -0.1, -0.1});
  check_close(looks_ahead(sack, 0.25), {0, 0, -0.0625, -0.1, -0.1, -0.1, -0.1, -0.1, -0.1, -0.1});
}

TEST_CASE("which of equal items the prior looks at does not depend on the order of the list") {
  std::vector<float> features;
  for (int i = 0; i < 10; ++i) features.insert(features.end(), {0.25f, 0.25f});
  Sack sack = sack_of(features, 1.0);
  sack.items = {9, 3, 8, 1, 0, 2, 7, 5, 4, 6};
  check_close(looks_ahead(sack, 0.5), {-0.1, 0, -0.1, 0, 0, 0, 0, 0, 0, 0});
}

TEST_CASE("KnapSack's prior ends where nothing fits") {
  CHECK(looks_ahead(sack_of({0.5f, 0.5f}, 1.0), -0.25) == std::vector<float>{-0.1f});
}

TEST_CASE("KnapSack's prior does not look ahead where all fit, or nothing has weight") {
  const Sack sack = sack_of({0.25f, 0.5f, 0.25f, 0.9f, 0.125f, 0.4f}, 1.0);
  check_close(looks_ahead(sack, 0.625), {0.0, 0.0, 0.0});
  CHECK(looks_ahead(sack, 0.6)[2] < 0.0f);
  CHECK(looks_ahead(sack_of({0.0f, 0.5f}, 1.0), 0.0) == std::vector<float>{0.0f});
}

TEST_CASE("under the literal rule a candidate that does not fit is the worst") {
  check_close(looks_ahead(sack_of({0.5f, 0.5f, 0.25f, 0.25f}, 1.0), 0.25, true), {-0.1, 0.0});
}
