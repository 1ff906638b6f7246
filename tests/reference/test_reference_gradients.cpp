// SPDX-License-Identifier: Apache-2.0
// The oracle's hand-written gradients against central finite differences in double.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "tests/catch.h"
#include "tests/reference/reference.h"

namespace pointsman {
namespace {

using reference::Network;
using reference::Options;
using reference::Sequence;
using reference::Vector;

constexpr double kTolerance = 1e-6;
constexpr double kStep = 1e-3;
constexpr double kReluStep = 1e-5;  // seldom crosses the kink of a ReLU
// The stencil's rounding: 18 values of a few units, each good to about 2e-15, over 12 steps.
double rounding(double step) { return 3e-15 / step; }

struct Case {
  ProblemKind problem = ProblemKind::kTsp;
  int n = 4;
  int glimpses = 1;
  bool centre_logits = true;
  double temperature = 1.0;
  int layers = 0;  // of the attention encoder, with a prior; 0: LSTM, without
};

// std::mt19937 is the same everywhere; the distributions of <random> are not.
double uniform(std::mt19937& random, double low, double high) {
  return low + (high - low) * static_cast<double>(random()) / 4294967296.0;
}

// Larger than the training's initial range of 0.08, so that no nonlinearity is close to linear and a glimpse
// is peaked enough for its query to matter.
Network random_network(const Case& c, std::mt19937& random) {
  ModelConfig config;
  config.problem = c.problem;
  config.n = c.n;
  config.glimpses = c.glimpses;
  config.centre_logits = c.centre_logits;
  config.has_prior = c.layers > 0;
  if (c.layers > 0) {
    config.encoder = Encoder::kAttention;
    config.layers = c.layers;
    config.heads = 4;
    config.feed_forward = 32;
  }
  Vector parameters(ParameterLayout(config).size);
  for (double& value : parameters) value = uniform(random, -0.24, 0.24);
  Network network(config, parameters);
  for (const Tensor& tensor : network.layout.tensors) {
    const bool stronger = tensor.name == "actor.embedding.weight" || tensor.name == "actor.glimpse.v" ||
                          tensor.name == "actor.prior.weight" || tensor.name == "critic.embedding.weight" ||
                          tensor.name == "critic.process.v";
    if (!stronger) continue;
    for (size_t k = 0; k < tensor.size; ++k) network.parameters[tensor.offset + k] *= 8.0;
  }
  return network;
}

Sequence random_sequence(const Case& c, std::mt19937& random) {
  Sequence sequence;
  sequence.problem = c.problem;
  const int width = sequence.width();
  for (int k = 0; k < width * c.n; ++k) sequence.features.push_back(uniform(random, 0.0, 1.0));
  sequence.capacity = 0.4 * c.n;
  for (int i = 0; i < c.n; ++i) {
    sequence.weights.push_back(sequence.features[width * i + (width == 3 ? 2 : 0)]);
    if (width == 3) sequence.features[width * i + 2] /= sequence.capacity;
  }
  return sequence;
}

std::vector<int> random_order(const Sequence& sequence, std::mt19937& random) {
  std::vector<int> order;
  while (true) {
    const std::vector<int> candidates = reference::candidates_after(sequence, order, {});
    if (candidates.empty()) return order;
    order.push_back(candidates[random() % candidates.size()]);
  }
}

// The derivative of f along `direction` (unit length), five-point stencil: the error is of order h^4.
double slope(Network& network, const std::function<double()>& f, size_t offset, const Vector& direction,
             double h) {
  const auto at = [&](double distance) {
    const Vector kept = network.parameters;
    for (size_t k = 0; k < direction.size(); ++k) network.parameters[offset + k] += distance * direction[k];
    const double value = f();
    network.parameters = kept;
    return value;
  };
  return (8.0 * (at(h) - at(-h)) - (at(2.0 * h) - at(-2.0 * h))) / (12.0 * h);
}

// Every tensor whose name starts with `prefix`: two random sign directions, which every element takes part
// in, and `singles` elements of their own. Relative to the larger of the slope and the slope to be expected
// of such a direction, norm / sqrt(size).
void check_gradient(Network& network, const std::string& prefix, const std::function<double()>& f,
                    const Vector& gradient, int singles, std::mt19937& random) {
  const double step = network.layout.layers.empty() ? kStep : kReluStep;
  for (const Tensor& tensor : network.layout.tensors) {
    if (tensor.name.rfind(prefix, 0) != 0) continue;
    double norm = 0.0;
    for (size_t k = 0; k < tensor.size; ++k) norm += std::pow(gradient[tensor.offset + k], 2);
    norm = std::sqrt(norm);
    INFO(tensor.name);
    CHECK(norm > 1e-5);
    for (int trial = 0; trial < 2 + singles; ++trial) {
      const bool single = trial >= 2;
      Vector direction(tensor.size, 0.0);
      if (single) direction[random() % tensor.size] = 1.0;
      for (double& d : direction) {
        if (!single) d = (random() & 1 ? 1.0 : -1.0) / std::sqrt(static_cast<double>(tensor.size));
      }
      double expected = 0.0;
      for (size_t k = 0; k < tensor.size; ++k) expected += direction[k] * gradient[tensor.offset + k];
      const double measured = slope(network, f, tensor.offset, direction, step);
      const double scale = std::max(std::abs(expected), norm / std::sqrt(static_cast<double>(tensor.size)));
      INFO("trial " << trial << ": gradient " << expected << ", finite difference " << measured);
      CHECK(std::abs(expected - measured) <= kTolerance * scale + rounding(step));
    }
  }
}

bool all_zero(const Vector& values, size_t first, size_t last) {
  return std::all_of(values.begin() + first, values.begin() + last, [](double x) { return x == 0.0; });
}

TEST_CASE("gradients of log p agree with finite differences") {
  const std::vector<Case> cases = {
      {ProblemKind::kTsp, 4, 0, true, 1.0},      {ProblemKind::kTsp, 4, 1, true, 1.0},
      {ProblemKind::kTsp, 4, 2, false, 1.7},     {ProblemKind::kKnapsack, 5, 1, false, 1.0},
      {ProblemKind::kKnapsack, 5, 2, true, 0.6}, {ProblemKind::kTsp, 4, 3, true, 1.0},
      {ProblemKind::kTsp, 4, 1, true, 1.3, 2},   {ProblemKind::kKnapsack, 5, 1, true, 0.8, 1},
      {ProblemKind::kCvrp, 6, 1, true, 1.2},     {ProblemKind::kCvrp, 5, 2, true, 0.8, 1},
  };
  std::mt19937 random(7);
  for (const Case& c : cases) {
    INFO(name_of(c.problem) << " glimpses " << c.glimpses << " centring " << c.centre_logits << " T "
                            << c.temperature << " layers " << c.layers);
    Network network = random_network(c, random);
    const Sequence sequence = random_sequence(c, random);
    const std::vector<int> order = random_order(sequence, random);
    const Options options{c.temperature, 0.0, false};
    Vector gradient(network.parameters.size(), 0.0);
    reference::add_log_prob_gradient(network, sequence, order, -1.3, options, gradient);
    const auto f = [&] { return -1.3 * reference::forced(network, sequence, order, options).log_prob; };
    check_gradient(network, "actor.", f, gradient, 4, random);
    CHECK(all_zero(gradient, network.layout.actor_size, gradient.size()));
  }
}

TEST_CASE("the gradient adds up and every small tensor is right element by element") {
  std::mt19937 random(11);
  const Case c{ProblemKind::kTsp, 3, 1, true, 1.0};
  Network network = random_network(c, random);
  const Sequence sequence = random_sequence(c, random);
  const std::vector<int> order = {2, 0, 1};
  Vector gradient(network.parameters.size(), 0.0);
  reference::add_log_prob_gradient(network, sequence, order, 0.25, {}, gradient);
  reference::add_log_prob_gradient(network, sequence, order, 0.75, {}, gradient);
  const auto f = [&] { return reference::forced(network, sequence, order).log_prob; };
  for (const std::string name : {"actor.pointer.v", "actor.glimpse.v", "actor.decoder.start"}) {
    const size_t offset = network.offset(name);
    double largest = 0.0;
    for (int k = 0; k < kHidden; ++k) largest = std::max(largest, std::abs(gradient[offset + k]));
    for (int k = 0; k < kHidden; ++k) {
      INFO(name << " " << k);
      CHECK(std::abs(slope(network, f, offset + k, {1.0}, kStep) - gradient[offset + k]) <=
            kTolerance * largest + rounding(kStep));
    }
  }
}

TEST_CASE("the critic's gradient agrees with finite differences") {
  std::mt19937 random(5);
  const Case c{ProblemKind::kTsp, 5, 1, true, 1.0};
  Network network = random_network(c, random);
  const Sequence sequence = random_sequence(c, random);
  const double target = 2.5;
  Vector gradient(network.parameters.size(), 0.0);
  reference::add_critic_gradient(network, sequence, target, 0.5, gradient);
  const auto f = [&] { return 0.5 * std::pow(reference::critic_value(network, sequence) - target, 2); };
  check_gradient(network, "critic.", f, gradient, 6, random);
  CHECK(all_zero(gradient, 0, network.layout.actor_size));
}

TEST_CASE("a step's probabilities and an order's log-probability belong together") {
  std::mt19937 random(3);
  for (const Case& c :
       {Case{ProblemKind::kTsp, 5, 1, true, 1.5}, Case{ProblemKind::kKnapsack, 6, 0, false, 1.0},
        Case{ProblemKind::kCvrp, 6, 1, true, 1.0}}) {
    const Network network = random_network(c, random);
    const Sequence sequence = random_sequence(c, random);
    const Options options{c.temperature, 0.0, false};
    const reference::Rollout best = reference::greedy(network, sequence, options);
    REQUIRE(best.steps.size() == best.order.size());
    double log_prob = 0.0;
    for (size_t t = 0; t < best.steps.size(); ++t) {
      double total = 0.0;
      for (double p : best.steps[t].probabilities) {
        total += p;
        CHECK(p <= best.steps[t].probabilities[best.order[t]]);
      }
      CHECK(total == Approx(1.0).epsilon(1e-12));
      log_prob += std::log(best.steps[t].probabilities[best.order[t]]);
    }
    CHECK(best.log_prob == Approx(log_prob).epsilon(1e-12));
    CHECK(reference::forced(network, sequence, best.order, options).log_prob == best.log_prob);
  }
}

TEST_CASE("KnapSack candidates follow the two rules") {
  Sequence sequence;
  sequence.problem = ProblemKind::kKnapsack;
  sequence.weights = {0.5, 0.6, 0.3, 0.2};
  sequence.features = {0.5, 1, 0.6, 2, 0.3, 3, 0.2, 4};
  sequence.capacity = 1.0;
  CHECK(reference::candidates_after(sequence, {0}, {}) == std::vector<int>{2, 3});
  CHECK(reference::candidates_after(sequence, {0, 2, 3}, {}).empty());
  CHECK(reference::candidates_after(sequence, {0}, {1.0, 0.0, true}) == std::vector<int>{1, 2, 3});
  CHECK(reference::cost(sequence, {0, 2}) == -4.0);
}

}  // namespace
}  // namespace pointsman
