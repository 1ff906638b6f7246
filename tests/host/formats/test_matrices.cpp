// SPDX-License-Identifier: Apache-2.0
// Instances that are a matrix of distances: what the readers make of them and what the writers tell.
#include <cstdlib>
#include <fstream>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/npy_array.h"
#include "models/tools/atomic_file.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

const std::vector<double> kAbove = {10, 20, 30, 40, 50, 60};  // of four cities

std::string tsplib(const std::string& format, const std::string& numbers) {
  return "NAME : four\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : " +
         format + "\nEDGE_WEIGHT_SECTION\n" + numbers + "\nEOF\n";
}

Instance only(const InstanceFile& file) {
  REQUIRE(file.instances.size() == 1);
  CHECK(file.warnings.empty());
  return file.instances[0];
}

void check_four(const Instance& instance) {
  CHECK(instance.problem == ProblemKind::kTsp);
  CHECK(instance.metric == Metric::kExplicit);
  CHECK(instance.values.empty());
  REQUIRE(instance.matrix);
  CHECK(instance.n() == 4);
  CHECK(instance.matrix->above == kAbove);
}

// The text with its last `what` replaced.
std::string with(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.rfind(what), what.size(), by);
}

template <typename T>
InstanceFile read_matrix(const std::string& type, std::vector<size_t> shape,
                         std::initializer_list<T> values) {
  std::string bytes = npy_header(type, shape);
  for (const T value : values) append_bytes(bytes, value);
  ReadOptions options;
  options.format = InputFormat::kMatrix;
  return parse_instances(bytes, "a.npy", options);
}

// Two cities apart by `distance`: a tour costs it twice.
Instance pair_of(double distance, ProblemKind problem = ProblemKind::kTsp) {
  Instance instance;
  instance.problem = problem;
  instance.metric = Metric::kExplicit;
  instance.matrix = std::make_shared<const DistanceMatrix>(DistanceMatrix{2, {distance}});
  return instance;
}

Solution measured(const Instance& instance) {
  Solution solution;
  solution.order = {0, 1};
  solution.network_objective = kNoNumber;
  REQUIRE(validate_solution(instance, solution).empty());
  return solution;
}

}  // namespace

TEST_CASE("TSPLIB: each format of a matrix, its numbers on any lines, the diagonal whatever it is") {
  check_four(only(
      parse_instances(tsplib("FULL_MATRIX", "9 10 20 30\n10 -1 40 50\n20 40 7e9 60\n30 50 60 0"), "a.tsp")));
  check_four(only(
      parse_instances(tsplib("FULL_MATRIX", "0 10 20 30 10 0 40\n50 20\n\n40 0 60 30 50 60 0"), "a.tsp")));
  check_four(only(parse_instances(tsplib("UPPER_ROW", "10 20 30\n40 50\n60"), "a.tsp")));
  check_four(only(parse_instances(tsplib("LOWER_ROW", "10\n20 40\n30 50 60"), "a.tsp")));
  check_four(only(parse_instances(tsplib("UPPER_DIAG_ROW", "1 10 20\n30 2 40 50 3 60 4"), "a.tsp")));
  check_four(only(parse_instances(tsplib("LOWER_DIAG_ROW", "0 10 0 20 40 0 30 50\r\n\t60 0"), "a.tsp")));
}

TEST_CASE("TSPLIB: sections that are no part of a matrix are passed over, wherever they stand") {
  const std::string text = tsplib("UPPER_ROW", "10 20 30\n40 50\n60");
  const std::string display = "DISPLAY_DATA_SECTION\n 1 0.5 -1\n2 0 0\n3 1e1 0\n4 0 1\n";
  const auto before = [&](const std::string& section, const std::string& more) {
    const size_t at = text.find(section);
    REQUIRE(at != std::string::npos);
    return text.substr(0, at) + more + text.substr(at);
  };
  check_four(only(parse_instances(before("EOF", display), "a.tsp")));
  check_four(only(parse_instances(before("EDGE_WEIGHT_SECTION", display), "a.tsp")));
  check_four(
      only(parse_instances(before("EDGE_WEIGHT_SECTION", "NODE_COORD_SECTION:\n1 0 0\n2 1 1\n"), "a.tsp")));
  check_four(
      only(parse_instances(before("EDGE_WEIGHT_TYPE", "DISPLAY_DATA_TYPE : TWOD_DISPLAY\n"), "a.tsp")));
  const InstanceFile cut = parse_instances(text.substr(0, text.find("EOF")) + display, "a.tsp");
  REQUIRE(cut.warnings.size() == 1);
  CHECK(cut.warnings[0] == "a.tsp:14: EOF is missing; was the file cut short?");
  const std::string points =
      "DIMENSION: 1\nEDGE_WEIGHT_TYPE: MAN_2D\nNODE_COORD_SECTION\n1 2 3\n" + display + "EOF\n";
  CHECK(only(parse_instances(points, "a.tsp")).values == std::vector<double>{2, 3});
}

