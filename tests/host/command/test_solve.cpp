// SPDX-License-Identifier: Apache-2.0
// `pointsman solve` as a user meets it: its answers, streams, limits and signals.
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <fstream>
#include <random>
#include <regex>
#include <thread>
#include <utility>

#include "tests/catch.h"
#include "tests/host/command/sandbox.h"

using namespace pointsman;

namespace {

// The tours of an answer that is one document.
std::vector<json> tours_of(const Answer& answer) {
  const json document = answer.parsed();
  std::vector<json> tours;
  for (const json& solution : document.at("solutions")) tours.push_back(solution.at("tour"));
  return tours;
}

}  // namespace

TEST_CASE("solve answers with the contract's JSON and nothing else on stdout") {
  const Sandbox sandbox;
  const Answer answer = sandbox.run("solve -n 16 --ref " + kMapTour + " " + kMap);
  REQUIRE(answer.code == 0);
  const json parsed = answer.parsed();
  CHECK(parsed.at("code") == 0);
  const json& summary = parsed.at("summary");
  for (const char* key :
       {"instances", "mean_cost", "gap", "computing_times", "mode", "samples", "augment", "shuffle",
        "improve", "model", "model_sha256", "device", "seed", "version", "mean_network_cost"}) {
    INFO(key);
    CHECK(summary.contains(key));
  }
  CHECK(summary.at("mode") == "auto");
  CHECK(summary.at("samples") == 16);
  CHECK(summary.at("augment") == 8);
  CHECK(summary.at("improve") == true);
  CHECK(summary.at("model") == "tsp50");
  const json& solution = parsed.at("solutions").at(0);
  for (const char* key : {"index", "id", "problem", "n", "status", "cost", "cost_euclidean", "gap",
                          "log_prob", "network_cost", "tour"}) {
    INFO(key);
    CHECK(solution.contains(key));
  }
  CHECK(solution.at("gap").get<double>() >= 0.0);
  CHECK(solution.at("network_cost").get<double>() >= solution.at("cost").get<double>());
  CHECK(answer.err.find("model tsp50") != std::string::npos);

  const json packed = sandbox.run("solve -n 16 " + kKnapsack).parsed().at("solutions").at(0);
  for (const char* key : {"value", "weight", "items"}) CHECK(packed.contains(key));
  CHECK(!packed.contains("tour"));
}

TEST_CASE("no mode packs one unit more than the capacity, and verify and score refuse it") {
  const Sandbox sandbox;
  sandbox.write("in.ndjson",
                R"({"problem":"knapsack","weights":[2251799813685248,2251799813685249],"values":[1,1],)"
                R"("capacity":4503599627370496})"
                "\n"
                R"({"problem":"knapsack","weights":[100000000000001,100000000000001,100000000000001],)"
                R"("values":[1,1,1],"capacity":300000000000002})"
                "\n"
                R"({"problem":"knapsack","weights":[0.1,0.2],"values":[1,1],"capacity":0.3})"
                "\n");
  for (const char* mode : {"auto", "exact", "greedy -m models/knapsack50.safetensors",
                           "sample -n 16 -m models/knapsack50.safetensors"}) {
    INFO(mode);
    const Answer answer = sandbox.run("solve in.ndjson -o answer.json --force --mode " + std::string(mode));
    REQUIRE(answer.code == 0);
    const json rows = json::parse(read_file(sandbox.path("answer.json"))).at("solutions");
    const std::vector<size_t> packed = {1, 2, 2};
    for (size_t i = 0; i < packed.size(); ++i) CHECK(rows[i].at("items").size() == packed[i]);
    CHECK(sandbox.run("verify in.ndjson answer.json").code == 0);
  }
  sandbox.write("heavy.ndjson", "{\"items\":[0,1]}\n{\"items\":[0,1]}\n{\"items\":[0,1]}\n");
  const Answer verified = sandbox.run("verify in.ndjson heavy.ndjson");
  CHECK(verified.code == 5);
  CHECK(verified.out.find("4503599627370497, more than the capacity 4503599627370496") != std::string::npos);
  CHECK(sandbox.run("score in.ndjson --solutions heavy.ndjson -m models/knapsack50.safetensors").code != 0);
  const Answer flag = sandbox.run("solve k.npy --problem knapsack --capacity 9007199254740993");
  CHECK(flag.code == 2);
  CHECK(flag.err.find("9007199254740993") != std::string::npos);
}

TEST_CASE("a bad line of a stream is answered in its place and the run goes on") {
  const Sandbox sandbox;
  sandbox.write("in.ndjson",
                triangle("a") + "{\"id\":\"b\",\n" + triangle("c") +
                    "{\"id\":\"k\",\"problem\":\"knapsack\",\"capacity\":1,\"weights\":[0.5,0.6],"
                    "\"values\":[1,2]}\n");
  for (const char* arguments :
       {"solve -n 4 --format ndjson - <in.ndjson", "solve -n 4 -b 1 --format ndjson in.ndjson"}) {
    INFO(arguments);
    const Answer answer = sandbox.run(arguments);
    CHECK(answer.code == 3);
    const std::vector<std::string> lines = lines_of(answer.out);
    REQUIRE(lines.size() == 4);
    for (size_t i = 0; i < 4; ++i) CHECK(json::parse(lines[i]).at("index") == i);
    CHECK(json::parse(lines[0]).at("id") == "a");
    CHECK(json::parse(lines[1]).at("code") == 3);
    CHECK(json::parse(lines[1]).at("line") == 2);
    CHECK(json::parse(lines[2]).at("cost") == 12.0);
    CHECK(json::parse(lines[3]).at("value") == 2.0);
  }
  const Answer partly = sandbox.run("solve -n 4 --augment 8 --format ndjson in.ndjson");
  CHECK(json::parse(lines_of(partly.out).at(3)).at("code") == 2);
  CHECK(sandbox.run("solve in.ndjson").code == 3);  // one document: all or nothing
}

