// SPDX-License-Identifier: Apache-2.0
// Time windows in files: JSON, .npz, tables as Solomon's, matrices, there and back, and what is wrong in
// them.
#include <limits>
#include <string>

#include "engine/problem/generate.h"
#include "engine/problem/metric.h"
#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/read_files.h"
#include "tests/catch.h"
#include "tests/host/formats/refusals.h"

using namespace pointsman;

namespace {

constexpr double kNever = std::numeric_limits<double>::infinity();

const std::string kTable =
    "!! n3w20.001    16.75 391\n\nCUST NO.   XCOORD.   YCOORD.    DEMAND   READY TIME   DUE DATE   SERVICE "
    "TIME\n\n"
    "    1      16.00      23.00       0.00       0.00     408.00       0.00\n"
    "    2      22.00       4.00       0.00      62.00      68.00       0.00\n"
    "    3      12.00       6.00       0.00     181.00     205.00       3.00\n"
    "  999        0.00       0.00       0.00      0.00      0.00       0.00\n";
const std::string kMatrix = "3\n0 2 7\n3 0 4\n5 6 0\n0 100\n1 50\n2 60.5\n";
const std::string kJson =
    R"({"time_windows":[[0,90],[5,8],[6,null]],"coordinates":[[0,0],[3,4],[6,8]],"service_times":[0,1,2]})";

Instance read(const std::string& bytes, const std::string& name) {
  return parse_instances(bytes, name).instances.at(0);
}

}  // namespace

TEST_CASE("a table of customers with windows") {
  const InstanceFile file = parse_instances(kTable, "n3w20.001.txt");
  const Instance& instance = file.instances.at(0);
  CHECK(instance.problem == ProblemKind::kTsptw);
  CHECK(instance.id == "n3w20.001");
  CHECK(instance.metric == Metric::kFloor2d);
  CHECK(instance.values == std::vector<double>{16, 23, 0, 408, 0, 22, 4, 62, 68, 0, 12, 6, 181, 205, 3});
  CHECK(city_distance(instance, 0, 1) == 19.0);  // 19.92
  CHECK(instance.first_id == 1);
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0].find("distances are rounded down") != std::string::npos);
  ReadOptions plain;
  plain.metric = Metric::kEuclidean;
  const InstanceFile chosen = parse_instances(kTable, "n3w20.001.txt", plain);
  CHECK(chosen.warnings.empty());
  CHECK(chosen.instances[0].metric == Metric::kEuclidean);
  // Without a name and without the end.
  const std::string table = kTable.substr(kTable.find("CUST"));
  CHECK(read(table.substr(0, table.find("  999")), "b.tw").values == instance.values);
}

TEST_CASE("a matrix with windows behind it") {
  const Instance instance = read(kMatrix, "a.tw");
  CHECK(instance.problem == ProblemKind::kTsptw);
  CHECK(instance.n() == 3);
  CHECK(city_distance(instance, 0, 2) == 7.0);
  CHECK(city_distance(instance, 2, 0) == 5.0);
  CHECK(instance.values == std::vector<double>{0, 0, 0, 100, 0, 0, 0, 1, 50, 0, 0, 0, 2, 60.5, 0});
  Solution solution;
  solution.order = {0, 1, 2};
  CHECK(validate_solution(instance, solution).empty());
  CHECK(solution.objective == 11.0);
}

TEST_CASE("a .txt is read as time windows where the problem says so, or a place has number 999") {
  ReadOptions windows;
  windows.problem = ProblemKind::kTsptw;
  CHECK(parse_instances(kMatrix, "a.txt", windows).instances.at(0).n() == 3);
  std::string table = kTable.substr(kTable.find("CUST"));
  table.replace(table.find("    3  "), 7, "  999  ");
  CHECK(read(table, "a.txt").n() == 3);
}

