// SPDX-License-Identifier: Apache-2.0
// `pointsman eval` and `pointsman score` as a user meets them: rows, modes, rivals and several models.
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <thread>

#include "tests/catch.h"
#include "tests/host/command/sandbox.h"

using namespace pointsman;

TEST_CASE("score and eval answer with the contract's keys") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 10 -b 6 -o set.npy").code == 0);
  REQUIRE(sandbox.run("solve --mode greedy set.npy -o greedy.json").code == 0);
  const json solved = json::parse(sandbox.read("greedy.json"));
  const json scored = sandbox.run("score set.npy --solutions greedy.json -m tsp20").parsed();
  REQUIRE(scored.at("solutions").size() == 6);
  for (size_t i = 0; i < 6; ++i) {
    const double expected = solved.at("solutions")[i].at("log_prob");
    CHECK(scored.at("solutions")[i].at("log_prob").get<double>() == Approx(expected).epsilon(1e-5));
  }
  const json rows = sandbox.run("eval set.npy --ref 1 -n 4").parsed().at("rows");
  REQUIRE(rows.size() == 3);
  for (const json& row : rows) {
    for (const char* key : {"mode", "augment", "samples", "mean_cost", "gap", "gap_ci95", "instances",
                            "seconds", "tours_per_second"}) {
      INFO(key);
      CHECK(row.contains(key));
    }
    CHECK(row.at("gap").get<double>() == Approx(row.at("mean_cost").get<double>() - 1.0));
  }
  CHECK(rows[1].at("augment") == 8);
  CHECK(rows[2].at("samples") == 4);
}

TEST_CASE("a reference of 0 or nearly 0 gives no gap") {
  const Sandbox sandbox;
  const std::string triangle = R"({"problem":"tsp","coordinates":[[0,0],[3,0],[3,4]]})";
  sandbox.write("set.ndjson",
                triangle + "\n" + R"({"problem":"tsp","coordinates":[[1,1],[1,1],[1,1]]})" + "\n");
  sandbox.write("costs.json", R"({"costs":[10,0]})");
  const std::string eval = "eval set.ndjson --modes local --ref ";
  const json known = sandbox.run(eval + "costs.json").parsed().at("rows")[0];
  CHECK(known.at("gap").get<double>() == Approx(0.1));
  CHECK(known.at("optimal") == 0.5);
  for (const char* reference : {"0", "5e-324"}) {
    INFO(reference);
    const Answer answer = sandbox.run(eval + reference);
    const json row = answer.parsed().at("rows")[0];
    const bool is_zero = *reference == '0';  // then the second instance reaches it
    CHECK(row.at("gap") == (is_zero ? 0.0 : -1.0));
    CHECK(row.at("optimal") == (is_zero ? 0.5 : 0.0));
    CHECK(answer.err.find("instances left out of the mean gap: 1") != std::string::npos);
    const json solved =
        sandbox.run(std::string("solve set.ndjson --mode local --format json --ref ") + reference).parsed();
    CHECK(solved.at("solutions")[0].at("gap").is_null());
    CHECK(solved.at("summary").at("gap") == row.at("gap"));
  }
  const Answer none = sandbox.run("eval set.ndjson --modes local --format text --ref 1e-300");
  CHECK(none.out.find("inf") == std::string::npos);
  CHECK(none.out.find("nan") == std::string::npos);
}

TEST_CASE("eval's means leave infeasible instances out, and its row counts them") {
  const Sandbox sandbox;
  sandbox.write("set.ndjson", R"({"problem":"tsp","coordinates":[[0,0],[0,1],[1,1],[1,0]]})"
                              "\n"
                              R"({"problem":"tsp","coordinates":[[0,0],[0,1],[1,1]],"forbidden":[[0,1]]})"
                              "\n");
  const json row = sandbox.run("eval set.ndjson --ref 2 --modes local").parsed().at("rows")[0];
  CHECK(row.at("mean_cost") == 4.0);
  CHECK(row.at("gap") == 1.0);
  CHECK(row.at("optimal") == 0.0);
  CHECK(row.at("instances") == 2);
  CHECK(row.at("infeasible") == 1);
  CHECK(row.at("status") == "done");
}

