// SPDX-License-Identifier: Apache-2.0
// Solving and scoring on several ranks: the answers of one process, whoever had which instance.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <queue>
#include <random>
#include <utility>

#include "host/run/rank_messages.h"
#include "host/run/ranks.h"
#include "host/run/solve_totals.h"
#include "host/run/work_pieces.h"
#include "tests/catch.h"
#include "tests/engine/cluster/thread_ranks.h"

namespace pointsman {
namespace {

InstanceBatch mixed_instances() {
  InstanceBatch all;
  for (const auto& [problem, n, count] : {std::tuple{ProblemKind::kTsp, 9, 40},
                                          {ProblemKind::kTsp, 5, 25},
                                          {ProblemKind::kKnapsack, 12, 30},
                                          {ProblemKind::kTsp, 23, 11}}) {
    const InstanceBatch some = generate_instances(problem, n, 7, 0, count);
    all.insert(all.end(), some.begin(), some.end());
  }
  std::shuffle(all.begin(), all.end(), std::mt19937(2));
  all[3].id = "named", all[3].has_id = true;
  return all;
}

bool same(double a, double b) {
  return std::memcmp(&a, &b, sizeof a) == 0 || (std::isnan(a) && std::isnan(b));
}

bool same(const Solution& a, const Solution& b) {
  return a.order == b.order && same(a.objective, b.objective) && same(a.unrounded, b.unrounded) &&
         same(a.weight, b.weight) && same(a.log_prob, b.log_prob) &&
         same(a.network_objective, b.network_objective) && same(a.bound, b.bound) && a.status == b.status &&
         a.start == b.start && a.kicks == b.kicks;
}

bool same(const SolutionBatch& a, const SolutionBatch& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](const Solution& x, const Solution& y) { return same(x, y); });
}

struct Solved {
  SolutionBatch solutions;
  SolveSummary summary;
  std::vector<double> scores;
};

Solved solve_on(int ranks, const InstanceBatch& instances, const SolveOptions& options) {
  Solved solved;
  ThreadRanks::run(ranks, [&](Communicator& communicator) {
    if (communicator.rank() > 0) return serve_rank(communicator, [] { return false; });
    SolveRun run({"cpu", 1}, "", false, {}, communicator);
    SolvedBatch batch = solve_batch(run, SolveJob(instances, 100, options));
    solved = {std::move(batch.solutions), batch.summary, {}};
    solved.scores = run.score(instances, solved.solutions, 1.0f, {});
    end_ranks(communicator);
  });
  return solved;
}

}  // namespace

TEST_CASE("N ranks give the answers and the summary of one process", "[cluster]") {
  InstanceBatch instances = mixed_instances();
  SolveOptions options;
  options.mode = GENERATE(Mode::kAuto, Mode::kSample, Mode::kActive, Mode::kTwoOpt);
  if (options.mode == Mode::kTwoOpt)
    std::erase_if(instances, [](const Instance& one) { return one.problem != ProblemKind::kTsp; });
  options.samples = 24;
  options.network = true;
  options.steps = 3;
  options.replicas = 4;
  const Solved expected = solve_on(1, instances, options);
  for (const int ranks : {2, 3, 4}) {
    INFO(ranks << " ranks, mode " << info_of(options.mode).name);
    const Solved found = solve_on(ranks, instances, options);
    CHECK(same(found.solutions, expected.solutions));
    CHECK(std::equal(found.scores.begin(), found.scores.end(), expected.scores.begin(), expected.scores.end(),
                     [](double a, double b) { return same(a, b); }));
    CHECK(same(found.summary.mean_cost, expected.summary.mean_cost));
    CHECK(found.summary.samples == expected.summary.samples);
    CHECK(found.summary.augment == expected.summary.augment);
    CHECK(found.summary.improve == expected.summary.improve);
    CHECK(found.summary.model == expected.summary.model);
    CHECK(std::equal(found.summary.groups.begin(), found.summary.groups.end(),
                     expected.summary.groups.begin(), expected.summary.groups.end(),
                     [](const SummaryGroup& a, const SummaryGroup& b) {
                       return a.problem == b.problem && a.n == b.n && a.model == b.model &&
                              a.instances == b.instances && same(a.mean_cost, b.mean_cost);
                     }));
  }
}

TEST_CASE("N ranks search one instance together, with the bits of one", "[cluster]") {
  const InstanceBatch instances = generate_instances(ProblemKind::kTsp, 14, 7, 0, 1);
  SolveOptions options;
  options.mode = Mode::kActive;
  options.steps = 5;
  options.replicas = 40;  // tiles that no number of ranks divides
  options.untrained = GENERATE(false, true);
  std::vector<double> means;
  options.on_step = [&](const ActiveSearchProgress& step) { means.push_back(step.batch_mean); };
  const Solved expected = solve_on(1, instances, options);
  const std::vector<double> expected_means = std::exchange(means, {});
  CHECK(expected_means.size() == 5);
  for (const int ranks : {2, 3, 5}) {
    INFO(ranks << " ranks");
    const Solved found = solve_on(ranks, instances, options);
    CHECK(same(found.solutions, expected.solutions));
    CHECK(std::exchange(means, {}) == expected_means);  // of each step's sampled tours
  }
}