TEST_CASE("a stream is answered while its producer still writes") {
  const Sandbox sandbox;
  const std::string pipe = sandbox.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const pid_t child = sandbox.start("solve -q -n 4 --format ndjson - <pipe");
  std::ofstream producer(pipe);
  producer << triangle("a") << std::flush;
  for (int i = 0; i < 200 && lines_of(sandbox.read("out")).empty(); ++i) {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  CHECK(lines_of(sandbox.read("out")).size() == 1);
  kill(child, SIGTERM);
  CHECK(sandbox.finish(child).code == 143);
}

TEST_CASE("an input that does not come is waited for until the limit or a signal") {
  const Sandbox sandbox;
  const std::string pipe = sandbox.path("pipe");
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  const std::string stream = " --format ndjson --input-format ndjson";
  for (const auto& [flags, code] : {std::pair(std::string(), 3), {stream, 0}}) {
    for (const bool has_writer : {false, true}) {
      CAPTURE(flags, has_writer);
      const auto start = std::chrono::steady_clock::now();
      const pid_t limited = sandbox.start("solve -q pipe -l 0.5" + flags);
      std::ofstream silent;
      if (has_writer) silent.open(pipe);
      CHECK(sandbox.finish(limited).code == code);
      const pid_t child = sandbox.start("solve -q pipe" + flags);
      std::this_thread::sleep_for(std::chrono::milliseconds(300));
      kill(child, SIGINT);
      CHECK(sandbox.finish(child).code == 130);
      CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(6));
    }
  }
}

TEST_CASE("the time limit ends an endless search with its best and exit code 0") {
  const Sandbox sandbox;
  const auto start = std::chrono::steady_clock::now();
  const Answer answer = sandbox.run("solve --mode active --steps 1000000 -l 0.7 " + kMap);
  const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  CHECK(answer.code == 0);
  CHECK(answer.parsed().at("solutions")[0].at("status") == "time_limit");
  CHECK(answer.parsed().at("solutions")[0].at("tour").size() == 45);
  CHECK(seconds >= 0.7);
  CHECK(seconds < 5.0);  // a step takes some 50 ms; the rest is for a loaded machine
}

TEST_CASE("a limit or a signal leaves what was not begun unsolved, soon") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 200 -b 4000 -o set.npy").code == 0);
  const std::string solve = "solve -t 1 --mode greedy -m tsp20 set.npy -f -o answer.json";
  const auto check = [&](const Answer& answer, int code, std::chrono::steady_clock::time_point start) {
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(30));  // sanitizers are slow
    REQUIRE(answer.code == code);
    const json written = json::parse(sandbox.read("answer.json"));
    const int64_t unsolved = written.at("summary").at("unsolved");
    CHECK(unsolved > 0);
    CHECK(std::count_if(written.at("solutions").begin(), written.at("solutions").end(),
                        [](const json& solution) {
                          return solution.at("status") == "unsolved" && solution.at("tour").is_null();
                        }) == unsolved);
  };
  const auto start = std::chrono::steady_clock::now();
  check(sandbox.run(solve + " -l 1"), 0, start);
  for (const auto& [signal, code] : {std::pair(SIGINT, 130), {SIGTERM, 143}, {SIGHUP, 129}}) {
    CAPTURE(code);
    const auto begun = std::chrono::steady_clock::now();
    const pid_t child = sandbox.start(solve);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    kill(child, signal);
    check(sandbox.finish(child), code, begun);
  }
}

TEST_CASE("an input is never the output, and a reference is no negative number") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 8 -b 1 -o set.npy").code == 0);
  const std::string before = sandbox.read("set.npy");
  fs::create_symlink("set.npy", sandbox.path("link.npy"));
  for (const char* command : {"solve set.npy", "eval set.npy", "verify set.npy set.npy",
                              "score set.npy -m tsp20 --solutions x", "solve link.npy"}) {
    CAPTURE(command);
    CHECK(sandbox.run(std::string(command) + " -f -o ./set.npy").code == 2);
  }
  CHECK(sandbox.read("set.npy") == before);
  for (const char* format : {"json", "ndjson"}) {
    CHECK(sandbox.run(std::string("solve set.npy --mode local --ref -1 --format ") + format).code == 2);
    CHECK(sandbox.run(std::string("solve set.npy --mode local --ref 1 --format ") + format).code == 0);
  }
  for (const char* cost : {"-2.5", "nan"}) {
    sandbox.write("costs.json", std::string("{\"costs\":[") + cost + "]}");
    CHECK(sandbox.run("solve set.npy --mode local --ref costs.json").code == 3);
  }
}

TEST_CASE("a signal keeps the best") {
  const Sandbox sandbox;
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    std::string status = "unsolved";  // of a signal before the first answer: then a later one
    for (auto wait = std::chrono::milliseconds(500); status == "unsolved" && wait.count() < 20000;
         wait *= 2) {
      const pid_t child = sandbox.start("solve -f --mode active --steps 1000000 -o best.json " + kMap);
      std::this_thread::sleep_for(wait);
      kill(child, signal);
      CHECK(sandbox.finish(child).code == code);
      const json parsed = json::parse(sandbox.read("best.json"));
      CHECK(parsed.at("code") == code);
      status = parsed.at("solutions")[0].at("status");
    }
    CHECK(status == "interrupted");
    CHECK(sandbox.run("verify " + kMap + " best.json").code == 0);
  }
}

