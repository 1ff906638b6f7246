// SPDX-License-Identifier: Apache-2.0
// The facade over the CPU backend, with untrained models.
#include <cmath>
#include <optional>
#include <random>
#include <stdexcept>
#include <vector>

#include "engine/engine.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

Model untrained_model(ProblemKind problem, uint64_t seed) {
  Model model;
  model.config.problem = problem;
  model.config.n = 20;
  model.config.capacity = model.config.problem == ProblemKind::kKnapsack ? 4.0 : 0.0;
  model.parameters = initial_parameters(model.config, seed);
  return model;
}

SolveOptions with_mode(Mode mode) {
  SolveOptions options;
  options.mode = mode;
  return options;
}

SolutionBatch solve(Engine& engine, const Model& model, const InstanceBatch& instances,
                    const SolveOptions& options, SolveReport* report = nullptr) {
  SolutionBatch solutions;
  const SolveReport done = engine.solve(
      &model, SolveJob(instances, 0, options, {},
                       [&](size_t, Solution&& solution) { solutions.push_back(std::move(solution)); }));
  if (report != nullptr) *report = done;
  return solutions;
}

}  // namespace

// engine_cuda_emulated runs it where there is CUDA.
TEST_CASE("auto searches actively on the CPU where CUDA has no gradients, cuda does not") {
  Instance instance;
  instance.problem = ProblemKind::kCvrp;
  instance.capacity = 5.0;
  for (int i = 0; i < 4; ++i) instance.values.insert(instance.values.end(), {0.2 * i, 0.1 * i * i, 1.0 * i});
  Model model = untrained_model(ProblemKind::kCvrp, 1);
  model.config.capacity = 5.0;
  SolveOptions active = with_mode(Mode::kActive);
  active.steps = 1;
  active.replicas = 4;
  Engine automatic({"auto", 1});
  const std::string before = automatic.device().name;
  CHECK(solve(automatic, model, {instance}, active).at(0).objective > 0.0);
  CHECK(automatic.device().name == "cpu");
  if (before == "cpu") return;
  CHECK(automatic.device_note().find("no gradients for cvrp") != std::string::npos);
  Engine cuda({"cuda", 1});
  CHECK_THROWS_AS(solve(cuda, model, {instance}, active), DeviceError);
}

TEST_CASE("a network that re-reads runs on the CPU, cuda refuses it, and it has no active search") {
  Model model = untrained_model(ProblemKind::kTsp, 1);
  model.config.encoder = Encoder::kAttention;
  model.config.has_critic = false;
  model.config.reread = 4;
  model.parameters = initial_parameters(model.config, 1);
  const InstanceBatch instances = {random_tsp(9, 1), random_tsp(120, 2)};
  Engine automatic({"auto", 1});
  const std::string before = automatic.device().name;
  const SolutionBatch tours = solve(automatic, model, {instances[0]}, with_mode(Mode::kGreedy));
  CHECK(automatic.device().name == "cpu");
  CHECK(automatic.score(model, {instances.data(), 1}, tours).at(0) == tours.at(0).log_prob);
  const Model plain = untrained_model(ProblemKind::kTsp, 2);
  solve(automatic, plain, {instances[0]}, with_mode(Mode::kGreedy));
  CHECK(automatic.device().name == before);
  CHECK(solve(automatic, model, instances, with_mode(Mode::kGreedy)).at(0).order == tours.at(0).order);
  CHECK_THROWS_AS(solve(automatic, model, instances, with_mode(Mode::kActive)), std::invalid_argument);
  if (before == "cpu") return;
  CHECK(automatic.device_note().find("re-reads") != std::string::npos);
  Engine cuda({"cuda", 1});
  CHECK_THROWS_AS(solve(cuda, model, instances, with_mode(Mode::kGreedy)), DeviceError);
}

TEST_CASE("score gives the log p that greedy decoding reported, bit for bit") {
  Engine engine({"cpu", 2});
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    const Model model = untrained_model(problem, 1);
    InstanceBatch instances;
    for (uint32_t i = 0; i < 6; ++i) {
      instances.push_back(model.config.problem == ProblemKind::kTsp ? random_tsp(8 + i % 2, i)
                                                                    : random_knapsack(12 + i % 2, i, 3.0));
    }
    SolutionBatch solutions = solve(engine, model, instances, with_mode(Mode::kGreedy));
    const std::vector<double> scores = engine.score(model, instances, solutions);
    for (size_t i = 0; i < instances.size(); ++i) {
      CHECK(scores[i] == solutions[i].log_prob);
      CHECK(scores[i] < 0.0);
    }
    // Not a tour, or a packing that stops although something still fits.
    solutions[2].order.pop_back();
    const std::vector<double> again = engine.score(model, instances, solutions);
    CHECK(std::isnan(again[2]));
    CHECK(again[3] == scores[3]);
  }
}

