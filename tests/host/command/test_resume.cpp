// SPDX-License-Identifier: Apache-2.0
// `solve --format ndjson` into a file: it grows by whole lines, and --resume goes on behind them.
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <fstream>
#include <string>
#include <thread>

#include "tests/host/command/sandbox.h"

using namespace pointsman;

namespace {

// Ten lines: two problems, two sizes, a line that is none, and lines without an id.
std::string mixed_lines() {
  std::string lines;
  for (int i = 0; i < 10; ++i) {
    const std::string id = i % 3 == 0 ? "" : "\"id\":\"id " + std::to_string(i) + "\",";
    const std::string shift = std::to_string(0.01 * i);
    if (i == 4) {
      lines += "{\"no\":\"instance\"}\n";
    } else if (i % 4 == 1) {
      lines += "{" + id + "\"problem\":\"knapsack\",\"capacity\":3,\"weights\":[1,2," + shift +
               "],\"values\":[1,3,1]}\n";
    } else {
      lines += "{" + id + "\"problem\":\"tsp\",\"coordinates\":[[0,0],[1,0.2],[0.3," + shift + "],[0.5,0.9]" +
               (i % 2 == 0 ? ",[0.1,0.7]" : "") + "]}\n";
    }
  }
  return lines;
}

size_t behind_line(const std::string& text, int line) {
  size_t at = 0;
  for (int i = 0; i < line; ++i) at = text.find('\n', at) + 1;
  return at;
}

void check_refused(const Sandbox& sandbox, const std::string& flags, const std::string& words, int code = 2) {
  CAPTURE(flags, words);
  const Answer answer = sandbox.run("solve -q " + flags);
  CHECK(answer.code == code);
  CHECK(answer.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("a stream that is cut anywhere and resumed has the bytes of an uninterrupted one") {
  const Sandbox sandbox;
  sandbox.write("in.ndjson", mixed_lines());
  for (const char* mode : {"--mode auto", "--mode sample -n 20 --shuffle -m tsp20", "--mode greedy -b 3"}) {
    CAPTURE(mode);
    const std::string flags = std::string("solve in.ndjson ") + mode;
    REQUIRE(sandbox.run(flags + " -f -o whole.ndjson").code == 3);
    const std::string whole = sandbox.read("whole.ndjson");
    REQUIRE(lines_of(whole).size() == 10);
    for (const size_t cut : {size_t{0}, size_t{1}, size_t{9}, behind_line(whole, 1),
                             behind_line(whole, 4) + 5, behind_line(whole, 5), behind_line(whole, 5) - 1,
                             behind_line(whole, 9) + 30, whole.size() - 1, whole.size()}) {
      CAPTURE(cut);
      sandbox.write("cut.ndjson", whole.substr(0, cut));
      CHECK(sandbox.run(flags + " --resume -o cut.ndjson").code == 3);
      CHECK(sandbox.read("cut.ndjson") == whole);
      CHECK_FALSE(sandbox.exists(".cut.ndjson.tmp"));
    }
  }
  CHECK(sandbox.run("solve in.ndjson --resume -o fresh.ndjson").code == 3);
  CHECK(sandbox.run("solve in.ndjson -o fresh.ndjson").code == 2);
  CHECK(lines_of(sandbox.read("fresh.ndjson")).size() == 10);
}

TEST_CASE("rows are counted on through files of all kinds, and from a pipe") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 8 -b 6 -o set.npy").code == 0);
  sandbox.write("in.ndjson", mixed_lines());
  const std::string flags = "solve set.npy in.ndjson set.npy --mode sample -n 8 --format ndjson ";
  REQUIRE(sandbox.run(flags + "-o whole").code == 3);
  const std::string whole = sandbox.read("whole");
  REQUIRE(lines_of(whole).size() == 22);
  for (const int line : {3, 6, 9, 20}) {
    sandbox.write("cut", whole.substr(0, behind_line(whole, line) + 7));
    CHECK(sandbox.run(flags + "--resume -o cut").code == 3);
    CHECK(sandbox.read("cut") == whole);
  }
  const std::string piped = "solve - --mode sample -n 8 -o piped.ndjson <in.ndjson ";
  REQUIRE(sandbox.run(piped).code == 3);
  const std::string all = sandbox.read("piped.ndjson");
  sandbox.write("piped.ndjson", all.substr(0, behind_line(all, 7)));
  CHECK(sandbox.run(piped + "--resume").code == 3);
  CHECK(sandbox.read("piped.ndjson") == all);
}

TEST_CASE("what a signal left unsolved is solved by the resumed run") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 20 -b 40 -o set.npy").code == 0);
  const std::string flags = "solve set.npy --mode local -t 1 -o out.ndjson --kicks ";
  const pid_t child = sandbox.start(flags + "200000");
  std::this_thread::sleep_for(std::chrono::milliseconds(400));
  kill(child, SIGINT);
  REQUIRE(sandbox.finish(child).code == 130);
  REQUIRE(sandbox.read("out.ndjson").find("\"status\":\"unsolved\"") != std::string::npos);
  // The shorter search serves: every line is made anew.
  REQUIRE(sandbox.run(flags + "10 --resume").code == 0);
  const std::string resumed = sandbox.read("out.ndjson");
  CHECK(resumed.find("\"status\":\"unsolved\"") == std::string::npos);
  CHECK(resumed.find("\"status\":\"interrupted\"") == std::string::npos);
  CHECK(lines_of(resumed).size() == 40);
}

TEST_CASE("an output that is not of this input is refused with both places, and left as it is") {
  const Sandbox sandbox;
  const std::string lines = mixed_lines();
  sandbox.write("in.ndjson", lines);
  REQUIRE(sandbox.run("solve in.ndjson -o whole.ndjson").code == 3);
  const std::string whole = sandbox.read("whole.ndjson");
  std::string other = lines;
  other.replace(other.find("id 5"), 4, "id X");
  const std::string shorter = lines.substr(0, behind_line(lines, 6));
  const std::string size =
      lines.substr(0, behind_line(lines, 2)) + lines.substr(behind_line(lines, 3), behind_line(lines, 4));
  const std::string good = lines.substr(0, behind_line(lines, 4)) + lines.substr(0, behind_line(lines, 4));
  for (const auto& [input, words] : std::vector<std::pair<std::string, std::string>>{
           {other, "whole.ndjson:6: found {\"index\":5,\"id\":\"id 5\""},
           {other, "expected the answer to in.ndjson:6, {\"index\":5,\"id\":\"id X\""},
           {size, "whole.ndjson:3: found {\"index\":2,"},
           {good, "whole.ndjson:5: found {\"index\":4,\"code\":3"},
           {shorter, "whole.ndjson:7: found an answer, expected none: the input has only 6"}}) {
    sandbox.write("in.ndjson", input);
    check_refused(sandbox, "in.ndjson --resume -o whole.ndjson", words, 3);
    CHECK(sandbox.read("whole.ndjson") == whole);
  }
}

TEST_CASE("an answer to other numbers is refused, also of a line that would be made again") {
  const Sandbox sandbox;
  const std::string before = "{\"problem\":\"tsp\",\"edge_weight_type\":\"";
  const auto square = [&](const std::string& metric, const std::string& last) {
    return before + metric + "\",\"coordinates\":[[0,0],[10,0],[10,10],[0," + last + "]]}\n";
  };
  const auto sack = [](const std::string& capacity) {
    return "{\"problem\":\"knapsack\",\"capacity\":" + capacity + ",\"weights\":[1,2],\"values\":[3,4]}\n";
  };
  sandbox.write("in.ndjson", square("EUC_2D", "10") + sack("2"));
  sandbox.write("point.ndjson", square("EUC_2D", "10.000000000000002") + sack("2"));
  sandbox.write("metric.ndjson", square("MAN_2D", "10") + sack("2"));
  sandbox.write("capacity.ndjson", square("EUC_2D", "10") + sack("2.5"));
  REQUIRE(sandbox.run("solve in.ndjson -o out.ndjson").code == 0);
  const std::string whole = sandbox.read("out.ndjson");
  const std::string start = "{\"index\":0,\"id\":\"\",\"problem\":\"tsp\",\"n\":4,\"instance\":\"";
  REQUIRE(whole.starts_with(start));
  std::string cut_short = whole;
  cut_short.replace(whole.find("\"done\""), 6, "\"time_limit\"");
  const size_t hash = start.size() + 16;
  for (const std::string& text :
       {whole, cut_short, whole.substr(0, hash), whole.substr(0, behind_line(whole, 1) - 1)}) {
    CAPTURE(text);
    for (const char* input : {"point.ndjson", "metric.ndjson"}) {
      sandbox.write("out.ndjson", text);
      check_refused(sandbox, std::string(input) + " --resume -o out.ndjson",
                    "out.ndjson:1: found " + start + whole.substr(start.size(), 16), 3);
      check_refused(sandbox, std::string(input) + " --resume -o out.ndjson",
                    "expected the answer to " + std::string(input) + ":1, " + start, 3);
      CHECK(sandbox.read("out.ndjson") == text);
    }
  }
  sandbox.write("out.ndjson", whole);
  check_refused(sandbox, "capacity.ndjson --resume -o out.ndjson", "out.ndjson:2: found {\"index\":1,", 3);
  CHECK(sandbox.read("out.ndjson") == whole);
}

TEST_CASE("lines that do not tell their instance are refused with what to do") {
  const Sandbox sandbox;
  sandbox.write("in.ndjson", triangle("a"));
  REQUIRE(sandbox.run("solve in.ndjson -o out.ndjson").code == 0);
  std::string old = sandbox.read("out.ndjson");
  old.erase(old.find("\"instance\""), 30);
  REQUIRE(old.find("\"n\":3,\"status\"") != std::string::npos);
  sandbox.write("out.ndjson", old);
  check_refused(sandbox, "in.ndjson --resume -o out.ndjson", "solve into another file", 3);
  CHECK(sandbox.read("out.ndjson") == old);
}

TEST_CASE("an error of another line is refused") {
  const Sandbox sandbox;
  sandbox.write("in.ndjson", "{\"no\":\"instance\"}\n");
  REQUIRE(sandbox.run("solve in.ndjson -o out.ndjson").code == 3);
  const std::string whole = sandbox.read("out.ndjson");
  CHECK(sandbox.run("solve in.ndjson --resume -o out.ndjson").code == 3);
  CHECK(sandbox.read("out.ndjson") == whole);
  sandbox.write("in.ndjson", "{\"problem\":\"nosuch\"}\n");
  check_refused(sandbox, "in.ndjson --resume -o out.ndjson", "out.ndjson:1: found", 3);
  CHECK(sandbox.read("out.ndjson") == whole);
}

TEST_CASE("what a time limit cut short is made again, but not where each instance has its own limit") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 30 -b 3 -o set.npy").code == 0);
  REQUIRE(sandbox.run("solve set.npy --mode local -o out.ndjson").code == 0);
  const std::string whole = sandbox.read("out.ndjson");
  std::string limited = whole;
  const size_t second = behind_line(whole, 1);
  limited.replace(limited.find("\"status\":\"done\"", second), 15, "\"status\":\"time_limit\"");
  limited.replace(limited.find("\"kicks\":", second), 8, "\"kicks\":7");
  for (const bool each : {false, true}) {
    sandbox.write("out.ndjson", limited);
    REQUIRE(sandbox
                .run(std::string("solve set.npy --mode local -o out.ndjson --resume") +
                     (each ? " --limit-each 100" : ""))
                .code == 0);
    CHECK(sandbox.read("out.ndjson") == (each ? limited : whole));
  }
}