TEST_CASE("no answer is worse than the tour to start from") {
  const Sandbox sandbox;
  const json optimum = sandbox.run("verify " + kMap + " " + kMapTour).parsed().at("solutions")[0].at("cost");
  const json answer = sandbox.run("solve --mode greedy --init " + kMapTour + " " + kMap).parsed();
  CHECK(answer.at("solutions")[0].at("cost") == optimum);
  CHECK(answer.at("solutions")[0].at("network_cost").get<double>() > optimum.get<double>());
  CHECK(sandbox.run("solve -q --mode active --steps 2 --replicas 4 --init random " + kMap)
            .parsed()
            .at("code") == 0);
}

TEST_CASE("a variable for another mode is no mistake, a flag is") {
  const Sandbox sandbox;
  CHECK(sandbox.run("solve -q --mode greedy --steps 5 " + kMap).code == 2);
  CHECK(sandbox.run("solve -q --mode greedy " + kMap, "POINTSMAN_STEPS=5").code == 0);
}

TEST_CASE("chunks of a run draw the samples of the whole") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 12 -b 8 -s 2 -o set.npy").code == 0);
  const auto tours = [&](const std::string& chunk) {
    return tours_of(sandbox.run("solve -q --mode sample -m tsp20 set.npy " + chunk));
  };
  const std::vector<json> whole = tours("-n 8"), first = tours("-n 4"),
                          second = tours("-n 4 --first-sample 4");
  REQUIRE(whole.size() == 8);
  int from_second = 0;
  for (size_t i = 0; i < whole.size(); ++i) {
    CHECK((whole[i] == first[i]) != (whole[i] == second[i]));
    from_second += whole[i] == second[i];
  }
  CHECK(from_second > 0);
}

TEST_CASE("what spreads samples is not for active search") {
  const Sandbox sandbox;
  const std::string active = "solve -q --mode active --steps 1 --replicas 2 " + kMap;
  CHECK(sandbox.run(active).code == 0);
  for (const char* flag : {" -n 4", " --first-sample 4", " --shuffle", " --temperature 2"}) {
    INFO(flag);
    CHECK(sandbox.run(active + flag).code == 2);
  }
}

TEST_CASE("noise is for samples, and changes them") {
  const Sandbox sandbox;
  const std::string solve = "solve -q -m tsp20 -n 4 " + kMap + " --mode ";
  CHECK(tours_of(sandbox.run(solve + "sample --noise 2")) != tours_of(sandbox.run(solve + "sample")));
  const Answer refused = sandbox.run("solve -q -m tsp20 " + kMap + " --mode greedy --noise 2");
  CHECK(refused.code == 2);
  CHECK(refused.err.find("--noise: is for --mode sample") != std::string::npos);
}

TEST_CASE("a bad line changes no draw of the lines behind it") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 12 -b 3 -o good.ndjson").code == 0);
  const std::vector<std::string> lines = lines_of(sandbox.read("good.ndjson"));
  REQUIRE(lines.size() == 3);
  sandbox.write("bad.ndjson", lines[0] + "\n{\n" + lines[2] + "\n");
  for (const char* batch : {"1", "8"}) {
    const std::string solve = std::string("solve -q --mode sample -n 2 --format ndjson -b ") + batch;
    const std::vector<std::string> good = lines_of(sandbox.run(solve + " good.ndjson").out);
    const std::vector<std::string> bad = lines_of(sandbox.run(solve + " bad.ndjson").out);
    REQUIRE(bad.size() == 3);
    CHECK(bad[0] == good[0]);
    CHECK(bad[1] != good[1]);
    CHECK(bad[2] == good[2]);
  }
}

TEST_CASE("a file cut in two gives the answers of the whole") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 12 -b 4 -o whole.ndjson").code == 0);
  const std::vector<std::string> lines = lines_of(sandbox.read("whole.ndjson"));
  REQUIRE(lines.size() == 4);
  sandbox.write("first.ndjson", lines[0] + "\n");
  sandbox.write("rest.ndjson", lines[1] + "\n" + lines[2] + "\n" + lines[3] + "\n");
  const auto solved = [&](const std::string& files, const std::string& format) {
    return sandbox.run("solve -q --mode sample -n 2 -m tsp20 " + files + " --format " + format);
  };
  CHECK(tours_of(solved("whole.ndjson", "json")) == tours_of(solved("first.ndjson rest.ndjson", "json")));
  CHECK(solved("whole.ndjson", "ndjson").out == solved("first.ndjson rest.ndjson", "ndjson").out);
  CHECK(lines_of(solved("whole.ndjson", "ndjson").out).size() == 4);
}

TEST_CASE("the tour to start from is improved where the run improves") {
  const Sandbox sandbox;
  const auto solve = [&](const std::string& flags) {
    return sandbox.run("solve -q --mode greedy -m tsp20 " + kMap + " " + flags).parsed().at("solutions")[0];
  };
  const json optimum = solve("--init " + kMapTour);
  json start = {{"tour", optimum.at("tour")}};
  std::swap(start["tour"][3], start["tour"][4]);
  sandbox.write("start.json", json({{"solutions", {start}}}).dump());
  CHECK(solve("--init start.json").at("cost") > optimum.at("cost"));
  REQUIRE(solve("--improve on").at("cost") >
          optimum.at("cost"));  // the network's own tour does not get there
  CHECK(solve("--init start.json --improve on").at("cost") == optimum.at("cost"));
}

