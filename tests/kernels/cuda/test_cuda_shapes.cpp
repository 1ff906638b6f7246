// SPDX-License-Identifier: Apache-2.0
// Every kernel of a rollout, its gradient and the critic at the sizes where tiles, half-warps and warps begin
// and end, beside the double reference. Three sequences: the last tile is partly filled.
#include <algorithm>
#include <cmath>
#include <vector>

#include "engine/backend/backends.h"
#include "tests/catch.h"
#include "tests/engine/random_batch.h"

namespace pointsman {
namespace {

constexpr int kSequences = 3;

struct Shape {
  ProblemKind problem;
  int n;
  RandomBatch batch{problem, n, kSequences, 7};
  ModelConfig config = config_for(problem, n);
  std::vector<float> parameters = scaled_parameters(config, 3.0f);
  reference::Network network{config, parameters};
  std::unique_ptr<Backend> backend = make_cuda_backend(0);

  Shape(ProblemKind problem_, int n_) : problem(problem_), n(n_) {
    backend->configure(config, 1);
    backend->load_parameters(0, parameters);
  }

  std::vector<float> gradient() const {
    std::vector<float> result(parameters.size());
    backend->read_gradient(0, result);
    return result;
  }
};

void check_actor(Shape& shape) {
  RolloutRequest request;
  request.sequences = shape.batch.batch();
  request.decode = Decode::kSample;
  request.instance_keys = shape.batch.keys.data();
  const RolloutResult result = roll_out(*shape.backend, request);
  const std::vector<float> weights{0.5f, -0.25f, 0.125f};
  reference::Vector expected(shape.parameters.size(), 0.0);
  for (int s = 0; s < kSequences; ++s) {
    const std::vector<int> order(result.orders.begin() + s * shape.n,
                                 result.orders.begin() + (s + 1) * shape.n);
    const reference::Sequence sequence = shape.batch.sequence(s);
    const reference::Rollout plain = reference::forced(shape.network, sequence, order);
    CHECK(std::abs(result.log_probs[s] - plain.log_prob) <= 1e-5 * std::abs(plain.log_prob));
    CHECK(result.costs[s] == Approx(reference::cost(sequence, plain.order)).epsilon(1e-12));
    reference::add_log_prob_gradient(shape.network, sequence, order, weights[s], {}, expected);
  }
  GradientRequest gradient;
  gradient.sequences = shape.batch.batch();
  gradient.orders = result.orders.data();
  gradient.weights = weights.data();
  shape.backend->gradient(gradient);
  CHECK(worst_of_tensors(shape.network.layout, shape.gradient(), expected) <= 1e-4);
}

void check_critic(Shape& shape) {
  const std::vector<float> targets{1.0f, -2.0f, 0.5f};
  std::vector<float> values(kSequences);
  shape.backend->load_parameters(0, shape.parameters);
  shape.backend->critic_gradient(shape.batch.batch(), targets, 0.25f, values);
  reference::Vector expected(shape.parameters.size(), 0.0);
  for (int s = 0; s < kSequences; ++s) {
    const reference::Sequence sequence = shape.batch.sequence(s);
    CHECK(values[s] == Approx(reference::critic_value(shape.network, sequence)).epsilon(1e-5));
    reference::add_critic_gradient(shape.network, sequence, targets[s], 0.25, expected);
  }
  CHECK(worst_of_tensors(shape.network.layout, shape.gradient(), expected) <= 1e-4);
}

TEST_CASE("cuda: sizes around the tiles' and warps' beside double") {
  for (ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    for (int n : {1, 2, 31, 32, 33, 100, 127}) {
      INFO("problem " << static_cast<int>(problem) << ", n = " << n);
      Shape shape(problem, n);
      check_actor(shape);
      check_critic(shape);
    }
  }
}

}  // namespace
}  // namespace pointsman
