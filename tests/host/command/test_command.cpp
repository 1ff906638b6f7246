// SPDX-License-Identifier: Apache-2.0
// What every subcommand shares, as a user meets it: exit codes, what goes to stdout and what to stderr,
// flags, files.
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <thread>
#include <tuple>

#include "tests/catch.h"
#include "tests/host/command/sandbox.h"
#include "tests/packed.h"

using namespace pointsman;

TEST_CASE("version and help go to stdout and end with 0") {
  const Sandbox sandbox;
  const Answer version = sandbox.run("--version");
  CHECK(version.code == 0);
  CHECK(version.out.rfind("pointsman ", 0) == 0);
  CHECK(version.err.empty());
  for (const char* name : {"", "solve ", "train ", "score ", "eval ", "generate ", "verify ", "info "}) {
    const Answer help = sandbox.run(std::string(name) + "--help");
    CHECK(help.code == 0);
    CHECK(help.out.find("Usage:") != std::string::npos);
    CHECK(help.err.empty());
  }
  CHECK(sandbox.run("solve --help").out.find("Examples:") != std::string::npos);
}

TEST_CASE("help fits a hundred columns and tells range, default and environment of a flag") {
  const Sandbox sandbox;
  for (const char* name : {"", "solve", "train", "score", "eval", "generate", "verify", "info"}) {
    for (const std::string& line : lines_of(sandbox.run(std::string(name) + " --help").out)) {
      INFO(name << ": " << line);
      CHECK(line.size() <= 100);
    }
  }
  const std::string help = sandbox.run("solve --help").out;
  CHECK(help.find("  -t, --threads INT           CPU threads; 0: all "
                  "[0..4096; default 0; POINTSMAN_THREADS]\n") != std::string::npos);
  CHECK(help.find("--mode auto|greedy|") != std::string::npos);
  CHECK(sandbox.run("train --help").out.find("[required; 2..10000; ") != std::string::npos);
}

TEST_CASE("a word that is unknown but near a known one suggests it") {
  const Sandbox sandbox;
  sandbox.write("wrong.toml", "[solve]\nsampels = 9\n");
  struct Case {
    std::string arguments, meant;  // empty: nothing is near
    int code = 2;
  };
  const std::vector<Case> cases = {{"slove", "solve"},
                                   {"Solve", "solve"},
                                   {"gen", "generate"},
                                   {"nonsense", ""},
                                   {"solve --smaples 5 " + kMap, "--samples"},
                                   {"solve --temp=2 " + kMap, "--temperature"},
                                   {"solve --stpes", "--steps"},
                                   {"train tsp --rollout 5", "--rollouts"},  // though -n is missing too
                                   {"solve --nope " + kMap, ""},
                                   {"--versoin", "--version"},
                                   {"solve --mode gredy " + kMap, "greedy"},
                                   {"solve --mode clever " + kMap, ""},
                                   {"solve --format tuor " + kMap, "tour"},
                                   {"solve --input-format npx " + kMap, "npy"},
                                   {"train tps -n 5", "tsp"},
                                   {"eval --modes gredy+x8 " + kMap, "greedy"},
                                   {"solve --config wrong.toml " + kMap, "samples"},
                                   {"solve -m tsp02 " + kMap, "tsp20", 3},
                                   {"solve -m other " + kMap, "", 3}};
  for (const Case& one : cases) {
    INFO(one.arguments);
    const Answer answer = sandbox.run(one.arguments);
    CHECK(answer.code == one.code);
    const std::string error = answer.parsed().at("error");
    INFO(error);
    if (one.meant.empty()) {
      CHECK(error.find("did you mean") == std::string::npos);
    } else {
      CHECK(error.find("; did you mean " + one.meant + "?") != std::string::npos);
    }
  }
}