TEST_CASE("of two models that are as near the one listed first is taken") {
  const Sandbox sandbox;
  sandbox.add_model("tsp", 30, 0.0);
  REQUIRE(sandbox.run("generate tsp -n 25 -b 1 -o set.npy").code == 0);
  CHECK(sandbox.run("solve --mode greedy set.npy").parsed().at("summary").at("model") == "tsp20");
}

TEST_CASE("the summary of several problems and sizes has a group for each") {
  const Sandbox sandbox;
  const std::string sack = R"({"problem":"knapsack","capacity":1,"weights":[0.5,0.6,0.4],"values":[1,2,3]})"
                           "\n";
  sandbox.write("in.ndjson", triangle("a") + sack + triangle("b"));
  const Answer answer = sandbox.run("solve --mode sample -n 4 in.ndjson " + kMap);
  REQUIRE(answer.code == 0);
  const json summary = answer.parsed().at("summary");
  CHECK(summary.at("model") == "tsp20,knapsack50,tsp50");
  CHECK(summary.at("samples") == 4);
  CHECK(summary.at("mean_cost").is_null());
  const json& groups = summary.at("groups");
  REQUIRE(groups.size() == 3);
  CHECK(groups[0] == json::parse(R"({"problem":"tsp","n":3,"mode":"sample","model":"tsp20","instances":2,)"
                                 R"("mean_cost":12,"gap":null})"));
  CHECK(groups[1].at("problem") == "knapsack");
  CHECK(groups[1].at("model") == "knapsack50");
  CHECK(groups[1].at("mean_cost") == 5.0);
  CHECK(groups[2].at("n") == 45);
  CHECK(answer.err.find("knapsack n=3: 1 instance, mean 5, model knapsack50") != std::string::npos);
  // The symmetries are those of TSP alone.
  const json automatic = sandbox.run("solve -n 8 in.ndjson").parsed().at("summary");
  CHECK(automatic.at("samples") == 8);
  CHECK(automatic.at("augment").is_null());
  const Answer stream = sandbox.run("solve --mode sample -n 4 --format ndjson in.ndjson");
  CHECK(stream.err.find("tsp n=3: 2 instances, mean 12") != std::string::npos);
}

TEST_CASE("verbose runs log the model, the batches and the backend's calls") {
  const Sandbox sandbox;
  const Answer plain = sandbox.run("solve " + kMap + " --mode sample -n 16");
  const Answer verbose = sandbox.run("solve " + kMap + " --mode sample -n 16 -v");
  CHECK(verbose.out.size() > 0);
  for (const char* text : {"sha256 ", "batch: 1 instances of n = 45", "call: 16 rollouts in "}) {
    CHECK(verbose.err.find(text) != std::string::npos);
    CHECK(plain.err.find(text) == std::string::npos);
  }
}

TEST_CASE("2opt answers without a model, as eval does, in batches of any size and as a stream") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 30 -b 7 -o set.npy").code == 0);
  const auto solve = [&](const std::string& flags) {
    return sandbox.run("solve --mode 2opt set.npy " + flags, "POINTSMAN_MODEL=none").parsed();
  };
  const json whole = solve("");
  CHECK(whole.at("summary").at("kicks") == 7 * 30 * 64);
  CHECK(whole.at("summary").at("improve") == true);
  CHECK(whole.at("solutions").at(6).at("kicks") == 30 * 64);
  CHECK(whole.at("solutions").at(6).at("start") == "nearest_neighbour");
  CHECK_FALSE(whole.at("summary").contains("model"));
  CHECK(solve("-b 3 -t 3").at("solutions") == whole.at("solutions"));
  CHECK(solve("--seed 2").at("solutions") != whole.at("solutions"));
  const json few = solve("--kicks 20");
  CHECK(few.at("summary").at("kicks") == 140);
  CHECK(few.at("summary").at("mean_cost") > whole.at("summary").at("mean_cost"));
  const json row = sandbox.run("eval set.npy --modes 2opt+20").parsed().at("rows").at(0);
  CHECK(row.at("mean_cost") == few.at("summary").at("mean_cost"));
  const std::vector<std::string> lines =
      lines_of(sandbox.run("solve --mode 2opt set.npy --format ndjson").out);
  REQUIRE(lines.size() == 7);
  for (size_t i = 0; i < 7; ++i)
    CHECK(json::parse(lines[i]).at("tour") == whole.at("solutions").at(i).at("tour"));
}

TEST_CASE("2opt keeps to limits and to given solutions, and refuses what it cannot do") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 40 -b 5 -o set.npy").code == 0);
  for (const char* limit : {"-l 1", "--limit-each 0.4"}) {
    const json filled = sandbox.run(std::string("solve --mode 2opt set.npy ") + limit).parsed();
    CHECK(filled.at("solutions").at(4).at("kicks") > 40);
    CHECK(filled.at("summary").at("computing_times").at("solving").get<double>() < 4000);
  }
  REQUIRE(sandbox.run("solve --mode local set.npy -o good.npy").code == 0);
  const json from = sandbox.run("solve --mode 2opt --kicks 0 --init good.npy set.npy").parsed();
  const json good = sandbox.run("solve --mode local set.npy").parsed();
  CHECK(from.at("summary").at("mean_cost") == good.at("summary").at("mean_cost"));
  REQUIRE(sandbox.run("generate tsp -n 10001 -b 1 -o large.npy").code == 0);
  for (const auto& [flags, message] : std::vector<std::pair<std::string, std::string>>{
           {"large.npy", "--mode 2opt: expected at most 10000 cities, found 10001; use local"},
           {"set.npy --kicks 3000000000", "--kicks: expected at most 2147483647 for --mode 2opt"}}) {
    const Answer refused = sandbox.run("solve --mode 2opt " + flags);
    CHECK(refused.code == 2);
    CHECK(refused.err.find(message) != std::string::npos);
  }
}

