// SPDX-License-Identifier: Apache-2.0
// Graphs in files: DIMACS .col, JSON and matrices, there and back, colourings of them, and what is wrong.
#include <string>
#include <vector>

#include "engine/problem/generate.h"
#include "engine/problem/graph.h"
#include "engine/problem/problem.h"
#include "engine/search/heuristics.h"
#include "host/formats/formats.h"
#include "host/formats/read_files.h"
#include "host/formats/write_solutions.h"
#include "tests/catch.h"
#include "tests/host/formats/refusals.h"

using namespace pointsman;

namespace {

const std::string kColText =
    "c a triangle, and node 4 joined to the last\nc\np edge 4 4\nn 1 7\ne 1 2\ne 3 2\n\ne 1 3\n e 4   3 \n";
const std::string kJson = R"({"problem":"colouring","n":4,"edges":[[0,1],[2,1],[0,2],[3,2]]})";
const std::vector<std::array<int32_t, 2>> kEdges = {{0, 1}, {0, 2}, {1, 2}, {2, 3}};

Instance read(const std::string& bytes, const std::string& name, const ReadOptions& options = {}) {
  return parse_instances(bytes, name, options).instances.at(0);
}

}  // namespace

TEST_CASE("a DIMACS graph by its name and by what it begins with") {
  for (const char* name : {"a.col", "a", "a.txt"}) {
    const InstanceFile file = parse_instances(kColText, name);
    const Instance& instance = file.instances.at(0);
    CHECK(file.warnings.empty());
    CHECK(instance.problem == ProblemKind::kColouring);
    CHECK(instance.n() == 4);
    CHECK(edges_of(*instance.matrix) == kEdges);
  }
  CHECK(read("p col 3 1\r\ne 1 3\r\n", "b").n() == 3);
  CHECK(edges_of(*read("p edges 2 2\ne 1 2\ne 2 1\n", "b.col").matrix).size() == 1);  // told both ways
  const auto warning = [](const std::string& text) { return parse_instances(text, "b.col").warnings; };
  using Warnings = std::vector<std::string>;
  CHECK(warning("p edge 2 4\ne 1 2\n") ==
        Warnings{"b.col:2: expected 4 edges, found 1; was the file cut short?"});
  CHECK(warning("p edge 2 1\ne 1 2\ne 1 2\n") == Warnings{"b.col:3: expected 1 edges, found 2"});
  CHECK(warning("p edge 2 2\ne 1 2\n").empty());  // told twice
  CHECK(warning("cno space\np edge 2 2\nd 1\nv 1 2\nx 3\ne 1 2\ne 2 2\n") ==
        Warnings{"b.col:7: 1 edges join a node with itself and are left out"});
  CHECK(read("c\ttab\np\tedge\t3\t1\ne\t1\t3\n", "b.txt").n() == 3);
  CHECK(read("p edges 3 1\ne 1 3\n", "b.txt").n() == 3);
}

TEST_CASE("what is wrong in a DIMACS graph is told by its line") {
  CHECK(error_of("c nothing\n", "a.col") == "a.col:1: expected \"p edge NODES EDGES\", found none");
  const auto refused = [](const std::string& from, const std::string& to, const std::string& expected) {
    says(kColText, "a.col", from, to, expected);
  };
  refused("p edge 4 4", "e 1 2", "a.col:3: expected \"p edge NODES EDGES\", found \"e 1 2\"");
  refused("p edge 4 4", "p edge 0 4", "a.col:3: expected from 1 to 10000 nodes and a number of edges");
  refused("p edge 4 4", "p edge 10001 4", "a.col:3: expected from 1 to 10000 nodes");
  refused("p edge 4 4", "p edge 4 -1", "a.col:3: expected from 1 to 10000 nodes");
  refused("p edge 4 4", "p edge 4", "a.col:3: expected \"p edge NODES EDGES\", found \"p edge 4\"");
  refused("p edge 4 4", "p edge 4 4 4", "a.col:3: expected no more on this line");
  refused("e 3 2", "p edge 4 4", "a.col:6: expected \"e A B\", found \"p edge 4 4\"");
  refused("e 3 2", "e 0 3", "a.col:6: expected two nodes from 1 to 4, found \"e 0 3\"");
  refused("e 3 2", "e 3 5", "a.col:6: expected two nodes from 1 to 4, found \"e 3 5\"");
  refused("e 3 2", "e 3", "a.col:6: expected two integers, found \"e 3\"");
  refused("e 3 2", "e 3 2.5", "a.col:6: expected two integers, found \"e 3 2.5\"");
  refused("e 3 2", "a 3 2", "a.col:6: expected \"e A B\", found \"a 3 2\"");
}