TEST_CASE("what is wrong in a text of windows is said with its line") {
  says(kTable, "a.tw", "62.00      68.00", "68.00      62.00",
       "a.tw:6: expected no time before it opens, found");
  says(kTable, "a.tw", "3.00\n  999", "-3.00\n  999",
       "a.tw:7: expected \"number x y demand ready due service\"");
  says(kTable, "a.tw", "62.00", "sixty", "a.tw:6: expected \"number x y demand ready due service\"");
  says(kTable, "a.tw", "XCOORD", "999\nXCOORD", "a.tw:4");
  says(kTable, "a.tw", "999        0.00       0.00       0.00      0.00      0.00       0.00\n",
       "999\nmore\n", "a.tw:9: expected the end after 999, found \"more\"");
  says(kTable, "a.tw", "CUST", "CAST", "a.tw:3: expected \"CUST NO. ..\"");
  says(kMatrix, "a.tw", "5 6 0", "5 -6 0", "a.tw:4: expected a number from 0 to 1e100, found -6");
  says(kMatrix, "a.tw", "2 60.5\n", "2\n", "expected when place 3 closes, found the end");
  says(kMatrix, "a.tw", "2 60.5\n", "2 1\n", "a.tw:7: expected no time before it opens");
  says(kMatrix, "a.tw", "2 60.5\n", "2 60.5 1\n", "a.tw:7: expected the end behind the windows, found \"1\"");
  says(kMatrix, "a.tw", "3\n0 2", "0\n0 2", "a.tw:1: expected a number of places from 1 to");
  CHECK(error_of("", "a.tw").find("found an empty file") != std::string::npos);
}

TEST_CASE("time windows in JSON, and what is wrong there") {
  const Instance instance = read(kJson, "a.json");
  CHECK(instance.problem == ProblemKind::kTsptw);
  CHECK(instance.values == std::vector<double>{0, 0, 0, 90, 0, 3, 4, 5, 8, 1, 6, 8, 6, kNever, 2});
  says(kJson, "a.json", "[5,8]", "[5,4]", "expected no time before it opens, found 4");
  says(kJson, "a.json", "[5,8],", "", "expected one for each place (3), found");
  says(kJson, "a.json", "[5,8]", "[5]", "expected a pair [opens, closes]");
  says(kJson, "a.json", "[0,1,2]", "[0,-1,2]", "expected a number of at least 0, found -1");
  says(kJson, "a.json", "[0,1,2]", "[0,1]", "expected one for each place (3)");
  says(kJson, "a.json", "{\"time", "{\"forced\":[[0,1]],\"time", "\"forced\" is not for TSPTW");
  says(kJson, "a.json", "{\"time", "{\"forbidden\":[[0,1]],\"time", "\"forbidden\" is not for TSPTW");
  says(kJson, "a.json", "{\"time", "{\"problem\":\"tsp\",\"time", "\"time_windows\" is not for TSP");
  const std::string matrix =
      R"({"problem":"tsptw","distance_matrix":[[0,1],[2,0]],"time_windows":[[0,9],[1,4]]})";
  CHECK(city_distance(read(matrix, "a.json"), 1, 0) == 2.0);
  says(matrix, "a.json", "[2,0]", "[null,0]", "expected a way between any two places");
}

TEST_CASE("instances with windows are the same after each format that holds them") {
  InstanceBatch batch = generate_instances(ProblemKind::kTsptw, 6, 1, 0, 3);
  batch[1].values[5 * 2 + 3] = kNever;
  batch[2].values[5 * 3 + 4] = 2.5;
  for (const char* name : {"json", "ndjson", "npz"}) {
    const InstanceFormat* format = format_named(instance_formats(), name);
    const InstanceBatch read = parse_instances(format->write(batch), std::string("a.") + name).instances;
    REQUIRE(read.size() == batch.size());
    for (size_t i = 0; i < batch.size(); ++i) {
      INFO(name);
      CHECK(read[i].problem == ProblemKind::kTsptw);
      CHECK(read[i].values == batch[i].values);
      CHECK(instance_hash(read[i]) == instance_hash(batch[i]));
    }
  }
  ReadOptions windows;
  windows.problem = ProblemKind::kTsptw;
  const InstanceBatch rows = parse_instances(write_npy(batch), "a.npy", windows).instances;
  for (size_t i = 0; i < batch.size(); ++i) CHECK(rows.at(i).values == batch[i].values);
  CHECK(error_of(write_npy(batch), "a.npy").find("expected (B, n, 2) or (n, 2)") != std::string::npos);
  InstanceBatch wrong = batch;
  wrong[1].values[3] = -1.0;
  const auto read_wrong = [&] { parse_instances(write_npy(wrong), "a.npy", windows); };
  CHECK_THROWS_AS(read_wrong(), InputError);
  CHECK_THROWS_AS(write_tsplib({batch[0]}), OutputRefused);
  const Instance matrix = read(kMatrix, "a.tw");
  CHECK(instance_hash(read(write_json({matrix}), "a.json")) == instance_hash(matrix));
  Instance later = matrix;
  later.values[3] = 99.0;
  CHECK(instance_hash(later) != instance_hash(matrix));
}
