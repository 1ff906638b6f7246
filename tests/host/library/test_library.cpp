// SPDX-License-Identifier: Apache-2.0
// The C library beside the program: the same answers, and errors in place of exits.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <memory>

#include "host/library/include/pointsman.h"
#include "tests/host/command/sandbox.h"

namespace {

using pointsman::json;
using pointsman::Sandbox;

template <typename Handle, void (*kFree)(Handle*)>
struct Freed {
  void operator()(Handle* handle) const { kFree(handle); }
};
using Solver = std::unique_ptr<pointsman_solver, Freed<pointsman_solver, pointsman_solver_free>>;
using Instances = std::unique_ptr<pointsman_instances, Freed<pointsman_instances, pointsman_instances_free>>;
using Answers = std::unique_ptr<pointsman_answers, Freed<pointsman_answers, pointsman_answers_free>>;

Solver new_solver(pointsman_solver_options options = {}, int expected = POINTSMAN_OK) {
  if (options.size == 0) pointsman_solver_options_init(&options, sizeof options);
  pointsman_solver* solver = nullptr;
  CHECK(pointsman_solver_create(&options, &solver) == expected);
  REQUIRE(solver != nullptr);
  return Solver(solver);
}

pointsman_solve_options solve_options(const char* mode) {
  pointsman_solve_options options;
  REQUIRE(pointsman_solve_options_init(&options, sizeof options) == POINTSMAN_OK);
  options.mode = mode;
  return options;
}

#define REQUIRE_OK(solver, call)                \
  do {                                          \
    const int found_status = (call);            \
    INFO(pointsman_last_error((solver).get())); \
    REQUIRE(found_status == POINTSMAN_OK);      \
  } while (false)

Instances read(const Solver& solver, const std::string& path) {
  pointsman_instances* instances = nullptr;
  REQUIRE_OK(solver, pointsman_read_instances(solver.get(), path.c_str(), nullptr, &instances));
  return Instances(instances);
}

Instances empty(const Solver& solver) {
  pointsman_instances* instances = nullptr;
  REQUIRE_OK(solver, pointsman_instances_create(solver.get(), &instances));
  return Instances(instances);
}

Answers solve(const Solver& solver, const Instances& instances, const pointsman_solve_options& options) {
  pointsman_answers* answers = nullptr;
  REQUIRE_OK(solver, pointsman_solve(solver.get(), instances.get(), &options, &answers));
  return Answers(answers);
}

std::string formatted(const Solver& solver, const Instances& instances, const Answers& answers,
                      const char* format) {
  const void* bytes = nullptr;
  size_t size = 0;
  REQUIRE_OK(solver,
             pointsman_format_answers(solver.get(), instances.get(), answers.get(), format, &bytes, &size));
  return {static_cast<const char*>(bytes), size};
}

pointsman_answer answer_of(const Answers& answers, size_t index) {
  pointsman_answer answer;
  pointsman_answer_init(&answer, sizeof answer);
  REQUIRE(pointsman_answers_get(answers.get(), index, &answer) == POINTSMAN_OK);
  return answer;
}

const std::string kTwoSizes =
    R"({"id":"a","problem":"tsp","coordinates":[[0,0],[3,0],[3,4],[1,5],[1,2],[2,2],[5,1]]})"
    "\n"
    R"({"problem":"knapsack","capacity":9,"weights":[1,2,3,4,5],"values":[5,4,3,2,2]})"
    "\n"
    R"({"problem":"tsp","coordinates":[[0.5,0.25],[0.1,0.75],[0.9,0.3],[0.25,0.125]]})"
    "\n";
constexpr double kSquare[] = {0, 0, 0, 1, 1, 1, 1, 0};

// The library finds the sandbox's models too.
struct Models {
  explicit Models(const Sandbox& sandbox) {
    setenv("POINTSMAN_MODEL_PATH", sandbox.path("models").c_str(), 1);
  }
  ~Models() { unsetenv("POINTSMAN_MODEL_PATH"); }
};

struct Mode {
  std::string flags, file;
  void (*set)(pointsman_solve_options& options);
};

}  // namespace