TEST_CASE("TSPLIB: a matrix is written, whole, and read back to the bit") {
  const Instance instance =
      only(read_matrix<double>("<f8", {3, 3}, {0, 0.1, 1e-7, 0.1, 0, 12345678.9, 1e-7, 12345678.9, 0}));
  const Instance again = only(parse_instances(write_tsplib({instance}), "a.tsp"));
  CHECK(again.metric == Metric::kExplicit);
  CHECK(again.matrix->above == instance.matrix->above);
  const Instance json = only(parse_instances(write_json({instance}), "a.json"));
  CHECK(json.problem == ProblemKind::kTsp);
  CHECK(json.matrix->above == instance.matrix->above);
}

TEST_CASE("a matrix whose two sides differ is an ATSP, read and written by every format of matrices") {
  const Instance instance =
      only(read_matrix<double>("<f8", {3, 3}, {0, 0.1, 1e-7, 0.3, 0, 12345678.9, 1e-7, 2, 0}));
  CHECK(instance.problem == ProblemKind::kAtsp);
  CHECK(city_distance(instance, 0, 1) == 0.1);
  CHECK(city_distance(instance, 1, 0) == 0.3);
  CHECK(city_distance(instance, 2, 1) == 2);
  ReadOptions atsp;
  atsp.problem = ProblemKind::kAtsp;
  const auto same = [&](const InstanceFile& file) {
    const Instance again = only(file);
    CHECK(again.problem == ProblemKind::kAtsp);
    CHECK(again.matrix->above == instance.matrix->above);
    CHECK(again.matrix->back == instance.matrix->back);
    CHECK(instance_hash(again) == instance_hash(instance));
  };
  same(parse_instances(write_tsplib({instance}), "a.atsp"));
  same(parse_instances(write_json({instance}), "a.json"));
  same(parse_instances(write_npy({instance}), "a.npy", atsp));
  // One of a batch makes all of it ATSPs, and TYPE ATSP or --problem one of a symmetric matrix.
  const InstanceFile two = read_matrix<double>("<f8", {2, 2, 2}, {0, 1, 1, 0, 0, 1, 2, 0});
  CHECK(two.instances[0].problem == ProblemKind::kAtsp);
  std::string text = tsplib("UPPER_ROW", "10 20 30\n40 50\n60");
  text.replace(text.find("TYPE : TSP"), 10, "TYPE : ATSP");
  CHECK(only(parse_instances(text, "a.tsp")).problem == ProblemKind::kAtsp);
  const std::string pair = write_npy({pair_of(1, ProblemKind::kAtsp)});
  CHECK(only(parse_instances(pair, "a.npy", atsp)).problem == ProblemKind::kAtsp);
}

TEST_CASE("a path is TYPE HPP, or what --problem says, with the ends that JSON gives") {
  const std::string text = R"({"problem":"path","coordinates":[[0,0],[3,4],[1,1]],"start":2,"end":0})"
                           "\n";
  const Instance path = only(parse_instances(text, "a.json"));
  CHECK(path.start == 2);
  CHECK(path.end == 0);
  CHECK(write_json({path}) == text);
  CHECK_THROWS_AS(write_tsplib({path}), OutputRefused);
  CHECK_THROWS_AS(write_npy({path}), OutputRefused);
  ReadOptions given;
  given.start = 1;  // the file's own stays
  CHECK(write_json({only(parse_instances(text, "a.json", given))}) == text);
  const std::string tour = with(with(text, "\"path\"", "\"tsp\""), ",\"start\":2,\"end\":0", "");
  given.problem = ProblemKind::kPath;
  CHECK(only(parse_instances(tour, "a.json", given)).start == 1);
  CHECK(only(parse_instances(with(text, "\"start\":2", "\"start\":null"), "a.json", given)).start == 1);
  Instance any = path;
  any.start = any.end = -1;
  CHECK(instance_hash(any) != instance_hash(path));
  const Instance again = only(parse_instances(write_tsplib({any}), "a.tsp"));
  CHECK(again.problem == ProblemKind::kPath);
  ReadOptions options;
  options.problem = ProblemKind::kPath;
  std::string one_way = tsplib("FULL_MATRIX", "0 1 2 3 4 0 5 6 7 8 0 9 1 2 3 0");
  one_way.replace(one_way.find("TYPE : TSP"), 10, "TYPE : ATSP");
  const Instance matrix = only(parse_instances(one_way, "a.atsp", options));
  CHECK(matrix.problem == ProblemKind::kPath);
  CHECK(city_distance(matrix, 3, 0) == 1);
}

