// SPDX-License-Identifier: Apache-2.0
// A problem of the caller's own through the C library and its C++ header: trained, solved, declared orders,
// what its functions throw, and what is refused.
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "host/library/include/pointsman.hpp"
#include "tests/temporary_folder.h"

namespace {

using pointsman::bytes_of;
using pointsman::Error;
using pointsman::TemporaryFolder;
namespace api = pointsman::cpp_api;

constexpr size_t kItems = 6, kWidth = 3;
using Numbers = std::vector<double>;
using Orders = std::vector<int32_t>;

// Weighted tardiness of jobs: processing time, weight, due date.
double tardiness(const double* items, const int64_t* order, size_t n) {
  double time = 0.0, cost = 0.0;
  for (size_t k = 0; k < n; ++k) {
    const double* const job = items + kWidth * static_cast<size_t>(order[k]);
    time += job[0];
    cost += job[1] * std::max(0.0, time - job[2]);
  }
  return cost;
}

void cost_of_all(const double* items, const int64_t* orders, size_t count, size_t n, double* costs) {
  for (size_t i = 0; i < count; ++i) costs[i] = tardiness(items + i * n * kWidth, orders + i * n, n);
}

void draw_jobs(uint64_t seed, uint64_t first, size_t count, size_t n, double* items) {
  for (size_t i = 0; i < count; ++i) {
    std::mt19937_64 generator(seed * 1'000'003 + first + i);
    for (size_t k = 0; k < n; ++k, items += kWidth) {
      items[0] = static_cast<double>(generator() % 100 + 1);
      items[1] = static_cast<double>(generator() % 10 + 1);
      items[2] = static_cast<double>(generator() % (30 * n));
    }
  }
}

api::ProblemOptions jobs() {
  api::ProblemOptions options;
  options.width = kWidth;
  options.on_cost = cost_of_all;
  options.on_draw = draw_jobs;
  return options;
}

api::Solver solver_of(int threads) {
  api::SolverOptions options;
  options.device = "cpu";
  options.threads = threads;
  return api::Solver(options);
}

api::TrainOptions steps(const char* number) {
  api::TrainOptions options;
  options.flags = {"steps", number, "layers", "1", "batch_size", "4", "rollouts", "4"};
  return options;
}

Numbers instances(size_t count, uint64_t seed = 77) {
  Numbers items(count * kItems * kWidth);
  draw_jobs(seed, 0, count, kItems, items.data());
  return items;
}

// The least cost of all orders of one instance that are allowed.
template <typename Allowed>
double optimum(const double* items, const Allowed& allowed) {
  std::vector<int64_t> order(kItems);
  std::iota(order.begin(), order.end(), 0);
  double best = std::numeric_limits<double>::infinity();
  do {
    if (allowed(order)) best = std::min(best, tardiness(items, order.data(), kItems));
  } while (std::next_permutation(order.begin(), order.end()));
  return best;
}

Orders orders_of(const api::Answers& answers) {
  Orders orders;
  for (size_t i = 0; i < answers.size(); ++i) {
    const Orders order = answers[i].items;
    orders.insert(orders.end(), order.begin(), order.end());
    orders.resize((i + 1) * kItems, -1);
  }
  return orders;
}

template <typename Call>
Error error_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error;
  }
  FAIL("no error");
  return Error(0, "");
}

}  // namespace

