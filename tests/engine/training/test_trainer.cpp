// SPDX-License-Identifier: Apache-2.0
// The trainer over a backend of two weights (linear_backend.h): what it asks for, what it writes, how it
// resumes.
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>
#include <limits>
#include <map>
#include <memory>
#include <numeric>
#include <regex>
#include <set>
#include <sstream>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/training/baseline.h"
#include "engine/training/checkpoint.h"
#include "engine/training/train_log.h"
#include "engine/training/trainer.h"
#include "engine/training/training_batch.h"
#include "kernels/tools/fnv1a.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"
#include "tests/engine/linear_backend.h"
#include "tests/temporary_folder.h"

namespace fs = std::filesystem;
using namespace pointsman;

namespace {

TrainOptions small_options(ProblemKind problem, Baseline baseline) {
  TrainOptions options;
  options.model.problem = problem;
  options.model.n = 7;
  options.model.capacity = problem == ProblemKind::kKnapsack ? 1.75 : 0.0;
  options.model.hidden = 2;
  options.baseline = baseline;
  options.rollouts = 3;
  options.batch = 5;
  options.steps = 40;
  options.learning_rate = 0.05f;
  options.decay_steps = 10;
  options.entropy = 0.0f;
  options.validation_every = 7;
  options.validation_instances = 20;
  options.checkpoint_every = 9;
  return options;
}

TrainResult run(LinearBackend& backend, const TrainOptions& options, const fs::path& resume = {},
                const SearchControl& control = {},
                const std::function<void(const TrainProgress&)>& progress = {}) {
  return train(backend,
               {options, initial_parameters(options.model, options.seed), resume, control, progress});
}

SearchControl interrupted_after(int steps) {
  SearchControl control;
  control.interrupted = [left = steps]() mutable { return left-- == 0; };
  return control;
}

// The lines without what the wall clock says.
std::string timeless(const std::string& log) {
  return std::regex_replace(log, std::regex("\"(seconds|tours_per_second)\":[^,]*,"), "");
}

std::string timeless_checkpoint(const fs::path& path) {
  Checkpoint checkpoint = read_checkpoint(path);
  checkpoint.state.seconds = checkpoint.state.interval.start_seconds = 0.0;
  return checkpoint_bytes(checkpoint.options, checkpoint.state);
}

constexpr Baseline kBaselines[] = {Baseline::kShared, Baseline::kCritic, Baseline::kEma, Baseline::kRollout};

double cost_of(ProblemKind problem, int n, const float* features, const int32_t* order) {
  double cost = 0.0;
  for (int i = 0; i < n && order[i] >= 0; ++i) {
    const float *a = features + 2 * order[i], *b = features + 2 * order[(i + 1) % n];
    cost += problem == ProblemKind::kKnapsack ? a[1] : std::hypot(a[0] - b[0], a[1] - b[1]);
  }
  return cost;
}

size_t example_of_cost(const Examples& examples, double cost) {
  size_t best = 0;
  double least = 1.0;
  for (size_t e = 0; e < examples.count(); ++e) {
    const double away =
        std::abs(cost - cost_of(examples.problem, examples.n, &examples.features[2 * e * examples.n],
                                &examples.orders[e * examples.n]));
    if (away < least) least = away, best = e;
  }
  CHECK(least < 1e-5);  // a mirrored float coordinate is off by 6e-8
  return best;
}

// 10 instances; TSP with a tour each, KnapSack with a packing by falling value per weight.
TrainOptions supervised_options(ProblemKind kind, uint64_t seed = 10) {
  TrainOptions options = small_options(kind, Baseline::kShared);
  InstanceBatch instances = generate_instances(kind, options.model.n, seed, 0, 10);
  SolutionBatch solutions(10);
  for (size_t i = 0; i < instances.size(); ++i) {
    Instance& instance = instances[i];
    std::vector<int32_t> items(options.model.n);
    std::iota(items.begin(), items.end(), 0);
    if (kind == ProblemKind::kKnapsack) {
      std::sort(items.begin(), items.end(), [&](int a, int b) {
        return instance.second(a) * instance.first(b) > instance.second(b) * instance.first(a);
      });
      instance.capacity = options.model.capacity;
      double room = instance.capacity;
      std::erase_if(items, [&](int item) {
        if (instance.first(item) > room) return true;
        room -= instance.first(item);
        return false;
      });
    }
    solutions[i].order = items;
  }
  options.examples = std::make_shared<const Examples>(make_examples(options.model, instances, solutions));
  return options;
}

// A KnapSack long enough to learn on. Weights 0.3, values -0.3 at first: heavy and worthless items come
// first.
struct LearningRun {
  LinearBackend backend;
  std::vector<double> val_costs;
  std::vector<float> initial;
  TrainResult result;

  LearningRun(Baseline baseline, float learning_rate) {
    TrainOptions options = small_options(ProblemKind::kKnapsack, baseline);
    options.model.n = 12;
    options.batch = 16;
    options.steps = 120;
    options.validation_every = 20;
    options.validation_instances = 100;
    options.learning_rate = learning_rate;
    initial = initial_parameters(options.model, options.seed);
    initial[0] = 0.3f;
    initial[1] = -0.3f;
    result = train(backend, {options, initial, {}, {}, [&](const TrainProgress& line) {
                               val_costs.push_back(line.val_cost);
                             }});
  }
};

}  // namespace

