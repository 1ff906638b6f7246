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

#include "tests/catch.h"

namespace {

namespace fs = std::filesystem;
using nlohmann::json;

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