TEST_CASE("library: an own problem is trained, solved, scored, and written") {
  const TemporaryFolder folder;
  api::Solver solver = solver_of(2);
  api::Problem problem(solver, jobs());
  std::vector<int64_t> told;
  api::TrainOptions options = steps("120");
  options.on_progress = [&](const pointsman_training& line) { return told.push_back(line.step), true; };
  const api::Model model = problem.train(kItems, options);
  const pointsman_training training = model.training();
  CHECK(training.step == 120);
  CHECK(training.orders == 120 * 16);
  CHECK(training.callback_seconds > 0.0);
  CHECK(!told.empty());
  CHECK(told.back() == 120);

  const Numbers items = instances(5);
  api::SolveOptions sampling;
  sampling.samples = 200;
  api::SolveOptions improving = sampling;
  improving.improve = 1;
  improving.kicks = 20;
  const api::Answers greedy = model.solve(items, kItems), sampled = model.solve(items, kItems, sampling),
                     improved = model.solve(items, kItems, improving);
  const Numbers costs = problem.costs(items, orders_of(sampled), kItems);
  const Numbers scores = model.score(items, orders_of(sampled), kItems);
  for (size_t i = 0; i < 5; ++i) {
    CHECK(sampled[i].cost <= greedy[i].cost);
    CHECK(sampled[i].cost == costs[i]);
    CHECK(sampled[i].log_prob == scores[i]);
    CHECK(improved[i].network_cost == sampled[i].cost);
    CHECK(improved[i].cost == optimum(&items[i * kItems * kWidth], [](const auto&) { return true; }));
  }

  const std::string path = (folder / "jobs.safetensors").string();
  model.save(path);
  CHECK(error_of([&] { model.save(path); }).code() == POINTSMAN_USAGE);
  const api::Model read = problem.load(path);
  CHECK(orders_of(read.solve(items, kItems)) == orders_of(greedy));
  CHECK(read.training().orders == training.orders);
  api::TrainOptions longer;
  longer.flags = {"steps", "2"};
  longer.from = &read;
  CHECK(problem.train(kItems, longer).training().orders == training.orders + 2 * 32 * 16);
  longer.flags = {"steps", "2", "layers", "2"};
  CHECK_THAT(error_of([&] { problem.train(kItems, longer); }).what(),
             has_text("layers: comes from the model of init; leave it out"));
}

TEST_CASE("library: an own problem's models and answers have the same bits on any threads") {
  const TemporaryFolder folder;
  std::string models[2];
  Orders orders[2];
  for (int i = 0; i < 2; ++i) {
    api::Solver solver = solver_of(1 + i);
    api::Problem problem(solver, jobs());
    const api::Model model = problem.train(kItems, steps("6"));
    model.save((folder / "model.safetensors").string(), true);
    models[i] = bytes_of(folder / "model.safetensors");
    api::SolveOptions sampling;
    sampling.samples = 100;
    orders[i] = orders_of(model.solve(instances(7), kItems, sampling));
  }
  CHECK(models[0] == models[1]);
  CHECK(orders[0] == orders[1]);
}

TEST_CASE("library: declared orders of an own problem") {
  api::Solver solver = solver_of(1);
  api::ProblemOptions options = jobs();
  options.first = 2;
  options.last = -1;
  options.pairs_before = {{1, 0}};
  api::Problem problem(solver, options);
  const api::Model model = problem.train(kItems, steps("3"));
  const Numbers items = instances(4);
  api::SolveOptions improving;
  improving.improve = 1;
  improving.kicks = 20;
  const api::Answers answers = model.solve(items, kItems, improving);
  const auto allowed = [](const std::vector<int64_t>& order) {
    const auto place = [&](int item) { return std::find(order.begin(), order.end(), item); };
    return order.front() == 2 && order.back() == kItems - 1 && place(1) < place(0);
  };
  for (size_t i = 0; i < 4; ++i) CHECK(answers[i].cost == optimum(&items[i * kItems * kWidth], allowed));
  CHECK_THAT(error_of([&] {
               problem.costs(instances(1), {0, 1, 2, 3, 4, 5}, kItems);
             }).what(),
             has_text("orders[0]: item 0 may not come in place 0"));
  options.pairs_before = {{1, 0}, {0, 1}};
  CHECK_THAT(error_of([&] { api::Problem(solver, options).train(kItems, steps("3")); }).what(),
             has_text("circle"));
}