TEST_CASE("every baseline improves a policy") {
  for (const Baseline baseline : kBaselines) {
    CAPTURE(static_cast<int>(baseline));
    const LearningRun run(baseline, 0.05f);
    const LearningRun untrained(baseline, 0.0f);
    REQUIRE(run.val_costs.size() == 6);  // after 20, 40, .., 120 steps
    CHECK(run.val_costs.back() > untrained.val_costs.back() + 0.5);
    CHECK(run.result.parameters[0] < 0.0f);
    CHECK(run.result.parameters[1] > 0.0f);
  }
}

TEST_CASE("stopping at any step and resuming equals never having stopped") {
  const TemporaryFolder folder;
  for (const Baseline baseline : kBaselines) {
    TrainOptions options =
        small_options(baseline == Baseline::kCritic ? ProblemKind::kTsp : ProblemKind::kKnapsack, baseline);
    options.log = folder / "whole.log";
    options.checkpoint = folder / "whole.ckpt";
    LinearBackend whole_backend;
    const TrainResult whole = run(whole_backend, options);
    const std::string whole_checkpoint = timeless_checkpoint(options.checkpoint);
    const std::string whole_log = timeless(bytes_of(options.log));
    REQUIRE(std::count(whole_log.begin(), whole_log.end(), '\n') == 6);  // 7, 14, 21, 28, 35 and the end

    options.log = folder / "parts.log";
    options.checkpoint = folder / "parts.ckpt";
    for (int k = 1; k < 40; ++k) {
      CAPTURE(static_cast<int>(baseline), k);
      TrainOptions part = options;
      const bool by_signal = k % 2 == 0;  // else by the number of steps, which also logs an end
      if (!by_signal) part.steps = k;
      LinearBackend first_backend, second_backend;
      const TrainResult first =
          run(first_backend, part, {}, by_signal ? interrupted_after(k) : SearchControl{});
      REQUIRE(first.status == (by_signal ? Status::kInterrupted : Status::kDone));
      REQUIRE(first_backend.updates.size() == static_cast<size_t>(k));
      const TrainResult second = run(second_backend, options, options.checkpoint);
      REQUIRE(second_backend.updates.size() == static_cast<size_t>(40 - k));
      REQUIRE(second.parameters == whole.parameters);
      REQUIRE(second.config.training_tours == whole.config.training_tours);
      REQUIRE(timeless_checkpoint(options.checkpoint) == whole_checkpoint);
      REQUIRE(timeless(bytes_of(options.log)) == whole_log);
    }
  }
}

TEST_CASE(
    "shared: sequences are permuted dihedral copies, weights the distance from the mean of the others") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    TrainOptions options = small_options(problem, Baseline::kShared);
    options.rollouts = 10;
    options.steps = 2;
    LinearBackend backend;
    run(backend, options);
    REQUIRE(backend.sampled_features.size() == 2);
    const int n = options.model.n, k = options.rollouts;
    for (int step = 0; step < 2; ++step) {
      const TrainingBatch plain = plain_batch(options, training_seed(options.seed), step * 5, 5);
      std::set<std::vector<long>> orders;
      for (int s = 0; s < 5 * k; ++s) {
        CAPTURE(problem, step, s);
        std::vector<std::pair<float, float>> read, expected;
        for (int i = 0; i < n; ++i) {
          const float* point = &backend.sampled_features[step][2 * (s * n + i)];
          read.emplace_back(point[0], point[1]);
          float copy[2] = {plain.features[2 * (s / k * n + i)], plain.features[2 * (s / k * n + i) + 1]};
          if (options.model.problem == ProblemKind::kTsp) apply_dihedral(s % k % 8, copy);
          expected.emplace_back(copy[0], copy[1]);
        }
        std::vector<long> order;
        for (const auto& point : read) {
          order.push_back(std::find(expected.begin(), expected.end(), point) - expected.begin());
        }
        orders.insert(order);
        std::sort(read.begin(), read.end());
        std::sort(expected.begin(), expected.end());
        CHECK(read == expected);
      }
      CHECK(orders.size() > 45);  // of 50 draws from 7! = 5,040 orders
      const std::vector<double>& costs = backend.sampled_costs[step];
      const std::vector<float>& weights = backend.gradient_weights[step];
      REQUIRE(weights.size() == static_cast<size_t>(5 * k));
      for (int instance = 0; instance < 5; ++instance) {
        double sum = 0.0, cost_of_others = 0.0;
        for (int r = 0; r < k; ++r) sum += weights[instance * k + r];
        CHECK(std::abs(sum) < 1e-7);  // k floats below 0.1, half an ulp (4e-9) each
        for (int r = 1; r < k; ++r) cost_of_others += costs[instance * k + r] / (k - 1);
        CHECK(weights[instance * k] == Approx((costs[instance * k] - cost_of_others) / (5 * k)).margin(1e-8));
      }
    }
    CHECK(backend.sampled_features[0] != backend.sampled_features[1]);
  }
}

TEST_CASE("KnapSack sequences carry the float features' weights exactly") {
  const TrainOptions options = small_options(ProblemKind::kKnapsack, Baseline::kShared);
  EpochOrder order;
  const TrainingBatch batch = training_batch(options, 3, order);
  const SequenceBatch view = batch.view();
  REQUIRE(view.count == 15);
  for (int i = 0; i < view.count * view.n; ++i)
    CHECK(view.weights[i] == static_cast<double>(view.features[2 * i]));
  for (int s = 0; s < view.count; ++s) {
    CHECK(view.capacities[s] == 1.75);
    CHECK(batch.keys[s] == 3u * 5u + s / 3);
    CHECK(batch.first_samples[s] == s % 3u);
  }
  CHECK(training_batch(small_options(ProblemKind::kTsp, Baseline::kEma), 0, order).view().weights == nullptr);
}