TEST_CASE("eval's rows hold what a table of results needs") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 10 -b 6 -o set.npy").code == 0);
  REQUIRE(sandbox.run("generate knapsack -n 10 -b 6 --capacity 2 -o knap.npz").code == 0);
  const std::string modes = "--modes greedy,sample+9+t1.5,local+5";
  const json rows = sandbox.run("eval set.npy -t 2 --ref 2 " + modes).parsed().at("rows");
  REQUIRE(rows.size() == 3);
  for (const json& row : rows) {
    CHECK(row.at("problem") == "tsp");
    CHECK(row.at("n") == 10);
    CHECK(row.at("threads") == 2);
    CHECK(row.at("optimal") == 0.0);
    CHECK(!row.contains("shortfall"));
    CHECK(row.at("ms_per_instance").get<double>() == Approx(row.at("seconds").get<double>() * 1000 / 6));
  }
  CHECK(rows[0].at("name") == "greedy");
  CHECK(rows[0].at("model") == "tsp20");
  CHECK(rows[0].at("model_sha256").get<std::string>().size() == 64);
  CHECK(rows[0].at("temperature") == 1.0);
  CHECK(rows[1].at("name") == "sample+9+t1.5");
  CHECK(rows[1].at("mode") == "sample");
  CHECK(rows[1].at("samples") == 9);
  CHECK(rows[1].at("temperature") == 1.5);
  CHECK(rows[2].at("mode") == "local");
  CHECK(rows[2].at("model").is_null());
  CHECK(rows[2].at("model_sha256").is_null());

  const json best = sandbox.run("eval knap.npz --modes exact").parsed().at("rows").at(0);
  CHECK(best.at("optimal").is_null());
  CHECK(best.at("gap").is_null());
  CHECK(!best.contains("shortfall"));
  const json packed = sandbox.run("eval knap.npz --ref 20 --modes exact,ratio").parsed().at("rows");
  for (const json& row : packed) {
    CHECK(row.at("shortfall").get<double>() == Approx(20 - row.at("mean_cost").get<double>()));
    CHECK(row.at("shortfall_ci95").get<double>() > 0);
    CHECK(row.at("mean_cost").get<double>() <= best.at("mean_cost").get<double>());
  }
}

TEST_CASE("a temperature of eval is that of solve") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 10 -b 6 -o set.npy").code == 0);
  const auto cost = [&](const std::string& mode) {
    return sandbox.run("eval set.npy --modes " + mode).parsed().at("rows")[0].at("mean_cost").get<double>();
  };
  const json solved = sandbox.run("solve set.npy --mode sample -n 4 --temperature 0.3").parsed();
  CHECK(cost("sample+4+t0.3") == Approx(solved.at("summary").at("mean_cost").get<double>()).epsilon(1e-14));
  CHECK(cost("sample+4") != cost("sample+4+t0.3"));
}

TEST_CASE("eval's rivals do not depend on the threads, and random search not on its length") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 12 -b 9 -o set.npy").code == 0);
  REQUIRE(sandbox.run("generate knapsack -n 12 -b 9 -o knap.npz").code == 0);
  for (const std::string rivals :
       {"set.npy --modes random+40,local+3", "knap.npz --modes random+40,ratio,exact"}) {
    const json one = sandbox.run("eval -t 1 " + rivals).parsed().at("rows");
    const json two = sandbox.run("eval -t 2 " + rivals).parsed().at("rows");
    REQUIRE(one.size() == two.size());
    for (size_t i = 0; i < one.size(); ++i) {
      CHECK(one[i].at("mean_cost") == two[i].at("mean_cost"));
      CHECK(one[i].at("threads") == 1);
      CHECK(two[i].at("threads") == 2);
    }
  }
  const json rows = sandbox.run("eval set.npy -n 7 --modes random,random+7,random+400").parsed().at("rows");
  CHECK(rows[0].at("samples") == 7);
  CHECK(rows[0].at("mean_cost") == rows[1].at("mean_cost"));
  CHECK(rows[2].at("mean_cost").get<double>() < rows[1].at("mean_cost").get<double>());
}

