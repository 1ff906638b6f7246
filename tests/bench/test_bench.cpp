// SPDX-License-Identifier: Apache-2.0
// `pointsman bench`: the door to the bench's own program, and what that answers.
#include <sys/wait.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "bench/engine/baseline.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;
using namespace pointsman::bench;

struct Answer {
  int code;
  std::string out;
};

// `environment pointsman bench arguments streams`, by default stderr left out.
Answer bench(const std::string& arguments, const std::string& environment = "",
             const std::string& streams = "2>/dev/null") {
  const std::string command = environment + " '" POINTSMAN_BINARY "' bench " + arguments + " " + streams;
  FILE* const pipe = popen(command.c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string out;
  for (int c; (c = std::fgetc(pipe)) != EOF;) out += static_cast<char>(c);
  const int status = pclose(pipe);
  return {WIFEXITED(status) ? WEXITSTATUS(status) : -1, out};
}

// A folder with an executable `python` that takes itself for one with torch, and for the twin: it agrees with
// nothing.
struct WrongTwin {
  WrongTwin() {
    std::string pattern = (fs::temp_directory_path() / "pointsman_bench_XXXXXX").string();
    REQUIRE(mkdtemp(pattern.data()) != nullptr);
    folder = pattern;
    std::ofstream(folder / "python") << R"sh(#!/bin/sh
[ "$1" = -c ] && exit 0
echo '{"torch":"none"}'
while read -r command; do
  case $command in
    *judge_greedy*) echo '{"worst":[0.0],"log_probs":['"$(seq -s, 256)"']}' ;;
    *score*) echo '{"log_probs":['"$(seq -s, 256)"']}' ;;
    *) echo '{}' ;;
  esac
done
)sh";
    fs::permissions(folder / "python", fs::perms::owner_all);
  }
  ~WrongTwin() { fs::remove_all(folder); }
  WrongTwin(const WrongTwin&) = delete;
  WrongTwin& operator=(const WrongTwin&) = delete;

  std::string flags() const {
    const std::string python = (folder / "python").string();
    return "--torch " + python + " --twin " + python;
  }

  fs::path folder;
};

TEST_CASE("bench: the door passes every word on") {
  const Answer help = bench("--help");
  CHECK(help.code == 0);
  CHECK(help.out.find("Usage: pointsman bench") != std::string::npos);
  CHECK(help.out.find("--turns") != std::string::npos);
  const std::string only_stderr = "2>&1 >/dev/null";
  CHECK(bench("--help", "", only_stderr).out.empty());
  CHECK_FALSE(bench("decode --nope", "", only_stderr).out.empty());
  for (const char* arguments :
       {"nothing", "decode --turns 0", "decode --nope", "--time_limit=-1", "decode -- x"}) {
    const Answer answer = bench(arguments);
    INFO(arguments);
    CHECK(answer.code == 2);
    CHECK(json::parse(answer.out).at("code") == 2);
  }
}

TEST_CASE("bench: decode answers JSON with the promised keys") {
  const Answer answer = bench("decode --torch none --turns 1 --seconds 0.01 --json");
  REQUIRE(answer.code == 0);
  const json parsed = json::parse(answer.out);
  CHECK(parsed.at("code") == 0);
  CHECK(parsed.at("torch") == "skipped: --torch none");
  CHECK(parsed.at("fma_peak_gflops").get<double>() > 0.0);
  for (const char* key : {"cpu", "cores", "device"}) CHECK(parsed.at("machine").contains(key));
  REQUIRE(parsed.at("rows").size() >= 24);
  CHECK(parsed["rows"][0].at("name") == "encode");
  for (const json& row : parsed["rows"]) {
    for (const char* key : {"name", "n", "batch", "ours", "torch", "ratio", "per_gflops", "spread"}) {
      INFO(row << " " << key);
      CHECK(row.contains(key));
    }
    CHECK(row["ours"].get<double>() > 0.0);
    CHECK(row["torch"].is_null());
  }
}

TEST_CASE("bench: a twin that disagrees ends it with exit code 5") {
  const WrongTwin twin;
  const Answer answer = bench("decode --json " + twin.flags());
  CHECK(answer.code == 5);
  const json parsed = json::parse(answer.out);
  CHECK(parsed.at("code") == 5);
  CHECK(parsed.at("error").get<std::string>().find("log p") != std::string::npos);
  CHECK(parsed.at("torch").at("torch") == "none");
  CHECK(parsed.at("rows").empty());
}

// An answer with one row; ratio 0: without PyTorch.
Json answer_of(double ratio, double per_gflops, const std::string& device = "cpu (AVX2, 1 thread)") {
  Json row = {{"name", "encode"}, {"encoder", "lstm"},        {"n", 20},       {"batch", 256},
              {"ratio", nullptr}, {"per_gflops", per_gflops}, {"spread", 0.02}};
  if (ratio > 0.0) row["ratio"] = ratio;
  const Json threads = {{"name", "encode_threads"}, {"threads", 2}, {"ratio", 0.1}};
  return {{"machine", {{"device", device}}}, {"rows", {row, threads}}};
}