TEST_CASE("an unset KnapSack capacity is the paper's") {
  TrainOptions options = small_options(ProblemKind::kKnapsack, Baseline::kEma);
  options.model.capacity = 0.0;
  options.steps = 0;
  LinearBackend backend;
  CHECK(run(backend, options).config.capacity == 12.5);
}

TEST_CASE("training, validation, challenge and the seed's own instances are different ones") {
  const TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kEma);
  std::vector<std::vector<float>> sets;
  for (const uint64_t seed : {uint64_t{5}, training_seed(5), validation_seed(5), challenge_seed(5)}) {
    sets.push_back(plain_batch(options, seed, 0, 3).features);
    for (size_t i = 0; i + 1 < sets.size(); ++i) CHECK(sets[i] != sets.back());
  }
}

TEST_CASE("a model names the learning rate that its first training began with") {
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kShared);
  options.steps = 1;
  LinearBackend backend;
  CHECK(run(backend, options).config.learning_rate == static_cast<double>(options.learning_rate));
  options.model.training_tours = 640;
  options.model.learning_rate = 0.001;
  CHECK(run(backend, options).config.learning_rate == 0.001);
}

TEST_CASE("entropy: weights gain T (log p - expected), T falls linearly to 0") {
  for (const Baseline baseline : {Baseline::kShared, Baseline::kEma}) {
    TrainOptions options = small_options(ProblemKind::kTsp, baseline);
    options.steps = 8;
    options.entropy_steps = 4;
    options.learning_rate = 0.0f;  // the same rollouts with and without
    LinearBackend plain, annealed;
    run(plain, options);
    options.entropy = 0.5f;
    run(annealed, options);
    REQUIRE(annealed.sampled_log_probs == plain.sampled_log_probs);
    const bool shared = baseline == Baseline::kShared;
    const int k = shared ? options.rollouts : 5;  // rollouts that are compared with one another
    for (int step = 0; step < 8; ++step) {
      CAPTURE(shared, step);
      const double temperature = 0.5 * std::max(0.0, 1.0 - step / 4.0);
      const std::vector<double>& log_probs = annealed.sampled_log_probs[step];
      const auto count = static_cast<double>(log_probs.size());
      for (size_t r = 0; r < log_probs.size(); ++r) {
        const auto group = log_probs.begin() + static_cast<int64_t>(r) / k * k;
        const double sum = std::accumulate(group, group + k, 0.0);
        const double expected = shared ? (sum - log_probs[r]) / (k - 1) : sum / k;
        const double gained = annealed.gradient_weights[step][r] - plain.gradient_weights[step][r];
        CHECK(gained == Approx(temperature * (log_probs[r] - expected) / count).margin(1e-7));
      }
    }
  }
}

TEST_CASE("supervised: an epoch follows each answer once, in canonical order, and weighs all alike") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    TrainOptions options = supervised_options(problem);
    const Examples& examples = *options.examples;
    const int n = examples.n;
    options.rollouts = 2;
    options.steps = 6;  // of 5 instances: 3 epochs of 10
    LinearBackend backend;
    run(backend, options);
    REQUIRE(backend.forced_orders.size() == 6);
    std::set<std::vector<float>> copies;
    for (int epoch = 0; epoch < 3; ++epoch) {
      std::map<size_t, int> times;  // each example was followed
      for (int step = 2 * epoch; step < 2 * epoch + 2; ++step) {
        REQUIRE(backend.gradient_weights[step] == std::vector<float>(10, -0.1f));
        for (int s = 0; s < 10; ++s) {
          const float* read = &backend.forced_features[step][2 * static_cast<size_t>(s) * n];
          const int32_t* followed = &backend.forced_orders[step][static_cast<size_t>(s) * n];
          std::vector<int32_t> order(followed, followed + n);
          problem_of(examples.problem).make_example(n, read, order.data());
          CHECK(std::equal(order.begin(), order.end(), followed));
          times[example_of_cost(examples, cost_of(examples.problem, n, read, followed))] += 1;
          copies.insert(std::vector<float>(read, read + 2 * n));
        }
      }
      CAPTURE(problem, epoch);
      REQUIRE(times.size() == 10);
      for (const auto& [example, count] : times) CHECK(count == 2);
    }
    CHECK(copies.size() > 55);  // of 60 draws from 7! orders and more
  }
}

TEST_CASE("supervised: cross entropy falls and is in the log, which has none without") {
  const TemporaryFolder folder;
  TrainOptions options = supervised_options(ProblemKind::kKnapsack);
  options.steps = 60;
  options.log = folder / "log";
  std::vector<double> cross_entropies;
  LinearBackend backend;
  run(backend, options, {}, {},
      [&](const TrainProgress& line) { cross_entropies.push_back(line.cross_entropy); });
  REQUIRE(cross_entropies.size() > 5);
  CHECK(cross_entropies.back() < cross_entropies.front() - 0.5);
  CHECK(bytes_of(options.log).find("\"cross_entropy\":") != std::string::npos);
  options.examples = nullptr;
  LinearBackend policy_gradient;
  run(policy_gradient, options);
  CHECK(bytes_of(options.log).find("cross_entropy") == std::string::npos);
}

