// SPDX-License-Identifier: Apache-2.0
// Files as users have them: many spellings of one instance are read alike, and what may not mean what it says
// is told.
#include <cmath>
#include <cstdlib>
#include <fstream>
#include <numbers>
#include <random>
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/npy_array.h"
#include "models/tools/atomic_file.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

using namespace pointsman;

namespace {

const std::vector<double> kSquare = {0, 0, 0, 10, 10, 10, 10, 0};
using Names = std::vector<std::string>;

InstanceFile read(const std::string& bytes, const std::string& name, const ReadOptions& options = {}) {
  return parse_instances(bytes, name, options);
}

Instance only(const InstanceFile& file) {
  REQUIRE(file.instances.size() == 1);
  CHECK(file.warnings == std::vector<std::string>{});
  return file.instances[0];
}
Instance only(const std::string& bytes, const std::string& name, const ReadOptions& options = {}) {
  INFO(bytes);
  return only(read(bytes, name, options));
}

std::string error_of(const std::string& bytes, const std::string& name, const ReadOptions& options = {}) {
  INFO(bytes);
  try {
    read(bytes, name, options);
  } catch (const InputError& error) {
    return error.what();
  }
  FAIL_CHECK("it was read");
  return "";
}

std::string warning_of(const InstanceFile& file) {
  REQUIRE(file.warnings.size() == 1);
  return file.warnings[0];
}

bool has(const std::string& text, const std::string& part) {
  INFO(text);
  return text.find(part) != std::string::npos;
}

ReadOptions with_problem(ProblemKind problem, double capacity = 0.0) {
  ReadOptions options;
  options.problem = problem;
  if (capacity > 0.0) options.capacity = capacity;
  return options;
}

ReadOptions with_metric(Metric metric) {
  ReadOptions options;
  options.metric = metric;
  return options;
}

ReadOptions with_columns(const std::string& columns) {
  ReadOptions options;
  options.columns = columns;
  return options;
}

std::string tsplib(const std::string& rows, const std::string& type = "EUC_2D") {
  return "NAME : a\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : " + type + "\nNODE_COORD_SECTION\n" + rows +
         "EOF\n";
}
const std::string kRows = "1 0 0\n2 0 10\n3 10 10\n4 10 0\n";

// The length of 0, 1, 2, ..
double round_trip(const Instance& instance) {
  double length = 0.0;
  for (int i = 0; i < instance.n(); ++i) length += city_distance(instance, i, (i + 1) % instance.n());
  return length;
}

SolutionBatch answers(const std::string& bytes, const InstanceBatch& instances) {
  INFO(bytes);
  return parse_solutions(bytes, "a", instances);
}
std::string answer_error(const std::string& bytes, const InstanceBatch& instances) {
  try {
    answers(bytes, instances);
  } catch (const InputError& error) {
    return error.what();
  }
  FAIL_CHECK("it was read: " << bytes);
  return "";
}

std::string npy(const std::string& type, bool is_fortran, const std::string& shape, const std::string& data) {
  std::string header = "{'descr': '" + type + "', 'fortran_order': " + (is_fortran ? "True" : "False") +
                       ", 'shape': " + shape + ", }\n";
  std::string out = std::string(kNpyMagic) + "\x01" + std::string(1, '\0');
  append_bytes(out, static_cast<uint16_t>(header.size()));
  return out + header + data;
}

}  // namespace

TEST_CASE("TSPLIB: keywords in lower case, without colons, behind their section") {
  for (const std::string& text :
       {std::string("name: a\ntype: tsp\ndimension: 4\nedge_weight_type: euc_2d\nnode_coord_section\n") +
            kRows + "eof\n",
        "NAME a\nTYPE TSP\nCOMMENT four: cities\nDIMENSION 4\nEDGE_WEIGHT_TYPE EUC_2D\nNODE_COORD_SECTION\n" +
            kRows + "EOF\n",
        "NODE_COORD_SECTION\n" + kRows + "NAME : a\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nEOF\n",
        tsplib(kRows + "-1\n")}) {
    const Instance instance = only(text, "a.tsp");
    CHECK(instance.id == "a");
    CHECK(instance.values == kSquare);
    CHECK(instance.metric == Metric::kEuc2d);
    CHECK_FALSE(instance.names);
    CHECK(instance.first_id == 1);
  }
  const std::string matrix = "EDGE_WEIGHT_SECTION\n0 1 2\n1 0 3\n2 3 0\n";
  CHECK(only("DIMENSION: 3\n" + matrix + "EDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: full_matrix\nEOF\n",
             "a.tsp")
            .matrix->above == std::vector<double>{1, 2, 3});
  CHECK(has(error_of(tsplib(kRows + "-1\n-1\n"), "a.tsp"),
            "a.tsp:11: NODE_COORD_SECTION: expected the end of the section"));
  CHECK(has(error_of(tsplib(kRows + "NODE_COORD_SECTION\n" + kRows), "a.tsp"),
            "a.tsp:10: NODE_COORD_SECTION: given twice"));
}