TEST_CASE("the library's answers are the program's, byte for byte") {
  const Sandbox sandbox;
  const Models models(sandbox);
  sandbox.write("mixed.ndjson", kTwoSizes);
  sandbox.write("knap.ndjson", kTwoSizes.substr(kTwoSizes.find('\n') + 1, kTwoSizes.find("\n", 100) - 79));
  REQUIRE(sandbox.run("generate tsp -n 12 -b 5 -o tsp.npy").code == 0);
  REQUIRE(sandbox.run("generate knapsack -n 30 -b 5 -o knap.npz").code == 0);
  using Options = pointsman_solve_options;
  const Mode modes[] = {
      {"", "mixed.ndjson", [](Options&) {}},
      {"--mode greedy", "mixed.ndjson", [](Options& o) { o.mode = "greedy"; }},
      {"--mode sample -n 30 -s 7 --temperature 1.5 --shuffle", "mixed.ndjson",
       [](Options& o) { o.mode = "sample", o.samples = 30, o.seed = 7, o.temperature = 1.5, o.shuffle = 1; }},
      {"--mode greedy --augment 8 --improve on --kicks 3", "tsp.npy",
       [](Options& o) { o.mode = "greedy", o.augment = 8, o.improve = 1, o.kicks = 3; }},
      {"-m tsp20 -n 24", "tsp.npy", [](Options& o) { o.model = "tsp20", o.samples = 24; }},
      {"--mode local --kicks 20 -s 3", "tsp.npy",
       [](Options& o) { o.mode = "local", o.kicks = 20, o.seed = 3; }},
      {"--mode 2opt --kicks 20 -s 3", "tsp.npy",
       [](Options& o) { o.mode = "2opt", o.kicks = 20, o.seed = 3; }},
      {"--mode active --steps 3 --replicas 16 --entropy 0.1 --learning-rate 0.001", "tsp.npy",
       [](Options& o) {
         o.mode = "active", o.steps = 3, o.replicas = 16, o.entropy = 0.1, o.learning_rate = 0.001;
       }},
      {"--mode active --steps 3 --replicas 16 --learn all", "tsp.npy",
       [](Options& o) { o.mode = "active", o.steps = 3, o.replicas = 16, o.learn = 1; }},
      {"--mode active --steps 2 --replicas 8 --init random --learn attention", "tsp.npy",
       [](Options& o) { o.mode = "active", o.steps = 2, o.replicas = 8, o.untrained = 1, o.learn = 2; }},
      {"--mode active --steps 2 --replicas 8 --init random", "tsp.npy",
       [](Options& o) { o.mode = "active", o.steps = 2, o.replicas = 8, o.untrained = 1; }},
      {"--mode exact", "knap.npz", [](Options& o) { o.mode = "exact"; }},
      {"--mode sample -n 20 --clip 5 --stop-at-first-misfit --first-sample 4 -b 2", "knap.npz",
       [](Options& o) {
         o.mode = "sample", o.samples = 20, o.clip = 5, o.stop_at_first_misfit = 1, o.first_sample = 4,
         o.batch_size = 2;
       }},
  };
  const Solver solver = new_solver();
  for (const Mode& mode : modes) {
    INFO(mode.flags << " " << mode.file);
    const auto expected = sandbox.run("solve " + mode.file + " --format ndjson " + mode.flags);
    REQUIRE(expected.code == 0);
    pointsman_solve_options options = solve_options(nullptr);
    mode.set(options);
    const Instances instances = read(solver, sandbox.path(mode.file));
    const Answers answers = solve(solver, instances, options);
    CHECK(formatted(solver, instances, answers, "ndjson") == expected.out);
    // The summary too, but for what the clock says.
    json own = json::parse(formatted(solver, instances, answers, "json"));
    json other = sandbox.run("solve " + mode.file + " --format json " + mode.flags).parsed();
    own["summary"].erase("computing_times");
    other["summary"].erase("computing_times");
    CHECK(own == other);
  }
}