TEST_CASE("a limit ends the search of one instance on several ranks, which then serve on", "[cluster]") {
  const InstanceBatch instances = generate_instances(ProblemKind::kTsp, 14, 7, 0, 1);
  ThreadRanks::run(3, [&](Communicator& communicator) {
    if (communicator.rank() > 0) return serve_rank(communicator, [] { return false; });
    SolveRun run({"cpu", 1}, "", false, {}, communicator);
    SolveOptions options;
    options.mode = Mode::kActive;
    SearchControl control;
    control.deadline = Clock::now() + std::chrono::milliseconds(300);
    const SolvedBatch cut = solve_batch(run, SolveJob(instances, 0, options, control));
    CHECK(cut.solutions.at(0).status == Status::kTimeLimit);
    CHECK(cut.solutions.at(0).order.size() == 14);
    const InstanceBatch mixed = mixed_instances();
    const SolvedBatch again = solve_batch(run, SolveJob(mixed));
    CHECK_FALSE(again.is_cut_short);
    end_ranks(communicator);
  });
}

TEST_CASE("another rank has every option", "[cluster]") {
  SolveOptions options;
  options.mode = Mode::kActive;
  options.samples = 1, options.first_sample = 2, options.batch_size = 3;
  options.policy = {0.5f, 4.0f, 0.25f, true};
  options.augment = 8, options.shuffle = true, options.improve = false, options.kicks = 5;
  options.fills_limit = false, options.network = true, options.steps = 6, options.replicas = 7;
  options.learning_rate = 0.25f, options.entropy = 0.125, options.untrained = true, options.seed = 9;
  options.learned = Learned::kAttention;
  MessageWriter writer;
  put(writer, options);
  MessageReader reader(writer.bytes());
  const SolveOptions read = take_solve_options(reader);
  CHECK(reader.at_end());
  CHECK(read.mode == options.mode);
  CHECK((read.samples == 1 && read.first_sample == 2 && read.batch_size == 3));
  CHECK((read.policy.temperature == 0.5f && read.policy.clip == 4.0f));
  CHECK((read.policy.noise == 0.25f && read.policy.stop_at_first_misfit));
  CHECK((read.augment == 8 && read.shuffle == true && read.improve == false && read.kicks == 5));
  CHECK((!read.fills_limit && read.network && read.steps == 6 && read.replicas == 7));
  CHECK((read.learning_rate == 0.25f && read.entropy == 0.125 && read.untrained && read.seed == 9));
  CHECK(read.learned == Learned::kAttention);
}

TEST_CASE("a matrix of distances reaches another rank", "[cluster]") {
  Instance instance;
  instance.metric = Metric::kExplicit;
  instance.matrix = std::make_shared<DistanceMatrix>(DistanceMatrix{3, {1.0, 2.0, 4.0}});
  MessageWriter writer;
  put(writer, instance);
  MessageReader reader(writer.bytes());
  const Instance read = take_instance(reader);
  CHECK(read.n() == 3);
  CHECK(read.matrix->above == instance.matrix->above);
}

TEST_CASE("a time limit leaves every instance with an answer or unsolved", "[cluster]") {
  const InstanceBatch instances = generate_instances(ProblemKind::kTsp, 30, 7, 0, 60);
  SolveOptions options;
  options.mode = Mode::kActive;
  SearchControl control;
  const auto start = Clock::now();
  control.deadline = start + std::chrono::milliseconds(400);
  ThreadRanks::run(2, [&](Communicator& communicator) {
    if (communicator.rank() > 0) return serve_rank(communicator, [] { return false; });
    SolveRun run({"cpu", 1}, "", false, {}, communicator);
    const SolvedBatch batch = solve_batch(run, SolveJob(instances, 0, options, control));
    CHECK(batch.solutions.size() == instances.size());
    CHECK(batch.is_cut_short);
    end_ranks(communicator);
  });
  // Each rank may be a step behind the limit; a whole run would take minutes.
  CHECK(Clock::now() - start < std::chrono::seconds(20));
}

// Each rank takes the next piece when it has done its last.
TEST_CASE("ranks that take pieces of uneven work end together", "[cluster]") {
  std::vector<double> work;  // the worst order: the largest last
  for (int i = 0; i < 10'000; ++i) work.push_back(rollout_work(5 + i * 196 / 10'000));
  double all = 0.0;
  for (const double one : work) all += one;
  for (const int ranks : {2, 3, 4, 16}) {
    WorkPieces pieces(work, ranks);
    std::priority_queue<double, std::vector<double>, std::greater<>> free_at;
    for (int rank = 0; rank < ranks; ++rank) free_at.push(0.0);
    double end = 0.0;
    std::vector<int> taken(work.size());
    for (WorkPiece piece = pieces.take(); !piece.places.empty(); piece = pieces.take()) {
      double sum = 0.0;
      for (const size_t place : piece.places) sum += work[place], ++taken[place];
      CHECK(piece.work == Approx(sum));
      const double done = free_at.top() + sum;
      free_at.pop();
      free_at.push(done);
      end = std::max(end, done);
    }
    CHECK(std::all_of(taken.begin(), taken.end(), [](int times) { return times == 1; }));
    const double idle = 1.0 - all / (end * ranks);
    INFO(ranks << " ranks idle for " << 100 * idle << "%");
    CHECK(idle <= 0.03);
  }
}

}  // namespace pointsman
