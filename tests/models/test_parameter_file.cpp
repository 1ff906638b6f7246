// SPDX-License-Identifier: Apache-2.0
// Model files: what is written is read back, and nothing malformed is taken for a model.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "models/safetensors.h"
#include "models/tools/crc32c.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

using namespace pointsman;
namespace fs = std::filesystem;

namespace {

ModelConfig small_config() {
  ModelConfig config;
  config.glimpses = 0;
  config.has_critic = false;
  return config;
}

std::string little_endian(uint64_t value) {
  std::string bytes(8, '\0');
  for (int i = 0; i < 8; ++i) bytes[i] = static_cast<char>(value >> (8 * i) & 0xff);
  return bytes;
}

// A small valid model file in its three parts.
struct Parts {
  std::string header, data;
  Parts() {
    const TemporaryFolder folder;
    const ModelConfig config = small_config();
    write_model(folder / "m", config, initial_parameters(config, 1));
    const std::string bytes = bytes_of(folder / "m");
    uint64_t length = 0;
    std::memcpy(&length, bytes.data(), 8);
    header = bytes.substr(8, length);
    data = bytes.substr(8 + length);
  }
  std::string joined() const { return little_endian(header.size()) + header + data; }

  // With the checksum of what it holds now.
  std::string sealed() const {
    std::string bytes = joined();
    const std::string key = "\"checksum\":\"";
    const size_t place = bytes.find(key) + key.size();
    bytes.replace(place, 8, 8, ' ');
    char sum[9];
    std::snprintf(sum, sizeof sum, "%08x", crc32c(bytes.data(), bytes.size()));
    return bytes.replace(place, 8, sum);
  }
};

const Parts& valid_parts() {
  static const Parts parts;
  return parts;
}

std::string complaint_about(const fs::path& path) {
  try {
    read_model(path);
  } catch (const ModelFileError& error) {
    return error.what();
  }
  return "accepted";
}

void check_words(const std::string& complaint, const std::string& words) {
  INFO(complaint << " should hold " << words);
  CHECK(complaint.find(words) != complaint.npos);
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t place = text.find(from);
  REQUIRE(place != text.npos);
  return text.replace(place, from.size(), to);
}

// By the program of that name.
std::string sha256sum(const std::filesystem::path& path) {
  FILE* const pipe = popen(("sha256sum '" + path.string() + "'").c_str(), "r");
  REQUIRE(pipe != nullptr);
  std::string digest(64, ' ');
  CHECK(std::fread(digest.data(), 1, digest.size(), pipe) == digest.size());
  pclose(pipe);
  return digest;
}

}  // namespace

TEST_CASE("the layout places every tensor once, the actor first") {
  for (const int glimpses : {0, 1, 3}) {
    for (const bool has_critic : {false, true}) {
      ModelConfig config = small_config();
      config.glimpses = glimpses;
      config.has_critic = has_critic;
      const ParameterLayout layout(config);
      size_t next = 0;
      for (const Tensor& tensor : layout.tensors) {
        CHECK(tensor.offset == next);
        size_t product = 1;
        for (const int extent : tensor.shape) product *= extent;
        CHECK(tensor.size == product);
        CHECK((tensor.name.rfind("actor.", 0) == 0) == (tensor.offset < layout.actor_size));
        next += tensor.size;
      }
      CHECK(layout.size == next);
      const size_t lstm = 2 * 512 * 128 + 512, attention = 2 * 128 * 128 + 128;
      CHECK(layout.actor_size == 256 + 128 + 2 * lstm + (glimpses > 0 ? 2 : 1) * attention);
      const size_t critic = 256 + lstm + attention + 128 * 128 + 128 + 128 + 1;
      CHECK(layout.size - layout.actor_size == (has_critic ? critic : 0));
    }
  }
}

