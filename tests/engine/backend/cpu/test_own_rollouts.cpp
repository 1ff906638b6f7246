// SPDX-License-Identifier: Apache-2.0
// Rollouts and gradients of a user's own problem: as many features as it says, orders as it declares, and
// costs of its function.
#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/catch.h"
#include "tests/engine/backend/backend_under_test.h"
#include "tests/engine/random_batch.h"

namespace pointsman {
namespace {

// The sum over items of their first number times their place in the order.
std::vector<double> weighted_places(const std::vector<double>& items, const std::vector<int64_t>& orders,
                                    int64_t count, int n) {
  const size_t width = items.size() / static_cast<size_t>(count * n);
  std::vector<double> costs(static_cast<size_t>(count), 0.0);
  for (int64_t row = 0; row < count; ++row) {
    for (int place = 0; place < n; ++place) {
      const int64_t item = orders[row * n + place];
      if (item >= 0) costs[row] += place * items[(row * n + item) * width];
    }
  }
  return costs;
}

struct OwnBatch {
  std::shared_ptr<const OwnProblem> problem;
  int n, count;
  std::vector<double> items;
  std::vector<float> features;
  std::vector<uint64_t> keys;

  OwnBatch(int width, int n_, int count_, const OwnDeclarations& declarations = {},
           OwnProblem::Cost cost = weighted_places)
      : n(n_), count(count_) {
    OwnScaling scaling;
    for (int f = 0; f < width; ++f) {
      scaling.offsets.push_back(f);
      scaling.scales.push_back(0.5 / (f + 1));
    }
    scaling.cost_unit = 4.0;
    problem = std::make_shared<const OwnProblem>(scaling, declarations, std::move(cost));
    std::mt19937 random(3);
    for (int i = 0; i < n * count * width; ++i)
      items.push_back(i % width + 2.0 * (i % width + 1) * (random() >> 8) * 0x1p-24);
    features = problem->features(items);
    for (int i = 0; i < count; ++i) keys.push_back(i);
  }

