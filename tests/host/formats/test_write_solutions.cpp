// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <memory>
#include <nlohmann/json.hpp>

#include "engine/problem/instance.h"
#include "host/formats/formats.h"
#include "host/formats/read_files.h"
#include "host/formats/write_solutions.h"
#include "models/tools/atomic_file.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

using namespace pointsman;

namespace {

const std::string kData = std::string(POINTSMAN_SOURCE_DIR) + "/tests/data/";

Instance square() {
  Instance instance;
  instance.id = "sq\"uare";
  instance.has_id = true;
  instance.values = {0, 0, 1, 0, 1, 1, 0, 1};
  return instance;
}

Solution square_tour() {
  Solution solution;
  solution.order = {2, 1, 0, 3};
  solution.objective = 4.0;
  solution.unrounded = 4.0;
  solution.log_prob = -0.1;
  solution.network_objective = kNoNumber;
  return solution;
}

Instance sack() {
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  instance.capacity = 3;
  instance.values = {1, 10, 2, 20, 3, 25};
  return instance;
}

Solution sack_items() {
  Solution solution;
  solution.order = {1, 0};
  solution.objective = 30;
  solution.weight = 3;
  solution.log_prob = kNoNumber;
  solution.network_objective = 20;
  solution.status = Status::kTimeLimit;
  return solution;
}

SolveSummary summary() {
  SolveSummary s;
  s.instances = 1;
  s.mean_cost = 4.0;
  s.gap = 0.25;
  s.loading_ms = 1.5;
  s.mode = "sample";
  s.samples = 1280;
  s.augment = 8;
  s.model = "tsp20";
  s.model_sha256 = "ab";
  s.device = "cpu";
  s.seed = 1234;
  s.version = "0.1.0";
  s.groups = {{"tsp", 4, "sample", "tsp20", 1, 4.0, 0.25}};
  return s;
}

std::string format_instances(InputFormat kind, const InstanceBatch& instances) {
  return format_of_kind(instance_formats(), kind).write(instances);
}

std::string format_solutions(OutputFormat kind, const InstanceBatch& instances,
                             const SolutionBatch& solutions, const std::vector<double>& gaps,
                             const SolveSummary& of_run) {
  return format_of_kind(answer_formats(), kind).write({instances, solutions, gaps, of_run});
}

std::string format(OutputFormat output, const Instance& instance, const Solution& solution) {
  return format_solutions(output, {instance}, {solution}, {}, summary());
}

}  // namespace

TEST_CASE("JSON holds the fields of the contract, and numbers that read back to the same double") {
  Solution solution = square_tour();
  solution.objective = 0.1 + 0.2;
  const std::string text = format_solutions(OutputFormat::kJson, {square()}, {solution}, {0.25}, summary());
  CHECK(
      text ==
      "{\"code\":0,\"summary\":{\"instances\":1,\"mean_cost\":4,\"gap\":0.25,\"computing_times\":{"
      "\"loading\":1.5,"
      "\"solving\":0},\"mode\":\"sample\",\"samples\":1280,\"augment\":8,\"shuffle\":false,\"improve\":false,"
      "\"model\":\"tsp20\",\"model_sha256\":\"ab\",\"device\":\"cpu\",\"seed\":1234,\"version\":\"0.1.0\","
      "\"groups\":["
      "{\"problem\":\"tsp\",\"n\":4,\"mode\":\"sample\",\"model\":\"tsp20\",\"instances\":1,\"mean_cost\":4,"
      "\"gap\":0.25}]},\n"
      " \"solutions\":[\n  "
      "{\"index\":0,\"id\":\"sq\\\"uare\",\"problem\":\"tsp\",\"n\":4,\"status\":\"done\","
      "\"cost\":0.30000000000000004,\"cost_euclidean\":4,\"gap\":0.25,\"log_prob\":-0.1,\"tour\":[2,1,0,3]}]}"
      "\n");
  CHECK(nlohmann::json::parse(text)["solutions"][0]["cost"] == 0.1 + 0.2);
}

TEST_CASE("KnapSack has value, weight and items, and what is not known is null or absent") {
  CHECK(solution_json(3, sack(), sack_items(), kNoNumber) ==
        "{\"index\":3,\"id\":\"\",\"problem\":\"knapsack\",\"n\":3,\"status\":\"time_limit\",\"value\":30,"
        "\"weight\":3,"
        "\"gap\":null,\"log_prob\":null,\"network_cost\":20,\"items\":[1,0]}");
}

