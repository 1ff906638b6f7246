// SPDX-License-Identifier: Apache-2.0
// The program as a user meets it: exit codes, what goes to stdout and what to stderr, flags, signals and
// limits.
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>
#include <thread>

#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using pointsman::ModelConfig;

struct Answer {
  int code;  // exit code; -1 when a signal killed the process
  std::string out, err;
  json parsed() const { return json::parse(out); }
};

std::string read_file(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

// A folder of its own with two untrained models, and the program run in it.
class Sandbox {
 public:
  Sandbox() {
    std::string pattern = (fs::temp_directory_path() / "pointsman_command_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    directory_ = pattern;
    fs::create_directory(directory_ / "models");
    add_model("tsp", 20, 0.0);
    add_model("knapsack", 50, 12.5);
  }
  ~Sandbox() { fs::remove_all(directory_); }

  // Starts `environment pointsman arguments` in the folder. The shell's own redirections may follow in
  // `arguments`.
  pid_t start(const std::string& arguments, const std::string& environment = "") const {
    const pid_t child = fork();
    if (child == 0) {
      const std::string command = "cd '" + directory_.string() + "' && export POINTSMAN_MODEL_PATH=models " +
                                  environment + " && exec '" POINTSMAN_BINARY "' >out 2>err </dev/null " +
                                  arguments;
      execl("/bin/sh", "sh", "-c", command.c_str(), nullptr);
      _exit(127);
    }
    return child;
  }

  Answer finish(pid_t child) const {
    int status = 0;
    waitpid(child, &status, 0);
    return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, read_file(directory_ / "out"),
            read_file(directory_ / "err")};
  }

  Answer run(const std::string& arguments, const std::string& environment = "") const {
    return finish(start(arguments, environment));
  }

  void write(const std::string& name, const std::string& text) const {
    std::ofstream(directory_ / name) << text;
  }
  std::string read(const std::string& name) const { return read_file(directory_ / name); }
  bool exists(const std::string& name) const { return fs::exists(directory_ / name); }
  std::string path(const std::string& name) const { return (directory_ / name).string(); }

  void add_model(const std::string& problem, int n, double capacity, uint64_t seed = 1) const {
    ModelConfig config;
    config.problem = pointsman::find_problem(problem).value();
    config.n = n;
    config.capacity = capacity;
    config.has_critic = false;
    pointsman::write_model(directory_ / "models" / (problem + std::to_string(n) + ".safetensors"), config,
                           pointsman::initial_parameters(config, seed));
  }

 private:
  fs::path directory_;
};

const std::string kMap = "'" POINTSMAN_SOURCE_DIR "/tests/data/capitals.tsp'";
const std::string kMapTour = "'" POINTSMAN_SOURCE_DIR "/tests/data/capitals.opt.tour'";
const std::string kKnapsack = "'" POINTSMAN_SOURCE_DIR "/tests/data/knapsack50.txt'";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) lines.push_back(line);
  return lines;
}

std::string triangle(const std::string& id) {
  return "{\"id\":\"" + id + "\",\"problem\":\"tsp\",\"coordinates\":[[0,0],[3,0],[3,4]]}\n";
}

}  // namespace

TEST_CASE("version and help go to stdout and end with 0") {
  const Sandbox sandbox;
  const Answer version = sandbox.run("--version");
  CHECK(version.code == 0);
  CHECK(version.out.rfind("pointsman ", 0) == 0);
  CHECK(version.err.empty());
  for (const char* name :
       {"", "solve ", "train ", "score ", "eval ", "generate ", "verify ", "bench ", "info "}) {
    const Answer help = sandbox.run(std::string(name) + "--help");
    CHECK(help.code == 0);
    CHECK(help.out.find("Usage:") != std::string::npos);
    CHECK(help.err.empty());
  }
  CHECK(sandbox.run("solve --help").out.find("Examples:") != std::string::npos);
}

