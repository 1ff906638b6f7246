// SPDX-License-Identifier: Apache-2.0
// `pointsman verify` as a user meets it.
#include "tests/catch.h"
#include "tests/host/command/sandbox.h"

using namespace pointsman;

TEST_CASE("a .tour written is a .tour verified") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("solve -n 8 -o best.tour " + kMap).code == 0);
  const Answer right = sandbox.run("verify --format text " + kMap + " best.tour");
  CHECK(right.code == 0);
  CHECK(right.out.find("valid tour") != std::string::npos);
  sandbox.write("lie.json", "{\"solutions\":[{\"cost\":1,\"tour\":[0,1,2]}]}");
  sandbox.write("three.json", triangle("t"));
  const Answer lie = sandbox.run("verify three.json lie.json");
  CHECK(lie.code == 5);
  CHECK(lie.parsed().at("code") == 5);
  CHECK(lie.parsed().at("solutions")[0].at("valid") == false);
  CHECK(lie.parsed().at("solutions")[0].at("cost") == 12.0);
  sandbox.write("twice.json", "{\"solutions\":[{\"cost\":12,\"tour\":[0,1,1]}]}");
  CHECK(sandbox.run("verify three.json twice.json").code == 5);
}

TEST_CASE("a cost that is off by more than rounding is a wrong claim") {
  const Sandbox sandbox;
  sandbox.write("three.json", triangle("t"));
  const auto verify = [&](const std::string& cost) {
    sandbox.write("claim.json", "{\"solutions\":[{\"cost\":" + cost + ",\"tour\":[0,1,2]}]}");
    return sandbox.run("verify three.json claim.json");
  };
  CHECK(verify("12.00001").code == 0);  // by less than 1e-6 of it
  for (const char* claim : {"12.00002", "11.9952"}) CHECK(verify(claim).code == 5);
}

TEST_CASE("files in each other's place are told") {
  const Sandbox sandbox;
  sandbox.write("three.json", triangle("t"));
  sandbox.write("answer.json", "{\"solutions\":[{\"cost\":12,\"tour\":[0,1,2]}]}");
  sandbox.write("other.json", "{\"solutions\":[]}");
  for (const std::string& arguments : {std::string("answer.json three.json"), kMapTour + " " + kMap}) {
    const Answer swapped = sandbox.run("verify " + arguments);
    CHECK(swapped.code == 2);
    CHECK(swapped.parsed().at("error").get<std::string>().find("swap the two") != std::string::npos);
  }
  // What cannot be read in either order keeps its own error.
  const Answer wrong = sandbox.run("verify other.json three.json");
  CHECK(wrong.code == 3);
  CHECK(wrong.parsed().at("file") == "other.json");
}