TEST_CASE("TSPLIB: ids from 0, with gaps, or names") {
  const Instance from_zero = only(tsplib("3 10 0\n0 0 0\n1 0 10\n2 10 10\n"), "a.tsp");
  CHECK(from_zero.values == kSquare);
  CHECK(*from_zero.names == Names{"0", "1", "2", "3"});
  const Instance gaps = only(tsplib("101 0 0\n7 0 10\n300 10 10\n4 10 0\n"), "a.tsp");
  CHECK(gaps.values == kSquare);
  CHECK(*gaps.names == Names{"101", "7", "300", "4"});
  const Instance names = only(tsplib("north 0 0\neast 0 10\nTokyo: 10 10\n4 10 0\n"), "a.tsp");
  CHECK(names.values == kSquare);
  CHECK(*names.names == Names{"north", "east", "Tokyo:", "4"});
  CHECK(has(error_of(tsplib("a 0 0\nb 0 10\na 10 10\nc 10 0\n"), "a.tsp"),
            "a.tsp:8: NODE_COORD_SECTION: expected a new id, found a as in line 6"));
  // Other sections and tours use the same ids.
  const std::string fixed = "FIXED_EDGES_SECTION\nnorth c\n-1\n";
  const std::string rows = "north 0 0\nb 0 10\nc 10 10\nd 10 0\n";
  const Instance forced = only(tsplib(rows + fixed), "a.tsp");
  CHECK(forced.forced == std::vector<std::array<int32_t, 2>>{{0, 2}});
  CHECK(has(error_of(tsplib(rows + "FIXED_EDGES_SECTION\nnorth x\n-1\n"), "a.tsp"),
            "expected two ids, each an id of NODE_COORD_SECTION, or -1, found \"x\""));
  CHECK(answers("TYPE : TOUR\nTOUR_SECTION\nc\nnorth\nb\nd\n-1\nEOF\n", {forced})[0].order ==
        std::vector<int32_t>{2, 0, 1, 3});
  CHECK(answers("7 101 4 300\n", {gaps})[0].order == std::vector<int32_t>{1, 0, 3, 2});
}

TEST_CASE("TSPLIB: distances in space, unrounded and on the sphere") {
  const std::string rows = "1 0 0 0\n2 0 10 0\n3 10 10 0\n4 10 0 5\n";
  CHECK(round_trip(only(tsplib(rows, "EUC_3D"), "a.tsp")) == 10 + 10 + 11 + 11);
  CHECK(round_trip(only(tsplib(rows, "MAN_3D"), "a.tsp")) == 10 + 10 + 15 + 15);
  CHECK(round_trip(only(tsplib(rows, "MAX_3D"), "a.tsp")) == 40);
  CHECK(
      has(error_of(tsplib(kRows, "EUC_3D"), "a.tsp"), "a.tsp:6: NODE_COORD_SECTION: expected \"id x y z\""));
  const std::string many = "DIMENSION : 5001\nEDGE_WEIGHT_TYPE : EUC_3D\nNODE_COORD_SECTION\n";
  std::string cities;
  for (int i = 1; i <= 5001; ++i) cities += std::to_string(i) + " 1 2 3\n";
  CHECK(has(error_of(many + cities + "EOF\n", "a.tsp"), "a.tsp:3: expected at most 5000 cities of EUC_3D"));
  CHECK(only(tsplib(kRows, "EXACT_2D"), "a.tsp").metric == Metric::kEuclidean);
  const Instance geom = only(tsplib("1 46.9 7.4\n2 47.1 7.2\n3 46.8 9.5\n4 60.2 24.9\n", "GEOM"), "a.tsp");
  CHECK(geom.metric == Metric::kGeom);
  CHECK(round_trip(geom) == std::floor(round_trip(geom)));
  CHECK(
      has(error_of(tsplib("1 91 0\n2 0 10\n3 10 10\n4 10 0\n", "GEOM"), "a.tsp"), "a latitude within +-90"));
}

TEST_CASE("great circles between decimal degrees") {
  const auto distance = [](Metric metric, std::vector<double> places) {
    Instance instance;
    instance.metric = metric;
    instance.values = std::move(places);
    CHECK(city_distance(instance, 0, 1) == city_distance(instance, 1, 0));
    CHECK(city_distance(instance, 0, 1) <= longest_on_sphere(metric));
    return city_distance(instance, 0, 1);
  };
  // A quarter and a half of the circumference, through the pole, across the date line.
  constexpr double kQuarter = 6371008.8 * std::numbers::pi / 2;
  CHECK(distance(Metric::kHaversine, {0, 0, 90, 17}) == Approx(kQuarter).epsilon(1e-15));
  CHECK(distance(Metric::kHaversine, {0, 0, 0, 180}) == Approx(2 * kQuarter).epsilon(1e-15));
  CHECK(distance(Metric::kHaversineKm, {80, 30, 80, -150}) == Approx(kQuarter / 4500).epsilon(1e-14));
  CHECK(distance(Metric::kHaversine, {10, 179.5, 10, -179.5}) ==
        Approx(distance(Metric::kHaversine, {10, 3, 10, 4})).epsilon(1e-12));
  CHECK(distance(Metric::kHaversine, {0, 0, 1e-9, 0}) == Approx(kQuarter / 90e9).epsilon(1e-12));
  CHECK(distance(Metric::kGeom, {5, 5, 5, 5}) == 1);
}