TEST_CASE("instances in memory are solved as those of a file") {
  const Sandbox sandbox;
  const Models models(sandbox);
  const Solver solver = new_solver();
  const Instances instances = empty(solver);
  const double knapsack[] = {1, 5, 2, 4, 3, 3, 4, 2, 5, 2};
  const double distances[] = {7, 1, 4, 1, 7, 2, 4, 2, 7};
  const double customers[] = {0, 0, 0, 3, 4, 4, 6, 8, 6, -3, 4, 7};
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), instances.get(), "tsp", kSquare, 4, 0, "the square"));
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), instances.get(), "knapsack", knapsack, 5, 9, nullptr));
  REQUIRE_OK(solver, pointsman_add_matrix(solver.get(), instances.get(), distances, 3, ""));
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), instances.get(), "cvrp", customers, 4, 10, nullptr));
  REQUIRE(pointsman_instances_count(instances.get()) == 4);
  const Answers answers = solve(solver, instances, solve_options(nullptr));
  REQUIRE(pointsman_answers_count(answers.get()) == 4);
  const pointsman_answer square = answer_of(answers, 0);
  CHECK(square.cost == 4);
  CHECK(square.length == 4);
  CHECK(square.status == POINTSMAN_DONE);
  CHECK(square.start == std::string("greedy_edges"));
  CHECK(std::isnan(square.log_prob));
  const pointsman_answer packed = answer_of(answers, 1);
  CHECK(packed.cost == 12);
  CHECK(packed.weight == 6);
  CHECK(packed.start == std::string("exact"));
  CHECK(answer_of(answers, 2).cost == 7);
  CHECK(answer_of(answers, 3).cost == 30);  // to the two customers on one line, and to the third
  CHECK(answer_of(answers, 3).unrounded == 30);

  pointsman_instance view;
  pointsman_instance_init(&view, sizeof view);
  REQUIRE(pointsman_instances_get(instances.get(), 1, &view) == POINTSMAN_OK);
  CHECK(view.problem == std::string("knapsack"));
  CHECK(view.metric == std::string());
  CHECK(view.n == 5);
  CHECK(view.capacity == 9);
  CHECK(std::equal(knapsack, knapsack + 10, view.items));
  REQUIRE(pointsman_instances_get(instances.get(), 2, &view) == POINTSMAN_OK);
  CHECK(view.metric == std::string("EXPLICIT"));
  CHECK(view.items == nullptr);
  REQUIRE(pointsman_instances_get(instances.get(), 3, &view) == POINTSMAN_OK);
  CHECK(view.problem == std::string("cvrp"));
  CHECK(view.capacity == 10);
  CHECK(std::equal(customers, customers + 12, view.items));
  CHECK(pointsman_instances_get(instances.get(), 4, &view) == POINTSMAN_USAGE);
  pointsman_answer answer;
  pointsman_answer_init(&answer, sizeof answer);
  CHECK(pointsman_answers_get(answers.get(), 4, &answer) == POINTSMAN_USAGE);
}

TEST_CASE("the place of the first instance is what its draws depend on") {
  const Sandbox sandbox;
  const Models models(sandbox);
  REQUIRE(sandbox.run("generate tsp -n 12 -b 3 -o tsp.npy").code == 0);
  const Solver solver = new_solver();
  const Instances all = read(solver, sandbox.path("tsp.npy")), last = empty(solver);
  pointsman_instance view;
  pointsman_instance_init(&view, sizeof view);
  REQUIRE(pointsman_instances_get(all.get(), 2, &view) == POINTSMAN_OK);
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), last.get(), "tsp", view.items, view.n, 0, nullptr));
  pointsman_solve_options options = solve_options("sample");
  options.samples = 1;
  const Answers together = solve(solver, all, options);
  const double third = answer_of(together, 2).log_prob;
  CHECK(answer_of(solve(solver, last, options), 0).log_prob != third);
  options.first_row = 2;
  CHECK(answer_of(solve(solver, last, options), 0).log_prob == third);
}

TEST_CASE("scores are the program's") {
  const Sandbox sandbox;
  const Models models(sandbox);
  sandbox.write("mixed.ndjson", kTwoSizes);
  REQUIRE(sandbox.run("solve mixed.ndjson -o answers.ndjson").code == 0);
  const json expected = sandbox.run("score mixed.ndjson --solutions answers.ndjson --temperature 2").parsed();
  const Solver solver = new_solver();
  const Instances instances = read(solver, sandbox.path("mixed.ndjson"));
  pointsman_answers* raw = nullptr;
  REQUIRE_OK(solver, pointsman_read_answers(solver.get(), instances.get(),
                                            sandbox.path("answers.ndjson").c_str(), &raw));
  const Answers answers(raw);
  pointsman_solve_options options = solve_options(nullptr);
  options.temperature = 2;
  double scores[3] = {};
  REQUIRE_OK(solver, pointsman_score(solver.get(), instances.get(), answers.get(), &options, scores));
  for (size_t i = 0; i < 3; ++i) CHECK(scores[i] == expected["solutions"][i]["log_prob"].get<double>());

  // The caller's own answers.
  pointsman_answers* made = nullptr;
  REQUIRE_OK(solver, pointsman_answers_create(solver.get(), &made));
  const Answers own(made);
  for (size_t i = 0; i < 3; ++i) {
    const pointsman_answer answer = answer_of(answers, i);
    REQUIRE_OK(solver,
               pointsman_add_answer(solver.get(), own.get(), instances.get(), answer.order, answer.length));
    CHECK(answer_of(own, i).cost == answer.cost);
  }
  double again[3] = {};
  REQUIRE_OK(solver, pointsman_score(solver.get(), instances.get(), own.get(), &options, again));
  CHECK(std::equal(scores, scores + 3, again));
  const int32_t none = 0;
  CHECK(pointsman_add_answer(solver.get(), own.get(), instances.get(), &none, 1) == POINTSMAN_USAGE);

  options.progress = [](void*, const pointsman_progress*) { return 1; };
  CHECK(pointsman_score(solver.get(), instances.get(), own.get(), &options, again) == POINTSMAN_CANCELLED);
}

