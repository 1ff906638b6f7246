// SPDX-License-Identifier: Apache-2.0
// The program on what is no plain TSP: ways that differ by direction, open paths, forced edges.
#include <string>

#include "tests/host/command/sandbox.h"

using namespace pointsman;

namespace {

const char* const kOneWay =
    "TYPE : ATSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EXPLICIT\nEDGE_WEIGHT_FORMAT : FULL_MATRIX\n"
    "EDGE_WEIGHT_SECTION\n0 26 25 27\n28 0 5 1\n29 1 0 6\n27 5 4 0\nEOF\n";
const char* const kForced =
    "TYPE : TSP\nDIMENSION : 5\nEDGE_WEIGHT_TYPE : EUC_2D\nFIXED_EDGES_SECTION\n1 3\n-1\nNODE_COORD_SECTION\n"
    "1 0 0\n2 0 10\n3 10 10\n4 10 0\n5 5 -5\nEOF\n";

json only_solution(const Answer& answer) {
  INFO(answer.err);
  REQUIRE(answer.code == 0);
  return answer.parsed()["solutions"].at(0);
}

}  // namespace

TEST_CASE("atsp: solved, written, verified, and by a network trained, sampled, scored") {
  const Sandbox sandbox;
  sandbox.write("a.atsp", kOneWay);
  REQUIRE(sandbox.run("solve a.atsp -o a.tour").code == 0);
  CHECK(sandbox.run("verify a.atsp a.tour").code == 0);
  const json found = only_solution(sandbox.run("solve a.atsp"));
  CHECK(found["problem"] == "atsp");
  CHECK(found["tour"] == json({0, 2, 1, 3}));
  for (const char* const arguments :
       {"solve a.atsp --mode 2opt", "train atsp -n 201", "generate atsp -n 5 --like numpy"}) {
    INFO(arguments);
    CHECK(sandbox.run(arguments).code == 2);
  }
  REQUIRE(sandbox.run("generate atsp -n 9 -b 3 -s 7 -o set.npy").code == 0);
  CHECK(sandbox.run("solve set.npy --problem atsp").parsed()["solutions"].size() == 3);
  const std::string train = "train atsp -n 9 --layers 1 -b 4 --rollouts 4 --steps 3 -o m.safetensors";
  REQUIRE(sandbox.run(train).code == 0);
  const json rows =
      sandbox.run("eval set.npy --problem atsp -m ./m.safetensors -n 32 --format json").parsed();
  INFO(rows.dump());
  CHECK(rows["rows"].size() == 2);
  REQUIRE(sandbox.run("solve set.npy --problem atsp -m ./m.safetensors --mode sample -n 9 -o s.json").code ==
          0);
  const json sampled = json::parse(sandbox.read("s.json"))["solutions"];
  const json scores =
      sandbox.run("score set.npy --problem atsp -m ./m.safetensors --solutions s.json").parsed();
  for (size_t i = 0; i < 3; ++i)
    CHECK(scores["solutions"][i]["log_prob"].get<double>() == Approx(sampled[i]["log_prob"].get<double>()));
  CHECK(sandbox
            .run("train atsp -n 9 --init ./m.safetensors --instances set.npy --steps 2 -b 2 --rollouts 2 -o "
                 "t.safetensors")
            .code == 0);
  CHECK(sandbox.run("solve set.npy --problem atsp -o t.npy --format npy").code == 0);
  CHECK(sandbox
            .run("train atsp -n 9 --init ./m.safetensors --instances set.npy --solutions t.npy --steps 2 -b "
                 "2 -o u.safetensors")
            .code == 0);
  sandbox.write("gap.json",
                R"({"problem": "atsp", "distance_matrix": [[0, 3, null], [4, 0, 5], [8, 6, 0]]})");
  CHECK_THAT(sandbox.run("solve gap.json -m ./m.safetensors --mode greedy").err,
             has_text("--mode greedy: networks read no forbidden ways; use local"));
}

TEST_CASE("path: the network's samples and local search answer, given ends only local search") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate path -n 9 -b 4 -o set.json").code == 0);
  REQUIRE(sandbox.run("train path -n 9 --steps 2 -b 2 --rollouts 4 -o p.safetensors").code == 0);
  const json best = sandbox.run("solve set.json").parsed()["solutions"];
  const json sampled =
      sandbox.run("solve set.json -m ./p.safetensors --mode sample -n 64").parsed()["solutions"];
  const json improved = sandbox.run("solve set.json -m ./p.safetensors").parsed()["solutions"];
  REQUIRE(sampled.size() == 4);
  for (size_t i = 0; i < 4; ++i) {
    CHECK(sampled[i]["path"].size() == 9);
    CHECK(sampled[i]["cost"].get<double>() >= best[i]["cost"].get<double>() - 1e-12);
    CHECK(improved[i]["cost"].get<double>() == Approx(best[i]["cost"].get<double>()));  // both optimal
  }
  sandbox.write("ends.json",
                R"({"problem":"path","coordinates":[[0,0],[1,0],[2,0],[3,0]],"start":1,"end":2})");
  CHECK(only_solution(sandbox.run("solve ends.json"))["path"] == json({1, 0, 3, 2}));
  CHECK(sandbox.run("solve ends.json -m ./p.safetensors --mode sample").code == 2);
  sandbox.write("wrong.json", R"({"solutions":[{"path":[0,1,2,3]}]})");
  CHECK(sandbox.run("verify ends.json wrong.json").code != 0);
}

TEST_CASE("forced edges are kept by auto and told by verify") {
  const Sandbox sandbox;
  sandbox.write("f.tsp", kForced);
  CHECK(only_solution(sandbox.run("solve f.tsp"))["cost"] == 52);
  sandbox.write("f.tour", "TYPE : TOUR\nTOUR_SECTION\n1 2 3 4 5 -1\nEOF\n");
  const Answer told = sandbox.run("verify f.tsp f.tour");
  CHECK(told.code != 0);
  CHECK_THAT(told.out + told.err, has_text("the tour lacks the forced edge from 0 to 2"));
}