TEST_CASE("a wrong command line ends with 2 and says so in JSON off a terminal") {
  const Sandbox sandbox;
  for (const std::string& arguments : std::vector<std::string>{
           std::string(""), std::string("slove"), std::string("solve"), "solve --nope " + kMap,
           "solve --samples many " + kMap, "solve --mode clever " + kMap, "solve --time-limit=-1 " + kMap,
           "solve --device gpu " + kMap, "solve --mode greedy --steps 5 " + kMap, std::string("train tsp"),
           "solve --augment 3 " + kMap, std::string("eval --modes greedy+nine ") + kMap,
           "solve --mode greedy -n 9 " + kMap}) {
    INFO(arguments);
    const Answer answer = sandbox.run(arguments);
    CHECK(answer.code == 2);
    CHECK(answer.parsed().at("code") == 2);
    CHECK(lines_of(answer.out).size() == 1);
    CHECK(answer.err.find("pointsman: error: ") != std::string::npos);
  }
  const Answer text = sandbox.run("solve --format text --nope " + kMap);
  CHECK(text.code == 2);
  CHECK(text.out.empty());
  CHECK(sandbox.run("solve --format tour " + kMap + " " + kMap).code == 2);
  const Answer symmetry = sandbox.run("solve --augment 8 " + kKnapsack);
  CHECK(symmetry.code == 2);
  CHECK(symmetry.parsed().at("error").get<std::string>().find("--shuffle") != std::string::npos);
}

TEST_CASE("generate --like numpy gives NumPy's numbers") {
  const Sandbox sandbox;
  const Answer answer = sandbox.run("generate tsp -n 3 -b 2 -s 1234 --like numpy");
  REQUIRE(answer.code == 0);
  const json instances = answer.parsed().at("instances");
  REQUIRE(instances.size() == 2);
  // numpy.random.seed(1234); numpy.random.uniform(size=(2, 3, 2))
  CHECK(instances[0].at("coordinates") == json::parse("[[0.1915194503788923,0.6221087710398319],"
                                                      "[0.4377277390071145,0.7853585837137692],"
                                                      "[0.7799758081188035,0.2725926052826416]]"));
  CHECK(instances[1].at("coordinates")[0][0] == 0.2764642551430967);
  REQUIRE(sandbox.run("generate knapsack -n 4 -b 2 -o set.npz").code == 0);
  const json solved = sandbox.run("solve set.npz -n 8").parsed();
  CHECK(solved.at("solutions").size() == 2);
  CHECK(solved.at("solutions")[0].at("weight").get<double>() <= 12.5);
}

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

TEST_CASE("quiet silences the log, and the log can be JSON") {
  const Sandbox sandbox;
  CHECK(sandbox.run("solve -q -n 8 " + kMap).err.empty());
  const Answer answer = sandbox.run("solve --log-format json -n 8 " + kMap);
  REQUIRE(answer.code == 0);
  REQUIRE(!answer.err.empty());
  for (const std::string& line : lines_of(answer.err)) CHECK(json::parse(line).contains("message"));
}

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

TEST_CASE("flag before environment before config file before default") {
  const Sandbox sandbox;
  sandbox.write("flags.toml", "samples = 9\nseed = 3\n[train]\nsteps = 1\n[solve]\nmode = \"sample\"\n");
  const auto summary = [&](const std::string& flags, const std::string& environment) {
    return sandbox.run("solve -q " + flags + " " + kMap, environment).parsed().at("summary");
  };
  const json config = summary("--config flags.toml", "");
  CHECK(config.at("samples") == 9);
  CHECK(config.at("seed") == 3);
  CHECK(config.at("mode") == "sample");
  const json environment = summary("--config flags.toml", "POINTSMAN_SAMPLES=7");
  CHECK(environment.at("samples") == 7);
  CHECK(environment.at("seed") == 3);
  CHECK(summary("-n 5 --config flags.toml", "POINTSMAN_SAMPLES=7").at("samples") == 5);
  CHECK(summary("--first_sample 2 --batch_size=4 -n 5", "").at("samples") == 5);
  CHECK(summary("-n 5", "POINTSMAN_CONFIG=flags.toml").at("seed") == 3);
  CHECK(sandbox.run("info", "POINTSMAN_SAMPLES=many").code == 0);  // another subcommand's variable
  sandbox.write("wrong.toml", "sampels = 9\n");
  const Answer wrong = sandbox.run("solve --config wrong.toml " + kMap);
  CHECK(wrong.code == 2);
  CHECK(wrong.out.find("sampels") != std::string::npos);
}

