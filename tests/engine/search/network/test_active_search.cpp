// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "engine/search/search.h"
#include "tests/catch.h"
#include "tests/engine/fake_backend.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

struct Run {
  FakeBackend backend;
  ModelConfig config;
  std::vector<Instance> instances;
  std::vector<ActiveSearchProgress> progress;
  std::vector<std::vector<double>> costs;  // of every step's rollouts
  std::vector<std::vector<double>> log_probs;
  std::vector<std::vector<float>> weights;

  // In batches of `at_once` instances.
  std::vector<Solution> search(ActiveSearchOptions options, const SearchControl& control = {},
                               size_t at_once = 100) {
    std::vector<uint64_t> keys(instances.size());
    std::iota(keys.begin(), keys.end(), 100);
    const std::vector<float> initial(ParameterLayout(config).size, 0.5f);
    options.initial = initial;
    std::vector<Solution> answers;
    for (size_t first = 0; first < instances.size(); first += at_once) {
      options.on_step = [&](ActiveSearchProgress state) {
        state.instance += static_cast<int64_t>(first);
        progress.push_back(state);
        costs.push_back(backend.costs);
        log_probs.push_back(backend.log_probs);
        weights.push_back(backend.weights);
      };
      const size_t size = std::min(at_once, instances.size() - first);
      const SearchBatch batch = {pointers_to(std::span(instances).subspan(first, size)),
                                 {keys.data() + first, keys.data() + first + size}};
      for (auto& best : run_search(backend, config, batch, options, control).candidates)
        answers.push_back(best.at(0));
    }
    return answers;
  }
};

ActiveSearchOptions small_options() {
  ActiveSearchOptions options;
  options.steps = 6;
  options.replicas = 5;
  options.baseline_decay = 0.75f;
  return options;
}

double mean_of(const std::vector<double>& costs) {
  return std::accumulate(costs.begin(), costs.end(), 0.0) / static_cast<double>(costs.size());
}

}  // namespace

TEST_CASE("weights move at every step and are reset between instances") {
  Run run;
  for (uint32_t i = 0; i < 3; ++i) run.instances.push_back(random_tsp(8, i));
  ActiveSearchOptions options = small_options();
  run.search(options, {}, 1);
  REQUIRE(run.backend.updated.size() == 18);
  REQUIRE(run.backend.loads.size() == 3);
  for (int instance = 0; instance < 3; ++instance) {
    // The first update starts at 0.5 again.
    float last = 0.5f;
    for (int step = 0; step < 6; ++step) {
      CHECK(run.backend.updated[6 * instance + step] > last);
      last = run.backend.updated[6 * instance + step];
    }
    CHECK(run.backend.updated[6 * instance] < 0.51f);
  }
  for (const UpdateRequest& update : run.backend.updates) {
    CHECK(!update.critic);
    CHECK(update.max_norm == 1.0f);
    CHECK(update.learning_rate == options.learning_rate);
  }
}

TEST_CASE("the gradient's weights are (L - b) / B with the moving average of Algorithm 2") {
  for (const bool knapsack : {false, true}) {
    Run run;
    run.instances = {knapsack ? random_knapsack(8, 1, 2.0) : random_tsp(8, 1)};
    if (knapsack) run.config.capacity = 2.0;
    run.search(small_options());
    REQUIRE(run.weights.size() == 6);
    double baseline = 0.0;
    for (size_t step = 0; step < 6; ++step) {
      const double mean = mean_of(run.costs[step]);
      if (step == 0) baseline = mean;
      for (size_t r = 0; r < 5; ++r) {
        CHECK(run.weights[step][r] == Approx((run.costs[step][r] - baseline) / 5).margin(1e-7));
      }
      baseline = 0.75 * baseline + 0.25 * mean;
      const double sign = knapsack ? -1.0 : 1.0;  // values are reported, costs are minimised
      CHECK(run.progress[step].batch_mean == Approx(sign * mean).epsilon(1e-6));
      CHECK(run.progress[step].baseline == Approx(sign * baseline).epsilon(1e-6));
    }
  }
}

TEST_CASE("leave-one-out compares with the other replicas") {
  Run run;
  run.instances = {random_tsp(8, 1)};
  ActiveSearchOptions options = small_options();
  options.leave_one_out = true;
  run.search(options);
  for (size_t step = 0; step < 6; ++step) {
    const double sum = 5 * mean_of(run.costs[step]);
    for (size_t r = 0; r < 5; ++r) {
      const double cost = run.costs[step][r];
      CHECK(run.weights[step][r] == Approx((cost - (sum - cost) / 4) / 5).margin(1e-7));
    }
  }
}