TEST_CASE("local and exact answer without a model, and as eval does") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 30 -b 4 -o set.npy").code == 0);
  REQUIRE(sandbox.run("generate knapsack -n 30 -b 4 -o knap.npz").code == 0);
  const auto check = [&](const std::string& mode, const std::string& flags, const std::string& set) {
    CAPTURE(mode);
    const json answer =
        sandbox.run("solve --mode " + mode + flags + " " + set, "POINTSMAN_MODEL=none").parsed();
    CHECK(answer.at("solutions").at(0).at("start") == (mode == "local" ? "greedy_edges" : "exact"));
    const json row = sandbox.run("eval " + set + " --modes " + mode + (flags == " --kicks 50" ? "+50" : ""))
                         .parsed()
                         .at("rows")
                         .at(0);
    CHECK(answer.at("summary").at("mean_cost") == row.at("mean_cost"));
    CHECK_FALSE(answer.at("summary").contains("model"));
    CHECK(answer.at("solutions").size() == 4);
    return answer.at("summary").at("mean_cost").get<double>();
  };
  CHECK(check("local", " --kicks 50", "set.npy") <= check("local", " --kicks 0", "set.npy"));
  const json automatic = sandbox.run("solve set.npy").parsed(),
             local = sandbox.run("solve --mode local set.npy").parsed();
  CHECK(automatic.at("solutions") == local.at("solutions"));
  CHECK(automatic.at("solutions").at(0).at("kicks") == 150);
  CHECK(automatic.at("summary").at("kicks") == 600);
  CHECK(automatic.at("summary").at("start") == "greedy_edges");
  CHECK_FALSE(automatic.at("summary").contains("model"));
  CHECK(sandbox.run("solve set.npy -n 16").parsed().at("solutions").at(0).at("start") == "network");
  CHECK(sandbox.run("solve knap.npz").parsed().at("summary").at("start") == "exact");
  check("exact", "", "knap.npz");
  CHECK(sandbox.run("solve --mode exact set.npy").code == 2);
  CHECK(sandbox.run("solve --mode local knap.npz").code == 2);
  CHECK(sandbox.run("solve --mode random set.npy").code == 2);
  for (const char* flag :
       {"-m tsp20", "-n 5", "--augment 8", "--shuffle", "--temperature 2", "--improve off"}) {
    CAPTURE(flag);
    CHECK(sandbox.run(std::string("solve --mode local set.npy ") + flag).code == 2);
  }
}

TEST_CASE("routes are searched without a model, after its samples, and as eval does") {
  const Sandbox sandbox;
  sandbox.add_model("cvrp", 13, 20.0);
  REQUIRE(sandbox.run("generate cvrp -n 13 -b 3 -o set.npz").code == 0);
  const auto solved = [&](const std::string& flags) {
    CAPTURE(flags);
    const Answer answer = sandbox.run("solve set.npz " + flags);
    REQUIRE(answer.code == 0);
    sandbox.write("answer.json", answer.out);
    CHECK(sandbox.run("verify set.npz answer.json").code == 0);
    return answer.parsed();
  };
  const auto mean = [](const json& answer) { return answer.at("summary").at("mean_cost").get<double>(); };
  const json some = solved("--mode local --kicks 50"), none = solved("--mode local --kicks 0");
  CHECK(mean(some) < mean(none));
  CHECK(mean(none) <= sandbox.run("eval set.npz --modes savings").parsed().at("rows").at(0).at("mean_cost"));
  CHECK(some.at("solutions").at(0).at("start") == "savings");
  CHECK(some.at("solutions").at(0).at("kicks") == 50);
  CHECK(some.at("summary").at("improve") == true);
  CHECK(mean(some) == sandbox.run("eval set.npz --modes local+50").parsed().at("rows").at(0).at("mean_cost"));
  CHECK(solved("-t 1").at("solutions") == solved("-t 3 --mode local").at("solutions"));
  CHECK_FALSE(solved("").at("summary").contains("model"));

  const json sampled = solved("--mode sample -n 16 -m cvrp13 --improve off"),
             improved = solved("--mode sample -n 16 -m cvrp13 --improve on"),
             kicked = solved("--mode greedy -m cvrp13 --improve on --kicks 200"), automatic = solved("-n 16");
  CHECK(mean(improved) < mean(sampled));
  CHECK(mean(kicked) < mean(improved));
  CHECK(mean(automatic) < mean(sampled));
  CHECK(automatic.at("solutions").at(0).at("start") == "network");
  CHECK(automatic.at("solutions").at(0).at("kicks") > 200);
  CHECK(automatic.at("summary").at("model") == "cvrp13");

  const json timed = solved("--mode local -l 0.3");
  CHECK(timed.at("solutions").at(2).at("status") == "time_limit");
  CHECK(timed.at("solutions").at(2).at("kicks") > 100);
  CHECK(sandbox.run("solve --mode 2opt set.npz").code == 2);
}