TEST_CASE("bad input is named with file and line, exit code 3") {
  const Sandbox sandbox;
  sandbox.write("bad.tsp",
                "NAME: bad\nTYPE: TSP\nDIMENSION: 3\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n"
                "1 0 0\n2 1.0\n3 1 1\nEOF\n");
  const Answer answer = sandbox.run("solve bad.tsp");
  CHECK(answer.code == 3);
  CHECK(answer.parsed().at("code") == 3);
  CHECK(answer.parsed().at("file") == "bad.tsp");
  CHECK(answer.parsed().at("line") == 7);
  CHECK(answer.err.find("bad.tsp:7: ") != std::string::npos);
  CHECK(sandbox.run("solve missing.tsp").code == 3);
  CHECK(sandbox.run("solve -m missing " + kMap).code == 3);
  CHECK(sandbox.run("solve -m knapsack50 " + kMap).code == 3);
  sandbox.write("broken.safetensors", "not a model");
  CHECK(sandbox.run("solve -m broken.safetensors " + kMap).code == 3);
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

TEST_CASE("outputs: full disk 4, existing file 2, --force 0, failures leave no file") {
  const Sandbox sandbox;
  CHECK(sandbox.run("solve -n 4 " + kMap + " >/dev/full").code == 4);
  CHECK(sandbox.run("solve -n 4 -o /dev/full " + kMap).code == 4);
  CHECK(sandbox.run("solve -n 4 -o missing/x.json " + kMap).code == 4);
  sandbox.write("here.json", "precious");
  CHECK(sandbox.run("solve -n 4 -o here.json " + kMap).code == 2);
  CHECK(sandbox.read("here.json") == "precious");
  const Answer forced = sandbox.run("solve -n 4 -f -o here.json " + kMap);
  CHECK(forced.code == 0);
  CHECK(forced.out.empty());
  CHECK(json::parse(sandbox.read("here.json")).at("code") == 0);
  CHECK(sandbox.run("solve -n 4 -o never.json missing.tsp").code == 3);
  CHECK(!sandbox.exists("never.json"));
}

TEST_CASE("what this build does not have is refused, not replaced") {
  const Sandbox sandbox;
  CHECK(sandbox.run("solve --device cuda " + kMap).code == 4);
  CHECK(sandbox.run("solve --precision tf32 " + kMap).code == 4);
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

TEST_CASE("a signal keeps the best") {
  const Sandbox sandbox;
  for (const auto& [signal, code] : {std::pair{SIGINT, 130}, std::pair{SIGTERM, 143}}) {
    const pid_t child = sandbox.start("solve -f --mode active --steps 1000000 -o best.json " + kMap);
    std::this_thread::sleep_for(std::chrono::milliseconds(700));
    kill(child, signal);
    const Answer answer = sandbox.finish(child);
    CHECK(answer.code == code);
    const json parsed = json::parse(sandbox.read("best.json"));
    CHECK(parsed.at("code") == code);
    CHECK(parsed.at("solutions")[0].at("status") == "interrupted");
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

TEST_CASE("a mode of eval that means nothing ends with 2") {
  const Sandbox sandbox;
  for (const char* mode : {"exact", "ratio", "local+x8", "local+0", "random+t2", "greedy+t2", "active+t2",
                           "active+100", "sample+t0", "sample+t", "sample+t1.5x", "sample+t2000",
                           "sample+tnan", "sample++x8", "clever", ","}) {
    INFO(mode);
    CHECK(sandbox.run("eval " + kMap + " --modes " + mode).code == 2);
  }
  for (const char* mode : {"local", "exact+5", "ratio+5", "greedy+x8"}) {
    INFO(mode);
    CHECK(sandbox.run("eval " + kKnapsack + " --modes " + mode).code == 2);
  }
  const json wrong = sandbox.run("eval " + kMap + " --modes greedy,exact").parsed();
  CHECK(wrong.at("error") == "--modes: exact is for KnapSack");  // before any mode has run
  const json row = sandbox.run("eval " + kKnapsack + " --modes exact --ref 18.311").parsed().at("rows")[0];
  CHECK(row.at("optimal") == 1.0);
}

TEST_CASE("eval counts the samples of active search in steps") {
  const Sandbox sandbox;
  const json row = sandbox.run("eval " + kMap + " --modes active+256").parsed().at("rows")[0];
  CHECK(row.at("samples") == 256);
  CHECK(row.at("seconds").get<double>() < 60);  // 2 steps; the default is 5,000
}

TEST_CASE("a variable for another mode is no mistake, a flag is") {
  const Sandbox sandbox;
  CHECK(sandbox.run("solve -q --mode greedy --steps 5 " + kMap).code == 2);
  CHECK(sandbox.run("solve -q --mode greedy " + kMap, "POINTSMAN_STEPS=5").code == 0);
}

TEST_CASE("train learns from given tours, which kicks make short") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 6 -b 40 -o set.npy").code == 0);
  const std::string solve = "solve set.npy -m tsp20 --mode greedy --improve on -f -o tours.npy --format npy";
  REQUIRE(sandbox.run(solve).code == 0);
  const std::string train =
      "train tsp -n 6 --instances set.npy --solutions tours.npy -b 8 --rollouts 1 --steps 20 -q -f -o "
      "x.safetensors";
  const Answer answer = sandbox.run(train + " --log x.jsonl");
  REQUIRE(answer.code == 0);
  CHECK(answer.parsed().at("summary").at("training_tours") == 160);
  CHECK(sandbox.read("x.jsonl").find("\"cross_entropy\":") != std::string::npos);

  CHECK(sandbox.run("train tsp -n 6 --instances set.npy -o y.safetensors").code == 2);
  CHECK(sandbox.run(train + " --baseline critic").code == 2);
  const Answer size =
      sandbox.run("train tsp -n 7 --instances set.npy --solutions tours.npy -f -o x.safetensors");
  CHECK(size.code == 3);
  CHECK(size.out.find("set.npy: instance 0: expected 7 items (-n), found 6") != std::string::npos);
  sandbox.write("bad.json", R"({"solutions":[{"tour":[0,1,2,3,4,4]}]})");
  CHECK(sandbox.run("train tsp -n 6 --instances set.npy --solutions bad.json -f -o x.safetensors").code == 3);

  CHECK(sandbox.run("solve set.npy --mode greedy --kicks 5").code == 2);  // nothing is improved
  REQUIRE(sandbox.run("generate tsp -n 60 -b 3 -f -o set.npy").code == 0);
  const auto cost = [&](const std::string& flags) {
    return sandbox.run("solve set.npy -m tsp20 --mode greedy --improve on " + flags)
        .parsed()
        .at("summary")
        .at("mean_cost")
        .get<double>();
  };
  const double plain = cost("");
  CHECK(cost("--kicks 500") < plain);  // n = 60: the first local optima are some 3% above the best
}

TEST_CASE("train writes a model that solve finds by name") {
  const Sandbox sandbox;
  const Answer answer =
      sandbox.run("train tsp -n 8 --steps 2 -b 2 --rollouts 2 -o models/tsp8.safetensors --log log");
  REQUIRE(answer.code == 0);
  CHECK(answer.parsed().at("summary").at("steps") == 2);
  CHECK(!lines_of(sandbox.read("log")).empty());
  CHECK(sandbox.run("train tsp -n 8 --steps 2 -o models/tsp8.safetensors").code == 2);  // there already
  CHECK(sandbox.run("solve -q -n 4 -m tsp8 " + kMap).parsed().at("summary").at("model") == "tsp8");
  const json models = sandbox.run("info").parsed().at("models");
  CHECK(std::any_of(models.begin(), models.end(),
                    [](const json& model) { return model.at("name") == "tsp8"; }));
  CHECK(sandbox.run("info tsp8").parsed().at("model").at("n") == 8);
}

TEST_CASE("train goes on from a model, with another clip where told") {
  const Sandbox sandbox;
  const std::string train = "train tsp -n 8 --steps 1 -b 2 -f -q ";
  const auto trained = [&](const std::string& flags) {
    REQUIRE(sandbox.run(train + flags + " -o x.safetensors").code == 0);
    return sandbox.run("info x.safetensors").parsed().at("model");
  };
  const json first = trained("--learning-rate 0.002");
  REQUIRE(sandbox.run(train + "--learning-rate 0.002 -o first.safetensors").code == 0);
  const json same = trained("--init first.safetensors --learning-rate 1e-7");
  const json colder = trained("--init first.safetensors --clip 31");
  CHECK(same.at("clip") == first.at("clip"));
  CHECK(colder.at("clip") == 31.0);
  CHECK(same.at("learning_rate") == 0.002);  // of the first of its trainings
  CHECK(first.at("training_tours") == 16);
  CHECK(same.at("training_tours") == 32);
  CHECK(sandbox.run(train + "--init first.safetensors --glimpses 2 -o x.safetensors").code == 2);
}