TEST_CASE("bench: --check compares ratios to PyTorch, or rates of one instruction set") {
  const auto fallen = [](const Json& found, const Json& expected) {
    const Comparison comparison = compare_with_baseline(found, expected);
    CHECK(comparison.compared == 1);
    CHECK(comparison.unpaired.empty());
    return comparison.fallen;
  };
  const Json baseline = answer_of(4.0, 50.0);
  CHECK(fallen(answer_of(3.7, 1.0), baseline).empty());
  REQUIRE(fallen(answer_of(3.5, 50.0), baseline).size() == 1);
  CHECK(fallen(answer_of(3.5, 50.0), baseline)[0] ==
        "encode lstm n=20 batch=256: ratio 3.5, expected 4 (12.5% less)");
  CHECK(fallen(answer_of(3.5, 50.0, "cpu (SSE4, 1 thread)"), baseline).size() == 1);
  CHECK(fallen(answer_of(0.0, 46.0), baseline).empty());
  CHECK(fallen(answer_of(0.0, 44.0), baseline).size() == 1);
  CHECK(fallen(answer_of(3.5, 44.0), answer_of(0.0, 50.0)).size() == 1);

  const Comparison other = compare_with_baseline(answer_of(0.0, 50.0, "cpu (SSE4, 1 thread)"), baseline);
  CHECK(other.compared == 0);
  CHECK(other.unpaired == std::vector<std::string>{"encode lstm n=20 batch=256"});
}

TEST_CASE("bench: --check names rows without a counterpart, and spreads too large to judge") {
  const Json baseline = answer_of(4.0, 50.0);
  Json found = baseline;
  found["rows"][0]["n"] = 21;
  CHECK(compare_with_baseline(found, baseline).unpaired ==
        std::vector<std::string>{"encode lstm n=21 batch=256", "encode lstm n=20 batch=256"});
  found = answer_of(3.0, 50.0);
  found["rows"][0]["torch_spread"] = 0.3;
  const Comparison noisy = compare_with_baseline(found, baseline);
  REQUIRE(noisy.fallen.size() == 1);
  CHECK_THAT(noisy.fallen[0], has_text("with a spread of 30%: measure again"));
  found["rows"][0]["ratio"] = nullptr;  // the twin's spread is not that of a rate
  found["rows"][0]["per_gflops"] = 40.0;
  const Comparison calm = compare_with_baseline(found, baseline);
  REQUIRE(calm.fallen.size() == 1);
  CHECK_THAT(calm.fallen[0], !has_text("spread"));
}

TEST_CASE("bench: --check fails with the code of its reason") {
  const pointsman::TemporaryFolder folder;
  const std::string file = folder / "baseline.json", check = " --check " + file;
  const std::string decode = "decode -m tsp20 --torch none --turns 1 --seconds 0.01 --json";
  CHECK(bench(decode + check).code == 3);  // there is none
  for (const char* text : {"{", "[]", R"({"rows":[]})", R"({"rows":[{"name":"encode"}]})"}) {
    std::ofstream(file) << text;
    INFO(text);
    CHECK(bench(decode + check).code == 3);
  }
  json baseline = json::parse(bench(decode).out);
  for (json& row : baseline["rows"]) row["per_gflops"] = 1e-3;
  std::ofstream(file) << baseline;
  CHECK(bench("sample" + check).code == 2);
  CHECK(bench("decode" + check).code == 2);  // of fresh parameters
  CHECK(bench(decode + check).code == 0);
  baseline["rows"][1]["per_gflops"] = 1e9;
  std::ofstream(file) << baseline;
  const Answer fallen = bench(decode + check);
  CHECK(fallen.code == 5);
  CHECK_THAT(json::parse(fallen.out).at("error").get<std::string>(),
             has_text("1 fell by more than 10%: decode_sample attention n=20"));
}

TEST_CASE("bench: the engine's calls, a row a line") {
  const Answer answer =
      bench("compare sample greedy train active --device cpu --small --seconds 0.01 --format ndjson");
  REQUIRE(answer.code == 0);
  std::istringstream lines(answer.out);
  std::map<std::string, int> rows;
  for (std::string line; std::getline(lines, line);) {
    const json row = json::parse(line);
    ++rows[row.at("name")];
    if (row["name"] == "same_tours") CHECK(row.at("pass") == true);
    if (row.contains("ms")) CHECK(row.at("per_second").get<double>() > 0.0);
  }
  CHECK(rows == std::map<std::string, int>{{"same_tours", 3},
                                           {"search_sample", 3},
                                           {"search_sample_best", 3},
                                           {"search_greedy", 3},
                                           {"train_step", 3},
                                           {"active_step", 6},
                                           {"answer", 1}});
}

TEST_CASE("bench: its section of a configuration file is no other subcommand's business") {
  const fs::path file = fs::temp_directory_path() / ("pointsman_bench_" + std::to_string(getpid()) + ".toml");
  std::ofstream(file) << "[bench]\nturns = 0\n[solve]\nsamples = 4\n";
  CHECK(bench("decode --config " + file.string()).code == 2);  // it was read: 0 turns are none
  CHECK(std::system(("'" POINTSMAN_BINARY "' info --config " + file.string() + " >/dev/null 2>&1").c_str()) ==
        0);
  fs::remove(file);
}

}  // namespace
