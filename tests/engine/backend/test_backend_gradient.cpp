// SPDX-License-Identifier: Apache-2.0
// What the Backend promises of gradients, updates and the critic, on whichever device is linked.
#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "tests/catch.h"
#include "tests/engine/backend/backend_under_test.h"
#include "tests/engine/random_batch.h"

namespace pointsman {
namespace {

// Sampled orders of a batch, each with a weight.
struct Rollouts {
  RandomBatch batch;
  std::vector<int32_t> counts, orders;
  std::vector<float> weights;

  Rollouts(const RandomBatch& batch_, Backend& backend, int most = 5) : batch(batch_) {
    for (int s = 0; s < batch.count; ++s) counts.push_back(1 + s % most);
    orders = sample(backend, batch, counts).orders;
    std::mt19937 random(3);
    for (size_t r = 0; r < orders.size() / batch.steps(); ++r) {
      weights.push_back((static_cast<float>(random() >> 8) * 0x1p-23f - 1.0f) /
                        static_cast<float>(batch.count));
    }
  }

  GradientRequest request() const { return part(0, batch.count); }

  // Of sequences first .. first + size - 1.
  GradientRequest part(int first, int size) const {
    const int before = std::accumulate(counts.begin(), counts.begin() + first, 0);
    GradientRequest request;
    request.sequences = batch.batch(first, size);
    request.counts = counts.data() + first;
    request.orders = orders.data() + before * batch.steps();
    request.weights = weights.data() + before;
    return request;
  }
};

std::vector<float> gradient_of(const Backend& backend, size_t size, int set = 0) {
  std::vector<float> gradient(size);
  backend.read_gradient(set, gradient);
  return gradient;
}

std::vector<float> parameters_of(const Backend& backend, size_t size, int set = 0) {
  std::vector<float> parameters(size);
  backend.read_parameters(set, parameters);
  return parameters;
}

double largest(const std::vector<float>& x) {
  return std::accumulate(x.begin(), x.end(), 0.0,
                         [](double m, float y) { return std::max(m, std::abs(double{y})); });
}

void read_critic(Backend& backend, const SequenceBatch& sequences, std::span<float> values) {
  backend.critic_gradient(sequences, std::vector<float>(values.size()), 0.0f, values);
}

// ------------------------------------------------------------------------------------------- gradients

TEST_CASE("gradients are within 1e-4 of the reference's, of each tensor's largest element") {
  for (ProblemKind problem : learned_problems()) {
    for (int glimpses : {0, 1, 2}) {
      for (bool centre : {true, false}) {
        const RandomBatch batch(problem, 8, 3, 1);
        const ModelConfig config = config_for(problem, 8, glimpses, centre);
        const std::vector<float> parameters = scaled_parameters(config, 3.0f);
        auto backend = backend_with(config, parameters);
        const Rollouts rollouts(batch, *backend, 2);
        const reference::Network network(config, parameters);
        for (bool literal : {false, true}) {  // the orders fit under either rule; their probabilities differ
          if (literal && problem != ProblemKind::kKnapsack) continue;
          GradientRequest request = rollouts.request();
          request.policy.temperature = 1.5f;
          request.policy.stop_at_first_misfit = literal;
          backend->load_parameters(0, parameters);
          backend->gradient(request);
          const reference::Options options{1.5, 0.0, literal};
          reference::Vector expected(parameters.size(), 0.0);
          for (int s = 0, r = 0; s < batch.count; ++s) {
            for (int j = 0; j < rollouts.counts[s]; ++j, ++r) {
              const std::vector<int> order(rollouts.orders.begin() + r * batch.steps(),
                                           rollouts.orders.begin() + (r + 1) * batch.steps());
              reference::add_log_prob_gradient(network, batch.sequence(s), order, rollouts.weights[r],
                                               options, expected);
            }
          }
          CHECK(worst_of_tensors(network.layout, gradient_of(*backend, parameters.size()), expected) <= 1e-4);
        }
      }
    }
  }
}

TEST_CASE("the attention encoder's gradients and the prior's are within 1e-4 of the reference's") {
  for (ProblemKind problem : learned_problems()) {
    for (int heads : {8, 2}) {
      const int n = 19;  // no multiple of a vector
      const RandomBatch batch(problem, n, 3, 1);
      const ModelConfig config = with_attention(config_for(problem, n), 2, heads);
      const std::vector<float> parameters = scaled_parameters(config, 1.5f);
      auto backend = backend_with(config, parameters);
      const Rollouts rollouts(batch, *backend, 3);
      const reference::Network network(config, parameters);
      GradientRequest request = rollouts.request();
      request.policy.temperature = 1.5f;
      backend->gradient(request);
      reference::Vector expected(parameters.size(), 0.0);
      for (int s = 0, r = 0; s < batch.count; ++s) {
        for (int j = 0; j < rollouts.counts[s]; ++j, ++r) {
          const std::vector<int> order(rollouts.orders.begin() + r * batch.steps(),
                                       rollouts.orders.begin() + (r + 1) * batch.steps());
          reference::add_log_prob_gradient(network, batch.sequence(s), order, rollouts.weights[r],
                                           {1.5, 0.0, false}, expected);
        }
      }
      CHECK(worst_of_tensors(network.layout, gradient_of(*backend, parameters.size()), expected) <= 1e-4);
    }
  }
}

TEST_CASE("rollouts of one attention encoding go onto a tape, and its gradient has the same bits") {
  for (ProblemKind problem : learned_problems()) {
    const RandomBatch batch(problem, 14, 7, 1);
    const ModelConfig config = with_attention(config_for(problem, 14));
    const std::vector<float> parameters = scaled_parameters(config, 1.5f);
    const std::vector<int32_t> counts = {8, 8, 3, 1, 40, 8, 2};
    std::vector<float> expected;
    RolloutResult alone;
    for (int threads = 1; threads <= (kIsCpuBackend ? 3 : 1); threads += 2) {
      auto backend = backend_with(config, parameters, threads);
      for (bool taped : {false, true}) {
        Tape tape;
        RolloutRequest request;
        request.sequences = batch.batch();
        request.decode = Decode::kSample;
        request.counts = counts.data();
        request.instance_keys = batch.keys.data();
        if (taped) request.tape = &tape;
        const RolloutResult result = roll_out(*backend, request);
        if (alone.orders.empty()) alone = result;
        CHECK(same_answers(result, alone));
        GradientRequest gradient;
        gradient.sequences = request.sequences;
        gradient.counts = counts.data();
        gradient.orders = result.orders.data();
        std::vector<float> weights;
        for (size_t r = 0; r < result.costs.size(); ++r)
          weights.push_back(0.1f * static_cast<float>(r % 5) - 0.2f);
        gradient.weights = weights.data();
        if (taped) gradient.tape = &tape;
        backend->load_parameters(0, parameters);
        if (taped) backend->rollout(request, alone);  // loading forgets the tape
        backend->gradient(gradient);
        const std::vector<float> found = gradient_of(*backend, parameters.size());
        if (expected.empty()) expected = found;
        CHECK(largest(expected) > 0.0);
        CHECK(same_bytes(found, expected));
      }
    }
  }
}

TEST_CASE("a gradient's bits do not depend on the threads") {
  for (ProblemKind problem : learned_problems()) {
    for (int glimpses : {1, 2}) {
      const RandomBatch batch(problem, 12, fewer(70), 2);
      const ModelConfig config = config_for(problem, 12, glimpses);
      const std::vector<float> parameters = scaled_parameters(config, 2.0f);
      auto backend = backend_with(config, parameters, 1);
      const Rollouts rollouts(batch, *backend);
      backend->gradient(rollouts.request());
      const std::vector<float> expected = gradient_of(*backend, parameters.size());
      CHECK(largest(expected) > 0.0);
      for (int threads = 2; threads <= (kIsCpuBackend ? 3 : 2); ++threads) {
        auto other = backend_with(config, parameters, threads);
        for (int again = 0; again < 2; ++again) {
          other->load_parameters(0, parameters);  // forgets the gradient
          other->gradient(rollouts.request());
          CHECK(same_bytes(gradient_of(*other, parameters.size()), expected));
        }
      }
    }
  }
}

TEST_CASE("gradients add up over calls") {
  const RandomBatch batch(ProblemKind::kTsp, 12, fewer(40, 6), 3);
  const ModelConfig config = config_for(ProblemKind::kTsp, 12);
  const std::vector<float> parameters = scaled_parameters(config, 2.0f);
  auto backend = backend_with(config, parameters, 2);
  const Rollouts rollouts(batch, *backend);
  backend->gradient(rollouts.request());
  const std::vector<float> whole = gradient_of(*backend, parameters.size());
  backend->load_parameters(0, parameters);
  const int middle = batch.count / 2;
  backend->gradient(rollouts.part(0, middle));
  backend->gradient(rollouts.part(middle, 1));
  backend->gradient(rollouts.part(middle + 1, batch.count - middle - 1));
  // The parts round separately, some 20 sums each in another order.
  CHECK(worst_of_tensors(ParameterLayout(config), gradient_of(*backend, parameters.size()), whole) <= 1e-5);
}

TEST_CASE("weight 0 gives no gradient, and one rollout's weight is a factor") {
  const RandomBatch batch(ProblemKind::kKnapsack, 9, 3, 4);
  const ModelConfig config = config_for(ProblemKind::kKnapsack, 9);
  const std::vector<float> parameters = scaled_parameters(config, 2.0f);
  auto backend = backend_with(config, parameters);
  Rollouts rollouts(batch, *backend, 1);
  rollouts.weights = {0.0f, 0.0f, 0.0f};
  backend->gradient(rollouts.request());
  CHECK(largest(gradient_of(*backend, parameters.size())) == 0.0);
  rollouts.weights[1] = 0.5f;
  backend->gradient(rollouts.request());
  const std::vector<float> half = gradient_of(*backend, parameters.size());
  rollouts.weights[1] = -2.0f;
  backend->load_parameters(0, parameters);
  backend->gradient(rollouts.request());
  std::vector<float> expected = half;
  for (float& g : expected) g *= -4.0f;
  // Powers of two pass through every product and sum without a rounding.
  CHECK(gradient_of(*backend, parameters.size()) == expected);
}

TEST_CASE("nothing to choose, no gradient") {
  for (ProblemKind problem : learned_problems()) {
    const RandomBatch one(problem, 1, 4, 5, 2.0);
    const ModelConfig config = config_for(problem, 1);
    const std::vector<float> parameters = scaled_parameters(config, 2.0f);
    auto backend = backend_with(config, parameters);
    const Rollouts rollouts(one, *backend);
    backend->gradient(rollouts.request());
    CHECK(largest(gradient_of(*backend, parameters.size())) == 0.0);
  }
  RandomBatch empty(ProblemKind::kKnapsack, 6, 4, 5);
  empty.capacities.assign(4, 0.0);
  const ModelConfig config = config_for(ProblemKind::kKnapsack, 6);
  auto backend = backend_with(config, scaled_parameters(config, 2.0f));
  const Rollouts rollouts(empty, *backend);
  backend->gradient(rollouts.request());
  CHECK(largest(gradient_of(*backend, ParameterLayout(config).size)) == 0.0);
}

// Sampled rollouts, one a sequence, and a gradient of them.
struct Sampled {
  RandomBatch batch;
  RolloutRequest rollouts;
  RolloutResult result;
  std::vector<float> weights;