TEST_CASE("tours: closed, several, plain lists, and those of other programs") {
  Instance square;
  square.values = kSquare;
  const std::vector<int32_t> order = {0, 1, 2, 3}, crossed = {0, 2, 1, 3};
  const std::string head = "NAME : a\nTYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n";
  CHECK(answers(head + "1\n2\n3\n4\n1\n-1\nEOF\n", {square})[0].order == order);
  CHECK(answers(head + "1 3 2 4 -1\n1 2 3 4 -1\n-1\nEOF\n", {square})[0].order == order);  // the shorter
  CHECK(answers(head + "1 3 2 4 -1\n1 2 3 4 -1\n-1\nEOF\n", {square, square})[0].order == crossed);
  CHECK(answers(head + "1 3 2 4 EOF\n", {square})[0].order == crossed);
  CHECK(answers("4\n0 2\n1 3\n", {square})[0].order == crossed);                          // Concorde
  CHECK(answers("4 4\n0 2 14\n2 1 10\n1 3 14\n3 0 10\n", {square})[0].order == crossed);  // linkern
  CHECK(answers("1\n3\n2\n4\n", {square})[0].order == crossed);
  CHECK(answers("4 2 3 1 4\n", {square})[0].order == std::vector<int32_t>{3, 1, 2, 0});
  CHECK(answers("0 2 1 3\n", {square})[0].order == crossed);
  CHECK(answers("0 2 1 3\n1 2 3 4\n", {square, square})[1].order == order);
  CHECK(answers("Path\n0\n2\n1\n3\n0\n", {square})[0].order == crossed);
  CHECK(answers("0 0 0 10 10 10 10 0 output 1 3 2 4 1\n", {square})[0].order == crossed);
  CHECK(has(answer_error(head + "1\n2\n3\n3\n-1\nEOF\n", {square}),
            "a:8: expected each city once, found 3 as in line 7"));
  CHECK(has(answer_error("1\n2\n5\n3\n", {square}), "a:3: expected a city's id from 1 to 4, found \"5\""));
  CHECK(has(answer_error("0\n2\n4\n3\n", {square}), "a:3: expected a city's id from 0 to 3, found \"4\""));
  CHECK(has(answer_error("4 4\n0 1 1\n1 0 1\n2 3 1\n3 2 1\n", {square}),
            "a:1: expected one tour of all cities, found a cycle of 2"));
  CHECK(has(answer_error("4 4\n0 1 1\n0 2 1\n0 3 1\n3 2 1\n", {square}),
            "expected two edges at each city, found a third at 0"));
  CHECK(has(answer_error("1 2 3\n", {square}), "a:1: expected n = 4 ids, found 3"));
  CHECK(has(answer_error("1 2 3 4\n", {square, square}), "expected 2 solutions"));
  CHECK(has(answer_error(head + "1 1 2 3 -1\n1 2 3 4 -1\nEOF\n", {square}), "a:5: expected each city once"));
  Instance path = square;
  path.problem = ProblemKind::kPath;
  CHECK(has(answer_error("1 2 3 4 1\n", {path}), "expected n = 4 ids, found 5"));
  Instance sack;
  sack.problem = ProblemKind::kKnapsack;
  sack.values = {1, 2};
  CHECK(has(answer_error("1\n", {sack}), "expected a TSP to this tour, found a KnapSack"));
}

TEST_CASE("a reference of numbers is costs, one an instance, or one tour") {
  Instance square;
  square.values = kSquare;
  const auto reference = [](const std::string& text, const InstanceBatch& instances) {
    const TemporaryFolder folder;
    std::ofstream(folder.path() / "a.txt") << text;
    return read_reference((folder.path() / "a.txt").string(), instances);
  };
  CHECK(reference("40\n", {square}) == std::vector<double>{40});
  CHECK(reference("40\n41\n", {square, square}) == std::vector<double>{40, 41});
  CHECK(reference("1\n2\n3\n4\n", {square}) == std::vector<double>{40});
  CHECK(reference("4\n0 1 2 3\n", {square}) == std::vector<double>{40});
}

TEST_CASE("CSV: columns by name, any separator, names of the cities") {
  const auto square = [](const std::string& bytes, const ReadOptions& options = {}) {
    const Instance instance = only(bytes, "a.csv", options);
    CHECK(instance.problem == ProblemKind::kTsp);
    CHECK(instance.values == kSquare);
    return instance.names ? *instance.names : Names{};
  };
  CHECK(square("CityId,X,Y\n5,0,0\n6,0,10\n7,10,10\n8,10,0\n") == Names{"5", "6", "7", "8"});
  CHECK(square("y,name,x\n0,a,0\n10,b,0\n10,c,10\n0,d,10\n").empty());  // a name that is no first column
  CHECK(square("\"x\";\"y\"\n0;0\n0,0;10\n10;10\n10;0\n").empty());
  CHECK(square("x\ty\n0\t0\n0\t10\n10\t10\n10\t0\n").empty());
  CHECK(square("stop,note,x,y\n\"Bern, main\",\"a \"\"b\"\"\",0,0\nb,,0,10\nc,,10,10\nd,,10,0\n") ==
        Names{"Bern, main", "b", "c", "d"});
  CHECK(square("\xEF\xBB\xBFx,y\n0,0\n0,10\n10,10\n10,0\n").empty());
  CHECK(square("a,u,v\nk,0,0\nl,0,10\nm,10,10\nn,10,0\n", with_columns("u,V")) == Names{"k", "l", "m", "n"});
  CHECK(square("k,0,0\nl,0,10\nm,10,10\nn,10,0\n", with_columns("1,2")).empty());
  CHECK(has(error_of("a,u,v\nk,0,0\n", "a.csv", with_columns("u,w")),
            "--columns: expected names of the first line"));
  CHECK(has(error_of("a,u,v\nk,0,0\nl,1,1\n", "a.csv"), "--columns"));
  CHECK(has(error_of("x,y,z\n0,0,0\n1,1\n", "a.csv"), "a.csv:3: expected 3 columns"));
  CHECK(has(error_of("5,0,0\n6,0,10\n", "a.csv"), "expected 2 columns, \"x,y\", or as many columns as rows"));
}