TEST_CASE("library: an own problem with a capacity, of which more is better") {
  api::Solver solver = solver_of(1);
  api::ProblemOptions options = jobs();
  options.on_cost = [](const double* items, const int64_t* orders, size_t count, size_t n, double* values) {
    for (size_t i = 0; i < count; ++i) {
      values[i] = 0.0;
      for (size_t k = 0; k < n; ++k)
        if (const int64_t item = orders[i * n + k]; item >= 0)
          values[i] += items[(i * n + static_cast<size_t>(item)) * kWidth + 1];
    }
  };
  options.weight = 0;
  options.capacity = 150.0;
  options.maximise = 1;
  api::Problem problem(solver, options);
  const api::Model model = problem.train(kItems, steps("3"));
  const Numbers items = instances(4);
  api::SolveOptions sampling;
  sampling.samples = 200;
  const api::Answers answers = model.solve(items, kItems, sampling);
  for (size_t i = 0; i < 4; ++i) {
    const double* const each = &items[i * kItems * kWidth];
    double best = 0.0, weight = 0.0;
    for (unsigned taken = 0; taken < 1u << kItems; ++taken) {
      double all = 0.0, value = 0.0;
      for (size_t k = 0; k < kItems; ++k)
        if ((taken >> k & 1) != 0) all += each[k * kWidth], value += each[k * kWidth + 1];
      if (all <= 150.0) best = std::max(best, value);
    }
    for (const int32_t item : answers[i].items) weight += each[static_cast<size_t>(item) * kWidth];
    CHECK(weight <= 150.0);
    CHECK(answers[i].cost == best);
  }
  CHECK(problem.costs(items, orders_of(answers), kItems)[0] == answers[0].cost);
}

TEST_CASE("library: what an own problem's functions throw comes out, and the model up to then is kept") {
  api::Solver solver = solver_of(2);
  long calls = 0, last = 256 + 5;  // behind those that the scale of the costs is taken from
  bool is_nan = false;
  api::ProblemOptions options = jobs();
  options.on_cost = [&](const double* items, const int64_t* orders, size_t count, size_t n, double* costs) {
    cost_of_all(items, orders, count, n, costs);
    if (++calls < last) return;
    if (!is_nan) throw std::domain_error("no more");
    costs[count - 1] = std::nan("");
  };
  api::Problem problem(solver, options);
  CHECK_THROWS_AS(problem.train(kItems, steps("100")), std::domain_error);
  REQUIRE(problem.trained().has_value());
  CHECK(problem.trained()->training().step > 0);
  CHECK(problem.trained()->training().step < 100);
  const api::Model kept = *problem.trained();
  calls = 0;
  is_nan = true;
  const Error error = error_of([&] { problem.train(kItems, steps("100")); });
  CHECK(error.code() == POINTSMAN_INPUT);
  CHECK_THAT(error.what(), has_text("cost: expected finite numbers, found nan for the order"));
  CHECK(problem.trained().has_value());
  CHECK(error_of([&] { kept.solve(instances(2), kItems); }).code() == POINTSMAN_INPUT);
  is_nan = false;
  CHECK_THROWS_AS(kept.solve(instances(2), kItems), std::domain_error);
  CHECK_THROWS_AS(problem.costs(instances(1), {0, 1, 2, 3, 4, 5}, kItems), std::domain_error);
  CHECK_THROWS_AS(problem.train(kItems, steps("100")), std::domain_error);
  CHECK(!problem.trained().has_value());  // it ended before its first step
  calls = std::numeric_limits<long>::min();
  CHECK(kept.solve(instances(2), kItems).size() == 2);
}