TEST_CASE("supervised: resumes bit for bit, and only with the same examples") {
  const TemporaryFolder folder;
  TrainOptions options = supervised_options(ProblemKind::kTsp);
  options.checkpoint = folder / "x.ckpt";
  LinearBackend whole_backend, first, second, third;
  const TrainResult whole = run(whole_backend, options);
  TrainOptions part = options;
  part.steps = 13;  // in the middle of an epoch
  run(first, part);
  CHECK(run(second, options, options.checkpoint).parameters == whole.parameters);
  options.examples = supervised_options(ProblemKind::kTsp, 11).examples;
  CHECK_THROWS_WITH(run(third, options, options.checkpoint), has_text("examples"));
  options.examples = nullptr;
  CHECK_THROWS_WITH(run(third, options, options.checkpoint), has_text("examples"));
}

TEST_CASE("own instances: an epoch draws each once, and those for validation are never drawn") {
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    TrainOptions options = small_options(problem, Baseline::kEma);
    options.batch = 9;
    const InstanceBatch instances = generate_instances(problem, options.model.n, 3, 0, 20);
    Examples examples = make_examples(options.model, instances, {});
    const Examples all = examples;
    options.validation = std::make_shared<const Examples>(split_off(examples, 1000));
    options.examples = std::make_shared<const Examples>(examples);
    REQUIRE(examples.count() == 18);
    REQUIRE(options.validation->count() == 2);
    const size_t floats = 2 * static_cast<size_t>(options.model.n);
    // TSP: sorted distances to the first city, which no dihedral copy changes; the order of cities stays.
    const auto mark = [&](const float* row) {
      double sum = 0.0;
      for (size_t i = 2; i < floats; i += 2) {
        sum += problem == ProblemKind::kTsp ? std::hypot(row[i] - row[0], row[i + 1] - row[1])
                                            : static_cast<double>(i * row[i] + row[i + 1]);
      }
      return std::lround(1e4 * sum);
    };
    EpochOrder order;
    for (int epoch = 0; epoch < 2; ++epoch) {
      std::multiset<long> drawn, expected;
      for (int step = 2 * epoch; step < 2 * epoch + 2; ++step) {
        const TrainingBatch batch = training_batch(options, step, order);
        REQUIRE(batch.count == 9);
        for (int s = 0; s < batch.count; ++s) drawn.insert(mark(&batch.features[s * floats]));
      }
      for (size_t row = 0; row < 18; ++row) expected.insert(mark(&all.features[row * floats]));
      CHECK(drawn == expected);
    }
    const TrainingBatch validation = validation_batch(options);
    CHECK(validation.features == std::vector<float>(all.features.end() - 2 * floats, all.features.end()));
    LinearBackend backend;
    CHECK(std::isfinite(run(backend, options).parameters[0]));
  }
}

TEST_CASE("own instances: fewer than ten serve for training and validation alike") {
  const ModelConfig model = small_options(ProblemKind::kTsp, Baseline::kShared).model;
  Examples examples = make_examples(model, generate_instances(model.problem, model.n, 3, 0, 9), {});
  const Examples validation = split_off(examples, 1000);
  CHECK(examples.count() == 9);
  CHECK(validation.features == examples.features);
}

TEST_CASE("ema: b starts at the first batch's mean and follows its formula") {
  const TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kEma);
  LinearBackend backend;
  run(backend, options);
  double b = 0.0;
  for (size_t step = 0; step < backend.sampled_costs.size(); ++step) {
    const std::vector<double>& costs = backend.sampled_costs[step];
    REQUIRE(costs.size() == 5);
    const double mean = std::accumulate(costs.begin(), costs.end(), 0.0) / 5;
    if (step == 0) b = mean;
    for (int s = 0; s < 5; ++s) {
      CHECK(backend.gradient_weights[step][s] == Approx((costs[s] - b) / 5).margin(1e-7));
    }
    b = options.ema_decay * b + (1 - static_cast<double>(options.ema_decay)) * mean;
  }
}

TEST_CASE("critic: targets are the costs, the untrained output bias starts at their mean") {
  const TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kCritic);
  const size_t bias = ParameterLayout(options.model).critic.fc2_bias;
  LinearBackend backend;
  const TrainResult result = run(backend, options);
  REQUIRE(backend.critic_targets.size() == 40);
  for (int step = 0; step < 40; ++step) {
    for (int s = 0; s < 5; ++s) {
      const double cost = backend.sampled_costs[step][s];
      CHECK(backend.critic_targets[step][s] == static_cast<float>(cost));
      CHECK(backend.gradient_weights[step][s] ==
            Approx((cost - backend.critic_answers[step][s]) / 5).margin(1e-7));
    }
    CHECK(backend.critic_weights[step] == 0.2f);
    CHECK(backend.updates[step].critic);
  }
  const std::vector<double>& first = backend.sampled_costs[0];
  // The linear critic adds at most 0.08 times a mean feature below 1.
  CHECK(backend.critic_answers[0][0] ==
        Approx(std::accumulate(first.begin(), first.end(), 0.0) / 5).margin(0.08));

  std::vector<float> trained = initial_parameters(options.model, 1);
  trained[bias] = 2.5f;
  LinearBackend warm;
  train(warm, {options, trained});
  CHECK(warm.critic_answers[0][0] == Approx(2.5).margin(0.08));
}