TEST_CASE("a stream into a file shows its progress on a terminal, one onto the terminal does not") {
  const Sandbox sandbox;
  REQUIRE(mkfifo(sandbox.path("pipe").c_str(), 0600) == 0);
  const auto on_terminal = [&](const std::string& output) {
    const Terminal terminal;
    const pid_t child = sandbox.start("solve --mode local --format ndjson " + output + " - <pipe 2>" +
                                      terminal.name() + (output.empty() ? " >" + terminal.name() : ""));
    std::ofstream pipe(sandbox.path("pipe"));
    pipe << triangle("a") << std::flush;
    std::this_thread::sleep_for(std::chrono::milliseconds(900));
    pipe << triangle("b") << triangle("c") << std::flush;
    pipe.close();
    CHECK(sandbox.finish(child).code == 0);
    return terminal.shown();
  };
  CHECK(on_terminal("-o out.ndjson").find("\r2 solved, mean cost 12.0") != std::string::npos);
  CHECK(lines_of(sandbox.read("out.ndjson")).size() == 3);
  const std::string mixed = on_terminal("");
  CHECK(mixed.find("\"id\":\"c\"") != std::string::npos);
  CHECK(mixed.find(" solved, mean cost 12.0") == std::string::npos);
}

TEST_CASE("one instance on a terminal shows each new best, and nothing elsewhere") {
  const Sandbox sandbox;
  // Behind a line break, or where a progress line was wiped.
  const std::regex line("(?:[\\r\\n]|\\x1b\\[K) *([0-9.]+) s  cost ([0-9]+), gap -?([0-9.]+)%\r");
  const auto bests = [&](const std::string& flags) {
    const Terminal terminal;
    const Answer answer = sandbox.run("solve " + flags + " --ref 100 -o - 2>" + terminal.name());
    CHECK(answer.code == 0);
    const std::string shown = terminal.shown();
    std::vector<int> costs;
    double before = 0;
    for (std::sregex_iterator at(shown.begin(), shown.end(), line), end; at != end; ++at) {
      CHECK(std::stod((*at)[1]) >= before);
      before = std::stod((*at)[1]);
      costs.push_back(std::stoi((*at)[2]));
    }
    CHECK(std::is_sorted(costs.rbegin(), costs.rend()));
    if (!costs.empty()) CHECK(answer.parsed().at("solutions")[0].at("cost") == costs.back());
    return costs.size();
  };
  for (const char* mode : {"auto", "local", "local --kicks 20000", "2opt", "sample",
                           "active --steps 12 --replicas 16", "active --steps 1 --improve on"}) {
    CAPTURE(mode);
    CHECK(bests(kMap + " --mode " + mode) >= 1);
  }
  CHECK(bests(kMap + " --mode local --limit-each 0.4") <= 10);
  CHECK(bests(kMap + " --mode greedy") == 0);
  CHECK(bests(kMap + " --mode local -q") == 0);
  CHECK(bests(kMap + " --mode local --log-format json") == 0);
  CHECK(bests(kMap + " " + kMap + " --mode local") == 0);
  const Answer answer = sandbox.run("solve " + kMap + " --mode local --ref 100");
  CHECK(answer.err.find(" s  cost ") == std::string::npos);
  CHECK(answer.out.find(" s  cost ") == std::string::npos);
}

TEST_CASE("a limit or a signal ends the loading of a document that never ends") {
  const Sandbox sandbox;
  REQUIRE(mkfifo(sandbox.path("pipe").c_str(), 0600) == 0);
  signal(SIGPIPE, SIG_IGN);
  const auto feed = [&](const std::string& head, const std::string& row) {
    std::string rows;
    while (rows.size() < 8192) rows += row;
    std::ofstream pipe(sandbox.path("pipe"));
    for (pipe << head; pipe << rows << std::flush;) std::this_thread::sleep_for(std::chrono::milliseconds(2));
  };
  const std::string instance = "{\"problem\":\"tsp\",\"coordinates\":[[0,0],[3,0],[3,4]]}";
  const std::array<std::string, 3> documents[] = {{"--input-format csv", "", "0.25,0.75\n"},
                                                  {"", "{\"instances\":[\n", instance + ",\n"},
                                                  {"--format json", "", instance + "\n"}};
  for (const auto& [flags, head, row] : documents) {
    for (const bool by_limit : {true, false}) {
      CAPTURE(flags, head, by_limit);
      const auto start = std::chrono::steady_clock::now();
      const pid_t child = sandbox.start("solve - " + flags + (by_limit ? " -l 0.2" : "") + " <pipe");
      std::thread feeder(feed, head, row);
      if (!by_limit) {
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
        kill(child, SIGINT);
      }
      const Answer answer = sandbox.finish(child);
      feeder.join();
      CHECK(answer.code == (by_limit ? 3 : 130));
      CHECK(answer.err.find("stdin: the run was stopped before the end of the input came") !=
            std::string::npos);
      CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(10));
    }
  }
}

namespace {

// Five cities on a ring of 1s; all other ways cost 7. In TSPLIB's words.
const std::string kRing =
    "NAME: ring\nTYPE: TSP\nDIMENSION: 5\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: UPPER_ROW\n"
    "EDGE_WEIGHT_SECTION\n1 7 7 1\n1 7 7\n1 7\n1\nEOF\n";

}  // namespace