TEST_CASE("what is done under a limit has the bits of a run without one") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 40 -b 6 -o set.npy").code == 0);
  for (const char* flags : {"--mode local --kicks 2000 -t 1",
                            "--mode active --steps 10 --replicas 4 -t 1 --entropy 0.5 -m tsp20"}) {
    CAPTURE(flags);
    const std::string solve = std::string("solve set.npy -b 1 -f ") + flags;
    REQUIRE(sandbox.run(solve + " -o whole.ndjson").code == 0);
    const std::vector<std::string> whole = lines_of(sandbox.read("whole.ndjson"));
    REQUIRE(sandbox.run(solve + " -l 1000 -o limited.ndjson").code == 0);
    CHECK(lines_of(sandbox.read("limited.ndjson")) == whole);
    for (const char* limit : {"0.1", "0.3"}) {
      REQUIRE(sandbox.run(solve + " -o limited.ndjson -l " + limit).code == 0);
      const std::vector<std::string> limited = lines_of(sandbox.read("limited.ndjson"));
      REQUIRE(limited.size() == whole.size());
      for (size_t i = 0; i < limited.size(); ++i) {
        if (limited[i].find("\"status\":\"done\"") != std::string::npos) CHECK(limited[i] == whole[i]);
      }
    }
  }
}