TEST_CASE("several devices solve and score as one does") {
  const auto engine_of = [](int devices) {
    std::vector<std::unique_ptr<Backend>> backends;
    for (int i = 0; i < devices; ++i) backends.push_back(make_backend({"cpu", 1}));
    return Engine(std::move(backends));
  };
  Engine one = engine_of(1), three = engine_of(3);
  CHECK(one.device().name == "cpu");
  CHECK(three.device().detail == "3 x " + one.device().detail);
  const Model first = untrained_model(ProblemKind::kTsp, 1), second = untrained_model(ProblemKind::kTsp, 2);
  InstanceBatch instances;
  for (uint32_t i = 0; i < 12; ++i) instances.push_back(random_tsp(6 + i % 5, i));
  SolveOptions active = with_mode(Mode::kActive);
  active.steps = 2;
  active.replicas = 4;
  for (const Model& model : {first, second}) {
    for (const SolveOptions& options : {with_mode(Mode::kGreedy), active}) {
      SolveReport expected, found;
      const SolutionBatch answers = solve(one, model, instances, options, &expected);
      const SolutionBatch shared = solve(three, model, instances, options, &found);
      for (size_t i = 0; i < instances.size(); ++i) {
        CHECK(shared[i].order == answers[i].order);
        CHECK(shared[i].log_prob == answers[i].log_prob);
      }
      CHECK(found.statistics.steps == expected.statistics.steps);
      CHECK(found.statistics.mean_logit == expected.statistics.mean_logit);
      CHECK(three.score(model, instances, answers) == one.score(model, instances, answers));
    }
  }
}

TEST_CASE("another model takes effect, and active search leaves no weights behind") {
  Engine engine({"cpu", 1});
  const Model first = untrained_model(ProblemKind::kTsp, 1), second = untrained_model(ProblemKind::kTsp, 2);
  const InstanceBatch instances = {random_tsp(9, 1), random_tsp(9, 2)};
  const SolveOptions greedy = with_mode(Mode::kGreedy);
  const double log_prob = solve(engine, first, instances, greedy)[0].log_prob;
  CHECK(solve(engine, second, instances, greedy)[0].log_prob != log_prob);
  SolveOptions active = with_mode(Mode::kActive);
  active.steps = 3;
  active.replicas = 4;
  active.learning_rate = 0.1f;
  solve(engine, first, instances, greedy);
  CHECK(solve(engine, first, instances, active).size() == 2);
  CHECK(solve(engine, first, instances, greedy)[0].log_prob == log_prob);
}

TEST_CASE("auto mode reports what it really did") {
  Engine engine({"cpu", 2});
  SolveReport report;
  SolveOptions sampled;
  sampled.network = true;
  solve(engine, untrained_model(ProblemKind::kTsp, 1), {random_tsp(10, 1)}, sampled, &report);
  CHECK(report.samples == 1280);
  CHECK(report.augment == 8);
  CHECK(report.shuffle);
  CHECK(report.improve);
  CHECK(report.statistics.steps == 12800);
  solve(engine, untrained_model(ProblemKind::kKnapsack, 1), {random_knapsack(10, 1, 2.0)}, sampled, &report);
  CHECK(report.samples == 1280);
  CHECK(report.augment == 1);
  CHECK(report.shuffle);
  CHECK(!report.improve);
  SolveOptions greedy = with_mode(Mode::kGreedy);
  greedy.augment = 8;
  solve(engine, untrained_model(ProblemKind::kTsp, 1), {random_tsp(10, 1)}, greedy, &report);
  CHECK(report.samples == 8);
  CHECK(!report.shuffle);
  CHECK(!report.improve);
}