TEST_CASE("initial parameters are uniform in +-0.08, a function of the seed") {
  ModelConfig config;
  const ParameterLayout layout(config);
  const std::vector<float> parameters = initial_parameters(config, 7);
  REQUIRE(parameters.size() == layout.size);
  CHECK(parameters[layout.critic.fc2_bias] == 0.0f);
  double sum = 0.0, squares = 0.0;
  for (const float value : parameters) {
    REQUIRE(std::abs(value) <= 0.08f);
    sum += value;
    squares += double{value} * value;
  }
  // Five standard errors; the deviations are b / sqrt(3) and b^2 sqrt(4 / 45).
  const double count = static_cast<double>(layout.size);
  CHECK(sum / count == Approx(0.0).margin(5 * 0.08 / std::sqrt(3 * count)));
  CHECK(squares / count == Approx(0.0064 / 3).margin(5 * 0.0064 * std::sqrt(4 / 45.0 / count)));
  CHECK((initial_parameters(config, 7) == parameters));
  CHECK((initial_parameters(config, 8) != parameters));
  config.has_critic = false;  // the actor does not depend on whether a critic follows
  const std::vector<float> actor = initial_parameters(config, 7);
  CHECK(std::equal(actor.begin(), actor.end(), parameters.begin()));
}

TEST_CASE("a model is read back as it was written") {
  const TemporaryFolder folder;
  ModelConfig config;
  config.problem = ProblemKind::kKnapsack;
  config.n = 50;
  config.capacity = 12.5;
  config.glimpses = 2;
  config.clip = 0.1;  // no short binary fraction
  config.centre_logits = false;
  config.learning_rate = 1.0 / 3.0;
  config.training_tours = std::numeric_limits<int64_t>::max();
  config.seed = std::numeric_limits<uint64_t>::max();
  config.version = "1.2.3 \"quoted\"";
  for (const bool has_critic : {true, false}) {
    config.has_critic = has_critic;
    const std::vector<float> parameters = initial_parameters(config, 3);
    write_model(folder / "knap50.safetensors", config, parameters);
    const Model model = read_model(folder / "knap50.safetensors");
    CHECK((model.parameters == parameters));
    CHECK(model.name == "knap50");
    CHECK(model.config.problem == config.problem);
    CHECK(model.config.n == config.n);
    CHECK(model.config.capacity == config.capacity);
    CHECK(model.config.hidden == kHidden);
    CHECK(model.config.glimpses == config.glimpses);
    CHECK(model.config.clip == config.clip);
    CHECK(model.config.centre_logits == config.centre_logits);
    CHECK(model.config.has_critic == has_critic);
    CHECK(model.config.learning_rate == config.learning_rate);
    CHECK(model.config.training_tours == config.training_tours);
    CHECK(model.config.seed == config.seed);
    CHECK(model.config.version == config.version);
    const std::string bytes = bytes_of(folder / "knap50.safetensors");
    CHECK(model.sha256 == sha256sum(folder / "knap50.safetensors"));
    CHECK((bytes.size() - parameters.size() * sizeof(float)) % 64 == 0);
  }
  CHECK(folder.entries() == 1);
}

TEST_CASE("tensors that another program made become the model that they were") {
  for (const Encoder encoder : {Encoder::kLstm, Encoder::kAttention}) {
    ModelConfig config = small_config();
    config.encoder = encoder;
    config.has_prior = encoder == Encoder::kAttention;
    const std::vector<float> parameters = initial_parameters(config, 3);
    const ParameterLayout layout(config);
    std::vector<NamedTensor> tensors;
    for (const Tensor& tensor : layout.tensors) {
      tensors.push_back(
          {tensor.name, {tensor.shape.begin(), tensor.shape.end()}, parameters.data() + tensor.offset});
    }
    std::reverse(tensors.begin(), tensors.end());
    const Model model = make_model(metadata_of(config), tensors, "x");
    CHECK(model.config == config);
    CHECK(model.parameters == parameters);
    tensors.pop_back();
    CHECK_THROWS_AS(make_model(metadata_of(config), tensors, "x"), ModelFileError);
  }
}