TEST_CASE("the first line of a stream does not use up the time of those to come") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 60 -b 3 -o set.json").code == 0);
  std::string lines;
  const json set = json::parse(sandbox.read("set.json"));
  for (const json& instance : set.at("instances")) lines += instance.dump() + "\n";
  sandbox.write("set.ndjson", lines);
  for (const char* batch : {"-b 1", "-b 3"}) {
    const std::vector<std::string> out =
        lines_of(sandbox.run(std::string("solve - --format ndjson -l 30 <set.ndjson ") + batch).out);
    REQUIRE(out.size() == 3);
    for (const std::string& line : out) {
      CHECK(json::parse(line).at("status") == "done");
      CHECK(json::parse(line).at("kicks") == 300);
    }
  }
  const Answer each = sandbox.run("solve - --format ndjson --limit-each 0.25 <set.ndjson");
  for (const std::string& line : lines_of(each.out)) {
    CHECK(json::parse(line).at("status") == "time_limit");
    CHECK(json::parse(line).at("kicks") > 240);
  }
}

TEST_CASE("a matrix of distances is solved by the local search, and verified") {
  const Sandbox sandbox;
  sandbox.write("ring.tsp", kRing);
  const Answer answer = sandbox.run("solve --mode local --kicks 20 --ref 5 ring.tsp");
  REQUIRE(answer.code == 0);
  const json solution = answer.parsed().at("solutions")[0];
  CHECK(solution.at("cost") == 5);
  CHECK(solution.at("gap") == 0.0);
  CHECK_FALSE(solution.contains("cost_euclidean"));
  REQUIRE(sandbox.run("solve --mode local ring.tsp --kicks 20 -o ring.tour").code == 0);
  CHECK(sandbox.read("ring.tour").find("COMMENT : Length = 5\n") != std::string::npos);
  const Answer text = sandbox.run("verify --format text ring.tsp ring.tour");
  CHECK(text.code == 0);
  CHECK(text.out.find("ring: valid tour, length 5\n") != std::string::npos);
  CHECK(sandbox.run("solve --mode local --format ndjson ring.tsp").code == 0);
  CHECK(sandbox.run("solve ring.tsp").parsed().at("solutions")[0].at("cost") == 5);
  CHECK(sandbox.run("solve ring.tsp -l 1e-9").parsed().at("solutions")[0].at("tour").size() == 5);
  CHECK(sandbox.run("eval ring.tsp --modes random+50").parsed().at("rows")[0].at("mean_cost") == 5.0);
}

TEST_CASE("what reads coordinates refuses a matrix of distances in one line") {
  const Sandbox sandbox;
  sandbox.write("ring.tsp", kRing);
  sandbox.write("ring.json", "{\"solutions\":[{\"tour\":[0,1,2,3,4]}]}");
  const std::pair<const char*, const char*> refused[] = {
      {"solve --mode greedy ring.tsp",
       "ring: --mode greedy: reads coordinates, and the instance has only distances"},
      {"solve ring.tsp --mode 2opt",
       "ring: --mode 2opt: reads coordinates, and the instance has only distances; use local"},
      {"solve -m tsp20 ring.tsp", "ring: --mode auto: reads coordinates"},
      {"solve --mode sample ring.tsp", "--mode sample: reads coordinates"},
      {"solve --mode active ring.tsp", "--mode active: reads coordinates"},
      {"solve --mode active --init random ring.tsp", "--mode active: reads coordinates"},
      {"score ring.tsp --solutions ring.json",
       "score: ring.tsp: instance 0 has no coordinates, only distances"},
      {"eval ring.tsp --modes greedy", "--mode greedy: reads coordinates"},
      {"eval "
       "points.json ring.tsp --modes local,sample",
       "ring: --mode sample: reads coordinates"},
      {"train tsp -n 5 --steps 1 --instances ring.tsp",
       "--instances: ring.tsp: instance 0 has no coordinates"}};
  sandbox.write("points.json", triangle("t"));
  for (const auto& [arguments, words] : refused) {
    INFO(arguments);
    const Answer answer = sandbox.run(std::string(arguments) + " -q");
    CHECK(answer.code == 2);
    CHECK(answer.err.find(words) != std::string::npos);
    CHECK(lines_of(answer.err).size() == 1);
  }
  const Answer stream = sandbox.run("solve --mode greedy --format ndjson ring.tsp");
  CHECK(stream.code == 3);
  CHECK(stream.parsed().at("code") == 2);
  const Answer eval = sandbox.run("eval ring.tsp --modes local+20");
  CHECK(eval.code == 0);
  CHECK(eval.parsed().at("rows")[0].at("mean_cost") == 5.0);
}

TEST_CASE("a cost of eleven digits stays the integer that it is") {
  const Sandbox sandbox;
  sandbox.write("far.tsp",
                "NAME: far\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: LOWER_ROW\n"
                "EDGE_WEIGHT_SECTION\n4000000000\n4000000001 4345678900\nEOF\n");
  const std::string cost = "12345678901";
  CHECK(sandbox.run("solve --mode local far.tsp -o far.json").code == 0);
  CHECK(sandbox.read("far.json").find("\"cost\":" + cost + ",") != std::string::npos);
  CHECK(sandbox.run("solve --mode local far.tsp --format text").out.find(" " + cost + " ") !=
        std::string::npos);
  const Answer right = sandbox.run("verify far.tsp far.json");
  CHECK(right.code == 0);
  CHECK(right.out.find("\"cost\": " + cost + "\n") != std::string::npos);
  CHECK(sandbox.run("verify far.tsp far.json --format text").out.find("length " + cost + "\n") !=
        std::string::npos);
  sandbox.write("lie.json", "{\"solutions\":[{\"cost\":12345678902,\"tour\":[0,1,2]}]}");
  const Answer lie = sandbox.run("verify far.tsp lie.json --format text");
  CHECK(lie.code == 5);
  CHECK(lie.out.find("claims 12345678902, found " + cost) != std::string::npos);
  sandbox.write("half.json", "{\"solutions\":[{\"cost\":12345678901.5,\"tour\":[0,1,2]}]}");
  CHECK(
      sandbox.run("verify far.tsp half.json --format text").out.find("claims 12345678901.5, found " + cost) !=
      std::string::npos);
}