TEST_CASE("auto answers a TSP by local search, and asks a network only when told to") {
  Engine engine({"cpu", 2});
  const Model model = untrained_model(ProblemKind::kTsp, 1);
  InstanceBatch instances;
  for (uint32_t i = 0; i < 8; ++i) instances.push_back(random_tsp(20 + i, i));
  SolveReport report;
  const SolutionBatch plain = solve(engine, model, instances, SolveOptions(), &report);
  CHECK(report.mode == Mode::kAuto);
  CHECK(report.improve);
  CHECK(report.statistics.steps == 0);
  const SolutionBatch local = solve(engine, model, instances, with_mode(Mode::kLocal));
  SolveOptions sampled;
  sampled.network = true;
  const SolutionBatch started = solve(engine, model, instances, sampled, &report);
  CHECK(report.statistics.steps > 0);
  for (size_t i = 0; i < instances.size(); ++i) {
    CHECK(plain[i].order == local[i].order);
    CHECK(plain[i].start == Start::kGreedyEdges);
    CHECK(plain[i].kicks == default_kicks(problem_of(ProblemKind::kTsp), instances[i].n()));
    CHECK(std::isnan(plain[i].network_objective));
    CHECK(started[i].start == Start::kNetwork);
    CHECK(started[i].objective <= started[i].network_objective);
  }
}

TEST_CASE("auto begins routes with savings, or with samples where the network is asked for") {
  Engine engine({"cpu", 2});
  const Model model = untrained_model(ProblemKind::kCvrp, 1);
  const InstanceBatch instances = generate_instances(ProblemKind::kCvrp, 15, 3, 0, 6);
  SolveReport report;
  const SolutionBatch plain = solve(engine, model, instances, SolveOptions(), &report);
  CHECK(report.improve);
  CHECK(report.statistics.steps == 0);
  SolveOptions sampled;
  sampled.network = true;
  sampled.samples = 64;
  const SolutionBatch started = solve(engine, model, instances, sampled, &report);
  CHECK(report.improve);
  CHECK(report.statistics.steps > 0);
  for (size_t i = 0; i < instances.size(); ++i) {
    CHECK(plain[i].start == Start::kSavings);
    CHECK(plain[i].kicks == default_kicks(problem_of(ProblemKind::kCvrp), 15));
    CHECK(started[i].start == Start::kNetwork);
    CHECK(started[i].kicks == plain[i].kicks);
    CHECK(started[i].objective < started[i].network_objective);
  }
}

TEST_CASE("samples that are all late are drawn again, and the least delay is told") {
  Engine engine({"cpu", 2});
  const Model model = untrained_model(ProblemKind::kTsptw, 1);
  InstanceBatch instances = generate_instances(ProblemKind::kTsptw, 8, 3, 0, 2);
  for (int place = 1; place < 8; ++place)
    instances[1].values[5 * place + 3] = instances[1].values[5 * place + 2];
  instances[1].values[5 * 3 + 2] = 0.0;
  instances[1].values[5 * 3 + 3] = 1.0;  // nobody is there so soon
  SolveOptions options = with_mode(Mode::kSample);
  options.samples = 10;
  SolutionBatch found = solve(engine, model, instances, options);
  CHECK(found[0].status == Status::kDone);
  CHECK(found[0].redrawn == 0);
  CHECK(found[1].status == Status::kInfeasible);
  CHECK(found[1].redrawn == 100);
  const double least = solve(engine, model, instances, with_mode(Mode::kExact))[1].violation;
  CHECK(least > 0.0);
  CHECK(found[1].violation >= least - 1e-9);
  options.mode = Mode::kGreedy;
  options.samples = {};
  found = solve(engine, model, instances, options);
  CHECK(found[1].status == Status::kInfeasible);
  CHECK(found[1].redrawn == 0);
  options = with_mode(Mode::kActive);
  options.steps = 3;
  options.replicas = 8;
  found = solve(engine, model, instances, options);
  CHECK(found[0].status == Status::kDone);
  CHECK(found[1].violation >= least - 1e-9);
}

TEST_CASE("a sample without masks is late more often") {
  Engine engine({"cpu", 2});
  const Model model = untrained_model(ProblemKind::kTsptw, 1);
  const InstanceBatch instances = generate_instances(ProblemKind::kTsptw, 20, 3, 0, 50);
  const auto late = [&](bool masks) {
    SolveOptions options = with_mode(Mode::kGreedy);
    options.policy.masks = masks;
    const SolutionBatch found = solve(engine, model, instances, options);
    return std::ranges::count(found, Status::kInfeasible, &Solution::status);
  };
  CHECK(late(true) < 25);
  CHECK(late(false) > 25);
}

