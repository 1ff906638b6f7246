// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cmath>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <stdexcept>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include "engine/problem/problem.h"
#include "engine/schedule/schedule.h"
#include "engine/search/heuristics.h"
#include "engine/search/local/tour_search.h"
#include "tests/catch.h"
#include "tests/engine/fake_backend.h"
#include "tests/engine/random_instances.h"

using namespace pointsman;

namespace {

InstanceBatch mixed_instances() {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 30; ++i) instances.push_back(random_tsp(i % 3 == 0 ? 12 : i % 3 == 1 ? 20 : 3, i));
  instances[7].has_id = true;
  instances[7].id = "seven";
  return instances;
}

SamplingOptions sampling_options(int64_t samples, bool improve) {
  SamplingOptions options;
  options.samples = samples;
  options.augment = 8;
  options.shuffle = true;
  options.candidates = improve ? 16 : 1;
  return options;
}

SolvePlan sampling_plan(int64_t samples, bool improve) {
  SolvePlan plan;
  plan.search = sampling_options(samples, improve);
  if (improve) plan.improve.emplace();
  return plan;
}

SolveJob job_of(const InstanceBatch& instances, SolutionSink sink) {
  return SolveJob(instances, 0, {}, {}, std::move(sink));
}

SolutionBatch solve(const Devices& devices, const SolvePlan& plan, const InstanceBatch& instances,
                    const SearchControl& control = {}, uint64_t first_row = 0,
                    const ModelConfig& config = {}) {
  SolutionBatch solutions;
  const SolveJob job(instances, first_row, {}, control, [&](size_t place, Solution&& solution) {
    CHECK(place == solutions.size());
    solutions.push_back(std::move(solution));
  });
  const PolicyStatistics statistics = solve_instances(devices, config, plan, job);
  CHECK(solutions.size() == instances.size());
  if (std::holds_alternative<InstanceSearch>(plan.search)) CHECK(statistics.steps == 0);
  for (size_t i = 0; i < instances.size(); ++i) {
    if (solutions[i].status == Status::kUnsolved) {
      CHECK(solutions[i].order.empty());
      continue;
    }
    if (solutions[i].status == Status::kDone)
      CHECK((statistics.steps > 0) == !std::holds_alternative<InstanceSearch>(plan.search));
    Solution again = solutions[i];
    REQUIRE(validate_solution(instances[i], again).empty());
    CHECK(again.objective == solutions[i].objective);
  }
  return solutions;
}

SolutionBatch solve(FakeBackend& backend, const SolvePlan& plan, const InstanceBatch& instances,
                    const SearchControl& control = {}, uint64_t first_row = 0,
                    const ModelConfig& config = {}) {
  return solve(Devices{&backend}, plan, instances, control, first_row, config);
}

std::vector<std::vector<int32_t>> orders_of(const SolutionBatch& solutions) {
  std::vector<std::vector<int32_t>> orders;
  for (const Solution& solution : solutions) orders.push_back(solution.order);
  return orders;
}

}  // namespace

TEST_CASE("a mixed batch is answered in input order, the same for every batch size") {
  const InstanceBatch instances = mixed_instances();
  for (const bool improve : {false, true}) {
    SolvePlan plan = sampling_plan(40, improve);
    FakeBackend backend;
    const auto expected = orders_of(solve(backend, plan, instances));
    CHECK(backend.rollout_calls == 3);  // one for each size
    for (const int batch_size : {1, 4, 1000}) {
      plan.batch_size = batch_size;
      CHECK(orders_of(solve(backend, plan, instances)) == expected);
    }
    // An instance alone, at its own row.
    const InstanceBatch alone = {instances[11]};
    CHECK(solve(backend, plan, alone, {}, 11)[0].order == expected[11]);
    // The draws of an instance with an id do not depend on its row.
    const InstanceBatch named = {instances[7]};
    CHECK(solve(backend, plan, named, {}, 999)[0].order == expected[7]);
  }
}

