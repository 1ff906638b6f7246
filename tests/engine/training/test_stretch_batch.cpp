// SPDX-License-Identifier: Apache-2.0
// What a network that re-reads learns from given tours.
#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/stretch.h"
#include "engine/problem/generate.h"
#include "engine/training/trainer.h"
#include "engine/training/training_batch.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"

namespace pointsman {
namespace {

// Tours 0, 1, .. around a circle, so that neighbours in a tour are neighbours in the plane.
TrainOptions circles(const std::vector<int>& sizes, int reread) {
  TrainOptions options;
  options.model.n = 10;
  options.model.encoder = Encoder::kAttention;
  options.model.layers = 1;
  options.model.feed_forward = 64;
  options.model.reread = reread;
  options.batch = 16;
  options.rollouts = 1;
  InstanceBatch instances;
  SolutionBatch solutions;
  for (const int n : sizes) {
    Instance circle;
    Solution tour;
    for (int i = 0; i < n; ++i) {
      const double angle = 2 * 3.14159265358979 * i / n;
      circle.values.insert(circle.values.end(), {0.5 + 0.5 * std::cos(angle), 0.5 + 0.5 * std::sin(angle)});
      tour.order.push_back(i);
    }
    instances.push_back(circle);
    solutions.push_back(tour);
  }
  options.examples = std::make_shared<const Examples>(make_examples(options.model, instances, solutions));
  return options;
}

TrainingBatch batch_of(const TrainOptions& options, int64_t step) {
  EpochOrder unused;
  return training_batch(options, step, unused);
}

// The stretch's length in the plane, in units of what is read.
double length_of(const TrainingBatch& batch, int s, int made) {
  const float* const features = &batch.features[size_t{8} * batch.n * s];
  const int32_t* const order = &batch.orders[static_cast<size_t>(batch.n) * s];
  const auto apart = [&](int a, int b) {
    return std::hypot(features[8 * a] - features[8 * b], features[8 * a + 1] - features[8 * b + 1]);
  };
  return apart(order[made - 1], order[made]);
}

TEST_CASE("stretches begin anywhere in a tour, run both ways, and follow it") {
  const TrainOptions options = circles({12, 12, 12}, 4);
  std::set<int> items;
  std::set<std::vector<float>> starts;
  for (int step = 0; step < 60; ++step) {
    const TrainingBatch batch = batch_of(options, step);
    REQUIRE(batch.problem == ProblemKind::kStretch);
    items.insert(batch.n);
    for (int s = 0; s < batch.count; ++s) {
      const float* const features = &batch.features[size_t{8} * batch.n * s];
      const int32_t* const order = &batch.orders[static_cast<size_t>(batch.n) * s];
      CHECK((order[0] == 1 && order[1] == 0));
      CHECK((features[2] == 1.0f && features[3] == 0.0f && features[10] == 0.0f && features[11] == 1.0f));
      const int made = std::min(4, batch.n - 2);
      CHECK(std::count(order, order + batch.n, -1) == batch.n - 2 - made);
      CHECK(std::set<int32_t>(order, order + 2 + made).size() == static_cast<size_t>(2 + made));
      // Equal steps around the circle: a wrong successor would be longer.
      for (int i = 3; i < 2 + made; ++i)
        CHECK(length_of(batch, s, i) == Approx(length_of(batch, s, 2)).epsilon(1e-5));
      if (batch.n == 13) {  // nothing is visited: the tour closes where it stands
        CHECK((features[0] == features[8] && features[1] == features[9]));
        starts.insert({features[0], features[1], features[8 * order[2]], features[8 * order[2] + 1]});
      }
    }
    CHECK(batch.capacities == std::vector<double>(batch.count, 4.0));
  }
  CHECK(items.size() == 11);  // 1 .. 11 cities left
  CHECK(*items.rbegin() == 13);
  CHECK(starts.size() == 24);  // 12 cities, 2 directions; a copy of a circle is one
}

TEST_CASE("all stretches of a step read equally many cities, of tours that have so many") {
  const TrainOptions options = circles({3, 8, 150}, 5);
  std::map<int, int> steps;  // by the cities read
  for (int step = 0; step < 200; ++step) {
    const TrainingBatch batch = batch_of(options, step);
    ++steps[batch.n - 2];
    CHECK(batch.features.size() == size_t{8} * batch.n * batch.count);
    CHECK(batch.orders.size() == static_cast<size_t>(batch.n) * batch.count);
  }
  CHECK(steps.begin()->first == 1);
  CHECK(steps.rbegin()->first == kStretchWindow);
  CHECK(steps[kStretchWindow] > 10);  // of 22: a third of the steps of the largest tour
  CHECK(steps[2] > 17);               // of 34: half of the steps of the smallest
}

TEST_CASE("a step's stretches are a function of the seed and the step") {
  TrainOptions options = circles({9, 20}, 3);
  const TrainingBatch first = batch_of(options, 7);
  CHECK(batch_of(options, 7).features == first.features);
  CHECK(batch_of(options, 7).orders == first.orders);
  CHECK(batch_of(options, 8).features != first.features);
  ++options.seed;
  CHECK(batch_of(options, 7).features != first.features);
}

TEST_CASE("a successor that is not read ends the stretch") {
  TrainOptions options = circles({150}, 5);
  Examples examples = *options.examples;
  // The tour goes to and fro across the circle: every successor is far away.
  for (int i = 0; i < 150; ++i) examples.orders[i] = i % 2 == 0 ? i / 2 : 75 + i / 2;
  options.examples = std::make_shared<const Examples>(examples);
  int ended = 0;
  for (int step = 0; step < 40; ++step) {
    const TrainingBatch batch = batch_of(options, step);
    if (batch.n - 2 < kStretchWindow) continue;
    for (int s = 0; s < batch.count; ++s) ended += batch.orders[static_cast<size_t>(batch.n) * s + 6] < 0;
  }
  CHECK(ended > 0);
}

TEST_CASE("a network that re-reads learns to follow given tours, and makes shorter ones") {
  TrainOptions options = circles({8, 9, 10, 12}, 3);
  options.batch = 32;
  options.steps = 150;
  options.learning_rate = 1e-3f;
  options.validation_every = 150;
  options.validation_instances = 100;
  const auto trained = [&](float rate) {
    options.learning_rate = rate;
    return train(*make_backend({"cpu", 1}), {options, initial_parameters(options.model, options.seed)}).last;
  };
  const TrainProgress before = trained(0.0f), after = trained(1e-3f);
  CHECK(after.cross_entropy < 0.7 * before.cross_entropy);
  CHECK(after.val_cost < before.val_cost - 0.3);  // of random instances, standard error 0.04
}

TEST_CASE("what cannot be learned by re-reading is refused") {
  TrainOptions options = circles({8}, 3);
  options.examples = nullptr;
  options.rollouts = 2;
  CHECK_THROWS_WITH(train(*make_backend({"cpu", 1}), {options, initial_parameters(options.model, 1)}),
                    has_text("learns from answers"));
  options = circles({10, 10}, 3);
  options.baseline = Baseline::kRollout;  // which draws from the examples otherwise
  const auto refused = [&](const char* words) {
    const auto initial = initial_parameters(options.model, 1);
    CHECK_THROWS_WITH(train(*make_backend({"cpu", 1}), {options, initial}), has_text(words));
  };
  refused("without a baseline");
  options.baseline = Baseline::kShared;
  options.model.reread = 0;
  refused("not for such a network");
  CHECK_THROWS_WITH(circles({2}, 3), has_text("example 0: expected 3 cities or more, found 2"));
}

}  // namespace
}  // namespace pointsman
