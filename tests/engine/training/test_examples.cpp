// SPDX-License-Identifier: Apache-2.0
// Given answers: what is taken, what is refused, and the one order of each that is learned.
#include <algorithm>
#include <numeric>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/training/trainer.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

ModelConfig model_of(ProblemKind problem, int n, double capacity = 0.0) {
  ModelConfig model;
  model.problem = problem;
  model.n = n;
  model.capacity = capacity;
  return model;
}

Instance knapsack(double capacity, std::vector<double> weights_and_values) {
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  instance.capacity = capacity;
  instance.values = std::move(weights_and_values);
  return instance;
}

Solution solution_of(std::vector<int32_t> order) {
  Solution solution;
  solution.order = std::move(order);
  return solution;
}

}  // namespace

TEST_CASE("canonical tour: from the corner, counterclockwise, whatever the start and direction given") {
  // Around the square, counterclockwise from (0.1, 0.1).
  const std::vector<float> square = {0.9f, 0.9f, 0.1f, 0.1f, 0.5f, 0.05f, 0.1f, 0.9f, 0.9f, 0.1f};
  const std::vector<int32_t> expected = {1, 2, 4, 0, 3};
  for (int start = 0; start < 5; ++start) {
    for (const bool reversed : {false, true}) {
      CAPTURE(start, reversed);
      std::vector<int32_t> tour = expected;
      if (reversed) std::reverse(tour.begin(), tour.end());
      std::rotate(tour.begin(), tour.begin() + start, tour.end());
      problem_of(ProblemKind::kTsp).make_example(5, square.data(), tour.data());
      CHECK(tour == expected);
    }
  }
}

TEST_CASE("canonical packing: by falling value per weight, weightless items first") {
  const std::vector<float> items = {0.5f, 0.5f, 0.2f, 0.8f, 0.0f, 0.1f, 0.4f, 0.1f};
  std::vector<int32_t> order = {3, 0, 2, 1};
  problem_of(ProblemKind::kKnapsack).make_example(4, items.data(), order.data());
  CHECK(order == std::vector<int32_t>{2, 1, 0, 3});
  order = {0, 1, -1, -1};
  problem_of(ProblemKind::kKnapsack).make_example(4, items.data(), order.data());
  CHECK(order == std::vector<int32_t>{1, 0, -1, -1});
}

TEST_CASE("examples are read as the network reads them, and refused by row") {
  InstanceBatch instances = generate_instances(ProblemKind::kTsp, 4, 3, 0, 2);
  for (double& x : instances[1].values) x = 1000 * x + 7;  // any other units
  const SolutionBatch tours = {solution_of({3, 1, 2, 0}), solution_of({0, 1, 2, 3})};
  const Examples examples = make_examples(model_of(ProblemKind::kTsp, 4), instances, tours);
  REQUIRE(examples.count() == 2);
  CHECK(examples.unreachable == 0);
  CHECK(examples.orders == std::vector<int32_t>{3, 1, 2, 0, 0, 1, 2, 3});
  for (int i = 0; i < 8; ++i) CHECK(examples.features[i] == static_cast<float>(instances[0].values[i]));
  const auto [least, most] = std::minmax_element(examples.features.begin() + 8, examples.features.end());
  CHECK(*least == 0.0f);
  CHECK(*most == 1.0f);

  const SolutionBatch other = {solution_of({3, 1, 2, 0}), solution_of({0, 2, 1, 3})};
  CHECK(make_examples(model_of(ProblemKind::kTsp, 4), instances, other).fingerprint != examples.fingerprint);
  CHECK(make_examples(model_of(ProblemKind::kTsp, 4), instances, tours).fingerprint == examples.fingerprint);

  const auto refused = [&](const ModelConfig& model, const SolutionBatch& solutions, const char* why) {
    CHECK_THROWS_WITH(make_examples(model, instances, solutions), has_text(why));
  };
  refused(model_of(ProblemKind::kTsp, 4), {tours[0]}, "2 instances, 1 solutions");
  refused(model_of(ProblemKind::kTsp, 5), tours, "example 0: expected n = 5, found 4");
  refused(model_of(ProblemKind::kKnapsack, 4, 1.0), tours, "example 0: expected knapsack");
  refused(model_of(ProblemKind::kTsp, 4), {tours[0], solution_of({0, 1, 2, 2})}, "example 1: ");
  CHECK_THROWS_WITH(make_examples(model_of(ProblemKind::kTsp, 4), {}, {}), has_text("nothing to learn from"));
}

TEST_CASE("packings that leave room for another item cannot be learned") {
  const ModelConfig model = model_of(ProblemKind::kKnapsack, 3, 1.0);
  const Instance instance = knapsack(2.0, {1.0, 3.0, 0.8, 2.0, 0.9, 1.0});  // scaled by 1 / 2
  const Examples examples =
      make_examples(model, {instance, instance}, {solution_of({0, 1}), solution_of({1})});
  CHECK(examples.count() == 1);
  CHECK(examples.unreachable == 1);
  CHECK(examples.orders == std::vector<int32_t>{0, 1, -1});
  CHECK(examples.features[0] == 0.5f);
  CHECK_THROWS_WITH(make_examples(model, {instance}, {solution_of({1})}), has_text("nothing to learn from"));
}