TEST_CASE("only the critic baseline steps the critic") {
  for (const Baseline baseline : {Baseline::kShared, Baseline::kEma, Baseline::kRollout}) {
    TrainOptions options = small_options(ProblemKind::kTsp, baseline);
    options.steps = 3;
    LinearBackend backend;
    run(backend, options);
    CHECK(backend.critic_targets.empty());
    for (const UpdateRequest& update : backend.updates) CHECK_FALSE(update.critic);
  }
}

TEST_CASE("rollout: b is the frozen actor's greedy cost, and only a better actor replaces it") {
  LearningRun better(Baseline::kRollout, 0.05f);
  REQUIRE(better.backend.greedy_sets[0] == 1);
  for (int s = 0; s < 16; ++s) {
    const double advantage = better.backend.sampled_costs[0][s] - better.backend.greedy_costs[0][s];
    CHECK(better.backend.gradient_weights[0][s] == Approx(advantage / 16).margin(1e-7));
  }
  std::vector<float> frozen(better.initial.size());
  better.backend.read_parameters(1, frozen);
  CHECK(frozen != better.initial);

  LearningRun worse(Baseline::kRollout, -0.05f);  // gradient ascent on the cost
  worse.backend.read_parameters(1, frozen);
  CHECK(frozen == worse.initial);
}

TEST_CASE("rollout: each t-test is on instances of its own") {
  TrainOptions options = small_options(ProblemKind::kKnapsack, Baseline::kRollout);
  options.learning_rate =
      0.0f;  // actor and frozen actor stay equal: their costs differ only by the instances
  options.steps = 14;
  LinearBackend backend;
  run(backend, options);
  std::vector<std::vector<double>> of_actor;  // validation, t-test, validation, t-test
  for (size_t i = 0; i < backend.greedy_sets.size(); ++i) {
    if (backend.greedy_sets[i] == 0) of_actor.push_back(backend.greedy_costs[i]);
  }
  REQUIRE(of_actor.size() == 4);
  CHECK(of_actor[0] == of_actor[2]);
  CHECK(of_actor[1] != of_actor[3]);
  CHECK(of_actor[0] != of_actor[1]);
}

TEST_CASE("paired t-test") {
  const std::vector<double> zero(3, 0.0);
  // Two degrees of freedom: P(T < t) = 1/2 + t / (2 sqrt(2 + t^2)); differences -1, -2, -3 give t = -2
  // sqrt(3).
  const double t = -2 * std::sqrt(3.0);
  const double expected = 0.5 + t / (2 * std::sqrt(2 + t * t));
  CHECK(paired_t_test(std::vector<double>{-1, -2, -3}, zero) == Approx(expected).epsilon(1e-7));
  CHECK(paired_t_test(std::vector<double>{1, 2, 3}, zero) == Approx(1 - expected).epsilon(1e-7));
  CHECK(paired_t_test(zero, zero) == 1.0);
  // 999 degrees of freedom: the 5% quantile is -1.646380 (tables of Student's t).
  std::vector<double> many(1000), none(1000, 0.0);
  const double mean =
      -1.646380 * std::sqrt(1000.0 / 999.0) / std::sqrt(1000.0);  // of +-1, shifted: variance 1000/999
  for (size_t i = 0; i < many.size(); ++i) many[i] = mean + (i % 2 == 0 ? 1 : -1);
  CHECK(paired_t_test(many, none) == Approx(0.05).margin(1e-6));
}

TEST_CASE("learning rate, clip and their schedule") {
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kEma);
  options.max_norm = 0.7f;
  options.decay = 0.5f;
  LinearBackend backend;
  run(backend, options);
  REQUIRE(backend.updates.size() == 40);
  for (int step = 0; step < 40; ++step) {
    CHECK(backend.updates[step].learning_rate == std::ldexp(0.05f, -(step / 10)));
    CHECK(backend.updates[step].max_norm == 0.7f);
  }
}

TEST_CASE("log lines have the contract's keys and the interval's means") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(ProblemKind::kKnapsack, Baseline::kEma);
  options.validation_every = 60;
  options.steps = 200;
  options.log = folder / "train.log";
  LinearBackend backend;
  std::vector<TrainProgress> lines;
  run(backend, options, {}, {}, [&](const TrainProgress& line) { lines.push_back(line); });
  REQUIRE(lines.size() == 5);  // 60, 100, 120, 180, 200

  std::istringstream log(bytes_of(options.log));
  const std::string number = "(-?[0-9.]+(e[-+][0-9]+)?)";
  std::string pattern = "\\{\"step\":[0-9]+,\"tours\":[0-9]+";
  for (const char* key : {"seconds", "tours_per_second", "train_cost", "val_cost", "baseline_loss",
                          "grad_norm", "entropy", "mean_logit", "saturated", "learning_rate"}) {
    pattern += std::string(",\"") + key + "\":(null|" + number + ")";
  }
  const std::regex expected(pattern + "\\}");
  std::string text;
  for (const TrainProgress& line : lines) {
    REQUIRE(std::getline(log, text));
    CAPTURE(text);
    CHECK(std::regex_match(text, expected));
    CHECK(text == log_line(line));
    CHECK(line.tours == line.step * 5);
    const bool validated = line.step % 60 == 0;
    CHECK(std::isnan(line.val_cost) != validated);
    CHECK((text.find("\"val_cost\":null") == std::string::npos) == validated);
  }
  CHECK_FALSE(std::getline(log, text));
  // Steps 61 to 100, as packed values.
  double packed = 0.0;
  for (int step = 60; step < 100; ++step) {
    for (const double cost : backend.sampled_costs[step]) packed -= cost / 5 / 40;
  }
  CHECK(lines[1].train_cost == Approx(packed).epsilon(1e-12));
  CHECK(packed > 0.0);
}