TEST_CASE("every format is written and read as by the program") {
  const Sandbox sandbox;
  const Models models(sandbox);
  const Solver solver = new_solver();
  for (const char* problem : {"tsp", "knapsack", "cvrp"}) {
    const std::string npz = std::string(problem) + ".npz";
    REQUIRE(sandbox.run(std::string("generate ") + problem + " -n 9 -b 2 -o " + npz).code == 0);
    const Instances instances = read(solver, sandbox.path(npz));
    for (const char* format : {"npy", "npz", "json", "ndjson"}) {
      if (problem == std::string("cvrp") && format == std::string("npy"))
        continue;  // it has no place for demands
      INFO(problem << " " << format);
      const std::string path = sandbox.path(std::string("copy_") + problem + "." + format);
      REQUIRE_OK(solver, pointsman_write_instances(solver.get(), instances.get(), path.c_str(), nullptr, 0));
      CHECK(pointsman_write_instances(solver.get(), instances.get(), path.c_str(), nullptr, 0) ==
            POINTSMAN_USAGE);
      CHECK_THAT(pointsman_last_error(solver.get()), has_text("is there already"));
      REQUIRE_OK(solver, pointsman_write_instances(solver.get(), instances.get(), path.c_str(), nullptr, 1));
      const void* bytes = nullptr;
      size_t size = 0;
      REQUIRE_OK(solver, pointsman_format_instances(solver.get(), instances.get(), format, &bytes, &size));
      const std::string copy(static_cast<const char*>(bytes), size);
      CHECK(copy == pointsman::read_file(path));
      pointsman_read_options options;
      REQUIRE(pointsman_read_options_init(&options, sizeof options) == POINTSMAN_OK);
      options.problem = problem;
      options.capacity = problem == std::string("knapsack") && format == std::string("npy") ? 2.5 : 0;
      pointsman_instances* parsed = nullptr;
      REQUIRE_OK(solver, pointsman_parse_instances(solver.get(), copy.data(), copy.size(), path.c_str(),
                                                   &options, &parsed));
      const Instances owner(parsed);
      CHECK(pointsman_instances_count(parsed) == 2);
    }
    const Answers answers = solve(solver, instances, solve_options(nullptr));
    for (const char* format : {"json", "ndjson", "npy", "npz"}) {
      INFO(problem << " " << format);
      const std::string bytes = formatted(solver, instances, answers, format);
      const std::string path = sandbox.path(std::string("answers_") + problem + "." + format);
      REQUIRE_OK(solver, pointsman_write_answers(solver.get(), instances.get(), answers.get(), path.c_str(),
                                                 nullptr, 0));
      CHECK(pointsman::read_file(path) == bytes);
      pointsman_answers* parsed = nullptr;
      REQUIRE_OK(solver, pointsman_parse_answers(solver.get(), instances.get(), bytes.data(), bytes.size(),
                                                 path.c_str(), &parsed));
      const Answers owner(parsed);
      CHECK(answer_of(owner, 1).cost == answer_of(answers, 1).cost);
      CHECK(sandbox.run("verify " + npz + " '" + path + "'").code == 0);
    }
    CHECK_THAT(formatted(solver, instances, answers, "text"), has_text("2 solved"));
    // Of answers that no call gave as well.
    pointsman_answers* raw = nullptr;
    const std::string path = sandbox.path(std::string("answers_") + problem + ".npy");
    REQUIRE_OK(solver, pointsman_read_answers(solver.get(), instances.get(), path.c_str(), &raw));
    const Answers owner(raw);
    CHECK(json::parse(formatted(solver, instances, owner, "json"))["summary"]["instances"] == 2);
  }
  const std::string map = std::string(POINTSMAN_SOURCE_DIR) + "/tests/data/capitals.tsp";
  const Instances capitals = read(solver, map);
  const Answers answers = solve(solver, capitals, solve_options(nullptr));
  const std::string tour = formatted(solver, capitals, answers, "tour");
  REQUIRE(sandbox.run("solve '" + map + "' -o capitals.tour").code == 0);
  CHECK(tour == sandbox.read("capitals.tour"));
}