TEST_CASE("samples that read the places in other orders keep the windows of each") {
  Engine engine({"cpu", 2});
  const Model model = untrained_model(ProblemKind::kTsptw, 1);
  const InstanceBatch instances = generate_instances(ProblemKind::kTsptw, 20, 3, 0, 30);
  SolveOptions options = with_mode(Mode::kSample);
  options.samples = 200;
  options.shuffle = true;
  for (const Solution& found : solve(engine, model, instances, options)) {
    CHECK(found.status == Status::kDone);
    CHECK(found.redrawn == 0);
  }
}

// As many items of each weight as of its double, and values that tie every ratio: what a bound cannot cut.
Instance hard_knapsack(int n, uint32_t seed) {
  std::mt19937 random(seed);
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  double all = 0.0;
  for (int i = 0; i < n; ++i) {
    const double weight = 1e6 + 2.0 * (random() % 1'000'000);
    instance.values.insert(instance.values.end(), {weight, weight});
    all += weight;
  }
  instance.capacity = std::floor(all / 4.0) * 2.0 + 1.0;  // odd, and every sum is even
  return instance;
}

TEST_CASE("active search from fresh parameters learns at the rate of its encoder") {
  Engine engine({"cpu", 1});
  for (const Encoder encoder : {Encoder::kLstm, Encoder::kAttention}) {
    Model model;
    model.config.encoder = encoder;
    SolveOptions options = with_mode(Mode::kActive);
    options.untrained = true;
    options.steps = 4;
    options.replicas = 8;
    std::vector<double> means;  // of the steps
    options.on_step = [&](const ActiveSearchProgress& progress) { means.push_back(progress.batch_mean); };
    const auto means_at = [&](std::optional<double> rate) {
      means.clear();
      if (rate) options.learning_rate = static_cast<float>(*rate);
      solve(engine, model, {random_tsp(12, 1)}, options);
      return means;
    };
    const std::vector<double> by_default = means_at(std::nullopt);
    CHECK(by_default == means_at(encoder == Encoder::kLstm ? 1e-3 : 3e-4));
    CHECK(by_default != means_at(encoder == Encoder::kLstm ? 3e-4 : 1e-3));
  }
}

TEST_CASE("auto answers a KnapSack by branch and bound, and samples what that does not finish") {
  Engine engine({"cpu", 2});
  const Model model = untrained_model(ProblemKind::kKnapsack, 1);
  const InstanceBatch instances = {random_knapsack(20, 1, 3.0), hard_knapsack(60, 2),
                                   random_knapsack(20, 3, 3.0)};
  SolveReport report;
  const SolutionBatch with = solve(engine, model, instances, SolveOptions(), &report);
  CHECK(report.mode == Mode::kAuto);
  CHECK(report.statistics.steps > 0);
  const SolutionBatch exact = solve(engine, model, {instances[0], instances[2]}, with_mode(Mode::kExact));
  CHECK(with[0].order == exact[0].order);
  CHECK(with[2].order == exact[1].order);
  CHECK(with[0].start == Start::kExact);
  CHECK(with[1].start != Start::kExact);
  CHECK(std::isfinite(with[1].network_objective));
  CHECK(with[1].objective >= with[1].network_objective);
  CHECK(std::isnan(with[0].bound));
  CHECK(with[1].bound == instances[1].capacity);  // each item is worth what it weighs

  SolutionBatch without(3);
  engine.solve(nullptr, SolveJob(instances, 0, {}, {},
                                 [&](size_t i, Solution&& solution) { without[i] = std::move(solution); }));
  CHECK(without[0].order == exact[0].order);
  CHECK(without[1].start == Start::kBranchAndBound);
  CHECK(without[1].bound == with[1].bound);
  CHECK(with[1].objective >= without[1].objective);
}

TEST_CASE("a packing of the network has the bound of the branch and bound that it beats") {
  // The item of the best ratio leaves room for hard_knapsack() alone, where branch and bound gets lost; two
  // of the next twenty are worth more.
  Instance instance = hard_knapsack(60, 3);
  instance.capacity = 100'000'001;
  instance.values.insert(instance.values.end(), {51e6, 52e6});
  for (int i = 0; i < 20; ++i) instance.values.insert(instance.values.end(), {50e6, 50.6e6});
  Engine engine({"cpu", 2});
  const InstanceBatch instances = {instance};
  const Solution found =
      solve(engine, untrained_model(ProblemKind::kKnapsack, 1), instances, SolveOptions())[0];
  CHECK(found.start == Start::kNetwork);
  CHECK(found.objective == 2 * 50.6e6);
  // Dantzig's: the best item, and the rest of the capacity of the next.
  CHECK(found.bound == std::floor(52e6 + 50.6e6 * 49'000'001 / 50e6));
}