TEST_CASE("CSV: a matrix, with and without names") {
  const std::vector<double> above = {10, 15, 20, 35, 25, 30};
  const std::string rows = "0,10,15,20\n10,0,35,25\n15,35,0,30\n20,25,30,0\n";
  CHECK(only(rows, "a.csv").matrix->above == above);
  const Instance named = only(",a,b,c,d\na,0,10,15,20\nb,10,0,35,25\nc,15,35,0,30\nd,20,25,30,0\n", "a.csv");
  CHECK(named.matrix->above == above);
  CHECK(*named.names == Names{"a", "b", "c", "d"});
  CHECK(only("A,B\n0,1\n1,0\n", "a.csv").values == std::vector<double>{0, 1, 1, 0});
  CHECK(only("from,A,B,C\nA,0,1,2\nB,1,0,3\nC,2,3,0\n", "a.csv").matrix->above ==
        std::vector<double>{1, 2, 3});
  const Instance open = only("0,1,\n2,0,3\n,inf,0\n", "a.csv");
  CHECK(open.problem == ProblemKind::kAtsp);
  CHECK(open.matrix->at(1, 0) == 2);
  CHECK(std::isinf(open.matrix->at(0, 2)));
  CHECK(std::isinf(open.matrix->at(2, 1)));
  CHECK(only(rows, "a.csv", with_problem(ProblemKind::kPath)).problem == ProblemKind::kPath);
  CHECK(has(error_of("0,1,2\n1,0,-3\n2,3,0\n", "a.csv"),
            "a.csv:2: column 2: expected a number from 0 to 1e100, found \"-3\""));
}

TEST_CASE("CSV: what may not be a plane's coordinates is told") {
  const std::string places = "lat,lon\n46.9,7.4\n47.1,7.2\n46.8,9.5\n";
  CHECK(has(warning_of(read(places, "a.csv")),
            "a.csv:1: latitudes and longitudes are measured as coordinates of a plane"));
  CHECK(only(places, "a.csv", with_metric(Metric::kEuclidean)).metric == Metric::kEuclidean);
  const Instance sphere = only("city,Longitude,Latitude\na,7.4,46.9\nb,7.2,47.1\nc,9.5,46.8\n", "a.csv",
                               with_metric(Metric::kHaversineKm));
  CHECK(sphere.values == std::vector<double>{46.9, 7.4, 47.1, 7.2, 46.8, 9.5});
  CHECK(has(error_of("1,2\n95,3\n", "a.csv", with_metric(Metric::kHaversine)),
            "city 1: expected a latitude within +-90"));
  const std::string sack = "weight,value\n4,5\n6,4\n5,3\n";
  CHECK(has(error_of(sack, "a.csv"),
            "a.csv:1: columns weight and value: pass --problem knapsack --capacity W"));
  const Instance packed =
      only("item,profit,weight\na,5,4\nb,4,6\n", "a.csv", with_problem(ProblemKind::kKnapsack, 10));
  CHECK(packed.problem == ProblemKind::kKnapsack);
  CHECK(packed.values == std::vector<double>{4, 5, 6, 4});
  CHECK(packed.capacity == 10);
  CHECK(*packed.names == Names{"a", "b"});
  CHECK(has(error_of(sack, "a.csv", with_problem(ProblemKind::kKnapsack)), "needs --capacity W"));
  CHECK(has(error_of("weight,value\n-4,5\n", "a.csv", with_problem(ProblemKind::kKnapsack, 10)),
            "expected numbers from 0"));
  CHECK(only(sack, "a.csv", with_problem(ProblemKind::kTsp)).n() == 3);
  const std::string pandas = "0,1\n0.5,0.5\n0.25,0.75\n";
  CHECK(has(warning_of(read(pandas, "a.csv")), "a.csv:1: column numbers as pandas writes them?"));
  CHECK(read(pandas, "a.csv").instances[0].n() == 3);
  CHECK(only(pandas, "a.csv", with_columns("0,1")).n() == 2);
  CHECK(only(pandas, "a.csv", with_columns("none")).n() == 3);
}

TEST_CASE("GEO of decimal degrees is told, with a count") {
  const std::string degrees = "1 46.95 7.45\n2 47.1 7.2\n3 46.8 9.5\n4 60.2 24.3\n";
  const std::string warning = warning_of(read(tsplib(degrees, "GEO"), "a.tsp"));
  CHECK(has(warning, "2 of 8 numbers have 60 minutes or more"));
  CHECK(has(warning, "--metric haversine_km"));
  CHECK(only(tsplib(degrees, "GEO"), "a.tsp", with_metric(Metric::kGeo)).metric == Metric::kGeo);
  CHECK(only(tsplib("1 46.59 7.45\n2 47.1 7.2\n3 46.3 9.5\n4 60.2 24.3\n", "GEO"), "a.tsp").n() == 4);
  const std::string line = R"({"problem":"tsp","edge_weight_type":"GEO","coordinates":[[1.9,2.8],[3.7,4]]})";
  const std::string lines = line + "\n" + line + "\n";
  InstanceInput stream(std::make_unique<InputFile>(lines, "a.ndjson"), {});
  CHECK(has(stream.next_line()->warning, "a.ndjson:1: GEO reads"));
  CHECK(stream.next_line()->warning.empty());  // once
}