TEST_CASE("a part of a job keeps rows, options and limits, and reports steps by the job's places") {
  const InstanceBatch instances = mixed_instances();
  SolveJob job(instances, 100);
  job.options.seed = 7;
  job.control.each = std::chrono::seconds(3);
  std::vector<int64_t> reported;
  job.options.on_step = [&](const ActiveSearchProgress& at) { reported.push_back(at.instance); };
  const std::vector<size_t> places = {4, 29, 11};
  const SolveJob part = job.part(places);
  REQUIRE(part.size() == 3);
  for (size_t i = 0; i < 3; ++i) CHECK(part.instances[i] == &instances[places[i]]);
  CHECK(part.rows == std::vector<uint64_t>{104, 129, 111});
  CHECK(part.options.seed == 7);
  CHECK(part.control.each == std::chrono::seconds(3));
  CHECK_FALSE(part.sink);
  part.options.on_step({1, 1, 0.0, 0.0, 0.0});
  CHECK(reported == std::vector<int64_t>{29});
}

TEST_CASE("a search of one instance at a time hands out each answer before the next is searched") {
  const InstanceBatch instances = mixed_instances();
  FakeBackend backend;
  backend.threads = 1;
  size_t searched = 0, taken = 0;
  SolvePlan plan;
  plan.search = InstanceSearch([&](const Instance& instance, uint64_t, const SearchControl&, WorkerThreads*) {
    CHECK(taken == searched++);
    return quick_answer(instance);
  });
  solve_instances({&backend}, {}, plan, job_of(instances, [&](size_t, Solution&&) { ++taken; }));
  CHECK(taken == instances.size());
}

TEST_CASE("improvement says what the network alone reached and is never worse") {
  const InstanceBatch instances = mixed_instances();
  FakeBackend backend;
  const SolutionBatch plain = solve(backend, sampling_plan(40, false), instances);
  const SolutionBatch improved = solve(backend, sampling_plan(40, true), instances);
  int shorter = 0;
  for (size_t i = 0; i < instances.size(); ++i) {
    CHECK(improved[i].network_objective == plain[i].objective);
    CHECK(improved[i].objective <= plain[i].objective);
    CHECK(plain[i].network_objective == plain[i].objective);
    if (improved[i].objective < plain[i].objective) ++shorter;
  }
  CHECK(shorter == 20);  // all but those of three cities
}

TEST_CASE("KnapSack goes through the schedule without improvement") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 5; ++i) instances.push_back(random_knapsack(10, i, 2.0));
  SolvePlan plan = sampling_plan(50, true);
  std::get<SamplingOptions>(plan.search).augment = 1;
  FakeBackend backend;
  ModelConfig config;
  config.problem = ProblemKind::kKnapsack;
  config.capacity = 2.0;
  for (const Solution& solution : solve(backend, plan, instances, {}, 0, config)) {
    CHECK(solution.objective > 0.0);
    CHECK(solution.weight <= 2.0);
    CHECK(solution.network_objective == solution.objective);
  }
}

TEST_CASE("active search is scheduled by size too") {
  const InstanceBatch instances = mixed_instances();
  const ModelConfig config;
  const std::vector<float> initial(ParameterLayout(config).size, 0.5f);
  ActiveSearchOptions active;
  active.initial = initial;
  active.steps = 3;
  active.replicas = 4;
  std::vector<int> steps(instances.size(), 0);
  active.on_step = [&](const ActiveSearchProgress& progress) { ++steps.at(progress.instance); };
  SolvePlan plan;
  plan.search = active;
  FakeBackend backend;
  const auto expected = orders_of(solve(backend, plan, instances));
  CHECK(steps == std::vector<int>(instances.size(), 3));
  plan.batch_size = 3;
  CHECK(orders_of(solve(backend, plan, instances)) == expected);
  plan.improve.emplace();
  const SolutionBatch improved = solve(backend, plan, instances);
  for (const Solution& solution : improved) CHECK(solution.objective <= solution.network_objective);
}