TEST_CASE("a file says after how many cities a network re-reads, where one can") {
  ModelConfig config = small_config();
  config.encoder = Encoder::kAttention;
  config.reread = 5;
  const ParameterLayout layout(config);
  const std::vector<float> parameters = initial_parameters(config, 3);
  std::vector<NamedTensor> tensors;
  for (const Tensor& tensor : layout.tensors) {
    tensors.push_back(
        {tensor.name, {tensor.shape.begin(), tensor.shape.end()}, parameters.data() + tensor.offset});
  }
  auto metadata = metadata_of(config);
  CHECK(make_model(metadata, tensors, "x").config == config);
  for (const char* number : {"0", "101", "five", "-1"}) {
    metadata["reread"] = number;
    CHECK_THROWS_AS(make_model(metadata, tensors, "x"), ModelFileError);
  }
  metadata["reread"] = "5";
  metadata["problem"] = "path";
  CHECK_THROWS_WITH(make_model(metadata, tensors, "x"), has_text("reread"));
  metadata = metadata_of(config);
  for (const char* key : {"encoder", "layers", "heads", "feed_forward"}) metadata.erase(key);
  CHECK_THROWS_WITH(make_model(metadata, tensors, "x"), has_text("reread"));
}

TEST_CASE("a prior that lacks the later numbers has weights of 0 for them") {
  ModelConfig config = small_config();
  config.problem = ProblemKind::kKnapsack;
  config.capacity = 12.5;
  config.has_prior = true;
  const std::vector<float> parameters = initial_parameters(config, 3);
  const ParameterLayout layout(config);
  REQUIRE(layout.priors == 3);
  std::vector<NamedTensor> tensors;
  for (const Tensor& tensor : layout.tensors) {
    tensors.push_back(
        {tensor.name, {tensor.shape.begin(), tensor.shape.end()}, parameters.data() + tensor.offset});
    if (tensor.offset == layout.prior) tensors.back().shape = {2};
  }
  std::vector<float> expected = parameters;
  expected[layout.prior + 2] = 0.0f;
  CHECK(make_model(metadata_of(config), tensors, "x").parameters == expected);
  for (NamedTensor& tensor : tensors) {
    if (tensor.name == "actor.prior.weight") tensor.shape = {4};
  }
  CHECK_THROWS_AS(make_model(metadata_of(config), tensors, "x"), ModelFileError);
}

TEST_CASE("tensors may lie in any order") {
  const TemporaryFolder folder;
  const ModelConfig config = small_config();
  const std::vector<float> parameters = initial_parameters(config, 1);
  // Swap the data of the first two tensors, [128, 2] and [128], and their offsets.
  Parts parts = valid_parts();
  parts.header = replaced(parts.header, "\"data_offsets\":[0,1024]", "\"data_offsets\":[512,1536]");
  parts.header = replaced(parts.header, "\"data_offsets\":[1024,1536]", "\"data_offsets\":[0,512]");
  parts.data = parts.data.substr(1024, 512) + parts.data.substr(0, 1024) + parts.data.substr(1536);
  write_bytes(folder / "m", parts.sealed());
  CHECK((read_model(folder / "m").parameters == parameters));
}