TEST_CASE("each instance has its own limit, and the next one begins with a whole one") {
  Engine engine({"cpu", 1});
  InstanceBatch instances;
  for (uint32_t i = 0; i < 5; ++i) instances.push_back(random_tsp(100, i));
  SearchControl control;
  control.each = std::chrono::milliseconds(40);
  std::vector<Clock::time_point> ends = {Clock::now()};
  engine.solve(nullptr, SolveJob(instances, 0, {}, control, [&](size_t, Solution&& solution) {
                 CHECK(solution.status == Status::kTimeLimit);
                 CHECK(solution.kicks > 0);
               }));
  const auto taken = Clock::now() - ends[0];
  CHECK(taken >= std::chrono::milliseconds(5 * 40));
  CHECK(taken < std::chrono::milliseconds(5 * 40 + 400));  // a busy machine
}

TEST_CASE("a limit too short for the network leaves an instance a quick answer") {
  Engine engine({"cpu", 1});
  const InstanceBatch instances = {random_tsp(100, 1), random_tsp(100, 2)};
  SearchControl control;
  control.each = std::chrono::nanoseconds(1);
  const Model model = untrained_model(ProblemKind::kTsp, 1);
  int answered = 0;
  engine.solve(&model,
               SolveJob(instances, 0, with_mode(Mode::kSample), control, [&](size_t, Solution&& solution) {
                 CHECK(solution.status == Status::kTimeLimit);
                 answered += solution.order.size() == 100;
               }));
  CHECK(answered == 2);
}

TEST_CASE("chunks of a run draw the samples of the whole") {
  Engine engine({"cpu", 2});
  const Model model = untrained_model(ProblemKind::kTsp, 1);
  InstanceBatch instances;
  for (uint32_t i = 0; i < 8; ++i) instances.push_back(random_tsp(10, i));
  const auto samples = [&](int64_t first, int64_t count) {
    SolveOptions options = with_mode(Mode::kSample);
    options.first_sample = first;
    options.samples = count;
    return solve(engine, model, instances, options);
  };
  const SolutionBatch whole = samples(0, 8), first = samples(0, 4), second = samples(4, 4);
  int from_second = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    const bool is_first = whole[i].order == first[i].order, is_second = whole[i].order == second[i].order;
    CHECK(is_first != is_second);
    from_second += is_second;
  }
  CHECK(from_second > 0);
}

TEST_CASE("active search from a model trains its attention, at a share of the model's own rate") {
  Engine engine({"cpu", 1});
  Model model = untrained_model(ProblemKind::kTsp, 1);
  model.config.learning_rate = 0.25;
  const InstanceBatch instances = {random_tsp(12, 1)};
  SolveOptions options = with_mode(Mode::kActive);
  options.steps = 4;
  options.replicas = 8;
  std::vector<double> means;
  options.on_step = [&](const ActiveSearchProgress& at) { means.push_back(at.batch_mean); };
  const auto search = [&] {
    means.clear();
    solve(engine, model, instances, options);
    return means;
  };
  const std::vector<double> by_default = search();
  options.learned = Learned::kAttention;
  options.learning_rate = 0.05f;
  CHECK(search() == by_default);
  options.learning_rate = 0.25f;
  CHECK(search() != by_default);
  options.learned = Learned::kAll;
  options.learning_rate.reset();
  const std::vector<double> by_all = search();
  CHECK(by_all != by_default);
  options.learning_rate = 0.0025f;
  CHECK(search() == by_all);
}

TEST_CASE("the facade refuses instances of another problem") {
  Engine engine({"cpu", 1});
  const Model model = untrained_model(ProblemKind::kTsp, 1);
  CHECK_THROWS_AS(solve(engine, model, {random_knapsack(5, 1, 1.0)}, SolveOptions()), std::invalid_argument);
  CHECK_THROWS_AS(solve(engine, model, {Instance()}, SolveOptions()), std::invalid_argument);
  const InstanceBatch alone = {random_tsp(5, 1)};
  CHECK_THROWS_AS(engine.score(model, alone, {}), std::invalid_argument);
}