  Sampled(const RandomBatch& batch_, uint64_t seed) : batch(batch_), weights(batch.count) {
    rollouts.sequences = batch.batch();
    rollouts.decode = Decode::kSample;
    rollouts.instance_keys = batch.keys.data();
    rollouts.seed = seed;
    for (int s = 0; s < batch.count; ++s) weights[s] = 0.25f * static_cast<float>(s % 5 - 2);
  }

  void roll(Backend& backend, Tape* tape) {
    rollouts.tape = tape;
    backend.rollout(rollouts, result);
  }

  GradientRequest gradient(Tape* tape) const {
    GradientRequest request;
    request.sequences = rollouts.sequences;
    request.orders = result.orders.data();
    request.weights = weights.data();
    request.policy = rollouts.policy;
    request.tape = tape;
    return request;
  }
};

TEST_CASE("a tape gives the same gradient, once, and not after the parameters have changed") {
  for (ProblemKind problem : learned_problems()) {
    for (int glimpses : {0, 1, 2}) {
      const ModelConfig config = config_for(problem, 11, glimpses);
      const std::vector<float> parameters = scaled_parameters(config, 2.0f);
      auto backend = backend_with(config, parameters, 2);
      Sampled sampled(RandomBatch(problem, 11, fewer(37), 6), 5);
      sampled.roll(*backend, nullptr);
      const RolloutResult plain = sampled.result;
      Tape tape;
      sampled.roll(*backend, &tape);
      CHECK(same_answers(sampled.result, plain));
      const auto twice = [&](Tape* from) {
        for (int time = 0; time < 2; ++time)
          backend->gradient(sampled.gradient(from));  // the first uses it up
        return gradient_of(*backend, parameters.size());
      };
      const auto run = [&](Tape* onto, const std::vector<float>& from) {
        backend->load_parameters(0, from);
        if (onto != nullptr) sampled.roll(*backend, onto);
        return twice(onto);
      };
      CHECK(same_bytes(run(&tape, parameters), run(nullptr, parameters)));
      // Other parameters after the rollout: its activations are no longer those of the gradient.
      const std::vector<float> other = scaled_parameters(config, 2.0f, 77);
      const std::vector<float> expected = run(nullptr, other);
      backend->load_parameters(0, parameters);
      sampled.roll(*backend, &tape);
      backend->load_parameters(0, other);
      CHECK(same_bytes(twice(&tape), expected));
    }
  }
}

TEST_CASE("a gradient of the attention alone has the whole one's bits there, and zeros elsewhere") {
  for (ProblemKind problem : learned_problems()) {
    for (bool lstm : {false, true}) {
      const ModelConfig plain = config_for(problem, 11, lstm ? 1 : 0),
                        config = lstm ? plain : with_attention(plain);
      const std::vector<float> parameters = scaled_parameters(config, 1.5f);
      const ParameterLayout layout(config);
      auto backend = backend_with(config, parameters, 2);
      Sampled sampled(RandomBatch(problem, 11, fewer(37), 6), 5);
      Tape tape;
      const auto gradient = [&](Learned learned, bool taped) {
        backend->load_parameters(0, parameters);
        sampled.roll(*backend, taped ? &tape : nullptr);
        GradientRequest request = sampled.gradient(taped ? &tape : nullptr);
        request.learned = learned;
        backend->gradient(request);
        return gradient_of(*backend, parameters.size());
      };
      std::vector<float> expected = gradient(Learned::kAll, false);
      const size_t first = config.glimpses > 0 ? layout.glimpse.w_ref : layout.pointer.w_ref;
      const auto attention = expected.begin() + static_cast<int64_t>(first);
      CHECK(std::any_of(expected.begin(), attention, [](float g) { return g != 0.0f; }));
      CHECK(std::any_of(attention, expected.end(), [](float g) { return g != 0.0f; }));
      std::fill(expected.begin(), attention, 0.0f);
      for (bool taped : {false, true}) CHECK(same_bytes(gradient(Learned::kAttention, taped), expected));
    }
  }
}

TEST_CASE("a gradient of other rollouts than the tape's is refused") {
  const ModelConfig config = config_for(ProblemKind::kKnapsack, 9);
  auto backend = backend_with(config, scaled_parameters(config, 2.0f));
  const RandomBatch batch(ProblemKind::kKnapsack, 9, 20, 6);
  Sampled sampled(batch, 1), others(batch, 2);
  others.roll(*backend, nullptr);
  const RandomBatch elsewhere(ProblemKind::kKnapsack, 9, 20, 7);
  const std::vector<int32_t> counts(batch.count, 1);
  const std::vector<double> roomier(batch.count, 2.0);
  const auto refuses = [&](const std::function<void(GradientRequest&)>& change) {
    Tape tape;
    sampled.roll(*backend, &tape);
    GradientRequest request = sampled.gradient(&tape);
    change(request);
    CHECK_THROWS_AS(backend->gradient(request), std::invalid_argument);
    CHECK(largest(gradient_of(*backend, ParameterLayout(config).size)) == 0.0);
  };
  refuses([&](GradientRequest& r) { r.orders = others.result.orders.data(); });
  refuses([&](GradientRequest& r) { r.sequences.features = elsewhere.features.data(); });
  refuses([&](GradientRequest& r) { r.sequences.weights = elsewhere.weights.data(); });
  refuses([&](GradientRequest& r) { r.sequences.capacities = roomier.data(); });
  refuses([&](GradientRequest& r) { r.sequences.count -= 1; });
  refuses([&](GradientRequest& r) { r.policy.temperature = 2.0f; });
  refuses([&](GradientRequest& r) { r.counts = counts.data(); });
}

TEST_CASE("a tape that another backend or a later rollout has made worthless is not read") {
  const ModelConfig config = config_for(ProblemKind::kTsp, 9);
  const std::vector<float> parameters = scaled_parameters(config, 2.0f);
  auto backend = backend_with(config, parameters);
  auto other = backend_with(config, scaled_parameters(config, 2.0f, 8));
  const RandomBatch batch(ProblemKind::kTsp, 9, 20, 6);
  Sampled sampled(batch, 1), again(batch, 1), later(batch, 2);
  sampled.roll(*backend, nullptr);
  const auto gradient_from = [&](Tape* tape) {
    backend->gradient(sampled.gradient(tape));
    return gradient_of(*backend, parameters.size());
  };
  const std::vector<float> expected = gradient_from(nullptr);
  const auto stays = [&](const std::function<void(Tape&)>& happens) {
    backend->load_parameters(0, parameters);
    Tape tape;
    sampled.roll(*backend, &tape);
    happens(tape);
    CHECK(same_bytes(gradient_from(&tape), expected));
  };
  Tape second;
  stays([&](Tape&) { later.roll(*backend, &second); });  // into the first one's memory, on a GPU
  stays([&](Tape&) { later.roll(*backend, nullptr); });
  stays([&](Tape& tape) { later.roll(*other, &tape); });
  stays([&](Tape& tape) { again.roll(*other, &tape); });  // the same request of other parameters
  stays([&](Tape& tape) {
    std::destroy_at(&tape);  // another tape in its place
    std::construct_at(&tape);
  });
}

TEST_CASE("each parameter set gets the gradient of its own sequences, and no other") {
  const RandomBatch batch(ProblemKind::kTsp, 10, fewer(60, 9), 7);
  const ModelConfig config = config_for(ProblemKind::kTsp, 10);
  const size_t size = ParameterLayout(config).size;
  const int third = batch.count / 3,
            borders[] = {0, third, third + 1, batch.count};  // sets 0, 2 and 3; nothing for set 1
  const int names[] = {0, 2, 3};
  std::vector<int32_t> sets;
  auto many = backend_under_test(2);
  many->configure(config, 4);
  for (int set = 0; set < 4; ++set) many->load_parameters(set, scaled_parameters(config, 2.0f, 30 + set));
  for (int part = 0; part < 3; ++part)
    sets.insert(sets.end(), borders[part + 1] - borders[part], names[part]);
  const Rollouts rollouts(batch, *backend_with(config, scaled_parameters(config, 2.0f, 30)));
  GradientRequest request = rollouts.request();
  request.sequences.parameter_sets = sets.data();
  many->gradient(request);
  std::vector<float> targets(batch.count, 3.0f), values(batch.count), own_values(batch.count);
  many->critic_gradient(request.sequences, targets, 0.1f, values);
  CHECK(largest(gradient_of(*many, size, 1)) == 0.0);
  for (int part = 0; part < 3; ++part) {
    auto single = backend_with(config, scaled_parameters(config, 2.0f, 30 + names[part]), 2);
    const int first = borders[part], count = borders[part + 1] - first;
    single->gradient(rollouts.part(first, count));
    single->critic_gradient(batch.batch(first, count), std::span(targets).subspan(first, count), 0.1f,
                            std::span(own_values).subspan(first, count));
    CHECK(same_bytes(gradient_of(*many, size, names[part]), gradient_of(*single, size)));
  }
  CHECK(same_bytes(values, own_values));

  const std::vector<float> before = gradient_of(*many, size, 3);
  UpdateRequest update;
  const std::vector<GradientNorms> norms = many->update(1, 2, update);
  CHECK(norms.size() == 2);
  CHECK(norms[0].actor == 0.0);
  CHECK(norms[1].actor > 0.0);
  CHECK(same_bytes(parameters_of(*many, size, 0), scaled_parameters(config, 2.0f, 30)));
  CHECK(same_bytes(parameters_of(*many, size, 1), scaled_parameters(config, 2.0f, 31)));
  CHECK(!same_bytes(parameters_of(*many, size, 2), scaled_parameters(config, 2.0f, 32)));
  CHECK(same_bytes(parameters_of(*many, size, 3), scaled_parameters(config, 2.0f, 33)));
  CHECK(same_bytes(gradient_of(*many, size, 3), before));
  CHECK(largest(gradient_of(*many, size, 2)) == 0.0);
}

// sum of weight * log p of the rollouts under the parameters.
double weighted_log_p(Backend& backend, const Rollouts& rollouts, const std::vector<float>& parameters) {
  backend.load_parameters(0, parameters);
  RolloutRequest request;
  request.sequences = rollouts.batch.batch();
  request.decode = Decode::kForced;
  request.counts = rollouts.counts.data();
  request.forced = rollouts.orders.data();
  const RolloutResult result = roll_out(backend, request);
  double sum = 0.0;
  for (size_t r = 0; r < rollouts.weights.size(); ++r) sum += rollouts.weights[r] * result.log_probs[r];
  return sum;
}

TEST_CASE("the weighted log p falls along the gradient's opposite, as fast as the gradient says") {
  for (ProblemKind problem : learned_problems()) {
    for (bool centre : {true, false}) {
      const RandomBatch batch(problem, 15, fewer(20, 4), 8);
      const ModelConfig config = config_for(problem, 15, 1, centre);
      const std::vector<float> parameters = scaled_parameters(config, 2.0f);
      auto backend = backend_with(config, parameters, 2);
      const Rollouts rollouts(batch, *backend);
      backend->gradient(rollouts.request());
      const std::vector<float> gradient = gradient_of(*backend, parameters.size());
      double squared = 0.0;
      for (float g : gradient) squared += double{g} * double{g};
      const double length =
          1e-3;  // of the step; log p is good to 1e-5, its change is about length * |gradient|
      const auto moved = [&](double sign) {
        std::vector<float> p = parameters;
        for (size_t k = 0; k < p.size(); ++k)
          p[k] += static_cast<float>(sign * length / std::sqrt(squared) * gradient[k]);
        return weighted_log_p(*backend, rollouts, p);
      };
      const double below = moved(-1.0), above = moved(1.0);
      CHECK(below < weighted_log_p(*backend, rollouts, parameters));
      CHECK((above - below) / (2.0 * length) == Approx(std::sqrt(squared)).epsilon(0.02));
    }
  }
}

// ------------------------------------------------------------------------------------------- updates

double norm(const std::vector<float>& x, size_t begin, size_t end) {
  double sum = 0.0;
  for (size_t k = begin; k < end; ++k) sum += double{x[k]} * double{x[k]};
  return std::sqrt(sum);
}

// Kingma & Ba, algorithm 1, in double, with a clip of the global norm.
struct DoubleAdam {
  std::vector<double> parameters, first, second;
  int step = 0;