TEST_CASE("several models of eval keep the best answer of each instance") {
  const Sandbox sandbox;
  sandbox.add_model("tsp", 30, 0.0, 2);
  REQUIRE(sandbox.run("generate tsp -n 10 -b 12 -o set.npy").code == 0);
  std::vector<json> solved;
  for (const char* model : {"tsp20", "tsp30"}) {
    const std::string flags = std::string("solve set.npy --mode greedy -m ") + model;
    solved.push_back(sandbox.run(flags).parsed().at("solutions"));
  }
  double best = 0;
  int second = 0;
  for (size_t i = 0; i < 12; ++i) {
    const double costs[] = {solved[0][i].at("cost"), solved[1][i].at("cost")};
    best += std::min(costs[0], costs[1]) / 12;
    second += costs[1] < costs[0];
  }
  REQUIRE(second > 0);
  REQUIRE(second < 12);
  const Answer answer = sandbox.run("eval -m tsp20,tsp30 set.npy --modes greedy,local,sample+3");
  const json rows = answer.parsed().at("rows");
  CHECK(rows[0].at("mean_cost").get<double>() == Approx(best).epsilon(1e-14));
  CHECK(rows[0].at("samples") == 2);
  CHECK(rows[0].at("model") == "tsp20,tsp30");
  CHECK(rows[0].at("model_sha256").get<std::string>().size() == 64 + 1 + 64);
  CHECK(rows[1].at("samples") == 1);
  CHECK(rows[1].at("model").is_null());
  CHECK(rows[2].at("samples") == 6);
  CHECK(sandbox.run("eval -m tsp20, set.npy").code == 2);
  CHECK(sandbox.run("eval -m tsp20,missing set.npy").code == 3);
  CHECK(sandbox.run("eval -m tsp20,knapsack50 set.npy").code == 3);
}

TEST_CASE("a line of eval says where its row comes from") {
  const Sandbox sandbox;
  fs::create_directory(sandbox.path("folder"));
  const std::string square = "{\"problem\":\"tsp\",\"coordinates\":[[0,0],[1,0],[1,1],[0,1]]}\n";
  sandbox.write("folder/mixed.ndjson", triangle("a") + square);
  const Answer answer = sandbox.run("eval folder/mixed.ndjson --modes greedy,local --format ndjson");
  REQUIRE(answer.code == 0);
  REQUIRE(lines_of(answer.out).size() == 2);
  for (const std::string& line : lines_of(answer.out)) {
    const json row = json::parse(line);
    CHECK(row.at("set") == "mixed.ndjson");
    CHECK(row.at("seed") == 1234);
    CHECK(row.at("device").get<std::string>().rfind("cpu", 0) == 0);
    CHECK(row.contains("version"));
    CHECK(row.at("n").is_null());
  }
  CHECK(json::parse(lines_of(answer.out)[1]).at("mean_cost") == 8.0);
}

