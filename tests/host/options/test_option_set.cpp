// SPDX-License-Identifier: Apache-2.0
// The table of options: what a value may be, how a front end sets it, and that its text reads back.
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "host/options/option_set.h"
#include "host/options/solve_options.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

enum class Colour { kRed, kBlue };

struct Variables {
  bool force = false;
  std::optional<bool> shuffle, improve;
  int count = 7;
  uint64_t seed = 1;
  std::optional<int64_t> samples;
  float rate = 0.5f;
  double limit = 0;
  std::string path;
  std::optional<Colour> colour;
  std::vector<std::string> files = {"default"};
};

void declare(OptionSet& options, Variables& v) {
  options.add("FILE", v.files, "files");
  options.add("-f,--force", v.force, "a switch");
  options.add("--shuffle,--no-shuffle", v.shuffle, "an optional switch");
  options.add_on_off("--improve", v.improve, "on or off");
  options.add("-c,--count", v.count, "a number").range(1, 9);
  options.add("--seed", v.seed, "no range");
  options.add("--samples", v.samples, int64_t{0}, "0 means none").range(int64_t{0}, int64_t{1} << 31);
  options.add("--first-rate", v.rate, "a float").range(1e-3, 1.0);
  options.add("--limit", v.limit, "a double");
  options.add("--path", v.path, "text").type_name(kFileValue);
  options.add_words("--colour", v.colour,
                    OptionSet::Words<Colour>{{"red", Colour::kRed}, {"blue", Colour::kBlue}}, "a word");
}

std::string refusal(OptionSet& options, const std::string& name, const OptionValue& value) {
  try {
    options.set(name, value);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "";
}

}  // namespace

TEST_CASE("options: a value of any front end reaches its variable") {
  Variables v;
  OptionSet options;
  declare(options, v);
  CHECK_FALSE(options.is_given("--count"));
  options.set("count", int64_t{3});
  options.set("samples", std::string("64"));
  options.set("first_rate", int64_t{1});
  options.set("improve", true);
  options.set("shuffle", int64_t{0});
  options.set("force", std::string("on"));
  options.set("seed", std::numeric_limits<uint64_t>::max());
  options.set("colour", std::string("blue"));
  CHECK(options.is_given("--count"));
  CHECK(options.is_typed("-c"));
  CHECK(v.count == 3);
  CHECK(v.samples == 64);
  CHECK(v.rate == 1.0f);
  CHECK(v.improve == true);
  CHECK(v.shuffle == false);
  CHECK(v.force);
  CHECK(v.seed == std::numeric_limits<uint64_t>::max());
  CHECK(v.colour == Colour::kBlue);
  options.set("samples", int64_t{0});
  CHECK_FALSE(v.samples.has_value());
  options.find("FILE")->set_text("a");
  options.find("FILE")->set_text("b");
  CHECK(v.files == std::vector<std::string>{"a", "b"});  // instead of the default
}

TEST_CASE("options: what is none of the type, range or words is refused, and nothing changes") {
  Variables v;
  OptionSet options;
  declare(options, v);
  CHECK(refusal(options, "count", int64_t{10}) ==
        "--count: expected a whole number from 1 to 9, found \"10\"");
  CHECK(refusal(options, "count", 2.5) == "--count: expected a whole number from 1 to 9, found \"2.5\"");
  CHECK(refusal(options, "count", true) == "--count: expected a whole number from 1 to 9, found \"true\"");
  CHECK(refusal(options, "count", std::string("3x")) ==
        "--count: expected a whole number from 1 to 9, found \"3x\"");
  CHECK(refusal(options, "seed", int64_t{-1}) ==
        "--seed: expected a whole number from 0 to 2^64 - 1, found \"-1\"");
  CHECK(refusal(options, "limit", (int64_t{1} << 60) + 1) ==
        "--limit: expected a number, found \"1152921504606846977\"");  // no double holds it
  CHECK(refusal(options, "first_rate", std::numeric_limits<double>::quiet_NaN()) ==
        "--first-rate: expected a number from 0.001 to 1, found \"nan\"");
  CHECK(refusal(options, "improve", int64_t{2}) == "--improve: expected one of on, off, found \"2\"");
  CHECK(refusal(options, "colour", std::string("bleu")) ==
        "--colour: expected one of red, blue, found \"bleu\"; did you mean blue?");
  CHECK(refusal(options, "cuont", int64_t{1}) == "\"cuont\": no such option; did you mean count?");
  CHECK(refusal(options, "first-rate", 0.5) == "\"first-rate\": no such option; did you mean first_rate?");
  CHECK(v.count == 7);
  CHECK(v.rate == 0.5f);
  CHECK_FALSE(options.is_given("--count"));
}

TEST_CASE("options: the record says what help and completions need") {
  Variables v;
  OptionSet options;
  declare(options, v);
  const OptionRow& count = options.find("--count")->row();
  CHECK(count.names == std::vector<std::string>{"-c", "--count"});
  CHECK(count.value == "INT");
  CHECK(count.range == "1..9");
  CHECK(count.default_value == "7");
  CHECK(count.environment == "POINTSMAN_COUNT");
  CHECK(options.find("first_rate")->row().default_value == "0.5");
  CHECK(options.find("samples")->row().default_value == "0");
  CHECK(options.find("colour")->row().value_text() == "red|blue");
  CHECK(options.find("--no-shuffle") == options.find("--shuffle"));
  CHECK(options.find("FILE")->row().is_positional);
}

TEST_CASE("options: the engine's options survive as text") {
  SolveOptions solve;
  OptionSet options;
  add_engine_options(options, solve);
  solve.mode = Mode::kActive;
  solve.samples = 77;
  solve.policy.temperature = 0.1f;
  solve.policy.clip = 1.0f / 3;
  solve.shuffle = false;
  solve.learned = Learned::kAttention;
  solve.learning_rate = 3e-7f;
  solve.entropy = 0.1;
  SolveOptions read;
  OptionSet others;
  add_engine_options(others, read);
  for (size_t i = 0; i < options.all().size(); ++i) {
    const std::string text = options.all()[i].text();
    if (!text.empty()) others.all()[i].set_text(text);
  }
  CHECK(read.mode == solve.mode);
  CHECK(read.samples == solve.samples);
  CHECK(read.policy.temperature == solve.policy.temperature);
  CHECK(read.policy.clip == solve.policy.clip);
  CHECK(read.shuffle == false);
  CHECK_FALSE(read.improve.has_value());
  CHECK(read.learned == solve.learned);
  CHECK(read.learning_rate == solve.learning_rate);
  CHECK(read.entropy == solve.entropy);
  CHECK_FALSE(read.kicks.has_value());
}

TEST_CASE("options: messages of the libraries name no flags") {
  CHECK(in_library_names("--first-sample: is not for --mode local") == "first_sample: is not for mode local");
  CHECK(in_library_names("a--b (--kicks) -- --5 x.npy") == "a--b (kicks) -- --5 x.npy");
}
