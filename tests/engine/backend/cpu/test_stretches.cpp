// SPDX-License-Identifier: Apache-2.0
// Networks that re-read: stretches of a tour against the reference, and tours as stretches asked for one by
// one.
#include <algorithm>
#include <cmath>
#include <numeric>
#include <random>
#include <vector>

#include "engine/backend/stretch.h"
#include "tests/catch.h"
#include "tests/engine/backend/backend_under_test.h"
#include "tests/engine/random_batch.h"

namespace pointsman {
namespace {

ModelConfig reading_again(int n, int reread) {
  ModelConfig config = with_attention(config_for(ProblemKind::kTsp, n));
  config.has_critic = false;
  config.has_prior = true;
  config.reread = reread;
  return config;
}

// Of any features, and as long as a stretch may be.
struct Stretches {
  RandomBatch batch;
  std::vector<double> lengths;

  Stretches(int n, int count, double length)
      : batch(ProblemKind::kStretch, n, count, 7), lengths(static_cast<size_t>(count), length) {}

  SequenceBatch view() const {
    SequenceBatch view = batch.batch();
    view.capacities = lengths.data();
    return view;
  }
  reference::Sequence sequence(int s) const {
    reference::Sequence sequence = batch.sequence(s);
    sequence.capacity = lengths[s];
    return sequence;
  }
};

TEST_CASE("a stretch's rollouts and gradients are the reference's") {
  for (const double length : {1.0, 4.0, 50.0}) {
    const Stretches stretches(9, 3, length);
    const ModelConfig config = reading_again(9, 4);
    const std::vector<float> parameters = scaled_parameters(config, 2.0f);
    const auto backend = backend_with(config, parameters);
    const std::vector<int32_t> counts = {2, 1, 3};
    Tape tape;
    RolloutRequest request;
    request.sequences = stretches.view();
    request.decode = Decode::kSample;
    request.counts = counts.data();
    request.instance_keys = stretches.batch.keys.data();
    request.tape = &tape;
    RolloutResult result;
    backend->rollout(request, result);
    const std::vector<float> weights = {0.5f, -1.0f, 0.25f, 1.0f, -0.5f, 0.75f};
    const reference::Network network(config, parameters);
    reference::Vector expected(parameters.size(), 0.0);
    for (int s = 0, r = 0; s < 3; ++s) {
      for (int j = 0; j < counts[s]; ++j, ++r) {
        const std::vector<int> order(result.orders.begin() + r * 9, result.orders.begin() + (r + 1) * 9);
        const reference::Rollout rollout = reference::forced(network, stretches.sequence(s), order);
        CHECK(reference::candidates_after(stretches.sequence(s), rollout.order, {}).empty());
        CHECK(rollout.order.size() == 2 + std::min<size_t>(7, static_cast<size_t>(length)));
        // Near 0 log p is that of a sum near 1, with some roundings of 2^-24 a step.
        CHECK(result.log_probs[r] == Approx(rollout.log_prob).epsilon(1e-5).margin(2.4e-7 * length));
        CHECK(result.costs[r] ==
              Approx(reference::cost(stretches.sequence(s), rollout.order)).epsilon(1e-12));
        reference::add_log_prob_gradient(network, stretches.sequence(s), order, weights[r], {}, expected);
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

TEST_CASE("a given stretch may end early, and not go where no item is") {
  const Stretches stretches(6, 1, 4.0);
  const ModelConfig config = reading_again(6, 4);
  const auto backend = backend_with(config, scaled_parameters(config, 1.0f));
  const auto forced = [&](std::vector<int32_t> order) {
    RolloutRequest request;
    request.sequences = stretches.view();
    request.decode = Decode::kForced;
    request.forced = order.data();
    RolloutResult result;
    backend->rollout(request, result);
    return result.log_probs[0];
  };
  CHECK(forced({1, 0, -1, -1, -1, -1}) == 0.0);  // nobody's choice
  CHECK(forced({1, 0, 3, 5, -1, -1}) < 0.0);
  CHECK(std::isnan(forced({1, 0, 3, 3, -1, -1})));
  CHECK(std::isnan(forced({0, 1, 3, -1, -1, -1})));
  CHECK(std::isnan(forced({1, 0, 1, -1, -1, -1})));
}

// log p of a tour by the reference, stretch after stretch, each made here from the definition.
double log_prob_of(const reference::Network& network, const float* xy, const int32_t* tour, int n,
                   int reread) {
  double total = 0.0;
  const auto apart = [&](int a, int b) {
    return std::hypot<double>(xy[2 * a] - xy[2 * b], xy[2 * a + 1] - xy[2 * b + 1]);
  };
  for (int made = 1; made < n; made += reread) {
    const int present = tour[made - 1];
    std::vector<int> left(tour + made, tour + n);
    std::ranges::sort(left, {}, [&](int city) { return apart(present, city); });
    left.resize(std::min<size_t>(left.size(), kStretchWindow));
    std::vector<int> items = {present, tour[0]};
    std::ranges::sort(left);
    items.insert(items.end(), left.begin(), left.end());
    double low[2] = {1e9, 1e9}, high[2] = {-1e9, -1e9};
    for (size_t i = 0; i < items.size(); ++i) {
      for (int d = 0; d < 2 && i != 1; ++d) {
        low[d] = std::min<double>(low[d], xy[2 * items[i] + d]);
        high[d] = std::max<double>(high[d], xy[2 * items[i] + d]);
      }
    }
    const double side = std::max(high[0] - low[0], high[1] - low[1]);
    reference::Sequence sequence;
    sequence.problem = ProblemKind::kStretch;
    sequence.capacity = reread;
    for (size_t i = 0; i < items.size(); ++i) {
      for (int d = 0; d < 2; ++d)  // in the middle of the unit square
        sequence.features.push_back(
            std::clamp(0.5 + (xy[2 * items[i] + d] - (low[d] + high[d]) / 2) / side, -0.5, 1.5));
      sequence.features.push_back(i == 0);
      sequence.features.push_back(i == 1);
      for (const int end : {present, static_cast<int>(tour[0])})
        sequence.features.push_back(std::min(apart(items[i], end) / side, 2.0));
      std::vector<double> distances = {1e9, 1e9};
      for (size_t other = 2; other < items.size(); ++other) {
        if (items[other] != items[i]) distances.push_back(apart(items[i], items[other]));
      }
      std::ranges::sort(distances);
      for (int k = 0; k < 2; ++k)
        sequence.features.push_back(
            std::min(distances[k] / side * std::sqrt(static_cast<double>(items.size())), 3.0));
    }
    std::vector<int> order = {1, 0};
    for (int i = made; i < std::min(made + reread, n); ++i)
      order.push_back(
          static_cast<int>(std::ranges::find(items.begin() + 2, items.end(), tour[i]) - items.begin()));
    total += reference::forced(network, sequence, order).log_prob;
  }
  return total;
}

RolloutRequest greedy_tours(const RandomBatch& batch) {
  RolloutRequest request;
  request.sequences = batch.batch();
  request.instance_keys = batch.keys.data();
  return request;
}

TEST_CASE("a tour by re-reading is one of stretches, each from what is left") {
  for (const int n : {1, 2, 3, 12, 120}) {
    const RandomBatch batch(ProblemKind::kTsp, n, 2, 3);
    const ModelConfig config = reading_again(n, 5);
    const std::vector<float> parameters = scaled_parameters(config, 1.5f);
    const reference::Network network(config, parameters);
    RolloutRequest request = greedy_tours(batch);
    for (const Decode decode : {Decode::kGreedy, Decode::kSample}) {
      CAPTURE(n, static_cast<int>(decode));
      request.decode = decode;
      RolloutResult result;
      backend_with(config, parameters)->rollout(request, result);
      for (int s = 0; s < 2; ++s) {
        const int32_t* const tour = result.orders.data() + static_cast<int64_t>(s) * n;
        const float* const xy = batch.features.data() + int64_t{2} * n * s;
        CHECK(tour[0] == first_of_tour(xy, n));
        CHECK(std::is_permutation(tour, tour + n,
                                  [&] {
                                    std::vector<int32_t> all(n);
                                    std::iota(all.begin(), all.end(), 0);
                                    return all;
                                  }()
                                      .begin()));
        CHECK(result.costs[s] == tour_length(xy, tour, n));
        CHECK(result.log_probs[s] ==
              Approx(log_prob_of(network, xy, tour, n, 5)).epsilon(1e-5).margin(2.4e-7 * n));
      }
    }
  }
}

TEST_CASE("rollouts share the stretches that they begin with, and draw as they would alone") {
  const int n = 14, count = 300;  // more than go on together
  const RandomBatch batch(ProblemKind::kTsp, n, 1, 4);
  const ModelConfig config = reading_again(n, 3);
  const std::vector<float> parameters = scaled_parameters(config, 3.0f);
  const std::vector<int32_t> counts = {count};
  const std::vector<uint32_t> from = {11};
  RolloutRequest request = greedy_tours(batch);
  request.decode = Decode::kSample;
  request.counts = counts.data();
  request.first_samples = from.data();
  request.sample_stride = 2;
  RolloutResult together;
  backend_with(config, parameters, 3)->rollout(request, together);
  const auto alone = backend_with(config, parameters);
  for (const int j : {0, 1, 7, 255, 256, 299}) {
    const std::vector<uint32_t> sample = {11 + 2 * static_cast<uint32_t>(j)};
    RolloutRequest one = greedy_tours(batch);
    one.decode = Decode::kSample;
    one.first_samples = sample.data();
    RolloutResult result;
    alone->rollout(one, result);
    CHECK(std::equal(result.orders.begin(), result.orders.end(), together.orders.begin() + j * n));
    CHECK(result.log_probs[0] == together.log_probs[j]);
  }
  request.best_only = true;
  RolloutResult best;
  alone->rollout(request, best);
  CHECK(best.costs[0] == *std::ranges::min_element(together.costs));
}

TEST_CASE("each stretch of a rollout has draws of its own") {
  const int n = 80;
  const RandomBatch batch(ProblemKind::kTsp, n, 1, 4);
  const ModelConfig config = reading_again(n, 1);
  const std::vector<float> parameters(ParameterLayout(config).size, 0.0f);  // all cities are equally probable
  RolloutRequest request = greedy_tours(batch);
  request.decode = Decode::kSample;
  RolloutResult result;
  backend_with(config, parameters)->rollout(request, result);
  std::vector<int32_t> left(n);
  std::iota(left.begin(), left.end(), 0);
  double sum = 0.0, squares = 0.0;
  for (int step = 0; step < 60; ++step) {
    const auto chosen = std::ranges::find(left, result.orders[step]);
    const double share = static_cast<double>(chosen - left.begin()) / static_cast<double>(left.size());
    left.erase(chosen);
    if (step > 0) sum += share, squares += share * share;
  }
  const double deviation = std::sqrt(squares / 59 - sum * sum / 59 / 59);
  CHECK(deviation > 0.2);  // of a uniform number 0.29; of one draw over and over 0
}

TEST_CASE("log p that is no number makes no tour") {
  const RandomBatch batch(ProblemKind::kTsp, 9, 1, 4);
  const ModelConfig config = reading_again(9, 3);
  std::vector<float> parameters = scaled_parameters(config, 1.0f);
  for (float& parameter : parameters) parameter = parameter < 0.0f ? -3e38f : 3e38f;
  RolloutResult result;
  backend_with(config, parameters)->rollout(greedy_tours(batch), result);
  REQUIRE(std::isnan(result.log_probs[0]));
  CHECK(std::isnan(result.costs[0]));
  CHECK(result.orders[0] == -1);
}

TEST_CASE("log p of a given tour is that of its draw, and of one that leaves what is read there is none") {
  const int n = 130;
  RandomBatch batch(ProblemKind::kTsp, n, 1, 5);
  const ModelConfig config = reading_again(n, 4);
  const auto backend = backend_with(config, scaled_parameters(config, 1.0f));
  RolloutRequest request = greedy_tours(batch);
  RolloutResult drawn, given;
  backend->rollout(request, drawn);
  request.decode = Decode::kForced;
  request.forced = drawn.orders.data();
  backend->rollout(request, given);
  CHECK(given.orders == drawn.orders);
  CHECK(given.log_probs == drawn.log_probs);
  CHECK(given.costs == drawn.costs);
  std::vector<int32_t> turned = drawn.orders;  // the first city is nobody's choice
  std::rotate(turned.begin(), turned.begin() + 1, turned.end());
  request.forced = turned.data();
  backend->rollout(request, given);
  CHECK(std::isfinite(given.log_probs[0]));
  std::vector<int32_t> far = drawn.orders;  // next comes the city farthest away
  const auto away = [&](int32_t city) { return tour_distance(batch.features.data(), far[0], city); };
  std::iter_swap(far.begin() + 1, std::ranges::max_element(far.begin() + 1, far.end(), {}, away));
  request.forced = far.data();
  backend->rollout(request, given);
  CHECK(std::isnan(given.log_probs[0]));
  CHECK(std::isnan(given.costs[0]));
}

TEST_CASE("a stop leaves the tours that are whole, and some are soon") {
  const int n = 20;
  const RandomBatch batch(ProblemKind::kTsp, n, 2, 6);
  const ModelConfig config = reading_again(n, 2);
  const auto backend = backend_with(config, scaled_parameters(config, 1.0f));
  int asked = 0, most = std::numeric_limits<int>::max();
  RolloutResult result;
  const auto ask = [&](std::vector<int32_t> counts) {
    RolloutRequest request = greedy_tours(batch);
    request.decode = Decode::kSample;
    request.counts = counts.data();
    request.stop = StopToken([&] { return ++asked > most; });
    asked = 0;
    backend->rollout(request, result);
    return asked;
  };
  const int of_few = ask({16, 0});
  const int of_all = ask({256, 200});
  REQUIRE(result.finished.empty());
  most = of_few;
  ask({256, 200});
  CHECK(result.finished == std::vector<int32_t>{16, 0});
  most = of_all * 3 / 4;
  ask({256, 200});
  const int whole = result.finished[0] + result.finished[1];
  CHECK((whole > 16 && whole < 456));
  for (int row = 0; row < 456; ++row) CHECK(std::isfinite(result.costs[row]) == (row < whole));
}

TEST_CASE("a network that re-reads fills no tape") {
  const RandomBatch batch(ProblemKind::kTsp, 9, 1, 6);
  const ModelConfig config = reading_again(9, 2);
  Tape tape;
  RolloutRequest request = greedy_tours(batch);
  request.tape = &tape;
  RolloutResult result;
  const auto backend = backend_with(config, scaled_parameters(config, 1.0f));
  CHECK_THROWS_WITH(backend->rollout(request, result), has_text("fills no tape"));
}

TEST_CASE("what is read of a stretch fits the unit square, its end but for half a side") {
  const std::vector<float> xy = {0.2f, 0.1f, 0.4f, 0.3f, 0.2f, 0.2f, 0.9f, 0.9f};
  std::vector<float> features;
  const std::vector<int32_t> left = {1, 2};
  CHECK(append_stretch(xy.data(), 0, 3, left, features) == std::vector<int32_t>{0, 3, 1, 2});
  const auto root2 = static_cast<float>(std::sqrt(2.0)), root5 = static_cast<float>(std::sqrt(5.0));
  const std::vector<float> expected = {0,    0,    1, 0, 0,     2, 1.0f,  2 * root2,  // where the tour stands
                                       1.5f, 1.5f, 0, 1, 2,     0, 3,     3,          // where it will close
                                       1,    1,    0, 0, root2, 2, root5, 3,  // which has one neighbour
                                       0,    0.5f, 0, 0, 0.5f,  2, root5, 3};
  REQUIRE(features.size() == expected.size());
  for (size_t i = 0; i < features.size(); ++i) CHECK(features[i] == Approx(expected[i]).margin(1e-6));
  // Of cities in one place all are in the middle.
  const std::vector<float> same(8, 0.25f);
  features.clear();
  append_stretch(same.data(), 0, 3, left, features);
  for (size_t item = 0; item < 4; ++item) CHECK(features[8 * item] == 0.5f);
}

TEST_CASE("of many cities left the nearest are read") {
  std::vector<float> xy;
  std::vector<int32_t> left;
  for (int i = 0; i < 150; ++i) {  // on a line, two in each place
    xy.insert(xy.end(), {static_cast<float>(i / 2), 0.0f});
    if (i > 0) left.push_back(i);
  }
  std::vector<float> features;
  const std::vector<int32_t> read = append_stretch(xy.data(), 0, 149, left, features);
  std::vector<int32_t> expected = {0, 149};
  for (int i = 1; i <= kStretchWindow; ++i) expected.push_back(i);
  CHECK(read == expected);
}

}  // namespace
}  // namespace pointsman