TEST_CASE("resuming cuts a log that went on, or broke off in a line") {
  const TemporaryFolder folder;
  const fs::path path = folder / "train.log";
  TrainProgress progress;
  std::string whole;
  for (const int step : {100, 200, 300}) {
    progress.step = step;
    whole += log_line(progress) + '\n';
  }
  const size_t line = whole.find('\n') + 1;
  const auto cut = [&](const std::string& text, int64_t last_step) {
    write_bytes(path, text);
    { TrainLog log(path, last_step); }
    return bytes_of(path);
  };
  CHECK(cut(whole, 300) == whole);
  CHECK(cut(whole, 250) == whole.substr(0, 2 * line));
  CHECK(cut(whole, 200) == whole.substr(0, 2 * line));
  CHECK(cut(whole, 199) == whole.substr(0, line));
  CHECK(cut(whole.substr(0, whole.size() - 1), 300) == whole.substr(0, 2 * line));
  CHECK(cut(whole.substr(0, 2 * line + 9), 300) == whole.substr(0, 2 * line));
  CHECK(cut("", 300).empty());
  fs::remove(path);
  { TrainLog log(path, 300); }
  CHECK(bytes_of(path).empty());
}

TEST_CASE("an interruption saves the checkpoint and the model") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kShared);
  options.model.hidden = kHidden;
  options.model.training_tours = 1000;
  options.checkpoint = folder / "x.ckpt";
  options.output = folder / "x.safetensors";
  LinearBackend backend;
  TrainResult result = run(backend, options, {}, interrupted_after(3));
  CHECK(result.status == Status::kInterrupted);
  CHECK(result.config.training_tours == 1000 + 3 * 15);
  const Model model = read_model(options.output);
  CHECK(model.parameters == result.parameters);
  CHECK(model.config.training_tours == result.config.training_tours);
  CHECK(model.config.learning_rate == options.model.learning_rate);
  CHECK(read_checkpoint(options.checkpoint).state.step == 3);

  LinearBackend late;
  SearchControl past;
  past.deadline = Clock::now();
  result = run(late, options, options.checkpoint, past);
  CHECK(result.status == Status::kTimeLimit);
  CHECK(result.parameters == model.parameters);
  CHECK(result.config.training_tours == 1000 + 3 * 15);
}

TEST_CASE("the result tells where a training ended, between two lines too") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kShared);
  options.model.hidden = kHidden;
  options.output = folder / "model.safetensors";
  options.checkpoint = folder / "state.ckpt";
  LinearBackend backend;
  const TrainResult none = run(backend, options, {}, interrupted_after(0));
  CHECK(none.last.step == 0);
  CHECK((std::isnan(none.last.train_cost) && std::isnan(none.last.val_cost)));

  const TrainResult early = run(backend, options, {}, interrupted_after(3));
  CHECK((early.last.step == 3 && early.last.tours == 3 * 15));
  CHECK((early.last.seconds > 0 && early.last.tours_per_second > 0 && early.last.train_cost > 0));
  CHECK(std::isnan(early.last.val_cost));

  const TrainResult at_once = run(backend, options, options.checkpoint, interrupted_after(0));
  CHECK((at_once.last.step == 3 && at_once.last.tours == 3 * 15));
  CHECK(at_once.last.train_cost == early.last.train_cost);

  TrainProgress line;
  const auto keep = [&](const TrainProgress& told) { line = told; };
  const TrainResult later = run(backend, options, options.checkpoint, interrupted_after(6), keep);
  CHECK((later.last.step == 9 && later.last.tours == 9 * 15 && line.step == 7));
  CHECK(later.last.val_cost == line.val_cost);
  CHECK(later.last.train_cost != line.train_cost);

  const TrainResult whole = run(backend, options, options.checkpoint, {}, keep);
  CHECK((whole.last.step == 40 && line.step == 40));
  CHECK((whole.last.seconds == line.seconds && whole.last.val_cost == line.val_cost));
  const TrainResult again = run(backend, options, options.checkpoint);
  CHECK((again.last.step == 40 && again.last.tours == 40 * 15));
}

TEST_CASE("a checkpoint that cannot be written is told, tried again, and loses no model") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kEma);
  options.model.hidden = kHidden;
  options.checkpoint = folder / "x.ckpt";
  options.output = folder / "x.safetensors";
  options.checkpoint_every = options.validation_every = 10;
  for (const bool mended : {true, false}) {
    int warnings = 0;
    SearchControl control;
    control.report.warn = [&](const std::string& text) {
      CHECK(text.find("x.ckpt") != std::string::npos);
      ++warnings;
    };
    const auto in_the_way = options.checkpoint / "in the way";
    const auto progress = [&](const TrainProgress& line) {
      if (line.step == 10) fs::create_directories(in_the_way);
      if (line.step == 30 && mended) fs::remove_all(options.checkpoint);
    };
    LinearBackend backend;
    TrainResult result;
    if (mended) {
      result = run(backend, options, {}, control, progress);
      CHECK(read_checkpoint(options.checkpoint).state.step == options.steps);
      fs::remove(options.checkpoint);
    } else {
      try {
        run(backend, options, {}, control, progress);
        FAIL("the training ended as if it were well");
      } catch (const std::system_error& error) {
        CHECK(error.code() == std::errc::is_a_directory);
      }
    }
    CHECK(warnings == (mended ? 2 : 5));  // at steps 10, 20, 30 and, tried twice, 40
    CHECK(read_model(options.output).config.training_tours == options.steps * options.batch);
    fs::remove_all(options.checkpoint);
    CHECK(folder.entries() == 1);
  }
}