TEST_CASE(
    "library: a function of an own problem that returns no 0 ends the call, with an answer to each "
    "instance") {
  api::Solver solver = solver_of(2);
  static long calls = 0, last = 0;
  pointsman_problem_options options;
  pointsman_problem_options_init(&options, sizeof options);
  options.width = kWidth;
  options.cost = [](void*, const double* items, const int64_t* orders, size_t count, size_t n,
                    double* costs) {
    cost_of_all(items, orders, count, n, costs);
    return ++calls > last ? 1 : 0;
  };
  options.draw = [](void*, uint64_t seed, uint64_t first, size_t count, size_t n, double* items) {
    draw_jobs(seed, first, count, n, items);
    return 0;
  };
  pointsman_problem* problem = nullptr;
  REQUIRE(pointsman_problem_create(solver.get(), &options, &problem) == POINTSMAN_OK);
  const char* const flags[] = {"steps", "100", "layers", "1", "batch_size", "4", "rollouts", "4", nullptr};
  pointsman_train_options training;
  pointsman_train_options_init(&training, sizeof training);
  training.options = flags;
  pointsman_model* model = nullptr;
  last = 256 + 9;
  CHECK(pointsman_problem_train(solver.get(), problem, kItems, &training, &model) == POINTSMAN_CANCELLED);
  REQUIRE(model != nullptr);
  CHECK(pointsman_last_error(solver.get()) == std::string());

  const Numbers items = instances(40);
  pointsman_solve_options solving;
  pointsman_solve_options_init(&solving, sizeof solving);
  solving.samples = 5;
  solving.batch_size = 4;
  for (const int improve : {0, 1}) {
    for (const long stop : {0L, 7L, 30L}) {
      solving.improve = improve;
      calls = 0;
      last = stop;
      pointsman_answers* found = nullptr;
      CHECK(pointsman_problem_solve(solver.get(), problem, model, items.data(), 40, kItems, &solving,
                                    &found) == POINTSMAN_CANCELLED);
      const api::Answers answers(found);
      REQUIRE(answers.size() == 40);
      CHECK(answers[39].status ==
            (improve == 1 && answers[39].length > 0 ? POINTSMAN_INTERRUPTED : POINTSMAN_UNSOLVED));
      for (size_t i = 0; i < 40; ++i)
        CHECK((answers[i].status == POINTSMAN_UNSOLVED) == answers[i].items.empty());
    }
  }
  pointsman_model_free(model);
  pointsman_problem_free(problem);
}

TEST_CASE("library: an own problem's answers are counted, and what is set for all calls applies") {
  api::Solver solver = solver_of(1);
  api::Problem problem(solver, jobs());
  const api::Model model = problem.train(kItems, steps("3"));
  for (const int improve : {0, 1}) {
    size_t answered = 0;
    api::SolveOptions solving;
    solving.samples = 400;
    solving.improve = improve;
    solving.batch_size = 2;
    solving.on_progress = [&](const pointsman_progress& at) { return answered = at.answered, true; };
    model.solve(instances(60), kItems, solving);
    CHECK((answered > 0) == (improve == 0));  // with a local search none is final before its end
    CHECK(answered <= 60);
  }
  solver.set_option("samples", "64");
  const api::Answers sampled = model.solve(instances(4), kItems);
  api::SolveOptions same;
  same.samples = 64;
  solver.set_option("samples", "");
  CHECK(orders_of(sampled) == orders_of(model.solve(instances(4), kItems, same)));
  api::Solver moved = std::move(solver);  // problems and models go on with it
  CHECK(orders_of(sampled) == orders_of(model.solve(instances(4), kItems, same)));
  same.on_progress = [](const pointsman_progress&) -> bool { throw std::domain_error("no more"); };
  CHECK_THROWS_AS(model.solve(instances(4), kItems, same), std::domain_error);
  CHECK_NOTHROW(model.solve(instances(4), kItems));
}

TEST_CASE("library: an own problem's calls are cancelled and limited") {
  api::Solver solver = solver_of(2);
  api::Problem problem(solver, jobs());
  api::TrainOptions options = steps("100000");
  options.on_progress = [](const pointsman_training& line) { return line.step < 200; };
  const api::Model model = problem.train(kItems, options);
  CHECK(model.training().step >= 200);
  CHECK(model.training().step < 400);
  options.on_progress = [](const pointsman_training&) -> bool { throw std::domain_error("no more"); };
  CHECK_THROWS_AS(problem.train(kItems, options), std::domain_error);
  CHECK(problem.trained().has_value());
  options = {};
  options.minutes = 0.01;
  options.flags = {"layers", "1"};
  CHECK(problem.train(kItems, options).training().step > 0);
  api::SolveOptions solving;
  solving.samples = 1'000'000'000;
  solving.time_limit = 0.2;
  CHECK(model.solve(instances(1), kItems, solving)[0].status == POINTSMAN_TIME_LIMIT);
  solving.time_limit = 0;
  solving.on_progress = [](const pointsman_progress& progress) { return progress.seconds < 0.2; };
  CHECK(model.solve(instances(1), kItems, solving)[0].status == POINTSMAN_INTERRUPTED);
  solving.on_progress = nullptr;
  solving.samples = 0;
  solving.steps = 2;
  CHECK(model.solve(instances(1), kItems, solving)[0].status == POINTSMAN_DONE);
}