TEST_CASE("a value that is not proved has its bound beside it") {
  const auto parsed = [](double bound, double objective) {
    Solution solution = sack_items();
    solution.bound = bound;
    solution.objective = objective;
    return nlohmann::json::parse(solution_json(0, sack(), solution, kNoNumber));
  };
  CHECK(parsed(40, 30)["bound"] == 40);
  CHECK(parsed(40, 30)["gap_to_bound"] == 0.25);
  CHECK(parsed(30, 30)["gap_to_bound"] == 0);
  CHECK(parsed(0, 0)["bound"] == 0);
  CHECK(parsed(0, 0)["gap_to_bound"] == 0);
  CHECK_FALSE(parsed(kNoNumber, 30).contains("bound"));
  CHECK_FALSE(parsed(kNoNumber, 30).contains("gap_to_bound"));
}

TEST_CASE("an id that is not UTF-8 still makes valid JSON") {
  Instance instance = square();
  instance.id = "Z\xFCrich";
  const auto parsed = nlohmann::json::parse(solution_json(0, instance, square_tour(), 0.0));
  CHECK(parsed["id"] == "Z\xEF\xBF\xBDrich");
}

TEST_CASE("errors as JSON") {
  const std::string message = "a.tsp:11: x \"y\"";
  CHECK(error_json(3, message, "a.tsp", 11) ==
        "{\"code\":3,\"error\":\"a.tsp:11: x \\\"y\\\"\",\"file\":\"a.tsp\",\"line\":11}");
  CHECK(error_json(3, message, "a.tsp", 11, 4).find("{\"index\":4,\"code\":3,") == 0);
  CHECK(error_json(4, "no memory") == "{\"code\":4,\"error\":\"no memory\"}");
}

TEST_CASE("NDJSON is one solution a line") {
  const std::string text = format_solutions(OutputFormat::kNdjson, {square(), sack()},
                                            {square_tour(), sack_items()}, {kNoNumber, 0.5}, summary());
  // As tests of other languages would make them: FNV-1a of problem and metric, then a word a step.
  const auto with = [](std::string line, const std::string& hash) {
    return line.insert(line.find(",\"status\""), ",\"instance\":\"" + hash + "\"") + "\n";
  };
  CHECK(text == with(solution_json(0, square(), square_tour(), kNoNumber), "61254189b9ef8675") +
                    with(solution_json(1, sack(), sack_items(), 0.5), "acede46115291abe"));
}

TEST_CASE("the hash of an instance changes with all that an answer depends on, and not with its id") {
  const uint64_t hash = instance_hash(square());
  Instance other = square();
  other.id = "another";
  CHECK(instance_hash(other) == hash);
  other.values[7] = std::nextafter(1.0, 2.0);
  CHECK(instance_hash(other) != hash);
  other = square();
  other.metric = Metric::kEuc2d;
  CHECK(instance_hash(other) != hash);
  other.metric = Metric::kExplicit;
  DistanceMatrix matrix{3, {1, 2, 3}};
  other.matrix = std::make_shared<DistanceMatrix>(matrix);
  const uint64_t of_matrix = instance_hash(other);
  CHECK(of_matrix != hash);
  matrix.above[2] = 4;
  other.matrix = std::make_shared<DistanceMatrix>(matrix);
  CHECK(instance_hash(other) != of_matrix);
  other = sack();
  other.capacity = 4;
  CHECK(instance_hash(other) != instance_hash(sack()));
  other = sack();
  other.problem = ProblemKind::kTsp;
  CHECK(instance_hash(other) != instance_hash(sack()));
}

TEST_CASE("a .tour starts at city 1 and goes towards its lower-numbered neighbour") {
  Instance instance = square();
  instance.id = "square";
  CHECK(format(OutputFormat::kTour, instance, square_tour()) ==
        "NAME : square.4.tour\nCOMMENT : Length = 4\nCOMMENT : Found by pointsman 0.1.0\nTYPE : TOUR\n"
        "DIMENSION : 4\nTOUR_SECTION\n1\n2\n3\n4\n-1\nEOF\n");
  instance.id = "a\nTYPE : TSP";
  CHECK(format(OutputFormat::kTour, instance, square_tour()).find("\nTYPE : TSP") == std::string::npos);
  CHECK_THROWS_AS(format(OutputFormat::kTour, sack(), sack_items()), OutputRefused);
  CHECK_THROWS_AS(format_solutions(OutputFormat::kTour, {square(), square()}, {square_tour(), square_tour()},
                                   {}, summary()),
                  OutputRefused);
}