TEST_CASE("malformed headers are refused in words") {
  struct Case {
    const char* from;
    std::string to;
    const char* words;
  };
  const std::string start =
      "\"actor.decoder.start\":{\"dtype\":\"F32\",\"shape\":[128],\"data_offsets\":[1024,1536]}";
  const std::string metadata = "{\"__metadata__\":{";
  const Case cases[] = {
      // the JSON itself
      {"{", " ", "expected \"{\" at byte 8"},
      {"{", "[", "expected \"{\" at byte 8"},
      {"{", "\xef\xbb\xbf{", "expected \"{\" at byte 8"},
      {"\":", "\"", "expected JSON"},
      {"}}", "}}]", "header"},
      {"tsp", "ts\xff", "expected JSON"},
      {"tsp", "t\\u0000p", "expected tsp, knapsack, cvrp, atsp, path, tsptw or colouring, found \"t?p\""},
      {" ", std::string(1, '\0'), "NUL"},
      {"{", "{\"a\":" + std::string(100000, '['), "an object for \"a\", found an array"},
      // metadata
      {"\"__metadata__\"", "\"metadata\"", "dtype, shape or data_offsets"},
      {"{\"__metadata__\":", "{\"__metadata__\":7,\"x\":", "an object for \"__metadata__\", found a number"},
      {"\"n\":\"20\"", "\"n\":20", "a string for \"n\", found a number"},
      {"\"n\":\"20\"", "\"n\":null", "a string for \"n\", found null"},
      {"\"n\":\"20\"", "\"n\":true", "found a boolean"},
      {"\"n\":\"20\"", "\"n\":{}", "found an object"},
      {"\"n\":\"20\"", "\"n\":[]", "found an array"},
      {"\"n\":\"20\"", "\"n\":\"20\",\"n\":\"20\"", "duplicate key \"n\""},
      {"\"n\":\"20\",", "", "metadata \"n\": expected a value, found none"},
      {"\"n\":\"20\"", "\"n\":\"20\",\"note\":\"x\"", "metadata \"note\": expected no such key"},
      {"\"n\":\"20\"", "\"n\":\"20x\"", "metadata \"n\": expected a number from 1 to"},
      {"\"n\":\"20\"", "\"n\":\"0\"", "expected a number from 1 to"},
      {"\"n\":\"20\"", "\"n\":\"99999999999999999999\"", "expected a number from 1 to"},
      {"\"n\":\"20\"", "\"n\":\"\"", "expected a number from 1 to"},
      {"\"clip\":\"10\"", "\"clip\":\"nan\"", "metadata \"clip\": expected a number"},
      {"\"clip\":\"10\"", "\"clip\":\"1e400\"", "metadata \"clip\": expected a number"},
      {"\"clip\":\"10\"", "\"clip\":\"0\"", "metadata \"clip\": expected a number"},
      {"\"seed\":\"1234\"", "\"seed\":\"-1\"", "metadata \"seed\": expected a number"},
      {"\"hidden\":\"128\"", "\"hidden\":\"256\"", "expected 128, found \"256\", which is not supported"},
      {"\"glimpses\":\"0\"", "\"glimpses\":\"5\"", "expected a number from 0 to 4"},
      {"\"raw\"", "\"projected\"", "\"projected\", which is not supported"},
      {"\"attention_bias\":\"false\"", "\"attention_bias\":\"true\"", "\"true\", which is not supported"},
      {"\"centre_logits\":\"true\"", "\"centre_logits\":\"1\"", "expected true or false"},
      {"\"tsp\"", "\"vrp\"", "expected tsp, knapsack, cvrp, atsp, path, tsptw or colouring, found \"vrp\""},
      {"\"tsp\"", "\"knapsack\"", "metadata \"capacity\": expected a number"},
      // tensors
      {"\"F32\"", "\"F16\"", "expected dtype F32, found \"F16\""},
      {"\"F32\"", "32", "a string as dtype, found a number"},
      {"\"F32\"", "[]", "an array"},
      {"\"dtype\":\"F32\",", "", "expected dtype, shape and data_offsets"},
      {"\"dtype\":\"F32\"", "\"dtype\":\"F32\",\"dtype\":\"F32\"", "duplicate key \"dtype\""},
      {"\"dtype\":\"F32\"", "\"type\":\"F32\"", "found key \"type\""},
      {"[128,2]", "[2,128]", "expected shape [128, 2], found shape [2, 128]"},
      {"[128,2]", "[256]", "expected shape [128, 2], found shape [256]"},
      {"[128,2]", "[128,-2]", "found a negative number"},
      {"[128,2]", "[128,2.0]", "found a fraction"},
      {"[128,2]", "[128,1e999]", "expected JSON"},
      {"[128,2]", "[128,\"2\"]", "found a string"},
      {"[128,2]", "[[128,2]]", "found an array"},
      {"[128,2]", "[128,2,1,1,1]", "a rank of at most 4"},
      {"[128,2]", "[4294967296,4294967296,1]", "fits in 64 bits"},
      {"[128,2]", "[18446744073709551615,18446744073709551615]", "fits in 64 bits"},
      {"[128,2]", "[4611686018427387968,2]", "fits in 64 bits"},  // times 4 wraps to 512
      {"[0,1024]", "[0]", "two data_offsets, found 1"},
      {"[0,1024]", "[0,1024,2048]", "two data_offsets, found more"},
      {"[0,1024]", "[0,1020]", "data_offsets 1024 bytes apart"},
      {"[0,1024]", "[1024,0]", "data_offsets 1024 bytes apart"},
      {"[0,1024]", "[18446744073709551600,1008]", "data_offsets 1024 bytes apart"},
      {"[0,1024]", "[8,1032]", "found a hole before 8"},
      {"[1024,1536]", "[1020,1532]", "found an overlap"},
      {"[1024,1536]", "[1028,1540]", "found"},
      {"actor.decoder.start", "actor.decoder.stop", "\"actor.decoder.stop\": expected no such tensor"},
      {"actor.decoder.start", "actor.embedding.weight", "duplicate key \"actor.embedding.weight\""},
      {"actor.decoder.start", "", "a name of 1 to 64 characters"},
      {"\"actor.decoder.start\"", "\"" + std::string(65, 'x') + "\"", "a name of 1 to 64 characters"},
      {"actor.decoder.start", "critic.decoder.start", "\"critic.decoder.start\": expected no such tensor"},
      {"actor.decoder.start", "actor.glimpse.v", "\"actor.glimpse.v\": expected no such tensor"},
      {"actor.decoder.start", "evil\\u001b[2J", "\"evil?[2J\": expected no such tensor"},
  };
  const TemporaryFolder folder;
  REQUIRE(valid_parts().header.find(start) != std::string::npos);
  REQUIRE(valid_parts().header.find(metadata) == 0);
  for (const Case& test : cases) {
    Parts parts = valid_parts();
    parts.header = replaced(parts.header, test.from, test.to);
    write_bytes(folder / "bad.safetensors", parts.joined());
    INFO(test.from << " -> " << test.to.substr(0, 100));
    const std::string complaint = complaint_about(folder / "bad.safetensors");
    CHECK(complaint.find((folder / "bad.safetensors").string() + ": ") == 0);
    check_words(complaint, test.words);
  }
  Parts parts = valid_parts();  // a hole: the second tensor and its bytes are left out of the header only
  parts.header = replaced(parts.header, start + ",", "");
  write_bytes(folder / "bad.safetensors", parts.joined());
  check_words(complaint_about(folder / "bad.safetensors"), "found a hole before 1536");
}

