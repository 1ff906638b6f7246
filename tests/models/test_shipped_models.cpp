// SPDX-License-Identifier: Apache-2.0
// The canaries: every shipped model loads, agrees with the double oracle, and is as good as its card says on
// the first instances of the community's test set.
#include <cmath>
#include <filesystem>
#include <fstream>

#include "engine/engine.h"
#include "tests/catch.h"
#include "tests/reference/reference.h"

namespace pointsman {
namespace {

struct Shipped {
  const char* name;
  double greedy_gap;  // mean over the instances; a tenth above what was measured when the model landed
  double augmented_gap;
  int instances = 100;
};

// KnapSack: mean share of the optimal value that is missing. The second number is best of 8 symmetries, of
// problems without them of 128 samples, shuffled.
constexpr Shipped kShipped[] = {
    {"tsp20", 0.0027, 4.0e-5},        {"tsp50", 0.0152, 0.0032},       {"tsp100", 0.0521, 0.0280},
    {"tsp200", 0.1652, 0.0644, 16},   {"knap50", 0.00021, 1e-9},       {"knap100", 9.2e-5, 1e-9},
    {"knap200", 0.00012, 1.2e-5},     {"tsp20-lstm", 0.0186, 0.0024},  {"tsp50-lstm", 0.0543, 0.0212},
    {"tsp100-lstm", 0.0990, 0.0604},  {"knap50-lstm", 0.0023, 0.0002}, {"knap100-lstm", 0.0010, 1.5e-5},
    {"knap200-lstm", 0.0008, 1.7e-5}, {"cvrp20", 0.0581, 0.0213},      {"cvrp50", 0.0826, 0.0431},
    {"path50", 0.0375, 0.0124},       {"atsp20", 0.0453, 0.0036},      {"atsp50", 0.0676, 0.0105}};

Model load(const std::string& name) {
  return read_model(std::filesystem::path(POINTSMAN_SOURCE_DIR) / "models/pretrained" /
                    (name + ".safetensors"));
}

InstanceBatch first_instances(const Shipped& shipped, const Model& model) {
  const ModelConfig& config = model.config;
  if (config.problem == ProblemKind::kAtsp)
    return generate_instances(config.problem, config.n, 4321, 0, shipped.instances);
  InstanceBatch all = generate_like_numpy(config.problem, config.n, 1234, 1000);
  all.resize(shipped.instances);
  return all;
}

std::vector<double> optima(const Shipped& shipped) {
  const std::string name = shipped.name, set = name.substr(0, name.find('-'));
  std::ifstream file(std::filesystem::path(POINTSMAN_SOURCE_DIR) / "tests/data" /
                     (set + "_first" + std::to_string(shipped.instances) + ".opt.txt"));
  std::vector<double> values;
  for (double value; file >> value;) values.push_back(value);
  REQUIRE(values.size() == static_cast<size_t>(shipped.instances));
  return values;
}

SolutionBatch solve(Engine& engine, const Model& model, const InstanceBatch& instances,
                    const SolveOptions& options) {
  SolutionBatch solutions;
  engine.solve(&model, SolveJob(instances, 0, options, {}, [&](size_t, Solution&& solution) {
    solutions.push_back(std::move(solution));
  }));
  return solutions;
}

double mean_gap(Engine& engine, const Model& model, const Shipped& shipped, const SolveOptions& options) {
  const InstanceBatch instances = first_instances(shipped, model);
  const std::vector<double> best = optima(shipped);
  const SolutionBatch solutions = solve(engine, model, instances, options);
  double sum = 0.0;
  for (size_t i = 0; i < instances.size(); ++i) {
    const double own = gap(model.config.problem, solutions[i].objective, best[i]);
    sum += own;
    CHECK(own > -1e-9);  // nothing beats an optimum
  }
  return sum / static_cast<double>(instances.size());
}

reference::Sequence sequence_of(const Instance& instance, double trained_capacity) {
  const Problem& problem = problem_of(instance);
  reference::Sequence sequence;
  sequence.problem = instance.problem;
  sequence.capacity = instance.capacity;
  for (const float feature : problem.features(instance, trained_capacity))
    sequence.features.push_back(feature);
  if (keeps_numbers(problem)) sequence.weights = rule_numbers(instance).weights;
  const int weight = problem.has_depot ? 2 : 0;
  for (int i = 0; i < instance.n() && problem.has_capacity; ++i)
    sequence.weights.push_back(instance.item(i)[weight]);
  return sequence;
}

// The mean gap of eight copies of each instance, of problems without symmetries of 128 samples.
void check_gain(const Shipped& shipped) {
  INFO(shipped.name);
  Engine engine({"cpu", 2});
  const Model model = load(shipped.name);
  SolveOptions more;
  more.mode = Mode::kGreedy;
  if (problem_of(model.config.problem).has_symmetries) {
    more.augment = 8;
  } else {
    more.mode = Mode::kSample;
    more.samples = 128;
    more.shuffle = true;
  }
  CHECK(mean_gap(engine, model, shipped, more) <= shipped.augmented_gap);
}

}  // namespace

TEST_CASE("shipped models decode as well as their cards say", "[models]") {
  Engine engine({"cpu", 2});
  for (const Shipped& shipped : kShipped) {
    INFO(shipped.name);
    SolveOptions greedy;
    greedy.mode = Mode::kGreedy;
    CHECK(mean_gap(engine, load(shipped.name), shipped, greedy) <= shipped.greedy_gap);
  }
}

TEST_CASE("shipped models of 50 items or fewer gain from copies or samples what their cards say",
          "[models]") {
  for (const Shipped& shipped : kShipped) {
    if (load(shipped.name).config.n <= 50) check_gain(shipped);
  }
}

TEST_CASE("shipped models of more items gain from copies or samples what their cards say",
          "[models][.long]") {
  for (const Shipped& shipped : kShipped) {
    if (load(shipped.name).config.n > 50) check_gain(shipped);
  }
}

TEST_CASE("log p of shipped models' answers is within 1e-5 of double", "[models]") {
  Engine engine({"cpu", 1});
  for (const Shipped& shipped : kShipped) {
    const Model model = load(shipped.name);
    const reference::Network network(model.config, model.parameters);
    InstanceBatch instances = first_instances(shipped, model);
    if (model.config.n > 50) instances.resize(16);  // the oracle takes its time
    SolveOptions options;
    options.mode = Mode::kSample;
    options.samples = 1;
    const SolutionBatch solutions = solve(engine, model, instances, options);
    double worst = 0.0;
    for (size_t i = 0; i < instances.size(); ++i) {
      const std::vector<int> order(solutions[i].order.begin(), solutions[i].order.end());
      const double expected =
          reference::forced(network, sequence_of(instances[i], model.config.capacity), order).log_prob;
      worst = worse(worst, std::abs((solutions[i].log_prob - expected) / expected));
    }
    INFO(shipped.name);
    CHECK(worst <= 1e-5);
  }
}

}  // namespace pointsman