TEST_CASE("a resumed output is a file of lines") {
  const Sandbox sandbox;
  sandbox.write("in.ndjson", mixed_lines());
  REQUIRE(mkfifo(sandbox.path("pipe.ndjson").c_str(), 0600) == 0);
  check_refused(sandbox, "in.ndjson --resume", "--resume: needs -o FILE");
  check_refused(sandbox, "in.ndjson --resume --format ndjson -o -", "--resume: needs -o FILE");
  check_refused(sandbox, "in.ndjson --resume --format ndjson -o /dev/stdout", "--resume: needs -o FILE");
  check_refused(sandbox, "in.ndjson --resume -o out.json", "--resume: goes on with lines");
  check_refused(sandbox, "in.ndjson --resume -o pipe.ndjson", "pipe.ndjson: is not a regular file");
  for (const char* text : {"x,y\n1,2\n", "a letter", "{\"id\":\"a\"}\n", "{\"index\":1,\"id\":\"a\"}\n", "\n",
                           "{\"index\":0,\"id\":\"a\"\n", "\x1f\x8b and more"}) {
    sandbox.write("mine.ndjson", text);
    check_refused(sandbox, "in.ndjson --resume -o mine.ndjson",
                  "mine.ndjson:1: expected an answer of solve --format ndjson", 3);
    CHECK(sandbox.read("mine.ndjson") == text);
  }
}