TEST_CASE("an entropy temperature adds T log p to the cost and falls to 0 over the steps") {
  Run run;
  run.instances = {random_knapsack(8, 1, 2.0)};  // its log p differ, a tour's here do not
  run.config.capacity = 2.0;
  ActiveSearchOptions options = small_options();
  options.entropy = 0.3;
  options.leave_one_out = true;
  run.search(options);
  for (size_t step = 0; step < 6; ++step) {
    const double temperature = 0.3 * (1.0 - static_cast<double>(step) / 6.0);
    std::vector<double> energies;
    for (size_t r = 0; r < 5; ++r)
      energies.push_back(run.costs[step][r] + temperature * run.log_probs[step][r]);
    const double sum = 5 * mean_of(energies);
    for (size_t r = 0; r < 5; ++r) {
      CHECK(run.weights[step][r] == Approx((energies[r] - (sum - energies[r]) / 4) / 5).margin(1e-7));
    }
  }
}

TEST_CASE("under a time limit the entropy temperature falls with the time") {
  Run run;
  run.instances = {random_knapsack(8, 1, 2.0)};  // its log p differ, a tour's here do not
  run.config.capacity = 2.0;
  ActiveSearchOptions options = small_options();
  options.steps = 1'000'000;
  options.entropy = 1000.0;  // so that weights are the temperature's
  options.leave_one_out = true;
  run.backend.time_per_rollout = std::chrono::milliseconds(2);
  run.search(options, {Clock::now() + std::chrono::milliseconds(300), {}});
  const auto temperature = [&](size_t step) {  // from the spread of the weights against that of log p
    const auto [low, high] = std::minmax_element(run.log_probs[step].begin(), run.log_probs[step].end());
    const size_t a = low - run.log_probs[step].begin(), b = high - run.log_probs[step].begin();
    return 4.0 * (run.weights[step][b] - run.weights[step][a]) / (*high - *low);
  };
  REQUIRE(run.weights.size() > 8);
  const size_t last = run.weights.size() - 2;  // the last step draws and does not learn
  CHECK(temperature(0) > 800.0);
  CHECK(temperature(last / 2) < 0.8 * temperature(0));
  CHECK(temperature(last) < 200.0);
}

TEST_CASE("every replica of every step reads an order of its own") {
  Run run;
  run.instances = {random_tsp(9, 1)};
  const std::vector<float> input = network_features(run.instances[0], 0.0);
  run.search(small_options());
  REQUIRE(run.backend.drawn.size() == 30);  // samples step * 5 + replica
  for (const auto& [key, drawn] : run.backend.drawn) {
    CHECK(key.first == 100);
    CHECK(drawn.times == 1);
    const std::vector<int32_t> order = input_order(1234, 100, key.second, 9);
    for (size_t i = 0; i < 9; ++i) REQUIRE(drawn.features[2 * i] == input[2 * order[i]]);
  }
  CHECK(run.backend.drawn.rbegin()->first.second == 29);
}

TEST_CASE("with an attention encoder the replicas of a symmetry share a sequence") {
  Run run;
  run.config.encoder = Encoder::kAttention;
  for (uint32_t i = 0; i < 3; ++i) run.instances.push_back(random_tsp(9, i));
  for (const int augment : {1, 8}) {
    run.backend.drawn.clear();
    ActiveSearchOptions options = small_options();
    options.replicas = 13;
    options.augment = augment;
    const std::vector<Solution> answers = run.search(options);
    REQUIRE(run.backend.drawn.size() == 3 * 6 * 13);  // every sample of every step, once
    std::vector<double> least(3, std::numeric_limits<double>::infinity());
    for (const auto& [key, drawn] : run.backend.drawn) {
      CHECK(drawn.times == 1);
      const size_t i = key.first - 100;
      std::vector<float> expected = network_features(run.instances[i], 0.0);
      const int replica = static_cast<int>(key.second % 13);
      for (size_t at = 0; at < expected.size(); at += 2) apply_dihedral(replica % augment, &expected[at]);
      CHECK(drawn.features == expected);
      least[i] = std::min(least[i], drawn.cost);
    }
    for (size_t i = 0; i < 3; ++i) {
      Solution answer = answers[i];
      CHECK(validate_solution(run.instances[i], answer).empty());
      CHECK(answer.objective == Approx(least[i]).epsilon(1e-6));
    }
  }
}