TEST_CASE("a suffix of -o that tells no format is refused unless --format does") {
  const Sandbox sandbox;
  const Answer answer = sandbox.run("solve --mode local -o best.tuor " + kMap);
  CHECK(answer.code == 2);
  CHECK(answer.err.find(
            "-o best.tuor: expected a suffix out of .json, .ndjson, .jsonl, .tour, .sol, .npy, .npz, .txt, "
            ".text, or --format, found \".tuor\"; did you mean .tour?") != std::string::npos);
  CHECK(!sandbox.exists("best.tuor"));
  CHECK(sandbox.run("solve --mode local --format tour -o best.tuor " + kMap).code == 0);
  CHECK(sandbox.run("solve --mode local -o plain " + kMap).code == 0);
  CHECK(json::parse(sandbox.read("plain")).at("code") == 0);
  CHECK(sandbox.run("verify -o checked.npy " + kMap + " best.tuor").code == 2);  // it writes no arrays
  CHECK(sandbox.run("generate tsp -n 3 -o set.nyp").err.find("did you mean .npy?") != std::string::npos);
  CHECK(sandbox.run("generate knapsack -n 3 -o set.txt").code == 0);
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

TEST_CASE("quiet silences the log, and the log can be JSON") {
  const Sandbox sandbox;
  CHECK(sandbox.run("solve -q -n 8 " + kMap).err.empty());
  const Answer answer = sandbox.run("solve --log-format json -n 8 " + kMap);
  REQUIRE(answer.code == 0);
  REQUIRE(!answer.err.empty());
  for (const std::string& line : lines_of(answer.err)) CHECK(json::parse(line).contains("message"));
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
  // Only long flags are keys: no short one, and no positional of any subcommand.
  for (const char* text :
       {"n = 9\n", "FILE = \"map.tsp\"\n", "problem = \"tsp\"\n[train]\nproblem = \"tsp\"\n"}) {
    sandbox.write("wrong.toml", text);
    INFO(text);
    CHECK(sandbox.run("solve --config wrong.toml " + kMap).code == 2);
  }
  sandbox.write("wrong.toml", "sampels = 9\n");
  const Answer wrong = sandbox.run("solve --config wrong.toml " + kMap);
  CHECK(wrong.code == 2);
  CHECK(wrong.out.find("sampels") != std::string::npos);
  for (const char* text : {"mode = \"gre\0edy\"\n", "sam\x1b[31mples = 9\n"}) {
    sandbox.write("wrong.toml", std::string(text, 17));
    const Answer refused = sandbox.run("solve --config wrong.toml " + kMap);
    CHECK(refused.code == 2);
    CHECK(refused.err.find('\x1b') == std::string::npos);
  }
}

TEST_CASE("no file takes the place of a closed standard stream") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 5 -b 2 -s 7 -q -o set.ndjson").code == 0);
  const std::string set = sandbox.read("set.ndjson");
  for (const char* closed : {" 2>&-", " >&-", " <&-", " <&- >&-", " <&- >&- 2>&-"}) {
    INFO(closed);
    CHECK(sandbox.run(std::string("generate tsp -n 5 -b 2 -s 7 -v -f -o set.ndjson") + closed).code == 0);
    CHECK(sandbox.read("set.ndjson") == set);
    CHECK(sandbox.run(std::string("solve set.ndjson -v -f -o answers.json") + closed).code == 0);
    CHECK(json::accept(sandbox.read("answers.json")));
    CHECK(sandbox.run(std::string("solve set.ndjson -v -f -o answers.ndjson") + closed).code == 0);
    CHECK(lines_of(sandbox.read("answers.ndjson")).size() == 2);
    const bool summarised = std::string(closed).find(" >&-") == std::string::npos;
    const std::string train = "train tsp -n 5 --steps 1 -b 2 -v -f -o tsp5.safetensors --log log";
    CHECK(sandbox.run(train + closed).code == (summarised ? 0 : 4));
    CHECK(json::parse(sandbox.read("log")).at("step") == 1);
    CHECK(sandbox.run("info ./tsp5.safetensors").code == 0);
    CHECK(sandbox.run("solve missing.tsp -o x.json" + std::string(closed)).code == 3);
    CHECK_FALSE(sandbox.exists("x.json"));
  }
  // Neither is an answer lost without a word, nor is the log read as one.
  CHECK(sandbox.run("solve set.ndjson >&-").code == 4);
  CHECK_THAT(sandbox.run("solve set.ndjson >&-").err, has_text("Bad file descriptor"));
  CHECK(sandbox.run("--help >&-").code == 4);
  CHECK(sandbox.run("solve - --input-format csv -o x.json <&-").code == 4);
}

TEST_CASE("packed input beyond --max-input is refused with code 4, and a higher limit takes it") {
  const Sandbox sandbox;
  std::string text = "{\"instances\":[";
  for (int i = 0; i < 2000; ++i) {
    text += std::string(i > 0 ? "," : "") +
            "{\"problem\":\"knapsack\",\"capacity\":1,\"weights\":[1],\"values\":[1]}";
  }
  sandbox.write("in.json.gz", packed(text + "]}"));
  for (const auto& [flags, environment, code] : std::vector<std::tuple<std::string, std::string, int>>{
           {"", "", 0},
           {" --max-input 512K", "", 4},
           {"", "POINTSMAN_MAX_INPUT=524288", 4},
           {" --max-input 1G", "POINTSMAN_MAX_INPUT=1K", 0},
           {" --max-input 0", "", 2},
           {" --max-input 1.5G", "", 2}}) {
    CAPTURE(flags, environment);
    const Answer answer = sandbox.run("solve in.json.gz --mode exact" + flags, environment);
    CHECK(answer.code == code);
    if (code == 4) CHECK(answer.err.find("expected at most 524288, --max-input SIZE") != std::string::npos);
  }
}

TEST_CASE("a file is not read and written at once, whatever its names are") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 5 -b 3 -o in.ndjson").code == 0);
  const std::string bytes = sandbox.read("in.ndjson");
  REQUIRE(link(sandbox.path("in.ndjson").c_str(), sandbox.path("hard.ndjson").c_str()) == 0);
  REQUIRE(symlink("in.ndjson", sandbox.path("soft.ndjson").c_str()) == 0);
  for (const char* arguments : {"solve in.ndjson -f -o hard.ndjson", "solve hard.ndjson -f -o in.ndjson",
                                "solve in.ndjson -f -o soft.ndjson", "solve - -f -o in.ndjson <in.ndjson",
                                "solve - -f -o hard.ndjson <soft.ndjson"}) {
    CAPTURE(arguments);
    const Answer answer = sandbox.run(arguments);
    CHECK(answer.code == 2);
    CHECK(answer.err.find("is read as ") != std::string::npos);
    CHECK(sandbox.read("in.ndjson") == bytes);
  }
  CHECK(sandbox.run("train tsp -n 5 --steps 1 -f -o hard.ndjson --log in.ndjson").code == 2);
  CHECK(sandbox.read("in.ndjson") == bytes);
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