TEST_CASE("forced edges stand before or behind the cities of a TSPLIB file, and in JSON") {
  const std::string head = "TYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\n";
  const std::string fixed = "FIXED_EDGES_SECTION\n1 3 2\n4\n-1\n";
  const std::string cities = "NODE_COORD_SECTION\n1 0 0\n2 0 1\n3 1 1\n4 1 0\n";
  const std::vector<std::array<int32_t, 2>> edges = {{0, 2}, {1, 3}};
  for (const std::string& text : {head + fixed + cities + "EOF\n", head + cities + fixed + "EOF\n"}) {
    const Instance instance = only(parse_instances(text, "a.tsp"));
    CHECK(instance.forced == edges);
    CHECK_FALSE(instance.suits_networks());
    CHECK(only(parse_instances(write_tsplib({instance}), "a.tsp")).forced == edges);
    CHECK(only(parse_instances(write_json({instance}), "a.json")).forced == edges);
    CHECK_THROWS_AS(write_npy({instance}), OutputRefused);
  }
}

TEST_CASE("forbidden edges of cities, and ways of a matrix that are not there") {
  const double inf = std::numeric_limits<double>::infinity();
  const std::string cities =
      "{\"problem\":\"tsp\",\"coordinates\":[[0,0],[0,1],[1,1]],\"forbidden\":[[0,2],[1,2]]}\n";
  const Instance points = only(parse_instances(cities, "a.json"));
  CHECK(city_distance(points, 2, 0) == inf);
  CHECK(city_distance(points, 0, 1) == 1);
  CHECK_FALSE(points.suits_networks());
  CHECK(write_json({points}) == cities);
  CHECK_THROWS_AS(write_npy({points}), OutputRefused);
  CHECK_THROWS_AS(write_tsplib({points}), OutputRefused);
  Instance others = points;
  others.forbidden.pop_back();
  CHECK(instance_hash(others) != instance_hash(points));
  const std::string swapped = with(cities, "[[0,2],[1,2]]", "[[2,1],[2,0],[0,2]]");
  CHECK(only(parse_instances(swapped, "a.json")).forbidden ==
        std::vector<std::array<int32_t, 2>>{{0, 2}, {1, 2}});

  const std::string ways = "{\"problem\":\"atsp\",\"distance_matrix\":[[0,1,null],[1,0,1],[1,1,0]]}\n";
  const Instance one_way = only(parse_instances(ways, "a.json"));
  CHECK(city_distance(one_way, 0, 2) == inf);
  CHECK(city_distance(one_way, 2, 0) == 1);
  CHECK(write_json({one_way}) == ways);
  CHECK_THROWS_AS(write_tsplib({one_way}), OutputRefused);
  const std::string named =
      "{\"problem\":\"atsp\",\"forbidden\":[[0,2]],\"distance_matrix\":[[0,1,1],[1,0,1],[1,1,0]]}\n";
  CHECK(write_json({only(parse_instances(named, "a.json"))}) == ways);
  const Instance both = only(parse_instances(with(named, "atsp", "tsp"), "a.json"));
  CHECK(both.matrix->is_symmetric());
  CHECK(city_distance(both, 2, 0) == inf);
  ReadOptions options;
  options.format = InputFormat::kMatrix;
  const Instance array = only(read_matrix<double>("<f8", {2, 2}, {0, inf, std::nan(""), 0}));
  CHECK(array.matrix->above == std::vector<double>{inf});
  Instance one_of = array;  // arrays hold matrices of an ATSP only
  one_of.problem = ProblemKind::kAtsp;
  options.problem = ProblemKind::kAtsp;
  CHECK(only(parse_instances(write_npy({one_of}), "a.npy", options)).matrix->above == array.matrix->above);
}

TEST_CASE("TSPLIB: a matrix of one city, and MAN_2D and MAX_2D") {
  const std::string one =
      "DIMENSION: 1\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW\nEDGE_WEIGHT_SECTION\nEOF\n";
  CHECK(only(parse_instances(one, "a.tsp")).n() == 1);
  for (const Metric metric : {Metric::kMan2d, Metric::kMax2d}) {
    const std::string text = std::string("{\"problem\":\"tsp\",\"edge_weight_type\":\"") +
                             metric_name(metric) + "\",\"coordinates\":[[0,0],[3,4]]}\n";
    const Instance instance = only(parse_instances(text, "a.json"));
    CHECK(instance.metric == metric);
    CHECK(city_distance(instance, 0, 1) == (metric == Metric::kMan2d ? 7 : 4));
    CHECK(write_json({instance}) == text);
    CHECK(only(parse_instances(write_tsplib({instance}), "a.tsp")).metric == metric);
  }
}