TEST_CASE("an output of lines grows as they become final, that of a document does not") {
  const Sandbox sandbox;
  REQUIRE(mkfifo(sandbox.path("pipe").c_str(), 0600) == 0);
  const pid_t child = sandbox.start("solve - --mode local -o out.ndjson <pipe");
  std::ofstream pipe(sandbox.path("pipe"));
  const auto wait_for = [&](size_t lines) {
    for (int i = 0; i < 1000; ++i) {
      if (sandbox.exists("out.ndjson") && lines_of(sandbox.read("out.ndjson")).size() == lines) return true;
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    }
    return false;
  };
  pipe << triangle("a") << std::flush;
  CHECK(wait_for(1));
  pipe << triangle("b") << triangle("c") << std::flush;
  CHECK(wait_for(3));
  CHECK(sandbox.run("solve - -f -o out.ndjson").code == 4);  // one writer at a time, of either kind
  CHECK(sandbox.run("solve " + kMap + " -f --format json -o out.ndjson").code == 4);
  REQUIRE(link(sandbox.path("out.ndjson").c_str(), sandbox.path("linked.ndjson").c_str()) == 0);
  const Answer linked = sandbox.run("solve " + kMap + " -f -o linked.ndjson");
  CHECK(linked.code == 4);
  CHECK(linked.err.find("linked.ndjson: another process is writing it") != std::string::npos);
  CHECK_FALSE(sandbox.exists(".linked.ndjson.tmp"));
  CHECK(lines_of(sandbox.read("out.ndjson")).size() == 3);
  REQUIRE(sandbox.run("generate tsp -n 30 -b 60 -o set.npy").code == 0);
  const pid_t slow = sandbox.start("solve set.npy --mode local --kicks 100000 -t 1 -o slow.ndjson");
  for (int i = 0; i < 1000 && (!sandbox.exists("slow.ndjson") || sandbox.read("slow.ndjson").empty()); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  kill(slow, SIGKILL);
  CHECK(sandbox.finish(slow).code == -1);
  CHECK(lines_of(sandbox.read("slow.ndjson")).size() < 60);
  kill(child, SIGKILL);
  pipe.close();
  CHECK(sandbox.finish(child).code == -1);
  CHECK(lines_of(sandbox.read("out.ndjson")).size() == 3);
  sandbox.write("none.ndjson", "");
  CHECK(sandbox.run("solve none.ndjson --ref words --resume -o out.ndjson").code == 2);
  CHECK(lines_of(sandbox.read("out.ndjson")).size() == 3);
  CHECK_FALSE(sandbox.exists(".out.ndjson.tmp"));
  CHECK(sandbox.run("solve " + kMap + " --ref words -o new.ndjson").code == 2);
  CHECK_FALSE(sandbox.exists("new.ndjson"));
}