TEST_CASE("the wait for a file of any kind ends at the limit and at a signal") {
  const Sandbox sandbox;
  REQUIRE(mkfifo(sandbox.path("pipe").c_str(), 0600) == 0);
  for (const std::string& arguments :
       {std::string("eval pipe --modes local"), std::string("score pipe --solutions pipe"),
        "verify " + kMap + " pipe", "solve --ref pipe " + kMap, "solve --init pipe " + kMap,
        std::string("train tsp -n 10 --instances pipe")}) {
    INFO(arguments);
    const auto start = std::chrono::steady_clock::now();
    CHECK(sandbox.run(arguments + " -l 0.3").code == 3);
    const pid_t child = sandbox.start(arguments);
    std::this_thread::sleep_for(std::chrono::milliseconds(300));
    kill(child, SIGTERM);
    CHECK(sandbox.finish(child).code == 143);
    CHECK(std::chrono::steady_clock::now() - start < std::chrono::seconds(6));
  }
}

TEST_CASE("outputs: full disk 4, existing file 2, --force 0, failures leave no file") {
  const Sandbox sandbox;
  CHECK(sandbox.run("solve -n 4 " + kMap + " >/dev/full").code == 4);
  CHECK(sandbox.run("--help >/dev/full").code == 4);
  CHECK(sandbox.run("solve --help >/dev/full").code == 4);
  CHECK(sandbox.run("--version >/dev/full").code == 4);
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
  CHECK(sandbox.run("solve --device cuda:all " + kMap).code == 4);
  CHECK(sandbox.run("solve --device cuda:al " + kMap).code == 2);
  const Answer refused = sandbox.run("train tsp -n 5 --steps 1 -o m.safetensors --device cuda:all");
  CHECK(refused.code == 2);
  CHECK(refused.err.find("training uses one device") != std::string::npos);
  CHECK(sandbox.run("solve --precision tf32 " + kMap).code == 4);
}

#if !defined(__SANITIZE_ADDRESS__) && \
    !defined(__SANITIZE_THREAD__)  // they take more addresses than the limit leaves
TEST_CASE("a program outside of its build tree looks for models in its own prefix alone") {
  const Sandbox sandbox;
  const fs::path folder = fs::canonical(sandbox.path(""));
  fs::create_directories(folder / "usr/bin");
  fs::copy_file(program(), folder / "usr/bin/pointsman");
  fs::create_directory(folder / "pointsman");  // no file of the program, which is called by this name
  const Answer installed =
      sandbox.run("", "PATH=\"$PWD/usr/bin:$PATH\" && exec pointsman info --format json >out 2>err");
  CHECK(installed.parsed().at("model_directories") ==
        json({"models", (folder / "usr/share/pointsman/models").string()}));
  const json built = sandbox.run("info --format json").parsed().at("model_directories");
  CHECK(built.back() == POINTSMAN_SOURCE_DIR "/models/pretrained");
}

TEST_CASE("out of memory ends with 4", "[memory]") {
  const Sandbox sandbox;
  const Answer answer = sandbox.run("generate tsp -n 1000000 -b 100 -o big.npy", "&& ulimit -v 400000");
  CHECK(answer.code == 4);
  CHECK(answer.err.find("out of memory") != std::string::npos);
  CHECK(!sandbox.exists("big.npy"));
}

TEST_CASE("a long JSON file takes little more memory than its instances", "[memory]") {
  constexpr int kInstances = 50000, kCities = 20;
  const Sandbox sandbox;
  std::string points;
  for (int i = 0; i < kCities; ++i)
    points += (i > 0 ? "," : "") + std::string("[0.1234567890123456,0.6543210987654321]");
  const std::string instance = "{\"problem\":\"tsp\",\"coordinates\":[" + points + "]}";
  std::ofstream file(sandbox.path("set.json"));
  file << "{\"instances\":[" << instance;  // on one line, as many programs write it
  for (int i = 1; i < kInstances; ++i) file << "," << instance;
  file << "]}" << std::flush;
  sandbox.write("none.json", "{\"solutions\":[]}");
  const pid_t child = sandbox.start("verify set.json none.json");
  int status = 0;
  rusage usage{};
  REQUIRE(wait4(child, &status, 0, &usage) == child);
  CHECK(WEXITSTATUS(status) == 3);
  CHECK(sandbox.read("out").find("expected 50000 solutions") != std::string::npos);
  CHECK(1024.0 * static_cast<double>(usage.ru_maxrss) <= 64e6 + 2.2 * 16 * kInstances * kCities);
}
#endif