TEST_CASE("what is wrong is told, and the solver goes on") {
  const Sandbox sandbox;
  const Models models(sandbox);
  const Solver solver = new_solver();
  const Instances instances = empty(solver);
  pointsman_solver* const s = solver.get();
  const auto told = [&] { return std::string(pointsman_last_error(s)); };
  REQUIRE_OK(solver, pointsman_add_items(s, instances.get(), "tsp", kSquare, 4, 0, "square"));
  CHECK(told().empty());

  const double bad[] = {0, 1, 2, std::numeric_limits<double>::quiet_NaN()};
  CHECK(pointsman_add_items(s, instances.get(), "tsp", bad, 2, 0, nullptr) == POINTSMAN_INPUT);
  CHECK(told() == "instances[1].items[1][1]: expected a number within +-1e100, found nan");
  const double negative[] = {1, -1};
  CHECK(pointsman_add_items(s, instances.get(), "knapsack", negative, 1, 1, nullptr) == POINTSMAN_INPUT);
  CHECK_THAT(told(), has_text("expected a number from 0 to 1e100, found -1"));
  CHECK(pointsman_add_items(s, instances.get(), "knapsack", kSquare, 4, -1, nullptr) == POINTSMAN_INPUT);
  CHECK_THAT(told(), has_text("instances[1].capacity"));
  CHECK(pointsman_add_items(s, instances.get(), "tsp", kSquare, 0, 0, nullptr) == POINTSMAN_INPUT);
  CHECK(pointsman_add_items(s, instances.get(), "atsp", kSquare, 4, 0, nullptr) == POINTSMAN_USAGE);
  CHECK(pointsman_add_items(s, instances.get(), "tsp", nullptr, 4, 0, nullptr) == POINTSMAN_USAGE);
  const double negative_way[] = {0, 1, -2, 0};
  CHECK(pointsman_add_matrix(s, instances.get(), negative_way, 2, nullptr) == POINTSMAN_INPUT);
  CHECK_THAT(told(), has_text("instances[1].distances[1][0]: expected a number from 0 to 1e100, found -2"));
  CHECK(pointsman_instances_count(instances.get()) == 1);

  sandbox.write("bad.tsp", "NAME : x\nTYPE : TSP\nDIMENSION : two\n");
  pointsman_instances* none = nullptr;
  const std::string path = sandbox.path("bad.tsp");
  CHECK(pointsman_read_instances(s, path.c_str(), nullptr, &none) == POINTSMAN_INPUT);
  CHECK(none == nullptr);
  int64_t line = 0;
  CHECK(pointsman_last_error_file(s, &line) == path);
  CHECK(line == 3);
  CHECK_THAT(told(), has_text(path + ":3: "));

  pointsman_answers* answers = nullptr;
  const auto status = [&](auto change) {
    pointsman_solve_options options = solve_options(nullptr);
    change(options);
    return pointsman_solve(s, instances.get(), &options, &answers);
  };
  CHECK(status([](auto& o) { o.mode = "fast"; }) == POINTSMAN_USAGE);
  CHECK(told() == "mode: expected one of auto, greedy, sample, active, local, 2opt, exact, found \"fast\"");
  CHECK(status([](auto& o) { o.mode = "ratio"; }) == POINTSMAN_USAGE);
  CHECK(status([](auto& o) { o.mode = "exact"; }) == POINTSMAN_USAGE);
  CHECK_THAT(told(), has_text("square: mode exact: is not for TSP"));
  CHECK(status([](auto& o) { o.model = "nobody"; }) == POINTSMAN_INPUT);
  CHECK_THAT(told(), has_text("nobody: expected a model file"));
  const auto prefix = pointsman::fs::path(POINTSMAN_LIBRARY).parent_path().parent_path();
  CHECK_THAT(told(), has_text((prefix / "share/pointsman/models").string()));
  CHECK(status([](auto& o) { o.model = "knapsack50"; }) == POINTSMAN_INPUT);
  CHECK(status([](auto& o) { o.mode = "local", o.samples = 5; }) == POINTSMAN_USAGE);
  CHECK(told() == "samples: is not for mode local");

  // By name, for all later calls.
  CHECK(pointsman_set_option(s, "first-sample", "1") == POINTSMAN_USAGE);
  CHECK(told() == "\"first-sample\": no such option; did you mean first_sample?");
  CHECK(pointsman_set_option(s, "samples", "many") == POINTSMAN_USAGE);
  CHECK(told() == "samples: expected a whole number from 0 to 2147483648, found \"many\"");
  CHECK(pointsman_set_option(s, "samples", "5") == POINTSMAN_OK);
  CHECK(status([](auto& o) { o.mode = "local"; }) == POINTSMAN_USAGE);
  CHECK(told() == "samples: is not for mode local");
  CHECK(pointsman_set_option(s, "samples", nullptr) == POINTSMAN_OK);
  CHECK(status([](auto& o) { o.steps = 5; }) == POINTSMAN_USAGE);
  CHECK(status([](auto& o) { o.mode = "greedy", o.samples = 5; }) == POINTSMAN_USAGE);
  for (const double wrong : {-1.0, std::nan(""), 2e9}) {
    CHECK(status([&](auto& o) { o.time_limit = wrong; }) == POINTSMAN_USAGE);
  }
  CHECK(status([](auto& o) { o.temperature = 0; }) == POINTSMAN_USAGE);
  CHECK(status([](auto& o) { o.augment = 3; }) == POINTSMAN_USAGE);
  CHECK(status([](auto& o) { o.improve = 2; }) == POINTSMAN_USAGE);
  CHECK(status([](auto& o) { o.size = 8; }) == POINTSMAN_USAGE);
  CHECK(answers == nullptr);
  const int32_t twice[] = {0, 1, 1, 2};
  REQUIRE_OK(solver, pointsman_answers_create(s, &answers));
  const Answers owner(answers);
  CHECK(pointsman_add_answer(s, answers, instances.get(), twice, 4) == POINTSMAN_INPUT);
  CHECK_THAT(told(), has_text("answers[0]: city 1 occurs twice"));
  const void* bytes = nullptr;
  size_t size = 0;
  CHECK(pointsman_format_answers(s, instances.get(), answers, "json", &bytes, &size) == POINTSMAN_USAGE);
  CHECK(pointsman_format_instances(s, instances.get(), "csv", &bytes, &size) == POINTSMAN_USAGE);
  CHECK_THAT(told(), has_text("expected one of tsplib, npy, npz, json, ndjson, kp"));
  CHECK(pointsman_write_instances(s, instances.get(), sandbox.path("x.npu").c_str(), nullptr, 0) ==
        POINTSMAN_USAGE);
  CHECK_THAT(told(), has_text("did you mean npy?"));
  CHECK(pointsman_write_instances(s, instances.get(), "/no/such/folder/x.npy", nullptr, 0) ==
        POINTSMAN_RESOURCE);
  CHECK(answer_of(solve(solver, instances, solve_options(nullptr)), 0).cost == 4);
  CHECK(told().empty());
}