TEST_CASE("library: what is wrong with an own problem and its calls is told") {
  const TemporaryFolder folder;
  api::Solver solver = solver_of(1);
  const auto made = [&](const auto& change) {
    api::ProblemOptions options = jobs();
    change(options);
    return error_of([&] { api::Problem(solver, options); });
  };
  CHECK_THAT(made([](auto& o) { o.on_cost = nullptr; }).what(), has_text("cost: expected a pointer"));
  CHECK_THAT(made([](auto& o) { o.width = 17; }).what(), has_text("width: expected 1 to 16 numbers"));
  CHECK_THAT(made([](auto& o) { o.weight = 3; }).what(), has_text("weight: expected one of 3 numbers"));
  CHECK_THAT(made([](auto& o) { o.weight = 0, o.last = 1; }).what(), has_text("last: does not go with"));
  CHECK_THAT(made([](auto& o) { o.capacity = NAN; }).what(), has_text("capacity: expected a finite number"));
  CHECK_THAT(made([](auto& o) { o.capacity = 5; }).what(), has_text("capacity: needs a weight"));
  CHECK_THAT(made([](auto& o) { o.maximise = 2; }).what(), has_text("maximise: expected 0 or 1, found 2"));

  api::ProblemOptions options = jobs();
  options.on_draw = nullptr;
  CHECK_THAT(error_of([&] { api::Problem(solver, options).train(kItems, steps("3")); }).what(),
             has_text("no instances to train on"));
  options = jobs();
  options.on_draw = [](uint64_t, uint64_t, size_t, size_t, double* items) { items[0] = NAN; };
  CHECK_THAT(error_of([&] { api::Problem(solver, options).train(kItems, steps("3")); }).what(),
             has_text("instances: [0][0][0]: expected a finite number, found nan"));

  api::Problem problem(solver, jobs());
  const auto training = [&](std::vector<std::string> flags) {
    api::TrainOptions train;
    train.flags = std::move(flags);
    return error_of([&] { problem.train(kItems, train); });
  };
  CHECK_THAT(error_of([&] { problem.train(1, steps("3")); }).what(), has_text("size: expected"));
  CHECK_THAT(training({"stepz", "3"}).what(), has_text("options: expected one of batch_size"));
  CHECK_THAT(training({"steps"}).what(), has_text("expected a value of steps, found the end"));
  CHECK_THAT(training({"steps", "x"}).what(), has_text("steps: expected"));
  CHECK_THAT(training({"resume", "x.ckpt"}).what(), has_text("resume: goes with steps"));

  const api::Model model = problem.train(kItems, steps("3"));
  const auto solving = [&](const auto& change) {
    api::SolveOptions solve;
    change(solve);
    return error_of([&] { model.solve(instances(2), kItems, solve); });
  };
  CHECK_THAT(solving([](auto& o) { o.mode = "local"; }).what(),
             has_text("mode: expected greedy, sample or active"));
  CHECK_THAT(solving([](auto& o) { o.kicks = 5; }).what(), has_text("kicks: needs improve"));
  CHECK_THAT(error_of([&] {
               model.solve({1.0, 2.0}, kItems);
             }).what(),
             has_text("items: expected n * width"));
  Numbers infinite = instances(2);
  infinite[3] = INFINITY;
  const Error told = error_of([&] { model.solve(infinite, kItems); });
  CHECK(told.code() == POINTSMAN_INPUT);
  CHECK_THAT(told.what(), has_text("items: [0][1][0]: expected a finite number, found inf"));
  CHECK_THAT(error_of([&] {
               model.score(instances(2), {0, 1}, kItems);
             }).what(),
             has_text("orders: expected n items"));
  options.width = 2;
  CHECK_THAT(error_of([&] {
               api::Problem other(solver, options);
               model.save((folder / "m.safetensors").string());
               other.load((folder / "m.safetensors").string()).solve({1, 2, 3, 4}, 2);
             }).what(),
             has_text("model: expected one of 2 numbers an item"));
  CHECK_THAT(
      error_of([&] { problem.load(POINTSMAN_SOURCE_DIR "/models/pretrained/tsp20.safetensors"); }).what(),
      has_text("expected a model of an own problem, found one of tsp"));
}