TEST_CASE("limits leave valid answers with their status, and the rest unsolved") {
  const InstanceBatch instances = mixed_instances();
  FakeBackend backend;
  for (const bool improve : {false, true}) {
    const SolvePlan plan = sampling_plan(1000, improve);
    const SearchControl late = {Clock::now() - std::chrono::seconds(1), {}},
                        interrupted = {{}, [] { return true; }};
    for (const SearchControl& control : {late, interrupted}) {
      for (const Solution& solution : solve(backend, plan, instances, control))
        CHECK(solution.status == Status::kUnsolved);
    }
    // An instance alone is answered without the network.
    const Solution alone = solve(backend, plan, {instances[0]}, late)[0];
    CHECK(alone.status == Status::kTimeLimit);
    CHECK(alone.order == quick_answer(instances[0]).order);
    CHECK(solve(backend, plan, {instances[0]}, interrupted)[0].status == Status::kUnsolved);
    CHECK(backend.drawn.empty());
  }
  // A limit within the run: what came before it is solved, what comes after it is not, and it is soon.
  FakeBackend long_run;
  long_run.time_per_rollout = std::chrono::microseconds(100);
  InstanceBatch many;
  for (uint32_t i = 0; i < 20000; ++i) many.push_back(random_tsp(5, i));
  const Clock::time_point start = Clock::now();
  std::map<Status, int> statuses;
  SolvePlan greedy = sampling_plan(1, false);
  for (const Solution& solution : solve(long_run, greedy, many, {start + std::chrono::milliseconds(300), {}}))
    ++statuses[solution.status];
  CHECK(Clock::now() - start < std::chrono::milliseconds(800));
  CHECK(statuses[Status::kDone] > 0);
  CHECK(statuses[Status::kUnsolved] > 10000);
  // All samples drawn, but no time left: only the best is improved.
  FakeBackend late;
  late.time_per_rollout = std::chrono::milliseconds(2);
  const SolutionBatch hurried = solve(late, sampling_plan(16, true), {random_tsp(20, 1)},
                                      {Clock::now() + std::chrono::milliseconds(5), {}});
  CHECK(hurried[0].status == Status::kTimeLimit);
  CHECK(hurried[0].objective < hurried[0].network_objective);
  CHECK(solve(late, sampling_plan(1, true), {random_tsp(20, 1)},
              {Clock::now() + std::chrono::milliseconds(1), {}})[0]
            .status == Status::kDone);
  // 12 cities at place 0, 20 at place 1: 10,000 rollouts of 40 us each. The sizes share 300 ms, so the first
  // does not leave the second with one sample each.
  FakeBackend slow;
  slow.time_per_rollout = std::chrono::microseconds(40);
  solve(slow, sampling_plan(1000, false), instances, {Clock::now() + std::chrono::milliseconds(300), {}});
  CHECK(slow.drawn.size() < 25000);
  CHECK(slow.drawn.count({0, 1}) == 1);
  CHECK(slow.drawn.count({1, 1}) == 1);
}

TEST_CASE("an instance alone has its first answer a little past the limit") {
  FakeBackend backend;
  const SearchControl just_over = {Clock::now(), {}};
  const Instance instance = random_tsp(10, 1);
  const Solution answer = solve(backend, sampling_plan(1000, false), {instance}, just_over)[0];
  CHECK(answer.status == Status::kTimeLimit);
  CHECK(backend.drawn.size() == 1);
  CHECK(answer.network_objective == answer.objective);
}

// ------------------------------------------------------------------------------- ahead of a device

namespace {

// Answers at once with one tour for all and is busy as long as a device of so many rollouts a second.
class Device final : public FakeBackend {
 public:
  // calls: that it takes at once.
  explicit Device(double rollouts_per_second, int calls = 1)
      : seconds_each_(1.0 / rollouts_per_second), calls_(calls) {}

  DeviceInfo info() const override { return {"device", "sleeps", 2, false, 512, calls_}; }

