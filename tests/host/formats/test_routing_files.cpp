// SPDX-License-Identifier: Apache-2.0
// Vehicle routing in files: JSON, .npz, CVRPLIB's .vrp and .sol, there and back, and what is wrong in them.
#include <string>

#include "engine/problem/generate.h"
#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/read_files.h"
#include "models/tools/atomic_file.h"
#include "tests/catch.h"
#include "tests/host/formats/refusals.h"

using namespace pointsman;

namespace {

const std::string kVrp =
    "NAME : small\nCOMMENT : (three customers)\nTYPE : CVRP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\n"
    "CAPACITY : 10\nNODE_COORD_SECTION\n1 0 0\n2 3 4\n3 6 8\n4 -3 4\nDEMAND_SECTION\n1 0\n2 4\n3 6\n4 7\n"
    "DEPOT_SECTION\n 1\n -1\nEOF\n";

Instance small() { return parse_instances(kVrp, "small.vrp").instances.at(0); }

// kVrp with one text in place of another.
std::string with(const std::string& from, const std::string& to) {
  std::string text = kVrp;
  const size_t at = text.find(from);
  REQUIRE(at != std::string::npos);
  return text.replace(at, from.size(), to);
}

Solution answer_of(const std::string& bytes, const std::string& name, const Instance& instance) {
  SolutionBatch answers = parse_solutions(bytes, name, {instance});
  check_solutions(answers, {instance}, name);
  return answers.at(0);
}

struct Written {
  InstanceBatch instances;
  SolutionBatch solutions;
  std::vector<double> gaps = {};
  SolveSummary summary = {};
  Answer answer() const { return {instances, solutions, gaps, summary}; }
};

}  // namespace

TEST_CASE("a .vrp file has coordinates, demands and a capacity") {
  const Instance instance = small();
  CHECK(instance.problem == ProblemKind::kCvrp);
  CHECK(instance.id == "small");
  CHECK(instance.metric == Metric::kEuc2d);
  CHECK(instance.capacity == 10.0);
  CHECK(instance.values == std::vector<double>{0, 0, 0, 3, 4, 4, 6, 8, 6, -3, 4, 7});
}

TEST_CASE("what is wrong in a .vrp file is said with its line") {
  const auto says = [&](const std::string& text, const std::string& expected) {
    INFO(error_of(text, "a.vrp"));
    CHECK(error_of(text, "a.vrp").find(expected) != std::string::npos);
  };
  says(with("CAPACITY : 10\n", ""), "expected CAPACITY, found none");
  says(with("CAPACITY : 10", "CAPACITY : -1"), "a.vrp:6: CAPACITY: expected a number from 0 to 1e100");
  says(with("3 6\n4 7\n", "3 6\n"), "a.vrp:15: DEMAND_SECTION: expected DIMENSION = 4 rows, found 3");
  says(with("4 7\n", "4 11\n"), "a.vrp:16: DEMAND_SECTION: expected at most the capacity, found 11");
  says(with("1 0\n2 4", "1 1\n2 4"), "expected 0, the demand of the depot, found 1");
  says(with("4 7\n", "3 7\n"), "expected a new id, found 3 again");
  says(with("4 7\n", "5 7\n"), "expected an id from 1 to DIMENSION = 4, found 5");
  says(with(" 1\n -1\n", " 2\n -1\n"), "DEPOT_SECTION: expected 1 and -1");
  says(with("DEPOT_SECTION", "TOUR_SECTION"), "a.vrp:17: \"TOUR_SECTION\": this section is not supported");
  says(with("TYPE : CVRP", "TYPE : VRP"), "TYPE: expected TSP, ATSP, HPP or CVRP, found \"VRP\"");
}