  explicit DoubleAdam(const std::vector<float>& from)
      : parameters(from.begin(), from.end()), first(from.size(), 0.0), second(from.size(), 0.0) {}

  void update(const std::vector<float>& gradient, size_t begin, size_t end, const UpdateRequest& request) {
    const double clip = std::min(1.0, request.max_norm / norm(gradient, begin, end));
    ++step;
    for (size_t k = begin; k < end; ++k) {
      const double g = clip * gradient[k];
      first[k] = request.beta1 * first[k] + (1.0 - request.beta1) * g;
      second[k] = request.beta2 * second[k] + (1.0 - request.beta2) * g * g;
      const double m = first[k] / (1.0 - std::pow(double{request.beta1}, step));
      const double v = second[k] / (1.0 - std::pow(double{request.beta2}, step));
      parameters[k] -= request.learning_rate * m / (std::sqrt(v) + request.epsilon);
    }
  }
};

TEST_CASE("update is Adam on the clipped gradient, actor and critic apart") {
  const RandomBatch batch(ProblemKind::kTsp, 10, fewer(24), 9);
  const ModelConfig config = config_for(ProblemKind::kTsp, 10);
  const ParameterLayout layout(config);
  const std::vector<float> start = scaled_parameters(config, 2.0f);
  const std::vector<float> targets(batch.count, 4.0f);
  std::vector<float> values(batch.count);
  auto backend = backend_with(config, start, 2);
  const Rollouts rollouts(batch, *backend);
  DoubleAdam actor(start), critic(start);
  for (int step = 0; step < 6; ++step) {
    backend->gradient(rollouts.request());
    backend->critic_gradient(batch.batch(), targets, 1.0f / static_cast<float>(batch.count), values);
    const std::vector<float> gradient = gradient_of(*backend, layout.size);
    UpdateRequest request;
    request.learning_rate = 2e-3f;
    request.max_norm = step % 2 == 0 ? 1e-3f : 1e6f;  // clips both, or neither
    request.critic = step != 4;
    const std::vector<float> before = parameters_of(*backend, layout.size);
    const GradientNorms norms = backend->update(0, 1, request).at(0);
    actor.update(gradient, 0, layout.actor_size, request);
    if (request.critic) critic.update(gradient, layout.actor_size, layout.size, request);
    CHECK(norms.actor == Approx(norm(gradient, 0, layout.actor_size)).epsilon(1e-12));
    if (request.critic)
      CHECK(norms.critic == Approx(norm(gradient, layout.actor_size, layout.size)).epsilon(1e-12));
    CHECK(largest(gradient_of(*backend, layout.size)) == 0.0);

    const std::vector<float> after = parameters_of(*backend, layout.size);
    double worst = 0.0;
    for (size_t k = 0; k < layout.size; ++k) {
      const double expected = (k < layout.actor_size ? actor : critic).parameters[k];
      // Each step rounds the parameter once (2^-24 of at most 0.2) and is itself good to 1e-5 of a learning
      // rate.
      worst = worse(worst, std::abs(after[k] - expected) /
                               ((step + 1) * (0.2 * 0x1p-24 + 1e-5 * request.learning_rate)));
    }
    CHECK(worst <= 1.0);
    const bool critic_moved =
        !std::equal(after.begin() + layout.actor_size, after.end(), before.begin() + layout.actor_size);
    CHECK_FALSE(std::equal(after.begin(), after.begin() + layout.actor_size, before.begin()));
    CHECK(critic_moved == request.critic);
  }
  const OptimiserState state = backend->read_optimiser(0);
  CHECK(state.actor_steps == 6);
  CHECK(state.critic_steps == 5);
}

TEST_CASE("parameters and optimiser state read back and loaded go on with the same bits") {
  const RandomBatch batch(ProblemKind::kTsp, 9, 12, 10);
  const ModelConfig config = config_for(ProblemKind::kTsp, 9);
  const size_t size = ParameterLayout(config).size;
  auto one = backend_with(config, scaled_parameters(config, 1.0f));
  const Rollouts rollouts(batch, *one);
  UpdateRequest request;
  const auto step = [&](Backend& backend) {
    backend.gradient(rollouts.request());
    backend.update(0, 1, request);
  };
  for (int i = 0; i < 3; ++i) step(*one);
  auto two = backend_with(config, parameters_of(*one, size));
  two->load_optimiser(0, one->read_optimiser(0));
  for (int i = 0; i < 3; ++i) {
    step(*one);
    step(*two);
  }
  CHECK(same_bytes(parameters_of(*one, size), parameters_of(*two, size)));
  // Loading parameters alone begins a new optimiser.
  two->load_parameters(0, parameters_of(*one, size));
  const OptimiserState fresh = two->read_optimiser(0);
  CHECK(fresh.actor_steps == 0);
  CHECK(largest(fresh.first_moment) == 0.0);
  CHECK(largest(fresh.second_moment) == 0.0);
}

TEST_CASE("before the first gradient, and after a load, moments and gradient are zero") {
  const RandomBatch batch(ProblemKind::kTsp, 9, 12, 10);
  const ModelConfig config = config_for(ProblemKind::kTsp, 9);
  const size_t size = ParameterLayout(config).size;
  const auto parameters = scaled_parameters(config, 1.0f);
  auto backend = backend_with(config, parameters);
  const Rollouts rollouts(batch, *backend);
  const auto check_nothing_learned = [&] {
    const OptimiserState state = backend->read_optimiser(0);
    CHECK(state.first_moment == std::vector<float>(size));
    CHECK(state.second_moment == std::vector<float>(size));
    CHECK(state.actor_steps + state.critic_steps == 0);
    CHECK(gradient_of(*backend, size) == std::vector<float>(size));
  };
  check_nothing_learned();
  backend->gradient(rollouts.request());
  const auto first = gradient_of(*backend, size);
  CHECK(largest(first) > 0.0);
  backend->update(0, 1, {});
  backend->load_parameters(0, parameters);
  check_nothing_learned();
  backend->gradient(rollouts.request());
  CHECK(same_bytes(gradient_of(*backend, size), first));
}

TEST_CASE("an update takes effect in the next rollout") {
  const RandomBatch batch(ProblemKind::kTsp, 9, 12, 10);
  const ModelConfig config = config_for(ProblemKind::kTsp, 9);
  const size_t size = ParameterLayout(config).size;
  auto backend = backend_with(config, scaled_parameters(config, 2.0f));
  const Rollouts rollouts(batch, *backend);
  backend->gradient(rollouts.request());
  backend->update(0, 1, {});
  auto fresh = backend_with(config, parameters_of(*backend, size));
  CHECK(same_answers(sample(*backend, batch, rollouts.counts), sample(*fresh, batch, rollouts.counts)));
  std::vector<float> values(12), fresh_values(12);
  read_critic(*backend, batch.batch(), values);
  read_critic(*fresh, batch.batch(), fresh_values);
  CHECK(same_bytes(values, fresh_values));
}

// ------------------------------------------------------------------------------------------- the critic

// What a critic's value would be if none of its last layer's terms cancelled: its error is a share of this.
double critic_scale(reference::Network network, const reference::Sequence& sequence) {
  const auto weights =
      network.parameters.begin() + static_cast<int64_t>(network.offset("critic.head.fc2.weight"));
  std::transform(weights, weights + kHidden, weights, [](double w) { return std::abs(w); });
  return reference::critic_value(network, sequence);
}

TEST_CASE("critic values: the reference's, the same bits for any batch, thread count and target") {
  for (ProblemKind problem : learned_problems()) {
    for (int n : {1, 2, 14}) {
      const RandomBatch batch(problem, n, fewer(40, 8), 11);
      const ModelConfig config = config_for(problem, n);
      const std::vector<float> parameters = scaled_parameters(config, 3.0f);
      std::vector<float> expected(batch.count), values(batch.count);
      read_critic(*backend_with(config, parameters), batch.batch(), expected);
      const reference::Network network(config, parameters);
      for (int s = 0; s < 3; ++s) {
        const reference::Sequence sequence = batch.sequence(s);
        const double error = expected[s] - reference::critic_value(network, sequence);
        CHECK(std::abs(error) < 1e-6 * critic_scale(network, sequence));
      }
      for (int threads = 1; threads <= (kIsCpuBackend ? 3 : 1); threads += 2) {
        auto backend = backend_with(config, parameters, threads);
        for (int size : {1, 7, batch.count}) {
          for (int first = 0; first < batch.count; first += size) {
            const int taken = std::min(size, batch.count - first);
            read_critic(*backend, batch.batch(first, taken), std::span(values).subspan(first, taken));
          }
          CHECK(same_bytes(values, expected));
        }
        backend->critic_gradient(batch.batch(), std::vector<float>(batch.count, 1.0f), 0.5f, values);
        CHECK(same_bytes(values, expected));
      }
    }
  }
}

TEST_CASE("the critic's gradient: the reference's, whatever the threads, and none of the actor's") {
  const RandomBatch batch(ProblemKind::kTsp, 9, fewer(40, 6), 12);
  const ModelConfig config = config_for(ProblemKind::kTsp, 9);
  const ParameterLayout layout(config);
  const std::vector<float> parameters = scaled_parameters(config, 3.0f);
  std::vector<float> targets, values(batch.count);
  for (int s = 0; s < batch.count; ++s) targets.push_back(0.1f * static_cast<float>(s % 7));
  auto backend = backend_with(config, parameters, 1);
  backend->critic_gradient(batch.batch(), targets, 0.025f, values);
  const std::vector<float> found = gradient_of(*backend, layout.size);
  const reference::Network network(config, parameters);
  reference::Vector expected(layout.size, 0.0);
  for (int s = 0; s < batch.count; ++s) {
    reference::add_critic_gradient(network, batch.sequence(s), targets[s], 0.025f, expected);
  }
  CHECK(worst_of_tensors(layout, found, expected) <= 1e-4);
  CHECK(largest({found.begin(), found.begin() + layout.actor_size}) == 0.0);
  for (int threads : {2, 3}) {
    auto other = backend_with(config, parameters, threads);
    other->critic_gradient(batch.batch(), targets, 0.025f, values);
    CHECK(same_bytes(gradient_of(*other, layout.size), found));
  }
}

// ------------------------------------------------------------------------------------------- learning

// Weights that tell rollouts, costs and log p apart.
std::vector<float> weigh(const RolloutResult& result) {
  std::vector<float> weights;
  for (size_t r = 0; r < result.costs.size(); ++r)
    weights.push_back(static_cast<float>(result.costs[r] - 0.1 * result.log_probs[r]) - 0.3f * (r % 3));
  return weights;
}

// A step's request, its batch and tape.
struct Step {
  RandomBatch batch;
  std::vector<int32_t> counts, orders;
  Tape tape;
  LearnRequest request;