  void rollout(const RolloutRequest& request, RolloutResult& result) override {
    const int callers = ++callers_;
    for (int most = most_callers; most < callers && !most_callers.compare_exchange_weak(most, callers);) {
    }
    const Clock::time_point start = Clock::now();
    const int64_t rollouts = count_rollouts(request);
    const int n = request.sequences.n;
    clear_rollouts(rollouts, n, result);
    for (int64_t r = 0; r < rollouts; ++r) {
      // The first half of the items as they come, the rest turned by a number that differs.
      for (int i = 0; i < n; ++i)
        result.orders[r * n + i] = i < n / 2 ? i : n / 2 + static_cast<int>((i + r) % (n - n / 2));
      result.costs[r] = 1.0 + static_cast<double>(r % 1021);
      result.log_probs[r] = -1.0;
    }
    result.statistics.steps = rollouts * n;
    if (request.best_only) choose_best(request, result);
    const Clock::time_point begin = begin_after(start, rollouts), end = begin + time_of(rollouts);
    for (auto now = start; now < end && !request.stop.stops(); now = Clock::now())
      std::this_thread::sleep_until(std::min(end, now + std::chrono::milliseconds(2)));
    const Clock::time_point now = Clock::now();
    if (now < end) {
      clear_rollouts(request.best_only ? request.sequences.count : rollouts, n, result);
      result.finished.assign(request.sequences.count, 0);
      if (request.best_only) result.winners.assign(request.sequences.count, -1);
    }
    const std::lock_guard lock(mutex_);
    busy += std::max(std::min(now, end) - begin, Clock::duration::zero());
    --callers_;
    if (fails_after && --*fails_after == 0) {
      failed = true;
      throw DeviceError("device: lost");
    }
  }

  Clock::duration busy{};
  std::atomic<int> most_callers{0};
  std::optional<int> fails_after;
  std::atomic<bool> failed{false};

 private:
  Clock::duration time_of(int64_t rollouts) const {
    return std::chrono::duration_cast<Clock::duration>(
        std::chrono::duration<double>(seconds_each_ * rollouts));
  }
  // The work of a call begins where that of the calls before it ends.
  Clock::time_point begin_after(Clock::time_point start, int64_t rollouts) {
    const std::lock_guard lock(mutex_);
    const Clock::time_point begin = std::max(start, free_from_);
    free_from_ = begin + time_of(rollouts);
    return begin;
  }

  const double seconds_each_;
  const int calls_;
  std::atomic<int> callers_{0};
  std::mutex mutex_;
  Clock::time_point free_from_{};
};

}  // namespace

TEST_CASE("a device is kept busy while the host packs, sorts out and improves") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 600; ++i) instances.push_back(random_tsp(i % 2 == 0 ? 20 : 25, i));
  SolvePlan plan = sampling_plan(128, true);
  plan.batch_size = 32;
  std::get<SamplingOptions>(plan.search).shuffle = false;
  double share = 0.0;
  for (int attempt = 0; attempt < 5 && share < 0.95; ++attempt) {  // other programs may need the host
    Device device(50'000);
    const Clock::time_point start = Clock::now();
    solve(device, plan, instances);
    share = std::chrono::duration<double>(device.busy) / (Clock::now() - start);
    CHECK(device.most_callers == 1);
  }
  CHECK(share >= 0.95);
}

TEST_CASE("a signal that comes while the network searches leaves its answer, improved or not") {
  for (const bool improve : {false, true}) {
    std::atomic<bool> interrupted = false;
    class Interrupting final : public FakeBackend {
     public:
      explicit Interrupting(std::atomic<bool>& flag) : interrupted_(flag) {}
      void rollout(const RolloutRequest& request, RolloutResult& result) override {
        FakeBackend::rollout(request, result);
        interrupted_ = true;
      }

     private:
      std::atomic<bool>& interrupted_;
    } backend(interrupted);
    const SearchControl control = {{}, [&] { return interrupted.load(); }};
    const SolvePlan plan = sampling_plan(1'000'000, improve);
    CHECK(solve(backend, plan, {random_tsp(100, 1)}, control)[0].status == Status::kInterrupted);
  }
}

