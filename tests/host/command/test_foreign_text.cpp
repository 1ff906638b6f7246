// SPDX-License-Identifier: Apache-2.0
// Text that others wrote (ids, names of files and models, metadata) in what a terminal shows: the log,
// tables, and the NAME of TSPLIB files. None of it begins a line, and none of it is obeyed.
#include <algorithm>

#include "tests/catch.h"
#include "tests/host/command/sandbox.h"

using namespace pointsman;

namespace {

std::string utf8(unsigned code) {
  const auto byte = [](unsigned value) { return std::string(1, static_cast<char>(value)); };
  if (code < 0x80) return byte(code);
  if (code < 0x800) return byte(0xC0 | code >> 6) + byte(0x80 | (code & 0x3F));
  return byte(0xE0 | code >> 12) + byte(0x80 | (code >> 6 & 0x3F)) + byte(0x80 | (code & 0x3F));
}

// All control characters, and all that set direction or separate lines.
std::vector<unsigned> refused_codes() {
  std::vector<unsigned> codes = {0x7F, 0x61C, 0x200E, 0x200F};
  const auto add = [&](unsigned first, unsigned last) {
    for (unsigned code = first; code <= last; ++code) codes.push_back(code);
  };
  add(0, 0x1F);
  add(0x80, 0x9F);
  add(0x2028, 0x202E);
  add(0x2066, 0x2069);
  return codes;
}

// As in a file's name: without NUL, and without a line end where the format has lines.
std::string all_but(const std::string& without) {
  std::string text;
  for (const unsigned code : refused_codes()) {
    if (without.find(static_cast<char>(code)) == std::string::npos || code > 0x7F) text += utf8(code);
  }
  return text;
}

const std::string kForged = "\npointsman: error: forged";
const std::string kEvil = "evil" + all_but(std::string(1, '\0')) + kForged;

std::string quoted(const std::string& text) { return "'" + text + "'"; }

// What a terminal would obey in a text of lines, and lines that foreign text began.
std::string found_in(const std::string& text) {
  std::string found;
  for (const unsigned code : refused_codes()) {
    if (code != '\n' && text.find(utf8(code)) != std::string::npos) found += std::to_string(code) + " ";
  }
  for (const std::string& line : lines_of(text)) {
    if (line.find("forged") == kForged.find("forged") - 1) found += "forged ";
  }
  return found;
}

// Runs it and looks at the log, and at an answer that is no JSON.
Answer run_clean(const Sandbox& sandbox, const std::string& arguments, const std::string& environment = "") {
  Answer answer = sandbox.run(arguments, environment);
  INFO(arguments.substr(0, 40));
  INFO(answer.err);
  CHECK(found_in(answer.err) == "");
  if (!answer.out.starts_with('{')) CHECK(found_in(answer.out) == "");  // JSON has escapes of its own
  return answer;
}

std::string as_id(const std::string& text) {
  const std::string in_quotes = json(text).dump();
  return in_quotes.substr(1, in_quotes.size() - 2);
}

}  // namespace

TEST_CASE("ids are printable in tables and in the log") {
  const Sandbox sandbox;
  std::string lines = triangle(as_id(kForged));
  for (const unsigned code : refused_codes()) lines += triangle(as_id("a" + utf8(code) + "z"));
  sandbox.write("ids.ndjson", lines);
  CHECK(run_clean(sandbox, "solve ids.ndjson -v --format text").code == 0);
  REQUIRE(sandbox.run("solve ids.ndjson -q --format json -o right.json").code == 0);
  CHECK(run_clean(sandbox, "verify ids.ndjson right.json -v --format text").code == 0);
  CHECK(run_clean(sandbox, "score ids.ndjson --solutions right.json -v --format text").code == 0);
  CHECK(run_clean(sandbox, "eval ids.ndjson --modes greedy -v --format text").code == 0);
  const size_t count = refused_codes().size() + 1;
  json wrong = json::parse(sandbox.read("right.json"));
  for (json& solution : wrong.at("solutions")) solution["cost"] = 1;
  sandbox.write("wrong.json", wrong.dump());
  const Answer refused = run_clean(sandbox, "verify ids.ndjson wrong.json --format text");
  CHECK(refused.code == 5);
  CHECK(lines_of(refused.err).size() == count);
  CHECK(lines_of(refused.out).size() == count);
  CHECK_THAT(refused.err, has_text(": a\\x1bz: claims 1, found 12"));
  CHECK_THAT(refused.out, has_text("\na\\xc2\\x9bz: WRONG: claims 1, found 12"));
  CHECK_THAT(refused.out, has_text("\\npointsman: error: forged: WRONG"));
  CHECK(run_clean(sandbox, "solve ids.ndjson --mode exact --format text").code == 2);
}

TEST_CASE("the name in a TSPLIB file is printable") {
  const Sandbox sandbox;
  sandbox.write("one.json", triangle(as_id(kEvil)));
  CHECK(run_clean(sandbox, "solve one.json -o one.tour").code == 0);
  CHECK(found_in(sandbox.read("one.tour")) == "");
  CHECK_THAT(sandbox.read("one.tour"), has_text("\\x1b"));
  sandbox.write("map.tsp", "NAME : a" + all_but(std::string("\0\r\n", 3)) +
                               "b\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
                               "1 0 0\n2 3 0\n3 3 4\nEOF\n");
  CHECK(run_clean(sandbox, "solve map.tsp -v --format tour").code == 0);
  CHECK(run_clean(sandbox, "solve map.tsp -v --format text").code == 0);
}

TEST_CASE("names of files, models and flags are printable in errors and tables") {
  const Sandbox sandbox;
  const std::string evil = quoted(kEvil);
  sandbox.write("ids.ndjson", triangle("a"));
  fs::copy_file(sandbox.path("models/tsp20.safetensors"), sandbox.path("models/" + kEvil + ".safetensors"));
  ModelConfig config;
  config.n = 20;
  config.has_critic = false;
  config.version = "0.1." + kEvil;
  write_model(sandbox.path("old.safetensors"), config, initial_parameters(config, 1));
  CHECK(run_clean(sandbox, "info --format text").code == 0);
  CHECK(run_clean(sandbox, "info --format text ./old.safetensors").code == 0);
  CHECK(run_clean(sandbox, "info --format text " + evil).code == 0);
  CHECK(run_clean(sandbox, "--models").code == 0);
  CHECK(run_clean(sandbox, "solve ids.ndjson --mode greedy -v --format text -m " + evil).code == 0);
  CHECK(run_clean(sandbox, "eval ids.ndjson --modes greedy -v --format text -m " + evil).code == 0);
  CHECK(run_clean(sandbox, "train tsp -n 5 --steps 1 -b 2 -v --format text -o " + evil).code == 0);
  CHECK(run_clean(sandbox, "generate tsp -n 5 -b 1 -v -o " + evil + ".npy").code == 0);
  for (const char* command :
       {"solve no", "verify no no", "eval no", "score no --solutions no", "info no",
        "train tsp -n 5 --init no", "generate tsp -n 5 --config no", "no", "solve --no",
        "solve ids.ndjson --mode no", "solve ids.ndjson --init no --format json",
        "solve ids.ndjson -o /nowhere/no", "generate no", "eval ids.ndjson --modes no"}) {
    std::string words = command;
    for (size_t at = 0; (at = words.find("no", at)) != std::string::npos; at += evil.size()) {
      if (words.compare(at, 7, "nowhere") == 0) {
        at += 7;
        continue;
      }
      words.replace(at, 2, quoted("x" + kEvil + ".tsp"));
    }
    CHECK(run_clean(sandbox, words).code != 0);
  }
}