TEST_CASE("an unsolved instance has no cost, and null or -1 for its answer") {
  SolveSummary one_left = summary();
  one_left.instances = 2;
  one_left.unsolved = 1;
  const auto written = [&](const char* name, const Instance& instance, const Solution& solution) {
    return format_solutions(format_named(answer_formats(), name)->kind, {instance, instance},
                            {solution, unsolved()}, {}, one_left);
  };
  const nlohmann::json json = nlohmann::json::parse(written("json", square(), square_tour()));
  CHECK(json.at("summary").at("unsolved") == 1);
  const nlohmann::json& left = json.at("solutions").at(1);
  CHECK(left.at("status") == "unsolved");
  CHECK(left.at("tour").is_null());
  for (const char* key : {"cost", "cost_euclidean"}) CHECK_FALSE(left.contains(key));
  const nlohmann::json pack =
      nlohmann::json::parse(written("json", sack(), sack_items())).at("solutions").at(1);
  CHECK(pack.at("items").is_null());
  for (const char* key : {"value", "weight"}) CHECK_FALSE(pack.contains(key));
  CHECK(written("npy", square(), square_tour()).ends_with(std::string(16, '\xFF')));
  CHECK(written("npy", sack(), sack_items()).ends_with(std::string("\1\1\0\xFF\xFF\xFF", 6)));
  CHECK(written("text", square(), square_tour()).find("1 solved, 1 not, ") != std::string::npos);
  CHECK_THROWS_AS(format(OutputFormat::kTour, square(), unsolved()), OutputRefused);
}

TEST_CASE("an infeasible instance is told with its least violation, and counted") {
  SolveSummary one_left = summary();
  one_left.infeasible = 1;
  const auto written = [&](const char* name) {
    return format_solutions(format_named(answer_formats(), name)->kind, {square()}, {infeasible(2)}, {},
                            one_left);
  };
  const nlohmann::json json = nlohmann::json::parse(written("json"));
  CHECK(json.at("summary").at("infeasible") == 1);
  const nlohmann::json& left = json.at("solutions").at(0);
  CHECK(left.at("status") == "infeasible");
  CHECK(left.at("violation") == 2);
  CHECK(left.at("tour").is_null());
  CHECK_FALSE(left.contains("cost"));
  CHECK(written("npy").ends_with(std::string(16, '\xFF')));
  CHECK(written("text").find("0 solved, 1 infeasible, ") != std::string::npos);
  CHECK_THROWS_AS(format(OutputFormat::kTour, square(), infeasible(2)), OutputRefused);
}

TEST_CASE("every output format that holds answers reads back to them") {
  const TemporaryFolder folder;
  for (const char* name : {"json", "ndjson", "npy", "npz"}) {
    INFO(name);
    const OutputFormat output = format_named(answer_formats(), name)->kind;
    const std::string path = (folder / (std::string("tsp.") + name)).string();
    CHECK(format_by_suffix(answer_formats(), path)->kind == output);
    write_file_atomically(
        path, format_solutions(output, {square(), square()}, {square_tour(), square_tour()}, {}, summary()));
    const SolutionBatch tours = read_solutions(path, {square(), square()});
    REQUIRE(tours.size() == 2);
    CHECK(tours[1].order == square_tour().order);
    if (output != OutputFormat::kNpy) CHECK(tours[1].objective == 4.0);
    const std::string sack_path = (folder / (std::string("sack.") + name)).string();
    write_file_atomically(sack_path, format(output, sack(), sack_items()));
    std::vector<int32_t> items = read_solutions(sack_path, {sack()})[0].order;
    std::sort(items.begin(), items.end());
    CHECK(items == std::vector<int32_t>{0, 1});
  }
  write_file_atomically(folder / "a.tour", format(OutputFormat::kTour, square(), square_tour()));
  CHECK(read_solutions((folder / "a.tour").string(), {square()})[0].order ==
        std::vector<int32_t>{0, 1, 2, 3});
}

TEST_CASE("arrays need one problem and one size") {
  Instance triangle = square();
  triangle.values.resize(6);
  Solution tour = square_tour();
  tour.order = {0, 1, 2};
  CHECK_THROWS_AS(
      format_solutions(OutputFormat::kNpy, {square(), triangle}, {square_tour(), tour}, {}, summary()),
      OutputRefused);
  CHECK_THROWS_AS(format_instances(InputFormat::kNpy, {square(), triangle}), OutputRefused);
  CHECK_THROWS_AS(format_instances(InputFormat::kNpz, {}), OutputRefused);
  CHECK_THROWS_AS(format_instances(InputFormat::kKnapsackText, {square()}), OutputRefused);
  CHECK_THROWS_AS(format_instances(InputFormat::kTsplib, {square(), square()}), OutputRefused);
}