// By hand, some minutes on a host that does nothing else: build/tests/test_schedule '[.long]'. What a run
// takes is compared with what its slower half takes alone: the device at the rate that docs/kernels.md
// counts, or the host beside a device that answers at once.
TEST_CASE("10,000 instances take the time of the device or of the host, whichever is longer", "[.long]") {
  struct Row {
    int n;
    double rollouts_per_second;
    bool improves;
  };
  const Row row =
      GENERATE(Row{20, 15.1e6, false}, Row{50, 5.1e6, false}, Row{100, 2.0e6, false},  // counted
               Row{20, 15.1e6, true}, Row{50, 5.1e6, true}, Row{100, 2.0e6, true}, Row{20, 1.0e6, true},
               Row{50, 0.5e6, true}, Row{100, 0.2e6, true});  // the host keeps up
  InstanceBatch instances;
  for (uint32_t i = 0; i < 10'000; ++i) instances.push_back(random_tsp(row.n, i));
  SolvePlan plan = sampling_plan(1280, row.improves);
  std::get<SamplingOptions>(plan.search).shuffle = false;  // as with the attention encoder
  const auto seconds = [&](Device& device) {
    const Clock::time_point start = Clock::now();
    solve(device, plan, instances);
    return std::chrono::duration<double>(Clock::now() - start).count();
  };
  Device at_once(1e12, 2), device(row.rollouts_per_second, 2);
  const double host = seconds(at_once), all = seconds(device);
  const double busy = std::chrono::duration<double>(device.busy).count();
  WARN("n = " << row.n << ", " << row.rollouts_per_second << " tours/s" << (row.improves ? ", improved" : "")
              << ": device busy " << busy << " s, host alone " << host << " s, both " << all << " s, busy "
              << 100.0 * busy / all << "%");
  CHECK(std::max(busy, host) >= 0.95 * all);
}

TEST_CASE("a device that takes two calls at once has two, and answers the same") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 300; ++i) instances.push_back(random_tsp(5 + i % 7, i));
  SolvePlan plan = sampling_plan(40, false);
  plan.batch_size = 8;
  Device one(1e6), two(1e6, 2);
  CHECK(orders_of(solve(two, plan, instances)) == orders_of(solve(one, plan, instances)));
  CHECK(one.most_callers == 1);
  CHECK(two.most_callers == 2);
}

TEST_CASE("what a device finds ahead is what it finds batch by batch") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 300; ++i) instances.push_back(random_tsp(5 + i % 7, i));
  const SolvePlan plan = sampling_plan(40, true);
  class Ahead final : public FakeBackend {
    DeviceInfo info() const override { return {"device", "ahead", 2, false}; }
  } ahead;
  FakeBackend plain;
  CHECK(orders_of(solve(ahead, plan, instances)) == orders_of(solve(plain, plan, instances)));
  SolvePlan small = plan;
  small.batch_size = 7;
  CHECK(orders_of(solve(ahead, small, instances)) == orders_of(solve(plain, plan, instances)));
}

// ------------------------------------------------------------------------------- several devices

namespace {

// Answers as FakeBackend does, every call with some time.
class OneOfMany final : public FakeBackend {
 public:
  OneOfMany() { time_per_rollout = std::chrono::microseconds(2); }
  DeviceInfo info() const override { return {"device", "one of many", 2, false}; }
};

int64_t steps_of(const std::vector<const FakeBackend*>& devices) {
  int64_t drawn = 0;
  for (const FakeBackend* device : devices) drawn += static_cast<int64_t>(device->drawn.size());
  return drawn;
}

}  // namespace

TEST_CASE("several devices answer as one does, in input order, and each takes part") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 300; ++i) instances.push_back(random_tsp(5 + i % 7, i));
  for (const bool improve : {false, true}) {
    SolvePlan plan = sampling_plan(40, improve);
    plan.batch_size = 7;
    FakeBackend plain;
    OneOfMany devices[3];
    CHECK(orders_of(solve({&devices[0], &devices[1], &devices[2]}, plan, instances)) ==
          orders_of(solve(plain, plan, instances)));
    CHECK(steps_of({&devices[0], &devices[1], &devices[2]}) == 300 * 40);  // nothing was made twice
    for (const FakeBackend& device : devices) CHECK(device.rollout_calls > 0);
  }
}

TEST_CASE("several devices share the instances of an active search") {
  const InstanceBatch instances = mixed_instances();
  const ModelConfig config;
  const std::vector<float> initial(ParameterLayout(config).size, 0.5f);
  ActiveSearchOptions active;
  active.initial = initial;
  active.steps = 3;
  active.replicas = 4;
  std::vector<int> steps(instances.size(), 0);
  active.on_step = [&](const ActiveSearchProgress& progress) { ++steps.at(progress.instance); };
  SolvePlan plan;
  plan.search = active;
  plan.batch_size = 2;
  FakeBackend plain;
  OneOfMany devices[2];
  const auto expected = orders_of(solve(plain, plan, instances));
  steps.assign(instances.size(), 0);
  CHECK(orders_of(solve({&devices[0], &devices[1]}, plan, instances)) == expected);
  CHECK(steps == std::vector<int>(instances.size(), 3));
  for (const FakeBackend& device : devices) CHECK(device.update_calls > 0);
}