TEST_CASE("checkpoints are written on the way, and a gradient that is not finite ends the training") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kEma);
  options.checkpoint = folder / "x.ckpt";
  LinearBackend backend;
  backend.poisoned_update = 20;
  CHECK_THROWS_AS(run(backend, options), std::runtime_error);
  CHECK(read_checkpoint(options.checkpoint).state.step == 18);  // checkpoint_every 9
}

TEST_CASE("a resume with other options is refused by name") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(ProblemKind::kKnapsack, Baseline::kEma);
  options.checkpoint = folder / "x.ckpt";
  options.steps = 2;
  LinearBackend backend;
  run(backend, options);
  const std::vector<std::pair<std::string, std::function<void(TrainOptions&)>>> changes = {
      {"problem", [](TrainOptions& o) { o.model.problem = ProblemKind::kTsp; }},
      {"n", [](TrainOptions& o) { o.model.n = 8; }},
      {"capacity", [](TrainOptions& o) { o.model.capacity = 2; }},
      {"hidden", [](TrainOptions& o) { o.model.hidden = 3; }},
      {"glimpses", [](TrainOptions& o) { o.model.glimpses = 0; }},
      {"clip", [](TrainOptions& o) { o.model.clip = 5; }},
      {"centre_logits", [](TrainOptions& o) { o.model.centre_logits = false; }},
      {"has_critic", [](TrainOptions& o) { o.model.has_critic = false; }},
      {"baseline", [](TrainOptions& o) { o.baseline = Baseline::kShared; }},
      {"rollouts", [](TrainOptions& o) { o.rollouts = 4; }},
      {"batch", [](TrainOptions& o) { o.batch = 6; }},
      {"learning_rate", [](TrainOptions& o) { o.learning_rate = 0.1f; }},
      {"decay", [](TrainOptions& o) { o.decay = 0.9f; }},
      {"decay_steps", [](TrainOptions& o) { o.decay_steps = 11; }},
      {"entropy", [](TrainOptions& o) { o.entropy = 0.2f; }},
      {"entropy_steps", [](TrainOptions& o) { o.entropy_steps = 11; }},
      {"max_norm", [](TrainOptions& o) { o.max_norm = 2; }},
      {"ema_decay", [](TrainOptions& o) { o.ema_decay = 0.9f; }},
      {"validation_every", [](TrainOptions& o) { o.validation_every = 8; }},
      {"validation_instances", [](TrainOptions& o) { o.validation_instances = 21; }},
      {"seed", [](TrainOptions& o) { o.seed = 1235; }},
  };
  for (const auto& [name, change] : changes) {
    CAPTURE(name);
    TrainOptions other = options;
    change(other);
    std::string message;
    try {
      run(backend, other, options.checkpoint);
    } catch (const CheckpointError& error) {
      message = error.what();
    }
    CHECK(message.find(": " + name + ": the checkpoint was made with ") != std::string::npos);
  }
  TrainOptions longer = options;
  longer.steps = 3;
  longer.checkpoint_every = 1;
  CHECK_NOTHROW(run(backend, longer, options.checkpoint));
}

TEST_CASE("a damaged checkpoint is refused: every length, every byte") {
  const TemporaryFolder folder;
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kRollout);
  options.model.hidden = 1;
  options.steps = 2;
  options.checkpoint = folder / "x.ckpt";
  LinearBackend backend;
  run(backend, options);
  const std::string bytes = bytes_of(options.checkpoint);
  REQUIRE_NOTHROW(parse_checkpoint(bytes, "x"));
  size_t accepted = 0;
  const auto try_parse = [&](const std::string& damaged) {
    try {
      parse_checkpoint(damaged, "x");
      ++accepted;
    } catch (const CheckpointError&) {
    }
  };
  for (size_t length = 0; length < bytes.size(); ++length) try_parse(bytes.substr(0, length));
  for (size_t i = 0; i < bytes.size(); ++i) {
    for (const int flip : {0x01, 0x80, 0xFF}) {
      std::string damaged = bytes;
      damaged[i] = static_cast<char>(damaged[i] ^ flip);
      try_parse(damaged);
    }
  }
  try_parse(bytes + '\0');
  CHECK(accepted == 0);
  const std::string shorter = bytes.substr(0, bytes.size() - 1);
  CHECK_THROWS_WITH(parse_checkpoint(shorter, "x"), "x: size: expected " + std::to_string(bytes.size()) +
                                                        " bytes, found " + std::to_string(shorter.size()));
  CHECK_THROWS_AS(read_checkpoint(folder / "none.ckpt"), CheckpointError);
  CHECK_THROWS_AS(read_checkpoint(folder / ""), CheckpointError);
}