TEST_CASE("answers to other instances are refused") {
  const Sandbox sandbox;
  const Models models(sandbox);
  const Solver solver = new_solver();
  pointsman_solver* const s = solver.get();
  const auto series = [&](const char* problem, const std::vector<size_t>& sizes) {
    Instances made = empty(solver);
    for (const size_t n : sizes) {
      const std::vector<double> items(2 * n, 1.0);
      REQUIRE_OK(solver, pointsman_add_items(s, made.get(), problem, items.data(), n, 100, nullptr));
    }
    return made;
  };
  const auto refused = [&](const Instances& instances, const Answers& answers) {
    const std::string path = sandbox.path("refused.json");
    const void* bytes = nullptr;
    size_t size = 0;
    double log_probs[4] = {7, 7, 7, 7};
    CHECK(pointsman_format_answers(s, instances.get(), answers.get(), "json", &bytes, &size) ==
          POINTSMAN_USAGE);
    const std::string told = pointsman_last_error(s);
    CHECK(bytes == nullptr);
    CHECK(pointsman_write_answers(s, instances.get(), answers.get(), path.c_str(), nullptr, 0) ==
          POINTSMAN_USAGE);
    CHECK(pointsman_last_error(s) == told);
    CHECK(!pointsman::fs::exists(path));
    CHECK(pointsman_score(s, instances.get(), answers.get(), nullptr, log_probs) == POINTSMAN_USAGE);
    CHECK(pointsman_last_error(s) == told);
    CHECK(log_probs[0] == 7);
    return told;
  };
  const Instances maps = series("tsp", {5, 6}), sacks = series("knapsack", {3, 5});
  const Answers tours = solve(solver, maps, solve_options(nullptr));
  const Answers packings = solve(solver, sacks, solve_options(nullptr));
  CHECK_THAT(refused(series("tsp", {5}), tours), has_text("answers: expected 1 solution"));
  CHECK_THAT(refused(series("tsp", {5, 7}), tours), has_text("answers[1]: is none to instances[1]: "));
  CHECK_THAT(refused(series("tsp", {5, 4}), tours), has_text("answers[1]: is none to instances[1]: "));
  CHECK_THAT(refused(series("knapsack", {3, 4}), packings),
             has_text("answers[1]: is none to instances[1]: item 4 does not exist"));
  CHECK_THAT(refused(series("knapsack", {2, 4}), packings), has_text("answers[0]: is none to instances[0]"));
}