TEST_CASE("malformed files are refused in words") {
  const TemporaryFolder folder;
  const Parts& valid = valid_parts();
  const auto complaint = [&](const std::string& bytes) {
    write_bytes(folder / "bad", bytes);
    return complaint_about(folder / "bad");
  };
  check_words(complaint(""), "a safetensors header, found 0 bytes");
  check_words(complaint("1234567"), "a safetensors header, found 7 bytes");
  check_words(complaint(little_endian(0)), "expected \"{\" at byte 8");
  check_words(complaint(little_endian(2) + "{}"), "metadata \"problem\": expected a value, found none");
  check_words(complaint(little_endian(3) + "{}"), "expected 3 bytes, found 2");
  check_words(complaint(little_endian((1 << 20) + 1) + valid.header), "header length: expected at most");
  check_words(complaint(little_endian(~uint64_t{0}) + valid.header), "header length: expected at most");
  check_words(complaint(valid.joined() + "x"), "data: expected");
  check_words(complaint(valid.joined().substr(0, valid.joined().size() - 1)), "data: expected");
  check_words(complaint_about(folder / "none"), "a readable file");
  check_words(complaint_about(folder.path()), "a readable file");
  check_words(complaint_about("/dev/zero"), "a readable file");

  std::string header = "{";
  for (int i = 0; i < 300; ++i) {
    header += "\"t" + std::to_string(i) + "\":{\"dtype\":\"F32\",\"shape\":[0],\"data_offsets\":[0,0]},";
  }
  header.back() = '}';
  check_words(complaint(little_endian(header.size()) + header), "at most 256 tensors");
}

TEST_CASE("a look at a file tells what its header claims, whatever its tensors are") {
  const TemporaryFolder folder;
  const Parts& valid = valid_parts();
  const auto claim = [&](const std::string& bytes) {
    write_bytes(folder / "m", bytes);
    return peek_model(folder / "m");
  };
  const auto claimed = claim(valid.joined().substr(0, 8 + valid.header.size()));
  REQUIRE(claimed);
  CHECK(claimed->problem == ProblemKind::kTsp);
  CHECK(claimed->n == 20);
  CHECK_FALSE(claim("not a model"));
  CHECK_FALSE(claim(valid.joined().substr(0, 100)));
  Parts parts = valid;
  parts.header = replaced(parts.header, "\"n\":\"20\"", "\"n\":\"x\"");
  CHECK_FALSE(claim(parts.joined()));
  CHECK_FALSE(peek_model(folder / "none"));
}