TEST_CASE("npy: matrices of numbers of every kind, one or several, but for the diagonal") {
  const double inf = std::numeric_limits<double>::infinity();
  check_four(only(
      read_matrix<double>("<f8", {4, 4}, {inf, 10, 20, 30, 10, -1, 40, 50, 20, 40, 0, 60, 30, 50, 60, 0})));
  check_four(only(
      read_matrix<uint8_t>("|u1", {1, 4, 4}, {0, 10, 20, 30, 10, 0, 40, 50, 20, 40, 0, 60, 30, 50, 60, 0})));
  check_four(
      only(read_matrix<float>("<f4", {4, 4}, {0, 10, 20, 30, 10, 0, 40, 50, 20, 40, 0, 60, 30, 50, 60, 0})));
  const InstanceFile several =
      read_matrix<int64_t>("<i8", {2, 2, 2}, {0, 1, 1, 0, 0, 1ll << 40, 1ll << 40, 0});
  REQUIRE(several.instances.size() == 2);
  CHECK(several.instances[0].matrix->above == std::vector<double>{1});
  CHECK(several.instances[1].matrix->above == std::vector<double>{0x1p40});
  CHECK(several.instances[1].id.empty());
  CHECK(only(read_matrix<float>("<f4", {1, 1}, {3})).n() == 1);
}

TEST_CASE("integer costs are told in digits, all of them") {
  const SolveSummary summary;
  for (const auto& [distance, text] : {std::pair<double, std::string>{50000, "100000"},
                                       {6172839450.5 * 2, "24691357802"},
                                       {0x1p52, "9007199254740992"}}) {
    const Instance instance = pair_of(distance);
    const Solution solution = measured(instance);
    const InstanceBatch instances = {instance};
    const SolutionBatch solutions = {solution};
    const Answer answer{instances, solutions, {}, summary};
    CHECK(objective_text(instance, solution.objective) == text);
    const std::string json = solution_json(0, instance, solution, kNoNumber);
    CHECK(json.find("\"cost\":" + text + ",\"gap\"") != std::string::npos);  // and no Euclidean length
    CHECK(write_tour(answer).find("COMMENT : Length = " + text + "\n") != std::string::npos);
    CHECK(write_text_answers(answer).find(" " + text + " ") != std::string::npos);
  }
  CHECK(objective_text(pair_of(0.25), 0.5) == "0.5");
  CHECK(objective_text(pair_of(1), 1e30) == "1e+30");
  Instance euclidean;
  euclidean.values = {0, 0, 0, 50000};
  CHECK(objective_text(euclidean, 1e5) == "1e+05");
  euclidean.metric = Metric::kCeil2d;
  CHECK(objective_text(euclidean, 1e5) == "100000");
}

TEST_CASE("no writer of arrays or texts takes a matrix of a TSP") {
  for (const InputFormat kind : {InputFormat::kNpy, InputFormat::kNpz, InputFormat::kKnapsackText})
    CHECK_THROWS_AS(format_of_kind(instance_formats(), kind).write({pair_of(1)}), OutputRefused);
}

TEST_CASE("benchmark data: the matrices of TSPLIB read") {
  const char* const folder = std::getenv("POINTSMAN_BENCHMARK_DATA");
  if (folder == nullptr) {
    WARN("skipped: no benchmark data");
    return;
  }
  const std::string data = std::string(folder) + "/tsplib_explicit/";
  const auto index = nlohmann::json::parse(std::ifstream(data + "index.json"));
  CHECK(index.size() == 8);
  for (const auto& entry : index) {
    const std::string name = entry["name"];
    INFO(name);
    const InstanceFile file = read_instances(data + name + ".tsp");
    REQUIRE(file.instances.size() == 1);
    CHECK(file.instances[0].n() == entry["dimension"].get<int>());
    CHECK_FALSE(file.instances[0].has_coordinates());
    CHECK(has_integer_distances(file.instances[0]));
  }
  const std::string asymmetric = std::string(folder) + "/tsplib_asymmetric/";
  for (const auto& entry : nlohmann::json::parse(std::ifstream(asymmetric + "index.json"))) {
    const Instance instance =
        read_instances(asymmetric + entry["name"].get<std::string>() + ".atsp").instances.at(0);
    CHECK(instance.problem == ProblemKind::kAtsp);
    CHECK(instance.n() == entry["dimension"].get<int>());
  }
}