TEST_CASE("what a format call made can be parsed with the same solver") {
  const Solver solver = new_solver();
  pointsman_solver* const s = solver.get();
  const Instances instances = empty(solver);
  REQUIRE_OK(solver, pointsman_add_items(s, instances.get(), "tsp", kSquare, 4, 0, nullptr));
  const void* bytes = nullptr;
  size_t size = 0;
  REQUIRE_OK(solver, pointsman_format_instances(s, instances.get(), "ndjson", &bytes, &size));
  pointsman_instances* parsed = nullptr;
  REQUIRE_OK(solver, pointsman_parse_instances(s, bytes, size, "square.ndjson", nullptr, &parsed));
  const Instances copy(parsed);
  CHECK(pointsman_instances_count(parsed) == 1);
  const Answers answers = solve(solver, copy, solve_options(nullptr));
  REQUIRE_OK(solver, pointsman_format_answers(s, parsed, answers.get(), "npy", &bytes, &size));
  pointsman_answers* again = nullptr;
  REQUIRE_OK(solver, pointsman_parse_answers(s, parsed, bytes, size, "square.npy", &again));
  CHECK(answer_of(Answers(again), 0).cost == 4);
}

TEST_CASE("a solver that cannot be made tells why") {
  pointsman_solver_options options;
  CHECK(pointsman_solver_options_init(&options, 7) == POINTSMAN_USAGE);
  REQUIRE(pointsman_solver_options_init(&options, sizeof options) == POINTSMAN_OK);
  options.device = "gpu";
  const Solver wrong = new_solver(options, POINTSMAN_USAGE);
  CHECK_THAT(pointsman_last_error(wrong.get()), has_text("expected auto, cpu, cuda"));
  CHECK(pointsman_device(wrong.get()) == std::string());
  const Instances instances = empty(wrong);
  pointsman_answers* answers = nullptr;
  CHECK(pointsman_solve(wrong.get(), instances.get(), nullptr, &answers) == POINTSMAN_USAGE);
  options.device = "cpu";
  options.precision = "bf16";
  CHECK_THAT(pointsman_last_error(new_solver(options, POINTSMAN_RESOURCE).get()),
             has_text("needs a CUDA device"));
  options.precision = "fp8";
  new_solver(options, POINTSMAN_USAGE);
  options.precision = nullptr;
  options.threads = -1;
  new_solver(options, POINTSMAN_USAGE);
  options.threads = 1;
  CHECK_THAT(pointsman_device(new_solver(options).get()), has_text("cpu (") && has_text("1 thread"));
  CHECK(pointsman_solver_create(&options, nullptr) == POINTSMAN_USAGE);
  CHECK(pointsman_solve(nullptr, nullptr, nullptr, nullptr) == POINTSMAN_USAGE);
  CHECK(pointsman_version() == std::string(POINTSMAN_VERSION));
}

TEST_CASE("the log goes to who asked for it") {
  const Sandbox sandbox;
  const Models models(sandbox);
  pointsman_solver_options options;
  REQUIRE(pointsman_solver_options_init(&options, sizeof options) == POINTSMAN_OK);
  std::string lines;
  options.log = [](void* user, const char* line) { *static_cast<std::string*>(user) += line; };
  options.log_user = &lines;
  const Solver solver = new_solver(options);
  const Instances instances = empty(solver);
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), instances.get(), "tsp", kSquare, 4, 0, nullptr));
  solve(solver, instances, solve_options("greedy"));
  CHECK_THAT(lines, has_text("model tsp20: tsp, trained on n = 20"));
}

namespace {

struct Reentry {
  pointsman_solver* solver;
  const pointsman_instances* instances;
  int calls = 0, status = POINTSMAN_OK;
  std::string told;
};

}  // namespace

TEST_CASE("a solver in use refuses another call") {
  const Solver solver = new_solver();
  const Instances instances = empty(solver);
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), instances.get(), "tsp", kSquare, 4, 0, nullptr));
  Reentry reentry{.solver = solver.get(), .instances = instances.get(), .told = {}};
  pointsman_solve_options options = solve_options("local");
  options.progress_user = &reentry;
  options.progress = [](void* user, const pointsman_progress* progress) {
    auto& at = *static_cast<Reentry*>(user);
    CHECK(progress->instances == 1);
    CHECK(progress->seconds >= 0);
    ++at.calls;
    pointsman_answers* none = nullptr;
    at.status = pointsman_solve(at.solver, at.instances, nullptr, &none);
    at.told = pointsman_last_error(at.solver);
    return 0;
  };
  CHECK(answer_of(solve(solver, instances, options), 0).cost == 4);
  CHECK(reentry.calls > 0);
  CHECK(reentry.status == POINTSMAN_USAGE);
  CHECK_THAT(reentry.told, has_text("in use"));
  CHECK(pointsman_last_error(solver.get()) == std::string());
  CHECK(answer_of(solve(solver, instances, solve_options(nullptr)), 0).cost == 4);
}

