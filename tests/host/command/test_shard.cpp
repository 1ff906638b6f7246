// SPDX-License-Identifier: Apache-2.0
// `solve --shard I/N`: the outputs of all parts, joined, are those of one run.
#include <algorithm>
#include <string>

#include "tests/host/command/sandbox.h"

using namespace pointsman;

namespace {

constexpr int kLines = 11;

// Lines without ids, which draw by their row; two sizes, and one line that is no instance.
std::string lines_without_ids() {
  std::string lines;
  for (int i = 0; i < kLines; ++i) {
    const std::string shift = std::to_string(0.05 * i);
    lines += i == 5 ? "{\"no\":\"instance\"}\n"
                    : "{\"coordinates\":[[0,0],[1,0.2],[0.3," + shift + "],[0.5,0.9],[0.6,0.3],[0.7,0.8]" +
                          (i % 3 == 0 ? ",[0.1,0.7]" : "") + "]}\n";
  }
  return lines;
}

constexpr const char* kFlags = " --mode sample -n 3 -m tsp20 -q ";

// Of an .npy file: what stands behind the header.
std::string rows_of(const std::string& npy) {
  const size_t header = static_cast<unsigned char>(npy.at(8)) + 256 * static_cast<unsigned char>(npy.at(9));
  return npy.substr(10 + header);
}

void check_refused(const Sandbox& sandbox, const std::string& flags, const std::string& words) {
  CAPTURE(flags, words);
  const Answer answer = sandbox.run("solve -q " + flags);
  CHECK(answer.code == 2);
  CHECK(answer.err.find(words) != std::string::npos);
}

}  // namespace

TEST_CASE("the lines of all shards are those of one run, also resumed", "[cluster]") {
  const Sandbox sandbox;
  sandbox.write("a.ndjson", lines_without_ids());
  sandbox.write("b.ndjson", lines_without_ids());
  const std::string solve = std::string("solve a.ndjson b.ndjson") + kFlags;
  REQUIRE(sandbox.run(solve + "-o whole.ndjson").code == 3);
  const std::string whole = sandbox.read("whole.ndjson");
  REQUIRE(lines_of(whole).size() == 2 * kLines);
  for (const int of : {1, 2, 3, 7, 30}) {
    CAPTURE(of);
    std::string joined;
    for (int part = 1; part <= of; ++part) {
      const std::string shard = solve + "--shard " + std::to_string(part) + "/" + std::to_string(of);
      sandbox.run(shard + " -f -o part.ndjson");
      const std::string lines = sandbox.read("part.ndjson");
      const size_t count = lines_of(lines).size();
      CHECK(std::max<int>(2 * kLines / of, static_cast<int>(count)) <= 2 * kLines / of + 1);
      joined += lines;
      if (of != 3) continue;
      sandbox.write("part.ndjson", lines.substr(0, lines.size() / 2));
      sandbox.run(shard + " --resume -o part.ndjson");
      CHECK(sandbox.read("part.ndjson") == lines);
    }
    CHECK(joined == whole);
  }
}

TEST_CASE("the rows of all shards of an array are those of one run, and so are their gaps", "[cluster]") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 6 -b 10 -o set.npy").code == 0);
  const std::string solve = std::string("solve set.npy") + kFlags + "--ref 2 ";
  REQUIRE(sandbox.run(solve + "-o whole.npy").code == 0);
  std::string joined;
  for (int part = 1; part <= 4; ++part) {
    REQUIRE(sandbox.run(solve + "-f -o part.npy --shard " + std::to_string(part) + "/4").code == 0);
    joined += rows_of(sandbox.read("part.npy"));
  }
  CHECK(joined == rows_of(sandbox.read("whole.npy")));
}

TEST_CASE("a shard that means nothing is refused", "[cluster]") {
  const Sandbox sandbox;
  REQUIRE(sandbox.run("generate tsp -n 6 -b 3 -o set.npy").code == 0);
  for (const char* shard : {"0/2", "3/2", "1", "1/", "/2", "1/2/3", "-1/2", "1/0", "x/y", "1 /2"}) {
    check_refused(sandbox, "set.npy -o x.npy --shard '" + std::string(shard) + "'",
                  "--shard: expected I/N, 1/N to N/N, found \"" + std::string(shard) + "\"");
  }
  check_refused(sandbox, "set.npy --format json --shard 1/2", "needs --format ndjson, npy or npz");
  check_refused(sandbox, "- --format ndjson --shard 1/2", "- is not a regular file");
  check_refused(sandbox, "set.npy -o x.npy --shard 2/9", "is empty, the input has only 3 instances");
  check_refused(sandbox, "set.npy -o x.npy --init set.npy --shard 1/2", "is not for --init FILE");
  CHECK_FALSE(sandbox.exists("x.npy"));
}