TEST_CASE("two devices take half the time of one") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 600; ++i) instances.push_back(random_tsp(20, i));
  SolvePlan plan = sampling_plan(128, false);
  plan.batch_size = 16;
  std::get<SamplingOptions>(plan.search).shuffle = false;
  double share = 0.0;
  for (int attempt = 0; attempt < 5 && share < 1.8; ++attempt) {  // other programs may need the host
    Device first(50'000), second(50'000);
    const Clock::time_point start = Clock::now();
    solve({&first, &second}, plan, instances);
    share = std::chrono::duration<double>(first.busy + second.busy) / (Clock::now() - start);
  }
  CHECK(share >= 1.8);
}

TEST_CASE("of several devices one fails: its message ends the run, and what was handed out stays") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 300; ++i) instances.push_back(random_tsp(20, i));
  SolvePlan plan = sampling_plan(16, true);
  plan.batch_size = 10;
  Device whole(20'000), broken(20'000);
  broken.fails_after = 7;
  SolutionBatch answers;
  const auto keep = [&](size_t place, Solution&& solution) {
    CHECK(place == answers.size());
    answers.push_back(std::move(solution));
  };
  CHECK_THROWS_WITH(solve_instances({&whole, &broken}, {}, plan, job_of(instances, keep)), "device: lost");
  CHECK(answers.size() < 300);
  for (size_t i = 0; i < answers.size(); ++i) CHECK(validate_solution(instances[i], answers[i]).empty());
}

TEST_CASE("what was found before a device failed is handed out") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 300; ++i) instances.push_back(random_tsp(20, i));
  SolvePlan plan = sampling_plan(16, true);
  plan.batch_size = 10;
  Device device(20'000);
  device.fails_after = 5;  // three searchers have made one call each, and one of them another
  size_t answers = 0;
  const auto wait = [&](size_t, Solution&&) {
    for (++answers; !device.failed;) std::this_thread::sleep_for(std::chrono::milliseconds(1));
  };
  CHECK_THROWS_AS(solve_instances({&device}, {}, plan, job_of(instances, wait)), DeviceError);
  CHECK(answers >= 30);
}

TEST_CASE("a device that fails, or an answer that nobody takes, ends the run") {
  InstanceBatch instances;
  for (uint32_t i = 0; i < 300; ++i) instances.push_back(random_tsp(20, i));
  SolvePlan plan = sampling_plan(16, true);
  plan.batch_size = 10;
  Device device(1e6);
  device.fails_after = 7;
  const auto ignore = [](size_t, Solution&&) {};
  CHECK_THROWS_AS(solve_instances({&device}, {}, plan, job_of(instances, ignore)), DeviceError);
  Device whole(1e6);
  const auto refuse = [](size_t place, Solution&&) {
    if (place == 25) throw std::runtime_error("full");
  };
  CHECK_THROWS_WITH(solve_instances({&whole}, {}, plan, job_of(instances, refuse)), "full");
}