TEST_CASE("JSON: keys that tell the problem, ids that are numbers, points that are objects") {
  const auto json = [](const std::string& text, const ReadOptions& options = {}) {
    return only(text, "a.json", options);
  };
  CHECK(json(R"({"coordinates":[[0,0],[0,10],[10,10],[10,0]]})").values == kSquare);
  CHECK(json(R"({"locs":[[0,0],[1,1]]})", with_problem(ProblemKind::kPath)).problem == ProblemKind::kPath);
  CHECK(json(R"({"distance_matrix":[[0,1],[2,0]]})").problem == ProblemKind::kAtsp);
  CHECK(json(R"({"capacity":9,"coordinates":[[0,0],[1,1]],"demands":[0,3]})").problem == ProblemKind::kCvrp);
  CHECK(json(R"({"problem":"tsp","id":5,"coordinates":[[0,0],[1,1]]})").id == "5");
  CHECK(has(error_of(R"({"id":5.5,"coordinates":[[0,0],[1,1]]})", "a.json"),
            "id: expected a string or an integer"));
  CHECK(json(R"({"coordinates":[{"x":0,"y":0},{"y":10,"x":0,"id":7}]})").values ==
        std::vector<double>{0, 0, 0, 10});
  const std::string places = R"({"coordinates":[{"lng":7.4,"lat":46.9},{"lat":47.1,"lng":7.2}]})";
  CHECK(has(warning_of(read(places, "a.json")), "a.json: latitudes and longitudes"));
  CHECK(json(places, with_metric(Metric::kHaversine)).values == std::vector<double>{46.9, 7.4, 47.1, 7.2});
  CHECK(json(R"({"edge_weight_type":"haversine_km","coordinates":[[46.9,7.4],[47.1,7.2]]})").metric ==
        Metric::kHaversineKm);
  const Instance named = json(R"({"coordinates":[[0,0],[1,1]],"names":["a",7]})");
  CHECK(*named.names == Names{"a", "7"});
  CHECK(*only(write_json({named}), "a.json").names == Names{"a", "7"});
  CHECK(has(error_of(R"({"coordinates":[[0,0],[1,1]],"names":["a"]})", "a.json"),
            "names: expected one for each city (2)"));
  CHECK(has(error_of(R"({"type":"FeatureCollection","features":[]})", "a.json"),
            "this is GeoJSON; python -m pointsman convert"));
  CHECK(has(error_of(R"({"code":"Ok","durations":[[0,1],[1,0]]})", "a.json"), "a road service's table"));
  CHECK(has(error_of(R"({"points":7})", "a.json"), "expected the key \"problem\", or coordinates"));
}

TEST_CASE("JSON: arrays of rows are points or a matrix") {
  CHECK(only("[[0,0],[0,10],[10,10],[10,0]]", "a.json").values == kSquare);
  const Instance matrix = only("[[0,1,null],[1,0,3],[null,3,0]]", "a.json");
  CHECK(matrix.problem == ProblemKind::kTsp);
  CHECK(std::isinf(matrix.matrix->at(0, 2)));
  const InstanceFile several = read("[[[0,0],[1,1]],[[0,1,2],[1,0,3],[2,3,0]]]", "a.json");
  REQUIRE(several.instances.size() == 2);
  CHECK(several.instances[0].values == std::vector<double>{0, 0, 1, 1});
  CHECK(several.instances[1].matrix->above == std::vector<double>{1, 2, 3});
  CHECK(has(error_of("[[0,0],[1]]", "a.json"), "[1]: expected a row of 2 numbers"));
  CHECK(has(error_of("[[0,0,1],[1,2,2]]", "a.json"), "expected rows [x, y], or a square matrix"));
  CHECK(has(error_of("[[0,null],[1,2]]", "a.json"), "row 0: expected a number, found null"));
}

TEST_CASE("JSON: a KnapSack of items, or of one of several dimensions") {
  const std::vector<double> values = {4, 5, 6, 4};
  const auto sack = [](const std::string& text, double capacity = 0.0) {
    return only(text, "a.json", with_problem(ProblemKind::kKnapsack, capacity));
  };
  CHECK(sack(R"({"items":[{"weight":4,"value":5},{"profit":4,"weight":6}]})", 10).values == values);
  const Instance nested = sack(R"({"capacities":[10],"weights":[[4,6]],"profits":[5,4]})");
  CHECK(nested.values == values);
  CHECK(nested.capacity == 10);
  CHECK(only(R"({"capacity":10,"weights":[4,6],"values":[5,4]})", "a.json").problem ==
        ProblemKind::kKnapsack);
  const auto error = [](const std::string& text) {
    return error_of(text, "a.json", with_problem(ProblemKind::kKnapsack));
  };
  CHECK(has(error(R"({"weights":[4],"values":[5]})"), "expected the key \"capacity\" or --capacity W"));
  CHECK(has(error(R"({"capacities":[9,9],"weights":[[4],[3]],"values":[5]})"),
            "capacities: expected one capacity"));
  CHECK(has(error(R"({"capacity":9,"weights":[[4],[3]],"values":[5]})"),
            "weights: expected weights of one dimension"));
}

TEST_CASE("sides of a matrix that differ by rounding are evened") {
  const auto matrix = [](double back) {
    return "[[0,1,2],[" + std::to_string(1.0) + ",0,3],[" + printed("%.17g", back) + ",3,0]]";
  };
  const InstanceFile near = read(matrix(2 * (1 + 1e-10)), "a.json");
  CHECK(has(warning_of(near), "a.json: the two sides of the matrix differ by rounding"));
  CHECK(near.instances[0].problem == ProblemKind::kTsp);
  CHECK(near.instances[0].matrix->at(0, 2) == Approx(2 * (1 + 0.5e-10)).epsilon(1e-15));
  CHECK(only(matrix(2 * (1 + 1e-8)), "a.json").problem == ProblemKind::kAtsp);
  const Instance kept = only(matrix(2 * (1 + 1e-10)), "a.json", with_problem(ProblemKind::kAtsp));
  CHECK(kept.matrix->at(0, 2) != kept.matrix->at(2, 0));
  CHECK(only("[[0,1,null],[1,0,3],[2,3,0]]", "a.json").problem == ProblemKind::kAtsp);  // one way is none
}