TEST_CASE("a checkpoint with a valid checksum and impossible contents is refused") {
  const TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kRollout);
  const size_t size = ParameterLayout(options.model).size;
  const std::vector<float> floats(size), shorter(size - 1);
  TrainState good;
  good.parameters = good.baseline_parameters = floats;
  good.optimiser = {floats, floats, 1, 1};
  const auto parse = [](const TrainOptions& o, const TrainState& s) {
    return parse_checkpoint(checkpoint_bytes(o, s), "x");
  };
  REQUIRE_NOTHROW(parse(options, good));
  const std::vector<std::function<void(TrainOptions&, TrainState&)>> changes = {
      [&](TrainOptions&, TrainState& s) { s.parameters = shorter; },
      [&](TrainOptions&, TrainState& s) { s.optimiser.first_moment = shorter; },
      [&](TrainOptions&, TrainState& s) { s.optimiser.second_moment.clear(); },
      [&](TrainOptions&, TrainState& s) { s.baseline_parameters.clear(); },
      [&](TrainOptions& o, TrainState&) { o.baseline = Baseline::kEma; },  // with a frozen actor
      [&](TrainOptions& o, TrainState& s) {
        o.baseline = static_cast<Baseline>(4);
        s.baseline_parameters.clear();
      },
      [&](TrainOptions& o, TrainState&) { o.model.n = 0; },
      [&](TrainOptions& o, TrainState&) { o.model.hidden = -1; },
      [&](TrainOptions& o, TrainState&) { o.model.hidden = 1 << 20; },
      [&](TrainOptions& o, TrainState&) { o.model.glimpses = 5; },
      [&](TrainOptions& o, TrainState&) { o.model.reread = 5; },  // with an LSTM
      [&](TrainOptions&, TrainState& s) { s.step = -1; },
      [&](TrainOptions&, TrainState& s) { s.parameters[3] = std::nanf(""); },
      [&](TrainOptions&, TrainState& s) { s.baseline_parameters[3] = -INFINITY; },
      [&](TrainOptions&, TrainState& s) { s.optimiser.first_moment[3] = INFINITY; },
      [&](TrainOptions&, TrainState& s) { s.optimiser.second_moment[3] = std::nanf(""); },
      [&](TrainOptions&, TrainState& s) { s.optimiser.second_moment[3] = -1.0f; },
      [&](TrainOptions&, TrainState& s) { s.average = std::nan(""); },
      [&](TrainOptions&, TrainState& s) { s.seconds = INFINITY; },
      [&](TrainOptions&, TrainState& s) { s.optimiser.actor_steps = -1; },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    TrainOptions other_options = options;
    TrainState other = good;
    changes[i](other_options, other);
    CHECK_THROWS_AS(parse(other_options, other), CheckpointError);
  }
}

TEST_CASE("a checkpoint of the newer version has what only that version can hold") {
  TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kShared);
  options.model.hidden = 1;
  options.model.encoder = Encoder::kLstm;
  TrainState state;
  state.parameters.resize(ParameterLayout(options.model).size);
  state.optimiser = {state.parameters, state.parameters, 0, 0};
  std::string bytes = checkpoint_bytes(options, state);
  REQUIRE_NOTHROW(parse_checkpoint(bytes, "x"));
  bytes.resize(bytes.size() - sizeof(uint64_t));  // the checksum
  const int32_t encoder[] = {0, options.model.layers, options.model.heads, options.model.feed_forward};
  bytes.append(reinterpret_cast<const char*>(encoder), sizeof encoder);
  bytes += '\0';  // no prior
  bytes.append(reinterpret_cast<const char*>(&options.symmetries), sizeof options.symmetries);
  bytes[8] = 4;  // the version
  const uint64_t size = bytes.size() + sizeof(uint64_t);
  std::memcpy(bytes.data() + 12, &size, sizeof size);
  const uint64_t checksum = fnv1a(bytes);
  bytes.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  CHECK_THROWS_WITH(parse_checkpoint(bytes, "x"), "x: version: not that of its network");
}

TEST_CASE("options that cannot be trained with are refused") {
  const std::vector<std::function<void(TrainOptions&)>> changes = {
      [](TrainOptions& o) { o.model.n = 0; },
      [](TrainOptions& o) { o.batch = 0; },
      [](TrainOptions& o) { o.steps = -1; },
      [](TrainOptions& o) { o.rollouts = 1; },
      [](TrainOptions& o) { o.decay_steps = 0; },
      [](TrainOptions& o) { o.entropy = -0.1f; },
      [](TrainOptions& o) { o.entropy_steps = 0; },
      [](TrainOptions& o) { o.checkpoint_every = 0; },
      [](TrainOptions& o) { o.validation_every = 0.5; },
      [](TrainOptions& o) { o.validation_instances = 1; },
      [](TrainOptions& o) {
        o.baseline = Baseline::kCritic;
        o.model.has_critic = false;
      },
  };
  for (size_t i = 0; i < changes.size(); ++i) {
    CAPTURE(i);
    TrainOptions options = small_options(ProblemKind::kTsp, Baseline::kShared);
    changes[i](options);
    LinearBackend backend;
    CHECK_THROWS_AS(train(backend, {options, std::vector<float>(1)}), std::invalid_argument);
    CHECK(backend.updates.empty());
  }
  LinearBackend backend;
  CHECK_THROWS_AS(train(backend, {small_options(ProblemKind::kTsp, Baseline::kEma), std::vector<float>(1)}),
                  std::invalid_argument);
}