TEST_CASE("a device's batches share the time limit and use it up") {
  const SolvePlan endless = sampling_plan(1'000'000'000, false);
  Device device(2e6);
  SolvePlan plan = endless;
  plan.batch_size = 1;
  InstanceBatch instances;
  for (uint32_t i = 0; i < 6; ++i) instances.push_back(random_tsp(10, i));
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(600);
  for (const Solution& solution : solve(device, plan, instances, {deadline, {}}))
    CHECK(solution.status == Status::kTimeLimit);
  CHECK(Clock::now() >= deadline - std::chrono::milliseconds(20));
}

TEST_CASE("the last size has all the time that is left") {
  const SolvePlan endless = sampling_plan(1'000'000'000, false);
  FakeBackend backend;
  backend.time_per_rollout = std::chrono::microseconds(20);
  const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(200);
  const InstanceBatch sizes = {random_tsp(10, 1), random_tsp(11, 2), random_tsp(12, 3)};
  solve(backend, endless, sizes, {deadline, {}});
  CHECK(Clock::now() >= deadline);  // a third of what is left for each of the three would be 70% of it
}

TEST_CASE("a search leaves time for the improvement of what it found") {
  SolvePlan endless = sampling_plan(1'000'000'000, true);
  endless.improve->kicks = 1'000'000'000;
  // A tenth of 200 ms; a busy machine may take that away, but not five times. Where a search uses all the
  // time, the last question in time is its own.
  int questions = 0;  // asked before the deadline and after the last rollout
  for (int attempt = 0; attempt < 5 && questions < 2; ++attempt) {
    FakeBackend backend;
    backend.time_per_rollout = std::chrono::microseconds(20);
    const Clock::time_point deadline = Clock::now() + std::chrono::milliseconds(200);
    int calls = 0;
    const auto never = [&] {
      if (backend.rollout_calls != calls) questions = 0;
      calls = backend.rollout_calls;
      questions += Clock::now() < deadline;
      return false;
    };
    solve(backend, endless, {random_tsp(40, 1)}, {deadline, never});
  }
  CHECK(questions >= 2);
}

TEST_CASE("batches of active search share the time: each has steps of its own") {
  const ModelConfig config;
  const std::vector<float> initial(ParameterLayout(config).size, 0.5f);
  ActiveSearchOptions active;
  active.initial = initial;
  active.steps = 1'000'000;
  active.replicas = 5;
  std::set<int64_t> reported;
  active.on_step = [&](const ActiveSearchProgress& progress) { reported.insert(progress.instance); };
  SolvePlan plan;
  plan.search = active;
  plan.batch_size = 1;
  InstanceBatch instances;
  for (uint32_t i = 0; i < 4; ++i) instances.push_back(random_tsp(10, i));
  FakeBackend backend;
  backend.time_per_rollout = std::chrono::microseconds(100);
  for (const Solution& solution :
       solve(backend, plan, instances, {Clock::now() + std::chrono::milliseconds(300), {}})) {
    CHECK(solution.status == Status::kTimeLimit);
  }
  CHECK(reported.size() == 4);
}

TEST_CASE("a search without a network answers each instance once, with its own key") {
  const InstanceBatch instances = mixed_instances();
  SolvePlan plan;
  plan.search = [](const Instance& instance, uint64_t key, const SearchControl& control, WorkerThreads*) {
    return random_search(instance, key, 3, 1, control);
  };
  FakeBackend backend;
  const SolutionBatch solutions = solve(backend, plan, instances, {}, 5);
  CHECK(backend.rollout_calls == 0);
  for (size_t i = 0; i < instances.size(); ++i) {
    CHECK(solutions[i].order ==
          random_search(instances[i], instance_key(instances[i], 5 + i), 3, 1, {}).order);
  }
}

TEST_CASE(
    "a few large instances are answered one after the other, each by all threads, with the same answers") {
  for (const int count : {1, 3}) {
    InstanceBatch instances;
    for (int i = 0; i < count; ++i) instances.push_back(random_tsp(1000, static_cast<uint32_t>(i)));
    std::vector<std::vector<int32_t>> expected;
    for (const int threads : {1, 2, 4}) {
      FakeBackend backend;
      backend.threads = threads;
      std::atomic<int> at_once = 0, most_at_once = 0, with_workers = 0;
      SolvePlan plan;
      plan.search = [&](const Instance& instance, uint64_t, const SearchControl& control,
                        WorkerThreads* workers) {
        most_at_once = std::max<int>(most_at_once, ++at_once);
        if (workers != nullptr) with_workers += workers->count() == threads ? 1 : 1000;
        const Solution solution = local_search(instance, {.kicks = 300}, control, workers);
        --at_once;
        return solution;
      };
      const auto orders = orders_of(solve(backend, plan, instances));
      const bool few = count < threads;
      CHECK(with_workers == (few ? count : 0));
      if (few) CHECK(most_at_once == 1);
      if (expected.empty()) expected = orders;
      CHECK(orders == expected);
    }
  }
}