TEST_CASE("a graph in JSON") {
  CHECK(edges_of(*read(kJson, "a.json").matrix) == kEdges);
  const Instance untold = read(R"({"edges":[[0,4]]})", "a.json");
  CHECK(untold.problem == ProblemKind::kColouring);
  CHECK(untold.n() == 5);
  CHECK(read(R"({"problem":"colouring","n":3,"edges":[]})", "a.json").n() == 3);
  const InstanceFile looped = parse_instances(R"({"edges":[[0,1],[1,1]]})", "a.json");
  CHECK(looped.warnings.at(0) == "a.json: edges that join a node with itself are left out");
  CHECK(edges_of(*looped.instances[0].matrix).size() == 1);
  const auto refused = [](const std::string& from, const std::string& to, const std::string& expected) {
    says(kJson, "a.json", from, to, expected);
  };
  refused("[2,1]", "[2,1,0]", "edges[1]: expected a pair of nodes");
  refused("[2,1]", "[2,-1]", "edges[1][1]: expected");
  refused("[2,1]", "[2,4]", "n: expected from 5 to 10000 nodes, found 4");
  refused("[2,1]", "[2,10000]", "edges[1]: expected nodes below 10000");
  refused("\"n\":4", "\"n\":10001", "n: expected from 4 to 10000 nodes, found 10001");
  refused("\"n\":4,\"edges\":[[0,1],[2,1],[0,2],[3,2]]", "\"edges\":[]", "expected an edge, or \"n\"");
  refused("\"n\":4", "\"forbidden\":[[0,1]],\"n\":4", "forbidden");
}

TEST_CASE("graphs are written and read back") {
  const InstanceBatch batch = generate_instances(ProblemKind::kColouring, 9, 5, 0, 3);
  const InstanceFormat& json = format_of_kind(instance_formats(), InputFormat::kJson);
  const InstanceFormat& col = format_of_kind(instance_formats(), InputFormat::kGraphText);
  const InstanceBatch all = parse_instances(json.write(batch), "a.json").instances;
  REQUIRE(all.size() == 3);
  for (size_t i = 0; i < 3; ++i) {
    CHECK(all[i].matrix->above == batch[i].matrix->above);
    const Instance one = read(col.write({batch[i]}), "a.col");
    CHECK(one.matrix->above == batch[i].matrix->above);
  }
  CHECK_THROWS_AS(col.write(batch), OutputRefused);
  CHECK_THROWS_AS(col.write(generate_instances(ProblemKind::kTsp, 9, 5, 0, 1)), OutputRefused);
}

TEST_CASE("colourings are written and read back") {
  const InstanceBatch batch = generate_instances(ProblemKind::kColouring, 9, 5, 0, 3);
  SolutionBatch solutions;
  for (const Instance& instance : batch) solutions.push_back(quick_answer(instance));
  const std::vector<double> gaps;
  const SolveSummary summary;
  const Answer answer{batch, solutions, gaps, summary};
  for (const OutputFormat kind :
       {OutputFormat::kJson, OutputFormat::kNdjson, OutputFormat::kNpy, OutputFormat::kNpz}) {
    const AnswerFormat& format = format_of_kind(answer_formats(), kind);
    const std::string file = "a" + std::string(format.suffixes[0]), bytes = format.write(answer);
    InputFile input(bytes, file);
    SolutionBatch found = format.parse(input, batch);
    check_solutions(found, batch, file);
    for (size_t i = 0; i < batch.size(); ++i) {
      CHECK(found[i].order == solutions[i].order);
      CHECK(found[i].objective == solutions[i].objective);
    }
  }
}

TEST_CASE("a matrix of a graph joins two nodes by any number but 0") {
  ReadOptions options;
  options.problem = ProblemKind::kColouring;
  const Instance rows = read("0,0,0\n1,0,2.5\n0,0,0\n", "a.csv", options);
  CHECK(rows.problem == ProblemKind::kColouring);
  CHECK(edges_of(*rows.matrix) == std::vector<std::array<int32_t, 2>>{{0, 1}, {1, 2}});
}