TEST_CASE("JSON and the table list the groups of a run, and what they differ in has no value for all") {
  SolveSummary mixed = summary();
  mixed.samples.reset();
  mixed.augment.reset();
  mixed.groups.push_back({"knapsack", 3, "sample", "", 2, 30.0, kNoNumber});
  mixed.groups.push_back({"", 0, "sample", "", 5, kNoNumber, kNoNumber});
  const auto format = [&](OutputFormat kind) {
    return format_solutions(kind, {square()}, {square_tour()}, {}, mixed);
  };
  const nlohmann::json parsed = nlohmann::json::parse(format(OutputFormat::kJson)).at("summary");
  CHECK(parsed.at("samples").is_null());
  CHECK(parsed.at("augment").is_null());
  CHECK(parsed.at("groups").at(1).at("model").is_null());
  CHECK(parsed.at("groups").at(1).at("gap").is_null());
  CHECK(parsed.at("groups").at(2).at("problem").is_null());
  CHECK(parsed.at("groups").at(2).at("n").is_null());
  const std::string text = format(OutputFormat::kText);
  CHECK(text.find(", mode sample, model tsp20, seed") != std::string::npos);
  CHECK(text.find("\ntsp n=4: 1 instance, mean 4, gap 25%, model tsp20\n"
                  "knapsack n=3: 2 instances, mean 30\n"
                  "others: 5 instances\n") != std::string::npos);
}

TEST_CASE("the text table names each answer and hides control bytes") {
  Instance instance = square();
  instance.id = "a\x1b[31m";
  const std::string text =
      format_solutions(OutputFormat::kText, {instance}, {square_tour()}, {0.0312}, summary());
  CHECK(text.find('\x1b') == std::string::npos);
  CHECK(text.find("a\\x1b[31m") != std::string::npos);
  CHECK(text.find("3.12%") != std::string::npos);
  CHECK(text.find("1 solved, mean 4, gap 25%, mode sample, 1280 samples, augment 8") != std::string::npos);
}

TEST_CASE("instances: npy is bit for bit what numpy.save writes") {
  const InstanceFile file = read_instances(kData + "numpy_tsp.npy");
  CHECK(format_instances(InputFormat::kNpy, file.instances) == bytes_of(kData + "numpy_tsp.npy"));
}

TEST_CASE("instances read back as they were written") {
  InstanceBatch sacks = read_instances(kData + "numpy_knapsack.npz").instances;
  Instance map = read_instances(kData + "swiss_stations.tsp").instances.at(0);
  const auto round_trip = [](InputFormat output, const InstanceBatch& instances) {
    ReadOptions options;
    options.format = output;
    return parse_instances(format_instances(output, instances), "x", options).instances;
  };
  for (const InputFormat output : {InputFormat::kJson, InputFormat::kNdjson, InputFormat::kNpz}) {
    const InstanceBatch back = round_trip(output, sacks);
    REQUIRE(back.size() == 2);
    CHECK(back[1].values == sacks[1].values);
    CHECK(back[1].capacity == 2.5);
    CHECK(back[1].id == "8");
    const InstanceBatch points = round_trip(output, {square()});
    CHECK(points.at(0).values == square().values);
    CHECK(points.at(0).id == square().id);
  }
  for (const InputFormat output : {InputFormat::kJson, InputFormat::kTsplib}) {
    const Instance back = round_trip(output, {map}).at(0);
    CHECK(back.values == map.values);
    CHECK(back.metric == Metric::kEuc2d);
  }
  CHECK(round_trip(InputFormat::kKnapsackText, {sacks[0]}).at(0).values == sacks[0].values);
  CHECK_THROWS_AS(format_instances(InputFormat::kNpy, {map}), OutputRefused);  // it would lose EUC_2D
}

TEST_CASE("TSPLIB has no unrounded metric: unit-square instances are scaled up, and say so") {
  const std::string text = format_instances(InputFormat::kTsplib, {square()});
  CHECK(text.find("COMMENT : coordinates times 1000000") != std::string::npos);
  CHECK(parse_instances(text, "x.tsp").instances[0].values ==
        std::vector<double>{0, 0, 1e6, 0, 1e6, 1e6, 0, 1e6});
}