TEST_CASE("instances of routes are the same after each format that holds them") {
  InstanceBatch batch = generate_instances(ProblemKind::kCvrp, 6, 1, 0, 3);
  for (const char* name : {"json", "ndjson", "npz"}) {
    const InstanceFormat* format = format_named(instance_formats(), name);
    const InstanceBatch read = parse_instances(format->write(batch), std::string("a.") + name).instances;
    REQUIRE(read.size() == batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      CHECK(read[i].problem == ProblemKind::kCvrp);
      CHECK(read[i].values == batch[i].values);
      CHECK(read[i].capacity == batch[i].capacity);
    }
  }
  CHECK_THROWS_AS(write_npy(batch), OutputRefused);
  CHECK_THROWS_AS(write_tsplib(batch), OutputRefused);  // three
  const Instance again = parse_instances(write_tsplib({small()}), "a.vrp").instances.at(0);
  CHECK(again.values == small().values);
  CHECK(again.capacity == 10.0);
}

TEST_CASE("what is wrong in JSON of routes is said with its place") {
  const std::string good =
      R"({"problem":"cvrp","capacity":9,"coordinates":[[0,0],[1,0],[0,1]],"demands":[0,4,9]})";
  CHECK(parse_instances(good, "a.json").instances.at(0).n() == 3);
  const auto says = [&](const std::string& from, const std::string& to, const std::string& expected) {
    std::string text = good;
    text.replace(text.find(from), from.size(), to);
    INFO(error_of(text, "a.json"));
    CHECK(error_of(text, "a.json").find(expected) != std::string::npos);
  };
  says("[0,4,9]", "[0,4]", "expected as many as coordinates (3)");
  says("[0,4,9]", "[0,4,10]", "expected at most the capacity");
  says("[0,4,9]", "[1,4,9]", "expected 0, the demand of the depot");
  says("[0,4,9]", "[0,-4,9]", "expected a number of at least 0");
  says(",\"demands\":[0,4,9]", "", "demands");
}

TEST_CASE("routes are the same after each format that holds them") {
  const Instance instance = small();
  Solution solution;
  solution.order = {1, 2, 0, 3};
  REQUIRE(validate_solution(instance, solution).empty());
  CHECK(solution.objective == 30.0);  // 5 + 5 + 10 and 5 + 5
  const Written written{{instance}, {solution}};
  for (const char* name : {"json", "ndjson", "sol", "npy", "npz"}) {
    const AnswerFormat* format = format_named(answer_formats(), name);
    INFO(name);
    const Solution read = answer_of(format->write(written.answer()), std::string("a.") + name, instance);
    CHECK(read.order == solution.order);
    CHECK(read.objective == 30.0);
  }
  CHECK(write_routes(written.answer()) == "Route #1: 1 2\nRoute #2: 3\nCost 30\n");
  CHECK(write_json_answers(written.answer()).find("\"routes\":[[1,2],[3]]") != std::string::npos);
  CHECK_THROWS_AS(write_tour(written.answer()), OutputRefused);
  Instance tsp;
  tsp.values = {0, 0, 1, 0, 0, 1};
  CHECK_THROWS_AS(write_routes(Written{{tsp}, {{}}}.answer()), OutputRefused);
}

TEST_CASE("wrong routes are refused") {
  const Instance instance = small();
  const auto says = [&](const std::string& text, const std::string& expected) {
    std::string what;
    try {
      answer_of(text, "a.sol", instance);
    } catch (const InputError& error) {
      what = error.what();
    }
    INFO(what);
    CHECK(what.find(expected) != std::string::npos);
  };
  says("Route #1: 1 2 3\n", "route 1 carries more than the capacity");
  says("Route #1: 1 2\n", "the routes serve 2 of 3 customers");
  says("Route #1: 1 x\n", "a.sol:1: expected a customer, from 1, found \"x\"");
  says("Route #1: 1 0\n", "expected a customer, from 1, found \"0\"");
  says("Route #1: 1 2\nRoute #2: 3\nCost many\n", "a.sol:3: expected a number behind Cost");
}