TEST_CASE("eval writes a row as soon as it is finished") {
  const Sandbox sandbox;
  const pid_t child = sandbox.start("eval -q --format ndjson --modes greedy,local+999999999 " + kMap);
  for (int i = 0; i < 200 && lines_of(sandbox.read("out")).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(lines_of(sandbox.read("out")).size() == 1);
  kill(child, SIGTERM);
  const Answer ended = sandbox.finish(child);
  CHECK(ended.code == 143);
  REQUIRE(lines_of(ended.out).size() == 2);
  CHECK(json::parse(lines_of(ended.out)[1]).at("status") == "interrupted");
}

TEST_CASE("of two models an instance is infeasible where neither has an answer") {
  const Sandbox sandbox;
  const std::string train = "train tsptw -n 12 -b 2 --rollouts 2 --steps 1 --infeasible penalty -o ";
  for (const char* model : {"a.safetensors -s 1", "b.safetensors -s 2"})
    REQUIRE(sandbox.run(train + model + " --prior off").code == 0);
  REQUIRE(sandbox.run("generate tsptw -n 12 -b 40 -o set.json").code == 0);
  const auto late = [&](const std::string& models) {
    const json row = sandbox.run("eval set.json --modes greedy -m " + models).parsed().at("rows")[0];
    return row.value("infeasible", 0);
  };
  const int a = late("./a.safetensors"), b = late("./b.safetensors");
  const int both = late("./a.safetensors,./b.safetensors");
  CHECK(a + b > 0);
  CHECK(both <= std::min(a, b));
  CHECK(late("./b.safetensors,./a.safetensors") == both);
}

TEST_CASE("a mode of eval that means nothing ends with 2") {
  const Sandbox sandbox;
  for (const char* mode : {"exact", "ratio", "local+x8", "local+0", "2opt+x8", "2opt+0", "random+t2",
                           "greedy+t2", "active+t2", "active+100", "sample+t0", "sample+t", "sample+t1.5x",
                           "sample+t2000", "sample+tnan", "sample++x8", "clever", ","}) {
    INFO(mode);
    CHECK(sandbox.run("eval " + kMap + " --modes " + mode).code == 2);
  }
  for (const char* mode : {"local", "2opt", "exact+5", "ratio+5", "greedy+x8"}) {
    INFO(mode);
    CHECK(sandbox.run("eval " + kKnapsack + " --modes " + mode).code == 2);
  }
  const json wrong = sandbox.run("eval " + kMap + " --modes greedy,exact").parsed();
  CHECK(wrong.at("error") ==
        "--modes: exact is for KnapSack, TSPTW and colouring");  // before any mode has run
  const json row = sandbox.run("eval " + kKnapsack + " --modes exact --ref 18.311").parsed().at("rows")[0];
  CHECK(row.at("optimal") == 1.0);
}

TEST_CASE("eval counts the samples of active search in steps") {
  const Sandbox sandbox;
  const json row = sandbox.run("eval " + kMap + " --modes active+256").parsed().at("rows")[0];
  CHECK(row.at("samples") == 256);
  CHECK(row.at("seconds").get<double>() < 60);  // 2 steps; the default is 5,000
}

TEST_CASE("a gap's confidence interval is that of a mean of a sample") {
  const Sandbox sandbox;
  sandbox.write("set.ndjson",
                triangle("a") + "{\"problem\":\"tsp\",\"coordinates\":[[0,0],[1,0],[1,1],[0,1]]}\n");
  const json row = sandbox.run("eval set.ndjson --modes local --ref 4").parsed().at("rows")[0];
  CHECK(row.at("gap") == 1.0);  // the mean of 12 / 4 - 1 and 4 / 4 - 1
  // Their variance is (1 + 1) / (2 - 1), that of their mean half of it.
  CHECK(row.at("gap_ci95").get<double>() == Approx(1.96).epsilon(1e-14));
}

TEST_CASE("each of several models of eval has its share of the time") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 20 -b 4 -o set.npy").code == 0);
  // The first knows nothing: its tours are twice as long as any of the second's.
  const std::string models = "-m tsp20,'" POINTSMAN_SOURCE_DIR "/models/pretrained/tsp50.safetensors'";
  const auto cost = [&](const std::string& flags) {
    const Answer answer = sandbox.run("eval -q set.npy " + models + flags);
    return answer.parsed().at("rows")[0].at("mean_cost").get<double>();
  };
  const double one_sample_each = cost(" --modes sample+1");
  const auto start = std::chrono::steady_clock::now();
  CHECK(cost(" --modes sample+100000000 -l 4") < one_sample_each);
  CHECK(std::chrono::steady_clock::now() - start >= std::chrono::seconds(4));
}