TEST_CASE("npy: Fortran order, big-endian and 16 bits") {
  std::string fortran, big, half;
  for (const double number : {0., 0., 10., 10., 0., 10., 10., 0.}) append_bytes(fortran, number);
  for (const double number : kSquare) {
    std::string bytes;
    append_bytes(bytes, number);
    big.append(bytes.rbegin(), bytes.rend());
    append_bytes(half, static_cast<uint16_t>(number == 0 ? 0 : 0x4900));
  }
  CHECK(only(npy("<f8", true, "(4, 2)", fortran), "a.npy").values == kSquare);
  CHECK(only(npy(">f8", false, "(1, 4, 2)", big), "a.npy").values == kSquare);
  CHECK(only(npy("<f2", false, "(4, 2)", half), "a.npy").values == kSquare);
  CHECK(only(zip_stored({{"locs.npy", npy("<f8", true, "(4, 2)", fortran)}}), "a.npz").values == kSquare);
  // Three axes in Fortran order: element (b, i, k) lies at b + 2 (i + 3 k).
  std::string three;
  for (int at = 0; at < 12; ++at) append_bytes(three, static_cast<double>(at));
  const InstanceFile two = read(npy("<f8", true, "(2, 3, 2)", three), "a.npy");
  REQUIRE(two.instances.size() == 2);
  CHECK(two.instances[1].values == std::vector<double>{1, 7, 3, 9, 5, 11});
  CHECK(has(error_of(npy("|O", false, "(2,)", "xx"), "a.npy"), "Python objects are not read; np.stack"));
  CHECK(has(error_of(zip_stored({{"locs.npy", npy("<f8", true, "(4, 2)", "short")}}), "a.npz"),
            "expected 64 bytes of data"));
  std::string halves;
  for (const uint16_t bits : {0x3c01, 0x0001, 0xc000, 0x7bff}) append_bytes(halves, bits);
  CHECK(only(npy("<f2", false, "(2, 2)", halves), "a.npy").values ==
        std::vector<double>{1 + 0x1p-10, 0x1p-24, -2, 65504});
  std::string infinite;
  for (const uint16_t bits : {0x7c00, 0, 0, 0}) append_bytes(infinite, bits);
  CHECK(has(error_of(npy("<f2", false, "(2, 2)", infinite), "a.npy"), "expected a finite number, found inf"));
}

TEST_CASE("npz: one array of pairs, whatever its name, and profits") {
  std::string square, weights, profits, capacity;
  for (const double number : kSquare) append_bytes(square, number);
  for (const double number : {4., 6.}) append_bytes(weights, number);
  for (const double number : {5., 4.}) append_bytes(profits, number);
  append_bytes(capacity, 10.0);
  const std::string pairs = npy("<f8", false, "(4, 2)", square);
  for (const char* name : {"arr_0.npy", "coords.npy", "X.npy"})
    CHECK(only(zip_stored({{name, pairs}}), "a.npz").values == kSquare);
  CHECK(only(zip_stored({{"u.npy", pairs}, {"locs.npy", pairs}}), "a.npz").values == kSquare);
  CHECK(has(error_of(zip_stored({{"u.npy", pairs}, {"v.npy", pairs}}), "a.npz"),
            "expected `locs`, or `weights` and `values`"));
  const Instance sack = only(zip_stored({{"weights.npy", npy("<f8", false, "(2,)", weights)},
                                         {"profits.npy", npy("<f8", false, "(2,)", profits)},
                                         {"capacity.npy", npy("<f8", false, "()", capacity)}}),
                             "a.npz");
  CHECK(sack.values == std::vector<double>{4, 5, 6, 4});
}

TEST_CASE("decimals are read as the nearest double") {
  std::mt19937_64 random(3);
  for (int i = 0; i < 100000; ++i) {
    std::string word =
        std::to_string(random() % static_cast<uint64_t>(std::pow(10.0, static_cast<double>(1 + i % 19))));
    if (i % 3 != 0) word.insert(random() % (word.size() + 1), ".");
    if (i % 5 == 0) word.insert(0, "-");
    double value = 0.0;
    INFO(word);
    REQUIRE(parse_number(word, value));
    CHECK(value == std::strtod(word.c_str(), nullptr));
    CHECK(std::signbit(value) == (i % 5 == 0));
  }
  double none = 0.0;
  for (const char* word : {"", "-", ".", "-.", "1.2.3", "1-2", "--1", "0x1", "1 "})
    CHECK_FALSE(parse_number(word, none));
}

TEST_CASE("a thousand ordinary files draw no warning") {
  int count = 0;
  for (uint64_t seed = 0; count < 1000; ++seed) {
    for (const ProblemKind kind : {ProblemKind::kTsp, ProblemKind::kKnapsack, ProblemKind::kCvrp,
                                   ProblemKind::kAtsp, ProblemKind::kPath}) {
      const int n = 3 + static_cast<int>(seed % 60);
      const InstanceBatch batch = generate_instances(kind, n, seed, 0, 1);
      for (const InstanceFormat& format : instance_formats()) {
        if (format.write == nullptr) continue;
        std::string bytes;
        try {
          bytes = format.write(batch);
        } catch (const OutputRefused&) {
          continue;
        }
        ReadOptions options = with_problem(kind);
        if (kind == ProblemKind::kKnapsack) options.capacity = batch[0].capacity;
        only(bytes, "a" + std::string(format.suffixes[0]), options);
        ++count;
      }
    }
  }
}

