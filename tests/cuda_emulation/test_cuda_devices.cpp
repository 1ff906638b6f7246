// SPDX-License-Identifier: Apache-2.0
// Several calls at once on an emulated device, chunks that overlap, and several devices: the answers are
// those of one call after the other on one device, under every schedule.
#include <exception>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "engine/backend/backends.h"
#include "engine/engine.h"
#include "tests/catch.h"
#include "tests/cuda_emulation/emulation.h"
#include "tests/engine/random_batch.h"
#include "tests/engine/random_instances.h"

namespace pointsman {
namespace {

using emulation::Schedule;

const std::vector<Schedule> kSchedules = {
    {Schedule::kForward, 0}, {Schedule::kReverse, 0}, {Schedule::kGreedy, 1}, {Schedule::kGreedy, 2}};

struct WithSchedule {
  explicit WithSchedule(Schedule schedule) { emulation::set_schedule(schedule); }
  ~WithSchedule() { emulation::set_schedule(before); }
  Schedule before = emulation::current_schedule();
};

std::unique_ptr<Backend> with(std::unique_ptr<Backend> backend, const ModelConfig& config) {
  backend->configure(config, 1);
  backend->load_parameters(0, scaled_parameters(config, 3.0f, 1));
  return backend;
}

RolloutRequest sampling(const RandomBatch& batch, const std::vector<int32_t>& counts) {
  RolloutRequest request;
  request.sequences = batch.batch();
  request.decode = Decode::kSample;
  request.instance_keys = batch.keys.data();
  request.counts = counts.data();
  return request;
}

// A lane has a quarter of it, and a chunk needs some 20 to 60 kB.
constexpr int64_t kLimit = 250'000;

TEST_CASE("devices: the chunks of a call overlap in two lanes, with the answers of one chunk") {
  const std::vector<int32_t> counts{3, 40, 1, 0, 25, 7};
  for (const ProblemKind problem : {ProblemKind::kTsp, ProblemKind::kKnapsack}) {
    const RandomBatch batch(problem, 7, 6, 41);
    const ModelConfig config = config_for(problem, 7);
    RolloutRequest request = sampling(batch, counts);
    for (const bool best : {false, true}) {
      request.best_only = best;
      const RolloutResult expected = roll_out(*with(make_cpu_backend(1), config), request);
      for (const Schedule schedule : kSchedules) {
        const WithSchedule set(schedule);
        const auto cut = with(make_cuda_backend(0, kLimit), config);
        for (int call = 0; call < 2; ++call) {
          const RolloutResult found = roll_out(*cut, request);
          CHECK(same_answers(found, expected));
          CHECK(found.winners == expected.winners);
          CHECK(found.statistics.steps == expected.statistics.steps);
        }
      }
    }
  }
}

TEST_CASE("devices: a stop ends all chunks that are under way, and reaches no other call") {
  const std::vector<int32_t> counts{3, 40, 1, 0, 25, 7};
  const RandomBatch batch(ProblemKind::kTsp, 7, 6, 42);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  RolloutRequest request = sampling(batch, counts);
  const RolloutResult expected = roll_out(*with(make_cpu_backend(1), config), request);
  for (const Schedule schedule : kSchedules) {
    const WithSchedule set(schedule);
    const auto cut = with(make_cuda_backend(0, kLimit), config);
    for (int last = 1; last < 30; last += 4) {
      int questions = 0;
      RolloutRequest stopped = request;
      stopped.stop = StopToken([&] { return ++questions >= last; });
      const RolloutResult found = roll_out(*cut, stopped);
      int64_t finished = 0, made = 0;
      for (size_t r = 0; r < found.costs.size(); ++r) {
        if (std::isnan(found.costs[r])) continue;
        ++made;
        CHECK(found.costs[r] == expected.costs[r]);
        CHECK(found.log_probs[r] == expected.log_probs[r]);
      }
      for (const int32_t of_sequence : found.finished) finished += of_sequence;
      CHECK(made == (found.finished.empty() ? 76 : finished));
      CHECK(same_answers(roll_out(*cut, request), expected));
    }
  }
}

TEST_CASE("devices: two calls at once are answered as one after the other") {
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  const std::vector<int32_t> counts{3, 40, 1, 25};
  const RandomBatch first(ProblemKind::kTsp, 7, 4, 43), second(ProblemKind::kTsp, 7, 4, 44);
  const auto cpu = with(make_cpu_backend(1), config);
  const RolloutRequest requests[] = {sampling(first, counts), sampling(second, counts)};
  const RolloutResult expected[] = {roll_out(*cpu, requests[0]), roll_out(*cpu, requests[1])};
  for (const Schedule schedule : kSchedules) {
    const WithSchedule set(schedule);
    // In lanes; and with too little memory for them, so that the calls wait for each other.
    for (const int64_t limit : {int64_t{0}, kLimit, int64_t{40'000}}) {
      const auto cuda = with(make_cuda_backend(0, limit), config);
      CHECK(cuda->info().calls == 2);
      bool right[2] = {true, true};
      const auto call = [&](int i) {
        for (int round = 0; round < 2; ++round)
          right[i] = right[i] && same_answers(roll_out(*cuda, requests[i]), expected[i]);
      };
      std::thread other(call, 1);
      call(0);
      other.join();
      CHECK(right[0]);
      CHECK(right[1]);
    }
  }
}

// A step onto the tape; costs are weights.
LearnRequest learning(const RandomBatch& batch, const std::vector<int32_t>& counts, Tape& tape) {
  LearnRequest request;
  request.rollouts = sampling(batch, counts);
  request.rollouts.tape = &tape;
  request.weigh = [](const RolloutResult& result) {
    return std::vector<float>(result.costs.begin(), result.costs.end());
  };
  return request;
}

std::vector<float> parameters_of(const Backend& backend, const ModelConfig& config) {
  std::vector<float> parameters(ParameterLayout(config).size);
  backend.read_parameters(0, parameters);
  return parameters;
}

// Of learn(), after what is made once: memory grows, and a graph is instantiated.
emulation::Calls calls_of_step(Backend& backend, const LearnRequest& request) {
  RolloutResult result;
  for (int time = 0; time < 2; ++time) backend.learn(request, result);
  const emulation::Calls before = emulation::calls();
  backend.learn(request, result);
  return emulation::calls() - before;
}

TEST_CASE("devices: a step of training is one graph, which is waited for once") {
  struct Step {
    Encoder encoder;
    Learned learned;
    int64_t launches;  // kernels and products, as docs/kernels.md has them
  };
  constexpr Step kSteps[] = {{Encoder::kLstm, Learned::kAll, 43},
                             {Encoder::kLstm, Learned::kAttention, 30},
                             {Encoder::kAttention, Learned::kAll, 153},
                             {Encoder::kAttention, Learned::kAttention, 65}};
  const std::vector<int32_t> counts{4, 4};
  const RandomBatch batch(ProblemKind::kTsp, 7, 2, 45);
  for (const Step& step : kSteps) {
    ModelConfig config = config_for(ProblemKind::kTsp, 7);
    config.encoder = step.encoder;
    Tape tape;
    LearnRequest request = learning(batch, counts, tape);
    request.learned = step.learned;
    const auto cuda = with(make_cuda_backend(0), config);
    const emulation::Calls calls = calls_of_step(*cuda, request);
    CHECK(calls.graphs == 1);
    CHECK(calls.instantiations == 0);
    CHECK(calls.launches == 0);
    CHECK(calls.copies == 1);  // the inputs
    CHECK(calls.waits == 1);
    CHECK(calls.nodes <= step.launches);
  }
}

TEST_CASE("devices: cuBLAS takes memory only where something is learnt") {
  const std::vector<int32_t> counts{4, 4};
  const RandomBatch batch(ProblemKind::kTsp, 7, 2, 45);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  const auto cuda = with(make_cuda_backend(0), config);
  Tape tape;
  const LearnRequest request = learning(batch, counts, tape);
  RolloutResult result;
  cuda->rollout(request.rollouts, result);
  const size_t searching = emulation::allocated_bytes();
  cuda->learn(request, result);
  const size_t workspace = size_t{emulation::architecture() == std::string("sm_80") ? 4u : 32u} << 20;
  CHECK(emulation::allocated_bytes() - searching >= workspace);
}

TEST_CASE("devices: learning in too little memory for a graph goes in calls") {
  const std::vector<int32_t> counts{3, 9, 1, 5};
  const RandomBatch batch(ProblemKind::kTsp, 7, 4, 45);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  std::vector<float> learnt[2];
  for (const int in_calls : {0, 1}) {
    const auto cuda = with(make_cuda_backend(0, kLimit), config);
    Tape tape;
    const LearnRequest request = learning(batch, counts, tape);
    const emulation::Calls before = emulation::calls();
    RolloutResult result;
    for (int time = 0; time < 2; ++time)
      in_calls == 0 ? cuda->learn(request, result) : learn_in_calls(*cuda, request, result);
    CHECK((emulation::calls() - before).graphs == 0);
    learnt[in_calls] = parameters_of(*cuda, config);
  }
  CHECK((learnt[0] == learnt[1]));
}

TEST_CASE("devices: a stop that comes after the rollouts of a step changes nothing of it") {
  const std::vector<int32_t> counts{4, 4};
  const RandomBatch batch(ProblemKind::kTsp, 7, 2, 45);
  const ModelConfig config = config_for(ProblemKind::kTsp, 7);
  const auto learnt = [&](const StopToken& stop) {
    const auto cuda = with(make_cuda_backend(0), config);
    Tape tape;
    LearnRequest request = learning(batch, counts, tape);
    request.rollouts.stop = stop;
    RolloutResult result;
    return cuda->learn(request, result).empty() ? std::vector<float>() : parameters_of(*cuda, config);
  };
  const std::vector<float> expected = learnt({});
  int early = 0, late = 0;
  for (int answered = 0; answered < 60; answered += 2) {
    int questions = 0;
    const std::vector<float> found = learnt(StopToken([&] { return questions++ >= answered; }));
    ++(found.empty() ? early : late);
    CHECK((found.empty() || found == expected));
  }
  CHECK(early > 0);
  CHECK(late > 10);
}

SolutionBatch solve(Engine& engine, const Model& model, const InstanceBatch& instances,
                    const SolveOptions& options) {
  SolutionBatch solutions;
  engine.solve(&model, SolveJob(instances, 0, options, {}, [&](size_t, Solution&& solution) {
    solutions.push_back(std::move(solution));
  }));
  return solutions;
}

Engine engine_of(int devices) {
  std::vector<std::unique_ptr<Backend>> backends;
  for (int i = 0; i < devices; ++i) backends.push_back(make_cuda_backend(i));
  return Engine(std::move(backends));
}

TEST_CASE("devices: two devices solve and score as one does") {
  emulation::set_device_count(2);
  CHECK_THROWS_AS(make_cuda_backend(2), DeviceError);
  Model model;
  model.config.problem = ProblemKind::kTsp;
  model.config.n = 20;
  model.parameters = initial_parameters(model.config, 1);
  InstanceBatch instances;
  for (uint32_t i = 0; i < 8; ++i) instances.push_back(random_tsp(5 + i % 4, i));
  for (uint32_t i = 0; i < 4; ++i) instances.push_back(random_tsp(12, i));
  SolveOptions sample, active, tours;
  tours.mode = Mode::kTwoOpt;
  tours.kicks = 3;
  sample.mode = Mode::kSample;
  sample.samples = 20;
  active.mode = Mode::kActive;
  active.steps = 1;
  active.replicas = 2;
  for (const SolveOptions& options : {sample, active, tours}) {
    Engine one = engine_of(1), two = engine_of(2);
    CHECK(two.device().name == "cuda:all");
    const SolutionBatch expected = solve(one, model, instances, options);
    const SolutionBatch found = solve(two, model, instances, options);
    for (size_t i = 0; i < instances.size(); ++i) {
      CHECK(found[i].order == expected[i].order);
      CHECK((found[i].log_prob == expected[i].log_prob || options.mode == Mode::kTwoOpt));
    }
    CHECK(two.score(model, instances, expected) == one.score(model, instances, expected));
  }
  emulation::set_device_count(1);
}

TEST_CASE("devices: two devices find the routes that one does") {
  emulation::set_device_count(2);
  Model model;
  model.config = config_for(ProblemKind::kCvrp, 7);
  model.parameters = initial_parameters(model.config, 1);
  InstanceBatch instances(5);
  for (uint32_t i = 0; i < instances.size(); ++i) {
    instances[i].problem = ProblemKind::kCvrp;
    instances[i].capacity = 9.0;
    const std::vector<double> places = random_tsp(7, i).values;
    for (int item = 0; item < 7; ++item) {
      const double demand = item == 0 ? 0.0 : 1 + (item + i) % 9;
      instances[i].values.insert(instances[i].values.end(), {places[2 * item], places[2 * item + 1], demand});
    }
  }
  SolveOptions sample;
  sample.mode = Mode::kSample;
  sample.samples = 9;
  {
    Engine one = engine_of(1), two = engine_of(2);
    const SolutionBatch expected = solve(one, model, instances, sample);
    const SolutionBatch found = solve(two, model, instances, sample);
    for (size_t i = 0; i < instances.size(); ++i) CHECK(found[i].order == expected[i].order);
    CHECK(two.score(model, instances, expected) == one.score(model, instances, expected));
  }
  emulation::set_device_count(1);
}

}  // namespace
}  // namespace pointsman