TEST_CASE("sums of a matrix that holds fractions may differ in the last bits") {
  const Sandbox sandbox;
  sandbox.write("far.tsp",
                "NAME: far\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: LOWER_ROW\n"
                "EDGE_WEIGHT_SECTION\n400000.25\n400000.25 500000.5\nEOF\n");
  sandbox.write("claim.json", "{\"solutions\":[{\"cost\":1300001.001,\"tour\":[0,1,2]}]}");
  CHECK(sandbox.run("verify far.tsp claim.json").code == 0);
}

TEST_CASE("a tour that rounding distorts is told, with its length in the plane") {
  const Sandbox sandbox;
  const std::string head =
      "NAME : unit\nTYPE : TSP\nDIMENSION : 4\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n";
  sandbox.write("unit.tsp", head + "7 0 0\n8 0 0.4\n9 0.4 0.4\n11 0.4 0\nEOF\n");
  const Answer told = sandbox.run("solve unit.tsp");
  CHECK(told.parsed().at("solutions")[0].at("cost") == 0);
  CHECK_THAT(told.err,
             has_text("warning: unit: EUC_2D rounds each distance to an integer: the answer's cost is 0, its "
                      "length in the plane 1.6"));
  CHECK(sandbox.run("solve unit.tsp --metric euc_2d").err.find("warning") == std::string::npos);
  const Answer plane = sandbox.run("solve unit.tsp --metric euclidean --first-city 9");
  CHECK(plane.err.find("warning") == std::string::npos);
  CHECK(plane.parsed().at("solutions")[0].at("cost") == Approx(1.6));
  CHECK(plane.parsed().at("solutions")[0].at("names")[0] == "9");
  CHECK(sandbox.run("solve unit.tsp --first-city 10").code == 3);
  CHECK(sandbox.run("solve unit.tsp --metric furlongs").code == 2);
}

TEST_CASE("the flag --layout chooses where two layouts of a KnapSack text fit") {
  const Sandbox sandbox;
  sandbox.write("both.kp", "2 10\n4 6\n5 7\n");
  const Answer told = sandbox.run("solve both.kp");
  CHECK(told.parsed().at("solutions")[0].at("value") == 5);
  CHECK_THAT(told.err, has_text("--layout pairs says so, --layout lists reads the other"));
  const Answer pairs = sandbox.run("solve --layout pairs both.kp");
  CHECK(pairs.parsed().at("solutions")[0].at("value") == 5);
  CHECK(pairs.err.find("warning") == std::string::npos);
  CHECK(sandbox.run("solve --layout lists both.kp").parsed().at("solutions")[0].at("value") == 12);
  CHECK(sandbox.run("solve both.kp --layout list").code == 2);
}

TEST_CASE("a KnapSack that branch and bound does not finish has a bound") {
  const Sandbox sandbox;
  // Strongly correlated, with large coefficients (Pisinger 2005): n = 100, values 10^6 above the weights.
  std::mt19937 random(5);
  std::string text;
  double all = 0.0;
  for (int i = 0; i < 100; ++i) {
    const auto weight = static_cast<int>(1 + random() % 10'000'000);
    text += std::to_string(weight + 1'000'000) + " " + std::to_string(weight) + "\n";
    all += weight;
  }
  sandbox.write("hard.kp", "100 " + std::to_string(static_cast<int64_t>(all / 2)) + "\n" + text);
  sandbox.write("easy.kp", "3 10\n5 4\n4 6\n3 5\n");
  const json found = sandbox.run("solve hard.kp").parsed().at("solutions")[0];
  const double bound = found.at("bound"), value = found.at("value");
  CHECK(found.at("start") != "exact");
  CHECK(bound > value);
  CHECK(bound < 1.1 * value);
  CHECK(found.at("gap_to_bound") == 1.0 - value / bound);
  const json proved = sandbox.run("solve easy.kp").parsed().at("solutions")[0];
  CHECK(proved.at("start") == "exact");
  CHECK_FALSE(proved.contains("bound"));
  CHECK_FALSE(proved.contains("gap_to_bound"));
}

TEST_CASE("CSV, matrices and packed files are read, and generate writes neither") {
  const Sandbox sandbox;
  sandbox.write("map.csv", "x,y\r\n0,0\r\n3,0\r\n3,4\r\n");
  const Answer answer = sandbox.run("solve --mode local map.csv");
  REQUIRE(answer.code == 0);
  CHECK(answer.parsed().at("solutions")[0].at("cost") == 12.0);
  CHECK(sandbox.run("solve --mode local --input-format csv - <map.csv").code == 0);
  CHECK(sandbox.run("generate tsp -n 3 -o new.csv").code == 2);
  CHECK(sandbox.run("generate tsp -n 3 --format csv").code == 2);
  CHECK(sandbox.run("generate tsp -n 3 -o new").code == 2);
}