TEST_CASE("CSV: names of columns with units, in any order, and what only looks like a number") {
  const auto sack = [](const std::string& head,
                       const ReadOptions& options = with_problem(ProblemKind::kKnapsack, 7)) {
    return only(head + "\n5,4\n4,6\n", "a.csv", options).values;
  };
  const std::vector<double> weight_first = {4, 5, 6, 4};
  CHECK(sack("price,weight") == weight_first);
  CHECK(sack("Value,Weight (kg)") == weight_first);
  CHECK(sack("profit,w") == weight_first);
  ReadOptions columns = with_problem(ProblemKind::kKnapsack, 7);
  columns.columns = "price,weight";
  CHECK(sack("price,weight", columns) == weight_first);
  CHECK(has(error_of("a,b\n5,4\n", "a.csv", with_problem(ProblemKind::kKnapsack, 7)),
            "--columns WEIGHT,VALUE names them"));
  CHECK(has(error_of("price,weight\n5,4\n", "a.csv"), "pass --problem knapsack"));
  const std::vector<double> north_first = {46.9, 7.4, 47.1, 7.2};
  for (const char* head : {"Longitude (deg),Latitude (deg)", "stop_lon,stop_lat", "lng,lat"})
    CHECK(
        only(std::string(head) + "\n7.4,46.9\n7.2,47.1\n", "a.csv", with_metric(Metric::kHaversine)).values ==
        north_first);
  ReadOptions chosen = with_metric(Metric::kHaversine);
  chosen.columns = "lng,lat";
  CHECK(only("id,lng,lat\na,7.4,46.9\nb,7.2,47.1\n", "a.csv", chosen).values == north_first);
  CHECK(has(warning_of(read("stop_lon,stop_lat\n7.4,46.9\n7.2,47.1\n", "a.csv")), "great circles"));
  CHECK(has(warning_of(read("x,y,z\n0,0,1\n1,1,2\n", "a.csv")), "the column z is not read"));
  CHECK(only("\"1,5\",\"2,5\"\n3,4\n", "a.csv").values == std::vector<double>{1.5, 2.5, 3, 4});
  CHECK(has(error_of("\"1,500\",\"2,500\"\n3,4\n", "a.csv"), "a.csv:1: expected \"x,y\""));  // thousands?
  CHECK(only("sep=;\nx;y\n0;0\n1,5;1\n", "a.csv").values == std::vector<double>{0, 0, 1.5, 1});
  CHECK(only("x,y,\n0,0,\n1,1,\n,,\n", "a.csv").values == std::vector<double>{0, 0, 1, 1});
  CHECK(only("0,0,\n0,10,\n10,10,\n", "a.csv").values == std::vector<double>{0, 0, 0, 10, 10, 10});
  CHECK(*only("n,x,y\n\"a \"\"b\"\"\",0,0\nc,1,1\n", "a.csv").names == Names{"a \"b\"", "c"});
  const Instance twice = only("n,x,y\n2,0,0\n2,1,1\n", "a.csv");  // no names that tell them apart
  CHECK(answers("2 1\n", {twice})[0].order == std::vector<int32_t>{1, 0});
  CHECK(
      has(error_of("x,y,n\n0,0,1\n1,1,2\n", "a.csv", with_columns("x,x")), "expected two different columns"));
  CHECK(has(error_of("0,0,1\n1,1,2\n", "a.csv", with_columns("0,1.5")), "--columns: expected names"));
}

TEST_CASE("CSV: matrices as pandas and spreadsheets write them") {
  const std::vector<double> above = {1, 2, 3};
  const Instance indexed = only(",0,1,2\n0,0,1,2\n1,1,0,3\n2,2,3,0\n", "a.csv");
  CHECK(indexed.matrix->above == above);
  CHECK(only(",0,1\n0,0.5,0.25\n1,0.75,1\n2,0,0\n", "a.csv").values ==
        std::vector<double>{0.5, 0.25, 0.75, 1, 0, 0});
  CHECK(only("0,\"1,5\",2\n\"1,5\",0,3\n2,3,0\n", "a.csv").matrix->above == std::vector<double>{1.5, 2, 3});
  CHECK(only("0,1,2,\n1,0,3,\n2,3,0,\n", "a.csv").matrix->above == above);
  for (const char* cell : {"1:30", "3 km", "0x10", "1e400", "1 234", "\"1,200\""})
    CHECK(has(error_of("0,1,2\n1,0," + std::string(cell) + "\n2,3,0\n", "a.csv"),
              "a.csv:2: column 2: expected a number"));
  CHECK(has(warning_of(read("1,565,575\n2,25,185\n3,345,750\n", "a.csv")), "row 0 has 1 on the diagonal"));
}

TEST_CASE("what is written with names is read back") {
  const Instance words = only(tsplib("north 0 0\nb 0 10\nc 10 10\nd 10 0\n"), "a.tsp");
  CHECK(*only(write_tsplib({words}), "a.tsp").names == *words.names);
  Solution solution;
  solution.order = {0, 1, 2, 3};
  REQUIRE(validate_solution(words, solution) == "");
  const SolutionBatch found = {solution};
  CHECK(answers(write_tour({{words}, found, {}, {}}), {words})[0].order == solution.order);
  Instance phrases = words;
  for (const Names& names : {Names{"New York", "b", "c", "d"}, Names{"a", "b", "a", "d"},
                             Names{"-1", "b", "c", "d"}, Names{"", "b", "c", "d"}}) {
    phrases.names = std::make_shared<const Names>(names);
    CHECK(answers(write_tour({{phrases}, found, {}, {}}), {phrases})[0].order == solution.order);
    CHECK_FALSE(only(write_tsplib({phrases}), "a.tsp").names);
  }
}