TEST_CASE("a weight that is not finite is refused in every tensor") {
  const TemporaryFolder folder;
  const ModelConfig config = small_config();
  const float bad_values[] = {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity(),
                              -std::numeric_limits<float>::infinity()};
  int turn = 0;
  for (const Tensor& tensor : ParameterLayout(config).tensors) {
    Parts parts = valid_parts();
    const size_t last = tensor.offset + tensor.size - 1;
    std::memcpy(parts.data.data() + last * sizeof(float), &bad_values[turn++ % 3], sizeof(float));
    write_bytes(folder / "bad", parts.joined());
    check_words(complaint_about(folder / "bad"),
                "\"" + tensor.name + "\" element " + std::to_string(tensor.size - 1));
  }
}

TEST_CASE("the critic is there wholly or not at all") {
  const TemporaryFolder folder;
  ModelConfig config = small_config();
  config.has_critic = true;
  write_model(folder / "m", config, initial_parameters(config, 1));
  std::string bytes = bytes_of(folder / "m");
  const std::string last = "\"critic.head.fc2.bias\"";
  const size_t place = bytes.find(last);
  REQUIRE(place != bytes.npos);
  const size_t end = bytes.find('}', place);
  bytes.replace(place - 1, end + 2 - place, std::string(end + 1 - place, ' ') + " ");
  bytes.resize(bytes.size() - 4);
  write_bytes(folder / "m", bytes);
  check_words(complaint_about(folder / "m"), "\"critic.head.fc2.bias\": expected this tensor, found none");
}

TEST_CASE("every truncation is refused") {
  const TemporaryFolder folder;
  const Parts& valid = valid_parts();
  const fs::path path = folder / "m";
  write_bytes(path, valid.joined());
  const size_t start = 8 + valid.header.size();
  for (const size_t size : {start + valid.data.size() - 1, start + valid.data.size() / 2, start + 1}) {
    fs::resize_file(path, size);
    CHECK(complaint_about(path) != "accepted");
  }
  for (size_t size = start; size-- > 0;) {
    fs::resize_file(path, size);
    if (complaint_about(path) == "accepted") FAIL("truncated to " << size);
  }
}

TEST_CASE("every changed byte of a header is refused or harmless") {
  // Harmless: the tensors are still where they were, and every other change is for the layout to find.
  ModelConfig config = small_config();
  const std::vector<Tensor> tensors{{"a", {2, 3}, 0, 6}, {"b", {4}, 6, 4}};
  const std::string header = make_safetensors_header({{"k", "v"}}, tensors).substr(8);
  int accepted = 0;
  for (size_t i = 0; i < header.size(); ++i) {
    for (int byte = 0; byte < 256; ++byte) {
      std::string changed = header;
      changed[i] = static_cast<char>(byte);
      try {
        const SafetensorsHeader parsed = parse_safetensors_header(changed, 40, "m");
        ++accepted;
        const bool same = parsed.tensors.size() == 2 && parsed.tensors[0].begin == 0 &&
                          parsed.tensors[0].end == 24 && parsed.tensors[1].begin == 24 &&
                          parsed.tensors[1].end == 40 && parsed.metadata.size() <= 1;
        if (!same) FAIL("byte " << i << " changed to " << byte);
      } catch (const ModelFileError&) {
      }
    }
  }
  CHECK(accepted >= static_cast<int>(header.size()));  // among them the unchanged ones
}

TEST_CASE("CRC32C is that of RFC 3720, in one piece or several") {
  CHECK(crc32c("123456789", 9) == 0xE3069283);
  CHECK(crc32c(std::string(32, '\0').data(), 32) == 0x8A9136AA);
  CHECK(crc32c(std::string(32, '\xff').data(), 32) == 0x62A8AB43);
  const std::string text = bytes_of(POINTSMAN_SOURCE_DIR "/LICENSE");
  for (const size_t cut : {0, 1, 7, 8, 9, 100}) {
    const uint32_t first = crc32c(text.data(), cut);
    CHECK(crc32c(text.data() + cut, text.size() - cut, first) == crc32c(text.data(), text.size()));
  }
}