  Step(ProblemKind problem, int n, int count, int most, uint64_t seed = 1) : batch(problem, n, count, seed) {
    for (int s = 0; s < count; ++s) counts.push_back(1 + s % most);
    RolloutRequest& rollouts = request.rollouts;
    rollouts.sequences = batch.batch();
    rollouts.decode = Decode::kSample;
    rollouts.instance_keys = batch.keys.data();
    rollouts.counts = counts.data();
    rollouts.tape = &tape;
    request.weigh = weigh;
    request.update.learning_rate = 0.01f;
  }
  Step(const Step&) = delete;

  void force(Backend& backend) {
    orders = sample(backend, batch, counts).orders;
    request.rollouts.decode = Decode::kForced;
    request.rollouts.forced = orders.data();
  }
};

// Makes the step on both; whether they answer and learn the same bits.
bool learns_as_in_calls(Backend& at_once, Backend& in_calls, const ModelConfig& config,
                        const LearnRequest& request) {
  RolloutResult result, expected;
  const auto norms = at_once.learn(request, result);
  const auto expected_norms = learn_in_calls(in_calls, request, expected);
  const size_t size = ParameterLayout(config).size;
  bool same = same_answers(result, expected) && norms.size() == expected_norms.size() &&
              result.statistics.entropy == expected.statistics.entropy;
  for (size_t i = 0; i < norms.size(); ++i) same = same && norms[i].actor == expected_norms[i].actor;
  for (int set = 0; set < request.first_set + request.sets; ++set) {
    same = same && parameters_of(at_once, size, set) == parameters_of(in_calls, size, set) &&
           at_once.read_optimiser(set).second_moment == in_calls.read_optimiser(set).second_moment &&
           at_once.read_optimiser(set).actor_steps == in_calls.read_optimiser(set).actor_steps;
  }
  return same;
}

TEST_CASE("learning in one call has the bits of rollouts, gradient and update", "[race]") {
  for (const ProblemKind problem : learned_problems()) {
    for (const bool attention : {false, true}) {
      const ModelConfig plain = config_for(problem, 6), config = attention ? with_attention(plain, 1) : plain;
      const std::vector<float> parameters = scaled_parameters(config, 1.5f);
      const auto at_once = backend_with(config, parameters), in_calls = backend_with(config, parameters);
      const auto learns = [&](const Step& step) {
        return learns_as_in_calls(*at_once, *in_calls, config, step.request);
      };
      Step small(problem, 6, 3, 2), large(problem, 5, 4, 5), forced(problem, 6, 3, 3);
      CHECK(learns(small));
      CHECK(learns(large));  // memory grows
      small.request.learned = Learned::kAttention;
      small.request.update.learning_rate = 0.02f;
      CHECK(learns(small));
      CHECK(learns(small));
      forced.force(*in_calls);
      CHECK(learns(forced));
      const Step one_item(problem, 1, 2, 1);
      CHECK(learns(one_item));
    }
  }
}

TEST_CASE("learning steps the sets of its sequences, each with its own gradient") {
  const ModelConfig config = config_for(ProblemKind::kTsp, 6);
  const std::vector<float> parameters = scaled_parameters(config, 1.5f);
  const auto with_sets = [&] {
    auto backend = backend_under_test(3);
    backend->configure(config, 3);
    for (int set = 0; set < 3; ++set) backend->load_parameters(set, parameters);
    return backend;
  };
  const auto at_once = with_sets(), in_calls = with_sets();
  Step step(ProblemKind::kTsp, 6, 4, 3);
  const std::vector<int32_t> sets{1, 1, 2, 2};
  step.request.rollouts.sequences.parameter_sets = sets.data();
  step.request.first_set = 1;
  step.request.sets = 2;
  CHECK(learns_as_in_calls(*at_once, *in_calls, config, step.request));
  CHECK(learns_as_in_calls(*at_once, *in_calls, config, step.request));
  CHECK(parameters_of(*at_once, parameters.size(), 0) == parameters);
  CHECK(parameters_of(*at_once, parameters.size(), 1) != parameters_of(*at_once, parameters.size(), 2));
}

TEST_CASE("learning ends early with a stop, and by what weighs its rollouts") {
  const ModelConfig config = config_for(ProblemKind::kTsp, 6);
  const auto backend = backend_with(config, scaled_parameters(config, 1.5f));
  Step step(ProblemKind::kTsp, 6, 3, 2);
  int asked = 0;
  step.request.weigh = [&](const RolloutResult& rollouts) {
    ++asked;
    return weigh(rollouts);
  };
  RolloutResult result;
  backend->learn(step.request, result);  // so that a further update without a gradient would be seen
  asked = 0;
  const size_t size = ParameterLayout(config).size;
  const std::vector<float> parameters = parameters_of(*backend, size, 0);
  const OptimiserState optimiser = backend->read_optimiser(0);
  step.request.rollouts.stop = StopToken([] { return true; });
  CHECK(backend->learn(step.request, result).empty());
  CHECK_FALSE(result.finished.empty());
  CHECK(asked == 0);
  CHECK(parameters_of(*backend, size, 0) == parameters);
  CHECK(backend->read_optimiser(0).first_moment == optimiser.first_moment);
  CHECK(backend->read_optimiser(0).second_moment == optimiser.second_moment);
  CHECK(backend->read_optimiser(0).actor_steps == optimiser.actor_steps);
  step.request.rollouts.stop = StopToken([] { return false; });
  CHECK(backend->learn(step.request, result).size() == 1);
  CHECK(result.finished.empty());
  CHECK(asked == 1);
  step.request.weigh = [](const RolloutResult&) -> std::vector<float> { throw std::domain_error("weights"); };
  CHECK_THROWS_AS(backend->learn(step.request, result), std::domain_error);
  step.request.weigh = weigh;
  CHECK(backend->learn(step.request, result).size() == 1);
  CHECK(std::isfinite(result.costs.at(0)));
}

}  // namespace
}  // namespace pointsman
