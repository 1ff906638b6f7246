// SPDX-License-Identifier: Apache-2.0
// The numbers that the rules know of a candidate, by hand.
#include <cmath>
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

// The last number of each item, compared with the best.
std::vector<float> looks_ahead(const Sack& sack, double capacity) {
  const KnapsackRules rules{sack.weights.data(), capacity, false};
  const Candidates step{sack.features.data(), sack.items.data(), static_cast<int>(sack.items.size()), -1};
  const KnapsackRules::Outlook seen = rules.outlook(step);
  std::vector<float> last;
  float best = 0.0f;
  for (int32_t item : sack.items) {
    float numbers[KnapsackRules::kPriors];
    rules.priors(step, seen, item, numbers);
    last.push_back(numbers[2]);
    best = std::max(best, numbers[2]);
  }
  for (float& number : last) number = KnapsackRules::relative(seen, number, best);
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

TEST_CASE("KnapSack's prior compares the best pairs that candidates begin") {
  // In 0.8 fit 1 with 2, worth 0.9, and 0 with 2, worth 0.7; 3 leaves room for nothing and 2 for 1. 0 and 1
  // have together 1.1.
  const std::vector<float> features = {0.6f, 0.5f, 0.5f, 0.7f, 0.1f, 0.2f, 0.75f, 0.6f};
  const std::vector<double> expected = {-0.2, 0.0, 0.0, -0.3};
  for (const double unit : {1.0, 40.0}) {
    std::vector<double> over_room;
    for (double less : expected) over_room.push_back(less / (0.8 * 0.8 * 0.8));
    check_close(looks_ahead(sack_of(features, unit), 0.8 * unit), over_room);
  }
}

TEST_CASE("KnapSack's prior does not look ahead while any two items fit") {
  const Sack sack = sack_of({0.3f, 0.5f, 0.25f, 0.9f, 0.1f, 0.4f}, 1.0);
  check_close(looks_ahead(sack, 2.0 * sack.weights[0]), {0.0, 0.0, 0.0});
  CHECK(looks_ahead(sack, 1.99 * sack.weights[0])[2] < -0.3f);  // 0.1 less than 1.4, over 0.597^3
}

TEST_CASE("the last crumbs of room count as half a unit") {
  const std::vector<float> features = {0.125f, 0.5f, 0.0625f, 0.25f};
  check_close(looks_ahead(sack_of(features, 1.0), 0.125), {0.0, -0.25 / 0.125});
  CHECK(looks_ahead(sack_of({0.0f, 0.5f}, 1.0), 0.0) == std::vector<float>{0.0f});
}

TEST_CASE("under the literal rule a candidate that does not fit is worth nothing") {
  const Sack sack = sack_of({0.5f, 0.5f, 0.25f, 0.25f}, 1.0);
  const KnapsackRules rules{sack.weights.data(), 0.25, true};
  const Candidates step{sack.features.data(), sack.items.data(), 2, -1};
  float numbers[KnapsackRules::kPriors];
  rules.priors(step, rules.outlook(step), 0, numbers);
  CHECK(numbers[2] == 0.0f);
}