TEST_CASE("tours: positions, names without a header, commas, and what stands before them") {
  const Instance named = only("id,x,y\n2,0,0\n0,0,10\n1,10,10\n3,10,0\n", "a.csv");
  CHECK(answers("4\n0 1 2 3\n", {named})[0].order == std::vector<int32_t>{0, 1, 2, 3});  // Concorde counts
  CHECK(answers("4 4\n0 1 10\n1 2 10\n2 3 10\n3 0 10\n", {named})[0].order ==
        std::vector<int32_t>{0, 1, 2, 3});
  CHECK(answers("2\n0\n1\n3\n", {named})[0].order == std::vector<int32_t>{0, 1, 2, 3});  // its ids
  const Instance words = only(tsplib("north 0 0\nnew_york 0 10\nc 10 10\nd 10 0\n"), "a.tsp");
  CHECK(answers("north\nnew_york\nc\nd\n", {words})[0].order == std::vector<int32_t>{0, 1, 2, 3});
  CHECK(answers("new_york\nnorth\nc\nd\n", {words})[0].order == std::vector<int32_t>{1, 0, 2, 3});
  Instance square;
  square.values = kSquare;
  const std::vector<int32_t> order = {0, 1, 2, 3};
  for (const char* text : {"\n0\n1\n2\n3\n", "\"Path\"\n0\n1\n2\n3\n", ",Path\n0,0\n1,1\n2,2\n3,3\n",
                           "0,1,2,3\n", "step,city\n0,1\n1,2\n2,3\n3,4\n"})
    CHECK(answers(text, {square})[0].order == order);
  CHECK(has(answer_error("", {square}), "expected a tour, found an empty file"));
}

TEST_CASE("TSPLIB: what a file may leave out, and long ones") {
  const std::string rows = "NODE_COORD_SECTION\n" + kRows;
  CHECK(only("DIMENSION : 4\n" + rows + "EOF\n", "a.tsp", with_metric(Metric::kEuclidean)).values == kSquare);
  CHECK(has(error_of("DIMENSION : 4\n" + rows + "EOF\n", "a.tsp"), "or --metric, found none"));
  CHECK(only("DIMENSION : 3\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n0 1 2\n1 0 3\n2 3 0 "
             "-1\nEOF\n",
             "a.tsp")
            .matrix->above == std::vector<double>{1, 2, 3});
  CHECK(only(tsplib(kRows + "FIXED_EDGES_SECTION\n1 3\n"), "a.tsp").forced.size() == 1);
  constexpr int kCities = 100000;  // a second each, if it were quadratic
  std::string text = "DIMENSION : 100000\nEDGE_WEIGHT_TYPE : EUC_2D\n", cities, edges;
  for (int i = 1; i <= kCities; ++i) {
    text += "FOO" + std::to_string(i) + " : 1\n";
    cities += std::to_string(i) + " 1 2\n";
    if (i > 1) edges += std::to_string(i - 1) + " " + std::to_string(i) + "\n";
  }
  CHECK(read(text + "NODE_COORD_SECTION\n" + cities + "FIXED_EDGES_SECTION\n" + edges + "-1\nEOF\n", "a.tsp")
            .instances[0]
            .forced.size() == kCities - 1);
}

TEST_CASE("a format is told by the contents of .txt and of stdin") {
  CHECK(only("0 0 0 10 10 10 10 0 output 1 2 3 4 1\n", "a.txt").values == kSquare);
  CHECK(read("0 0 1 1 output 1 2 1\n2 2 3 3 4 4 output 1 2 3 1\n", "stdin").instances[1].n() == 3);
  CHECK(only("0,0\n0,10\n10,10\n10,0\n", "stdin").values == kSquare);
  CHECK(only("x;y\n0;0\n0;10\n10;10\n10;0\n", "a.txt").values == kSquare);
  CHECK(only(tsplib(kRows), "a.txt").values == kSquare);
  CHECK(only("1 10\n5 4\n", "a.txt").problem == ProblemKind::kKnapsack);
  CHECK(has(error_of("\x80\x04\x95\x10", "a.pkl"), "this is a Python pickle; `python -m pointsman convert`"));
  CHECK(has(error_of("0 0 1 output 1 2 1\n", "a.txt"), "a.txt:1: expected \"x y .. output tour\", pairs"));
  const std::string line = R"({"problem":"tsp","coordinates":[[0,0],[0,10],[10,10]]})";
  const std::string lines = line + ",\n" + line + "\n";
  InstanceInput stream(std::make_unique<InputFile>(lines, "stdin"), {});
  REQUIRE(stream.is_stream());
  CHECK(stream.next_line()->error);
  CHECK(stream.next_line()->instance);
}

TEST_CASE("a tour begins at the city that the user names") {
  ReadOptions options;
  options.first_city = "7";
  Instance gaps = only(tsplib("101 0 0\n7 0 10\n300 10 10\n4 10 0\n"), "a.tsp", options);
  Solution solution;
  solution.order = {2, 3, 0, 1};
  CHECK(validate_solution(gaps, solution) == "");
  CHECK(solution.order == std::vector<int32_t>{1, 2, 3, 0});
  CHECK(solution.objective == 40);
  const SolutionBatch found = {solution};
  CHECK(has(write_tour({{gaps}, found, {}, {}}), "TOUR_SECTION\n7\n300\n4\n101\n-1\n"));
  CHECK(
      has(write_json_answers({{gaps}, found, {}, {}}), R"("tour":[1,2,3,0],"names":["7","300","4","101"])"));
  options.first_city = "1";
  CHECK(only(tsplib(kRows), "a.tsp", options).first_city == 0);
  CHECK(only("0,0\n1,1\n", "a.csv", options).first_city == 1);
  options.first_city = "5";
  CHECK(has(error_of(tsplib(kRows), "a.tsp", options),
            "expected a city's id for the tour to begin at, found \"5\""));
  options.problem = ProblemKind::kPath;
  CHECK(has(error_of("0,0\n1,1\n", "a.csv", options), "expected a tour to begin at city 5, found a path"));
}
