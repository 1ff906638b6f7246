// SPDX-License-Identifier: Apache-2.0
// Training by ranks that do not wait for each other: every step is made once, and updates meet in one place.
#include <algorithm>
#include <numeric>
#include <optional>

#include "engine/backend/cpu/parameters.h"
#include "engine/backend/ranks/asynchronous_backend.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"
#include "tests/catch.h"
#include "tests/engine/cluster/thread_ranks.h"
#include "tests/engine/random_batch.h"
#include "tests/temporary_folder.h"

namespace pointsman {
namespace {

std::unique_ptr<AsynchronousBackend> asynchronous(Communicator& ranks, int most_stale = 8) {
  return make_asynchronous_backend(ranks, make_backend({"cpu", 1}), most_stale);
}

TrainOptions options_of(Baseline baseline, int64_t steps) {
  TrainOptions options;
  options.model.problem = ProblemKind::kTsp;
  options.model.n = 6;
  options.model.encoder = Encoder::kAttention;
  options.model.layers = 1;
  options.model.has_critic = baseline == Baseline::kCritic;
  options.baseline = baseline;
  options.batch = 8;
  options.symmetries = 2;
  options.steps = steps;
  options.learning_rate = 3e-4f;
  options.validation_every = 7;
  options.validation_instances = 20;
  return options;
}

struct Made {
  TrainResult result;
  std::vector<TrainProgress> lines;
};

// By `size` ranks, of which rank 0 ends when `control` says so.
Made train_on(int size, const TrainOptions& options, const SearchControl& control = {}) {
  Made made;
  ThreadRanks::run(size, [&](Communicator& ranks) {
    TrainOptions own = options;
    if (ranks.rank() > 0) own.output.clear(), own.checkpoint.clear(), own.log.clear();
    auto backend = asynchronous(ranks);
    const auto initial = initial_parameters(options.model, ranks.rank() == 0 ? 1 : 99);
    const auto keep = [&](const TrainProgress& line) {
      if (ranks.rank() == 0) made.lines.push_back(line);
    };
    const TrainResult result = train(
        *backend, {own, initial, {}, ranks.rank() == 0 ? control : SearchControl(), keep, backend.get()});
    if (ranks.rank() == 0) made.result = result;
  });
  return made;
}

int64_t sum(const std::vector<int64_t>& ages) {
  return std::accumulate(ages.begin(), ages.end(), int64_t{0});
}

TEST_CASE("one asynchronous rank trains the bits of a plain training", "[cluster]") {
  for (const Baseline baseline : {Baseline::kShared, Baseline::kCritic, Baseline::kEma}) {
    const TrainOptions options = options_of(baseline, 16);
    auto backend = make_backend({"cpu", 1});
    std::vector<TrainProgress> lines;
    const TrainResult expected = train(
        *backend, {options, initial_parameters(options.model, 1), {}, {}, [&](const TrainProgress& line) {
                     lines.push_back(line);
                   }});
    const Made made = train_on(1, options);
    CHECK(made.result.parameters == expected.parameters);
    CHECK(made.result.config.training_tours == expected.config.training_tours);
    CHECK(made.result.ages[0] == 16);
    CHECK(sum(made.result.ages) == 16);
    REQUIRE(made.lines.size() == lines.size());
    for (size_t i = 0; i < lines.size(); ++i) {
      CHECK(made.lines[i].step == lines[i].step);
      CHECK(made.lines[i].tours == lines[i].tours);
      CHECK((made.lines[i].val_cost == lines[i].val_cost && made.lines[i].train_cost == lines[i].train_cost));
    }
  }
}

TEST_CASE("asynchronous ranks make every step once, whoever is free, and learn", "[cluster]") {
  const TemporaryFolder folder;
  for (const Baseline baseline : {Baseline::kShared, Baseline::kCritic}) {
    TrainOptions options = options_of(baseline, 300);
    if (baseline == Baseline::kCritic) options.batch = 64;  // it makes one rollout an instance
    options.output = folder.path() / "model.safetensors";
    const Made made = train_on(3, options);
    CHECK(sum(made.result.ages) == 300);
    CHECK(made.result.last.step == 300);
    CHECK(made.result.last.tours == 300 * options.tours_a_step());
    CHECK(made.result.status == Status::kDone);
    CHECK(read_model(options.output).parameters == made.result.parameters);
    REQUIRE(made.lines.size() >= 2);
    for (size_t i = 1; i < made.lines.size(); ++i) CHECK(made.lines[i - 1].step < made.lines[i].step);
    // Two random points of the unit square lie 0.5214 apart; a mean of 20 random tours is 0.3 shorter never.
    CHECK(made.result.last.val_cost < 6 * 0.5214 - 0.3);
  }
}

TEST_CASE("asynchronous ranks go on from rank 0's parameters, moments and step", "[cluster]") {
  const TemporaryFolder folder;
  TrainOptions options = options_of(Baseline::kShared, 10);
  options.checkpoint = folder.path() / "checkpoint";
  train_on(1, options);
  TrainOptions longer = options;
  longer.steps = 20;
  const TrainResult expected = train(*make_backend({"cpu", 1}), {longer, {}, options.checkpoint});
  train_on(1, options);
  std::vector<int64_t> ages;
  ThreadRanks::run(3, [&](Communicator& ranks) {
    auto backend = asynchronous(ranks);
    TrainOptions own = longer;
    if (ranks.rank() > 0) own.checkpoint.clear();
    const auto initial = initial_parameters(own.model, 99);
    const TrainResult result =
        train(*backend, {own,
                         initial,
                         ranks.rank() == 0 ? options.checkpoint : std::filesystem::path(),
                         {},
                         {},
                         backend.get()});
    if (ranks.rank() > 0) return;
    CHECK(sum(result.ages) == 10);
    CHECK(result.last.step == 20);
    CHECK(backend->read_optimiser(0).actor_steps == 20 - result.ages.back());
    CHECK(result.config.training_tours == expected.config.training_tours);
  });
}

TEST_CASE("a stop of rank 0 ends all asynchronous ranks", "[cluster]") {
  SearchControl control;
  int asked = 0;
  control.interrupted = [&] { return ++asked > 5; };
  const Made made = train_on(3, options_of(Baseline::kShared, 1'000'000), control);
  CHECK(made.result.status == Status::kInterrupted);
  CHECK(made.result.last.step < 1'000);
  CHECK(sum(made.result.ages) < 10'000);
}

// A gradient of its own for each of `ranks`.
GradientRequest gradient_of(const RandomBatch& batch, int rank, std::vector<int32_t>& orders,
                            std::vector<float>& weights) {
  orders.clear();
  for (int s = 0; s < batch.count; ++s) {
    for (int i = 0; i < batch.n; ++i) orders.push_back((i + rank) % batch.n);
  }
  weights.assign(batch.count, 0.1f);
  GradientRequest request;
  request.sequences = batch.batch();
  request.orders = orders.data();
  request.weights = weights.data();
  return request;
}

TEST_CASE("an old gradient changes the newest parameters, and one that is too old changes nothing",
          "[cluster]") {
  const RandomBatch batch(ProblemKind::kTsp, 6, 4, 1);
  ModelConfig config;
  config.problem = ProblemKind::kTsp;
  config.n = 6;
  config.encoder = Encoder::kAttention;
  config.layers = 1;
  const ParameterLayout layout(config);
  const std::vector<float> initial = initial_parameters(config, 1);
  const auto size = static_cast<int64_t>(initial.size());
  for (const int updates : {2, 3}) {  // of rank 0, while rank 1 has its gradient; 2 is the most
    std::vector<float> before, after, gradient;
    OptimiserState moments;
    std::vector<int64_t> ages;
    ThreadRanks::run(2, [&](Communicator& ranks) {
      auto backend = asynchronous(ranks, 2);
      backend->configure(config, 1);
      backend->load_parameters(0, ranks.rank() == 0 ? initial : std::vector<float>(initial.size(), 1.0f));
      const char done = 1;
      std::vector<int32_t> orders;
      std::vector<float> weights;
      const GradientRequest request = gradient_of(batch, ranks.rank(), orders, weights);
      if (ranks.rank() == 0) {
        CHECK(backend->take(5) == 5);
        for (int i = 0; i <= updates; ++i) {
          backend->gradient(request);
          CHECK(backend->update(0, 1, {}).at(0).actor > 0.0);
          if (i == 0) ranks.receive(1);  // which begins after the first
        }
        before.resize(initial.size());
        backend->read_parameters(0, before);
        moments = backend->read_optimiser(0);
        ranks.send(1, {&done, 1});
        ages = backend->end(false);
        after.resize(initial.size());
        backend->read_parameters(0, after);
        return;
      }
      CHECK(backend->take(0) == 6);
      backend->gradient(request);
      gradient.resize(initial.size());
      backend->read_gradient(0, gradient);
      ranks.send(0, {&done, 1});
      ranks.receive(0);
      CHECK((backend->update(0, 1, {}).at(0).actor > 0.0) == (updates <= 2));
      CHECK(backend->end(false).empty());
    });
    CHECK(before != initial);
    if (updates <= 2) {
      adam_step(layout,
                {before.data(), moments.first_moment.data(), moments.second_moment.data(), gradient.data()},
                moments.actor_steps, moments.critic_steps, {}, nullptr);
      CHECK(ages == std::vector<int64_t>{3, 0, 1, 0});
    } else {
      CHECK(ages == std::vector<int64_t>{4, 0, 0, 1});
    }
    CHECK(std::equal(after.begin(), after.begin() + size, before.begin()));
  }
}

}  // namespace
}  // namespace pointsman