  SequenceBatch batch() const {
    SequenceBatch batch;
    batch.problem = ProblemKind::kOwn;
    batch.n = n;
    batch.count = count;
    batch.features = features.data();
    batch.own = problem.get();
    batch.declared = &problem->declared(n);
    batch.items = items.data();
    return batch;
  }
  reference::Sequence sequence(int s) const {
    const int64_t size = int64_t{n} * problem->width();
    reference::Sequence result;
    result.problem = ProblemKind::kOwn;
    result.own = &problem->declared(n);
    result.features.assign(features.begin() + s * size, features.begin() + (s + 1) * size);
    result.items.assign(items.begin() + s * size, items.begin() + (s + 1) * size);
    return result;
  }
  RolloutRequest samples(const std::vector<int32_t>& counts) const {
    RolloutRequest request;
    request.sequences = batch();
    request.decode = Decode::kSample;
    request.counts = counts.data();
    request.instance_keys = keys.data();
    return request;
  }
  ModelConfig config() const {
    ModelConfig config = with_attention(config_for(ProblemKind::kOwn, n));
    config.has_prior = config.has_critic = false;
    config.own = problem->scaling();
    return config;
  }
};

// Of orders that end early, wait for others and have given ends.
std::vector<OwnDeclarations> all_declarations() {
  OwnDeclarations ends, pairs, room;
  ends.first = 2;
  ends.last = -1;
  pairs.before = [](int) { return std::vector<std::array<int32_t, 2>>{{4, 0}, {3, 0}, {6, 3}, {1, 5}}; };
  room.weight = 0;
  room.capacity = 6.0;
  room.before = pairs.before;
  return {{}, ends, pairs, room};
}

TEST_CASE("an own problem's rollouts and gradients are the reference's") {
  for (const int width : {1, 2, 3, 16}) {
    for (const OwnDeclarations& declarations : all_declarations()) {
      const OwnBatch own(width, 9, 3, declarations);
      const ModelConfig config = own.config();
      const std::vector<float> parameters = scaled_parameters(config, 2.0f);
      const auto backend = backend_with(config, parameters);
      const std::vector<int32_t> counts = {2, 1, 3};
      Tape tape;
      RolloutRequest request = own.samples(counts);
      request.tape = &tape;
      RolloutResult result;
      backend->rollout(request, result);
      const std::vector<float> weights = {0.5f, -1.0f, 0.25f, 1.0f, -0.5f, 0.75f};
      const reference::Network network(config, parameters);
      reference::Vector expected(parameters.size(), 0.0);
      for (int s = 0, r = 0; s < own.count; ++s) {
        for (int j = 0; j < counts[s]; ++j, ++r) {
          const std::vector<int> order(result.orders.begin() + r * own.n,
                                       result.orders.begin() + (r + 1) * own.n);
          const reference::Rollout rollout = reference::forced(network, own.sequence(s), order);
          CHECK(reference::candidates_after(own.sequence(s), rollout.order, {}).empty());
          CHECK(result.log_probs[r] == Approx(rollout.log_prob).epsilon(1e-5));
          const std::vector<int64_t> whole(order.begin(), order.end());
          const int64_t size = int64_t{own.n} * width;
          const std::vector<double> items(own.items.begin() + s * size, own.items.begin() + (s + 1) * size);
          CHECK(result.costs[r] == weighted_places(items, whole, 1, own.n)[0] / 4.0);
          reference::add_log_prob_gradient(network, own.sequence(s), order, weights[r], {}, expected);
        }
      }
      GradientRequest gradient = gradient_of(request, result, weights);
      gradient.tape = &tape;
      backend->gradient(gradient);
      std::vector<float> found(parameters.size());
      backend->read_gradient(0, found);
      CHECK(worst_of_tensors(network.layout, found, expected) <= 1e-4);
    }
  }
}

TEST_CASE("of many rollouts of an own problem the best is kept, on any threads") {
  const OwnBatch own(3, 8, 2, all_declarations()[2]);
  const ModelConfig config = own.config();
  const std::vector<float> parameters = scaled_parameters(config, 1.0f);
  const std::vector<int32_t> counts = {5000, 300};  // more than a call of the function takes
  RolloutRequest request = own.samples(counts);
  RolloutResult all;
  backend_with(config, parameters)->rollout(request, all);
  request.best_only = true;
  for (const int threads : {1, 3}) {
    RolloutResult best;
    backend_with(config, parameters, threads)->rollout(request, best);
    for (int s = 0; s < 2; ++s) {
      const auto begin = all.costs.begin() + (s == 0 ? 0 : counts[0]), end = begin + counts[s];
      CHECK(best.costs[s] == *std::min_element(begin, end));
      CHECK(best.winners[s] == std::min_element(begin, end) - begin);
    }
  }
}

TEST_CASE("a function that is stopped leaves the rollouts without costs, and says how many have one") {
  int calls = 0;
  const OwnBatch own(2, 6, 3, {}, [&](const auto& items, const auto& orders, int64_t count, int n) {
    if (++calls == 2) throw CallStopped();
    return weighted_places(items, orders, count, n);
  });
  const ModelConfig config = own.config();
  const std::vector<int32_t> counts = {4000, 1000, 10};  // the first call takes 4,096
  RolloutResult result;
  backend_with(config, scaled_parameters(config, 1.0f))->rollout(own.samples(counts), result);
  CHECK(result.finished == std::vector<int32_t>{4000, 96, 0});
  CHECK(calls == 2);
}

TEST_CASE("rollouts of an own problem that a stop leaves without costs are not finished") {
  const OwnBatch own(2, 40, 1, {});
  const ModelConfig config = own.config();
  const std::vector<int32_t> counts = {2000};
  const std::vector<float> parameters = scaled_parameters(config, 1.0f);
  int asked = 0, most = std::numeric_limits<int>::max();
  RolloutRequest request = own.samples(counts);
  request.best_only = true;
  request.stop = StopToken([&] { return ++asked > most; });
  RolloutResult result;
  backend_with(config, parameters)->rollout(request, result);
  REQUIRE(result.finished.empty());
  most = std::exchange(asked, 0) * 3 / 4;  // when many are whole
  backend_with(config, parameters)->rollout(request, result);
  CHECK(result.finished == std::vector<int32_t>{0});
  CHECK(result.winners == std::vector<int32_t>{-1});
  CHECK(std::isnan(result.costs[0]));
}

TEST_CASE("what an own problem declares, and no order can be, is refused") {
  const auto refused = [](const OwnDeclarations& declarations) -> std::string {
    try {
      OwnBatch(2, 5, 1, declarations).problem->declared(5);
    } catch (const std::invalid_argument& error) {
      return error.what();
    }
    return "";
  };
  OwnDeclarations declarations;
  declarations.before = [](int) { return std::vector<std::array<int32_t, 2>>{{0, 1}, {1, 2}, {2, 0}}; };
  CHECK_THAT(refused(declarations), has_text("circle"));
  declarations.before = [](int) { return std::vector<std::array<int32_t, 2>>{{0, 5}}; };
  CHECK_THAT(refused(declarations), has_text("expected two of 5 items, found (0, 5)"));
  declarations.before = [](int) { return std::vector<std::array<int32_t, 2>>{{0, 1}}; };
  declarations.first = 1;
  CHECK_THAT(refused(declarations), has_text("before the first"));
  declarations.first.reset();
  declarations.last = 0;
  CHECK_THAT(refused(declarations), has_text("after the last"));
  declarations.before = {};
  declarations.first = -5;
  CHECK_THAT(refused(declarations), has_text("the same item"));
  declarations.first = 5;
  CHECK_THAT(refused(declarations), has_text("first: expected one of 5 items, found 5"));
}

}  // namespace
}  // namespace pointsman