TEST_CASE("the incumbent is the best tour ever drawn and never gets worse") {
  Run run;
  for (uint32_t i = 0; i < 2; ++i) run.instances.push_back(random_tsp(9, i, 300.0));
  ActiveSearchOptions options = small_options();
  options.steps = 40;
  const std::vector<Solution> answers = run.search(options);
  REQUIRE(run.progress.size() == 80);
  std::vector<double> last(2, 1e9), least(2, 1e9);
  for (const ActiveSearchProgress& state : run.progress) {
    CHECK(state.best <= last[state.instance]);
    CHECK(state.best <= state.batch_mean * (1 + 1e-6));
    last[state.instance] = state.best;
  }
  for (const auto& [key, drawn] : run.backend.drawn) {
    least[key.first - 100] = std::min(least[key.first - 100], drawn.cost);
  }
  for (size_t i = 0; i < 2; ++i) {
    Solution again = answers[i];
    REQUIRE(validate_solution(run.instances[i], again).empty());
    CHECK(again.objective == answers[i].objective);
    CHECK(answers[i].objective == last[i]);
    CHECK(answers[i].status == Status::kDone);
    // Best in network units: the bounding box's longer side is the unit.
    double low[2] = {1e9, 1e9}, high[2] = {0, 0};
    for (int c = 0; c < 18; ++c) {
      low[c % 2] = std::min(low[c % 2], run.instances[i].values[c]);
      high[c % 2] = std::max(high[c % 2], run.instances[i].values[c]);
    }
    const double side = std::max(high[0] - low[0], high[1] - low[1]);
    CHECK(answers[i].objective == Approx(side * least[i]).epsilon(1e-6));
  }
}

TEST_CASE("incumbents never get worse in a metric that ranks tours otherwise than the network") {
  Run run;
  for (uint32_t i = 0; i < 20; ++i) run.instances.push_back(random_tsp(7, i, 4.0, Metric::kCeil2d));
  ActiveSearchOptions options = small_options();
  options.steps = 100;
  const std::vector<Solution> answers = run.search(options);
  std::vector<double> last(20, 1e9);
  for (const ActiveSearchProgress& state : run.progress) {
    CHECK(state.best <= last[state.instance]);
    last[state.instance] = state.best;
  }
  for (size_t i = 0; i < 20; ++i) CHECK(answers[i].objective == last[i]);
}

TEST_CASE("answers do not depend on how many instances are searched at once") {
  std::vector<std::vector<int32_t>> orders;
  for (const size_t at_once : {1, 2, 5}) {
    Run run;
    for (uint32_t i = 0; i < 5; ++i) run.instances.push_back(random_tsp(10, i));
    const ActiveSearchOptions options = small_options();
    std::vector<std::vector<int32_t>> found;
    for (const Solution& answer : run.search(options, {}, at_once)) found.push_back(answer.order);
    if (orders.empty()) orders = found;
    CHECK(found == orders);
    CHECK(run.backend.rollout_calls == 6 * static_cast<int>((5 + at_once - 1) / at_once));
    CHECK(run.backend.gradient_calls == run.backend.rollout_calls);
  }
}

TEST_CASE("a limit ends the search with the best so far for every instance") {
  Run run;
  for (uint32_t i = 0; i < 4; ++i) run.instances.push_back(random_tsp(10, i));
  ActiveSearchOptions options = small_options();
  options.steps = 1'000'000;
  run.backend.time_per_rollout = std::chrono::microseconds(100);
  for (const Solution& answer : run.search(options, {Clock::now() + std::chrono::milliseconds(300), {}})) {
    CHECK(answer.order.size() == 10);
    CHECK(answer.status == Status::kTimeLimit);
  }
  Run late;
  late.instances = run.instances;
  const SearchControl past = {Clock::now() - std::chrono::seconds(1), {}};
  for (const SearchControl& control : {SearchControl{{}, [] { return true; }}, past}) {
    for (const Solution& answer : late.search(options, control)) CHECK(answer.status == Status::kUnsolved);
  }
  CHECK(late.backend.drawn.empty());
  SearchControl part = past;
  part.end = Clock::now() + std::chrono::hours(1);
  for (const Solution& answer : late.search(options, part)) {
    CHECK(answer.order.size() == 10);
    CHECK(answer.status == Status::kTimeLimit);
  }
  CHECK(late.backend.drawn.size() == 4);
  CHECK(late.backend.update_calls == 0);
}

TEST_CASE("active search refuses what makes no sense") {
  Run run;
  run.instances = {random_tsp(5, 1)};
  ActiveSearchOptions options = small_options();
  options.steps = 0;
  CHECK_THROWS_AS(run.search(options), std::invalid_argument);
  options = small_options();
  options.replicas = 1;
  CHECK(run.search(options)[0].order.size() == 5);
  options.leave_one_out = true;
  CHECK_THROWS_AS(run.search(options), std::invalid_argument);
  for (const double entropy : {-0.1, std::nan(""), 1.0 / 0.0}) {
    options = small_options();
    options.entropy = entropy;
    CHECK_THROWS_AS(run.search(options), std::invalid_argument);
  }
  options = small_options();
  options.steps = 2'000'000'000;
  CHECK_THROWS_AS(run.search(options), std::invalid_argument);
  run.backend.corrupt = true;
  CHECK_THROWS_AS(run.search(small_options()), std::logic_error);
}