TEST_CASE("a limit and a cancelled call leave the best so far") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 200 -b 1 -o tsp.npy").code == 0);
  const Solver solver = new_solver();
  const Instances instances = read(solver, sandbox.path("tsp.npy"));
  pointsman_solve_options options = solve_options("local");
  options.time_limit = 0.05;
  const Answers limited = solve(solver, instances, options);
  CHECK(answer_of(limited, 0).status == POINTSMAN_TIME_LIMIT);
  CHECK(answer_of(limited, 0).length == 200);
  options.time_limit = 0;
  options.limit_each = 0.05;
  CHECK(answer_of(solve(solver, instances, options), 0).status == POINTSMAN_TIME_LIMIT);

  options.limit_each = 0;
  options.kicks = int64_t{1} << 40;
  int calls = 0;
  options.progress_user = &calls;
  options.progress = [](void* user, const pointsman_progress*) {
    return ++*static_cast<int*>(user) == 5 ? 1 : 0;
  };
  pointsman_answers* raw = nullptr;
  CHECK(pointsman_solve(solver.get(), instances.get(), &options, &raw) == POINTSMAN_CANCELLED);
  REQUIRE(raw != nullptr);
  const Answers cancelled(raw);
  CHECK(calls == 5);
  CHECK(answer_of(cancelled, 0).status == POINTSMAN_INTERRUPTED);
  CHECK(answer_of(cancelled, 0).length == 200);
  CHECK(json::parse(formatted(solver, instances, cancelled, "json"))["code"] == 130);
}

TEST_CASE("an active search tells its steps") {
  const Sandbox sandbox;
  const Models models(sandbox);
  const Solver solver = new_solver();
  const Instances instances = empty(solver);
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), instances.get(), "tsp", kSquare, 4, 0, nullptr));
  pointsman_solve_options options = solve_options("active");
  int64_t step = 0;
  options.progress_user = &step;
  options.progress = [](void* user, const pointsman_progress* progress) {
    *static_cast<int64_t*>(user) = progress->step;
    return progress->step >= 2 ? 1 : 0;
  };
  pointsman_answers* raw = nullptr;
  CHECK(pointsman_solve(solver.get(), instances.get(), &options, &raw) == POINTSMAN_CANCELLED);
  const Answers answers(raw);
  CHECK(step >= 2);
}

TEST_CASE("a KnapSack text is read in the layout that is named") {
  const Solver solver = new_solver();
  const std::string both = "2 10\n4 6\n5 7\n";
  const auto parse = [&](const char* layout, pointsman_instances*& parsed) {
    pointsman_read_options options;
    REQUIRE(pointsman_read_options_init(&options, sizeof options) == POINTSMAN_OK);
    options.layout = layout;
    return pointsman_parse_instances(solver.get(), both.data(), both.size(), "a.kp", &options, &parsed);
  };
  for (const auto& [layout, weight] : {std::pair("pairs", 6.0), std::pair("lists", 4.0)}) {
    pointsman_instances* parsed = nullptr;
    REQUIRE_OK(solver, parse(layout, parsed));
    const Instances owner(parsed);
    pointsman_instance instance;
    REQUIRE(pointsman_instance_init(&instance, sizeof instance) == POINTSMAN_OK);
    REQUIRE(pointsman_instances_get(parsed, 0, &instance) == POINTSMAN_OK);
    CHECK(instance.items[0] == weight);
  }
  pointsman_instances* none = nullptr;
  CHECK(parse("list", none) == POINTSMAN_USAGE);
  CHECK_THAT(pointsman_last_error(solver.get()), has_text("layout: expected one of auto, pairs"));
}

TEST_CASE("a packing that is not proved has a bound") {
  const Sandbox sandbox;
  const Models models(sandbox);
  const Solver solver = new_solver();
  const Instances instances = empty(solver);
  std::vector<double> items;  // each worth its even weight, and an odd capacity: no packing fills it
  for (int i = 0; i < 60; ++i) items.insert(items.end(), 2, 1e6 + 2.0 * (i * 7919 % 499979));
  REQUIRE_OK(solver, pointsman_add_items(solver.get(), instances.get(), "knapsack", items.data(), 60,
                                         30000001, nullptr));
  REQUIRE_OK(solver,
             pointsman_add_items(solver.get(), instances.get(), "knapsack", items.data(), 2, 1, nullptr));
  const Answers answers = solve(solver, instances, solve_options(nullptr));
  CHECK(answer_of(answers, 0).bound == 30000001);
  CHECK(answer_of(answers, 0).cost < 30000001);
  CHECK(std::isnan(answer_of(answers, 1).bound));
}