TEST_CASE("a flipped bit of a model file is refused: all of its header, and bits of its tensors") {
  const TemporaryFolder folder;
  const Parts& valid = valid_parts();
  const fs::path path = folder / "m";
  const std::string original = valid.joined();
  write_bytes(path, original);
  std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
  const auto put = [&](size_t i, char byte) {
    file.seekp(static_cast<std::streamoff>(i));
    file.put(byte).flush();
  };
  const auto flip = [&](size_t bit) {
    put(bit / 8, static_cast<char>(original[bit / 8] ^ (1 << bit % 8)));
    if (complaint_about(path) == "accepted") FAIL("bit " << bit << " of " << 8 * original.size());
    put(bit / 8, original[bit / 8]);
  };
  const size_t header_bits = 8 * (8 + valid.header.size()), tensor_bits = 8 * valid.data.size();
  for (size_t bit = 0; bit < header_bits; ++bit) flip(bit);
  std::mt19937_64 random(1);
  for (int i = 0; i < 500; ++i) flip(header_bits + random() % tensor_bits);
  CHECK(complaint_about(path) == "accepted");
}

TEST_CASE("only files older than version 0.2 may lack a checksum") {
  const TemporaryFolder folder;
  Parts parts = valid_parts();
  const size_t begin = parts.header.find("\"checksum\"");
  parts.header.erase(begin, parts.header.find(',', begin) + 1 - begin);
  const std::string none = "\"version\":\"\"";
  for (const std::string version : {"0.1.0", "0.1.7", "", "0.2.0", "0.10.0", "1.0.0"}) {
    CAPTURE(version);
    Parts older = parts;
    older.header = replaced(parts.header, none, "\"version\":\"" + version + "\"");
    write_bytes(folder / "m", older.joined());
    if (version.starts_with("0.1.")) {
      CHECK_FALSE(read_model(folder / "m").has_checksum);
    } else {
      check_words(complaint_about(folder / "m"), "metadata \"checksum\": expected one");
    }
  }
  write_bytes(folder / "m", valid_parts().joined());
  CHECK(read_model(folder / "m").has_checksum);
  Parts wrong = valid_parts();
  wrong.data[5] = static_cast<char>(wrong.data[5] ^ 1);
  write_bytes(folder / "m", wrong.joined());
  check_words(complaint_about(folder / "m"), ": the file is damaged");
  write_bytes(folder / "m", wrong.sealed());
  CHECK(complaint_about(folder / "m") == "accepted");
}

TEST_CASE("shape products are checked over the grid of dangerous extents") {
  const uint64_t extents[] = {0, 1, uint64_t{1} << 31, uint64_t{1} << 32, ~uint64_t{0} >> 1, ~uint64_t{0}};
  for (int code = 0; code < 6 * 6 * 6 * 6; ++code) {
    uint64_t chosen[4];
    for (int axis = 0, rest = code; axis < 4; ++axis, rest /= 6) chosen[axis] = extents[rest % 6];
    std::string shape;
    for (const uint64_t extent : chosen)
      shape.append(shape.empty() ? "" : ",").append(std::to_string(extent));
    const std::string header = "{\"a\":{\"dtype\":\"F32\",\"shape\":[" + shape + "],\"data_offsets\":[0,4]}}";
    bool accepted = true;
    try {
      parse_safetensors_header(header, 4, "m");
    } catch (const ModelFileError&) {
      accepted = false;
    }
    const bool all_one = code == 1 + 6 + 36 + 216;
    if (accepted != all_one) FAIL(shape);
  }
}

TEST_CASE("nothing is written that would not be read") {
  const TemporaryFolder folder;
  ModelConfig config = small_config();
  std::vector<float> parameters = initial_parameters(config, 1);
  CHECK_THROWS_AS(write_model(folder / "m", config, {}), ModelFileError);
  config.glimpses = 9;
  CHECK_THROWS_AS(write_model(folder / "m", config, parameters), ModelFileError);
  config.glimpses = 0;
  parameters[5] = std::numeric_limits<float>::infinity();
  CHECK_THROWS_AS(write_model(folder / "m", config, parameters), ModelFileError);
  CHECK(folder.entries() == 0);
}
