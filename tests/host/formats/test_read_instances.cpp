// SPDX-License-Identifier: Apache-2.0
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <nlohmann/json.hpp>
#include <set>
#include <tuple>

#include "engine/problem/problem.h"
#include "host/formats/formats.h"
#include "host/formats/npy_array.h"
#include "host/formats/read_files.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

const std::string kData = std::string(POINTSMAN_SOURCE_DIR) + "/tests/data/";

// A file that goes away with the test.
class TemporaryFile {
 public:
  TemporaryFile(const std::string& suffix, const std::string& bytes)
      : path_("/tmp/pointsman_test_" + std::to_string(::getpid()) + suffix) {
    std::ofstream(path_, std::ios::binary) << bytes;
  }
  ~TemporaryFile() { std::remove(path_.c_str()); }
  const std::string& path() const { return path_; }

 private:
  std::string path_;
};

Instance only(const InstanceFile& file) {
  REQUIRE(file.instances.size() == 1);
  return file.instances[0];
}

Instance square() {
  Instance instance;
  instance.values = {0, 0, 1, 0, 1, 1, 0, 1};
  return instance;
}

Instance sack() {
  Instance instance;
  instance.problem = ProblemKind::kKnapsack;
  instance.capacity = 3;
  instance.values = {1, 10, 2, 20, 3, 25};
  return instance;
}

// What an InputError says; "no error" without one. (The matchers have other names in Catch2 2 and 3.)
template <typename Call>
std::string error_of(const Call& call) {
  try {
    call();
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

bool contains(const std::string& text, const std::string& words) {
  UNSCOPED_INFO(text);
  return text.find(words) != std::string::npos;
}

template <typename T>
std::string npy_of(const std::string& type, std::vector<size_t> shape, std::initializer_list<T> values) {
  std::string out = npy_header(type, shape);
  for (const T value : values) append_bytes(out, value);
  return out;
}

}  // namespace

TEST_CASE("TSPLIB: both ways to write a key, every number form, CRLF, any order of the rows, a missing EOF") {
  const std::string bytes =
      "NAME: five\r\nTYPE : TSP\r\nCOMMENT : any: text\r\nCOMMENT : again\r\nDIMENSION:5\r\n"
      "EDGE_WEIGHT_TYPE : CEIL_2D\r\n\r\nNODE_COORD_SECTION :\r\n"
      " 3  1.43775e+02 -7\r\n1 +1 2.5\r\n2\t.5 1E2\r\n5 0 0\r\n4 0 0\r\n";
  const InstanceFile file = parse_instances(bytes, "five.tsp");
  const Instance instance = only(file);
  CHECK(instance.id == "five");
  CHECK_FALSE(instance.has_id);
  CHECK(instance.metric == Metric::kCeil2d);
  CHECK(instance.values == std::vector<double>{1, 2.5, 0.5, 100, 143.775, -7, 0, 0, 0, 0});
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0] == "five.tsp:13: EOF is missing; was the file cut short?");
}

TEST_CASE("TSPLIB: a keyword that is not known is told, not refused") {
  const InstanceFile file = parse_instances(
      "DIMENSION: 1\nBEST_KNOWN : 7\nEDGE_WEIGHT_TYPE: ATT\nNODE_COORD_SECTION\n1 0 0\nEOF\n", "x/one.tsp");
  CHECK(only(file).id == "one");
  REQUIRE(file.warnings.size() == 1);
  CHECK(file.warnings[0] == "x/one.tsp:2: ignoring the unknown keyword \"BEST_KNOWN\"");
}

TEST_CASE("the project's maps read, and their stored tours have the stated length") {
  const std::pair<const char*, double> maps[] = {{"capitals", 20428}, {"swiss_stations", 1353}};
  for (const auto& [name, optimum] : maps) {
    const InstanceFile file = read_instances(kData + name + ".tsp");
    CHECK(file.warnings.empty());
    CHECK(only(file).id == name);
    const std::vector<double> reference = read_reference(kData + name + ".opt.tour", file.instances);
    CHECK(reference == std::vector<double>{optimum});
  }
  CHECK(only(read_instances(kData + "capitals.tsp")).metric == Metric::kGeo);
}

TEST_CASE("the project's KnapSack text reads, profit comes first in the file, weight first in the instance") {
  const Instance instance = only(read_instances(kData + "knapsack50.txt"));
  CHECK(instance.problem == ProblemKind::kKnapsack);
  CHECK(instance.n() == 50);
  CHECK(instance.capacity == 12.5);
  CHECK(instance.first(0) == 0.896);
  CHECK(instance.second(0) == 0.529);
}

TEST_CASE("npy as numpy wrote it") {
  const InstanceFile file = read_instances(kData + "numpy_tsp.npy");
  REQUIRE(file.instances.size() == 2);
  CHECK(file.instances[0].values == std::vector<double>{0.1, 0.2, 1.0 / 3, 1, 2.5, -7e-3});
  CHECK(file.instances[1].values == std::vector<double>{0, 1, 5, 6.25, 1e-9, 3e8});
  CHECK(file.instances[1].id.empty());
}

TEST_CASE("npy: one instance, float32, versions 2 and 3, KnapSack columns") {
  const std::string plain = npy_of<float>("<f4", {2, 2}, {0.1f, 0.2f, 0.3f, 0.4f});
  const Instance instance = only(parse_instances(plain, "a.npy"));
  CHECK(instance.values == std::vector<double>{0.1f, 0.2f, 0.3f, 0.4f});
  for (const char version : {'\2', '\3'}) {
    std::string wide = plain.substr(0, 6) + version + '\0';
    append_bytes(wide, static_cast<uint32_t>(plain[8]));
    CHECK(only(parse_instances(wide + plain.substr(10), "a.npy")).values == instance.values);
  }
  ReadOptions options;
  options.problem = ProblemKind::kKnapsack;
  options.capacity = 0.25;
  const Instance knapsack = only(parse_instances(plain, "a.npy", options));
  CHECK(knapsack.problem == ProblemKind::kKnapsack);
  CHECK(knapsack.capacity == 0.25);
}

TEST_CASE("an integer of a KnapSack that no double holds is refused, in every format") {
  const std::string lost = "expected an integer that a double holds exactly, found 9007199254740993";
  const auto json = [](const std::string& capacity, const std::string& weight) {
    return "{\"problem\":\"knapsack\",\n\"capacity\":" + capacity + ",\"weights\":[1, " + weight +
           "],\"values\":[1,1]}";
  };
  const auto refusal = [](const std::string& bytes, const char* file) {
    ReadOptions options;
    options.problem = ProblemKind::kKnapsack;
    options.capacity = 5;
    return error_of([&] { parse_instances(bytes, file, options); });
  };
  CHECK(refusal(json("9007199254740993", "1"), "a.json") == "a.json:2:12: capacity: " + lost);
  CHECK(refusal(json("5", "9007199254740993"), "a.json") == "a.json:2:28: weights[1]: " + lost);
  CHECK(refusal("2 9007199254740992\n1 1\n9007199254740993 7\n", "a.kp") == "a.kp:3: " + lost);
  CHECK(refusal("2 +09007199254740993\n", "a.kp").find("found +09007199254740993") != std::string::npos);
  CHECK(refusal("1 123456789012345678901234567890\n1 1\n", "a.kp").find("a.kp:1: expected an integer") == 0);
  const std::string whole = npy_of<int64_t>("<i8", {1, 2}, {1, 9007199254740993});
  CHECK(refusal(whole, "a.npy") == "a.npy: [0, 1]: " + lost);
  const std::string npz = zip_stored({{"weights.npy", npy_of<uint64_t>("<u8", {1}, {3})},
                                      {"values.npy", npy_of<uint64_t>("<u8", {1}, {9007199254740993})}});
  CHECK(refusal(npz, "a.npz") == "a.npz: values: [0]: " + lost);
  // What a double holds, and what is written with a point or an exponent, is read.
  for (const char* held : {"9007199254740992", "9007199254740994", "1152921504606846976",
                           "9007199254740993.0", "9007199254740993e0", "1e23", "0"}) {
    INFO(held);
    CHECK(refusal(json(held, held), "a.json") == "no error");
    CHECK(refusal("1 " + std::string(held) + "\n1 " + held + "\n", "a.kp") == "no error");
  }
  // Coordinates and distances, of which such a number may mean no road, are rounded.
  CHECK(error_of([&] { parse_instances(whole, "a.npy"); }) == "no error");
}

TEST_CASE("npz as numpy wrote it, stored and deflated") {
  const InstanceFile tsp = read_instances(kData + "numpy_tsp.npz");
  REQUIRE(tsp.instances.size() == 2);
  CHECK(tsp.instances[0].values == std::vector<double>{0.1f, 0.2f, 1.0f / 3, 1, 2.5, -7e-3f});
  CHECK(tsp.instances[1].id == "Z\xC3\xBCrich");
  CHECK(tsp.instances[1].has_id);
  const InstanceFile knapsack = read_instances(kData + "numpy_knapsack.npz");
  REQUIRE(knapsack.instances.size() == 2);
  CHECK(knapsack.instances[1].values == std::vector<double>{0, 3, 25, 4, 1e-9 * 1e-9, 5});
  CHECK(knapsack.instances[1].capacity == 2.5);
  CHECK(knapsack.instances[1].id == "8");
}

TEST_CASE("npz: elements on both sides of a piece's end") {
  std::vector<double> numbers(30000);  // 240 kB
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<double>(i);
  const std::string column = npy_header("<f8", {3, 10000}) +
                             std::string(reinterpret_cast<const char*>(numbers.data()), 8 * numbers.size());
  std::string ids = npy_header("|S65000", {3});  // longer than most of a piece
  for (const char letter : {'a', 'b', 'c'}) ids.append(64999, letter) += '\0';
  ReadOptions options;
  options.capacity = 1.0;
  const std::string zip = zip_stored({{"weights.npy", column}, {"values.npy", column}, {"ids.npy", ids}});
  const InstanceBatch read = parse_instances(zip, "a.npz", options).instances;
  REQUIRE(read.size() == 3);
  for (size_t b = 0; b < 3; ++b) {
    CHECK(read[b].id == std::string(64999, static_cast<char>('a' + b)));
    for (int i = 0; i < 10000; ++i) {
      const double expected = 10000.0 * static_cast<double>(b) + i;
      if (read[b].first(i) != expected || read[b].second(i) != expected)
        FAIL("instance " << b << " item " << i);
    }
  }
}

TEST_CASE("npz: a capacity for each, and a central directory in ZIP64") {
  const std::string weights = npy_of<double>("<f8", {2, 1}, {1, 2}),
                    values = npy_of<double>("<f8", {2, 1}, {3, 4});
  const std::string capacity = npy_of<double>("<f8", {2}, {5, 6});
  std::string zip =
      zip_stored({{"weights.npy", weights}, {"values.npy", values}, {"capacity.npy", capacity}});
  const InstanceFile plain = parse_instances(zip, "a.npz");
  REQUIRE(plain.instances.size() == 2);
  CHECK(plain.instances[1].capacity == 6);
  CHECK(plain.instances[1].values == std::vector<double>{2, 4});
  // The same with the end record's numbers moved to ZIP64 records.
  const std::string end = zip.substr(zip.size() - 22);
  zip.resize(zip.size() - 22);
  const size_t record = zip.size();
  uint32_t size = 0, offset = 0;
  std::memcpy(&size, end.data() + 12, 4);
  std::memcpy(&offset, end.data() + 16, 4);
  append_bytes(zip, uint32_t{0x06064b50});
  append_bytes(zip, uint64_t{44});
  zip.append(12, '\0');
  append_bytes(zip, uint64_t{3});
  append_bytes(zip, uint64_t{3});
  append_bytes(zip, uint64_t{size});
  append_bytes(zip, uint64_t{offset});
  append_bytes(zip, uint32_t{0x07064b50});
  append_bytes(zip, uint32_t{0});
  append_bytes(zip, uint64_t{record});
  append_bytes(zip, uint32_t{1});
  const InstanceFile wide =
      parse_instances(zip + end.substr(0, 8) + std::string(12, '\xff') + std::string(2, '\0'), "a.npz");
  REQUIRE(wide.instances.size() == 2);
  CHECK(wide.instances[1].values == plain.instances[1].values);
}

TEST_CASE("JSON: one instance, many, both problems, ids") {
  const InstanceFile file = parse_instances(
      "{\"instances\":[\n "
      "{\"id\":\"a\",\"problem\":\"tsp\",\"coordinates\":[[1,2],[3.5,-4e1]],\"note\":{}},\n"
      " {\"problem\":\"knapsack\",\"capacity\":2,\"weights\":[1,2],\"values\":[3,4]},\n"
      " {\"problem\":\"tsp\",\"edge_weight_type\":\"GEO\",\"coordinates\":[[1,2]]}]}",
      "a.json");
  REQUIRE(file.instances.size() == 3);
  CHECK(file.instances[0].id == "a");
  CHECK(file.instances[0].has_id);
  CHECK(file.instances[0].values == std::vector<double>{1, 2, 3.5, -40});
  CHECK(file.instances[1].problem == ProblemKind::kKnapsack);
  CHECK_FALSE(file.instances[1].has_id);
  CHECK(file.instances[1].values == std::vector<double>{1, 3, 2, 4});
  CHECK(file.instances[2].metric == Metric::kGeo);
}

TEST_CASE("JSON in pieces is what it is as a whole, and what was forgotten moves no line, column or index") {
  const std::string one = R"({"problem":"tsp","id":"a","coordinates":[[0,0],[0.5,1],[3,0.25]]})";
  constexpr int kCount = 40000;  // 2.7 MB: text is forgotten twice
  const auto read = [](std::string_view rest) {
    const auto next_piece = [&] {
      const std::string piece(rest.substr(0, 1000));
      rest.remove_prefix(piece.size());
      return piece;
    };
    return read_json(next_piece, "a.json", {}).instances;
  };
  const std::tuple<char, std::string, std::string, std::string> forms[] = {
      {'\n', "{\"of\":[1,{}],\n\"instances\":[", "],\"more\":[7]}", "instances"},
      {' ', "{\"of\":[1,{}],\n\"instances\":[", "],\"more\":[7]}", "instances"},
      {'\n', "\n[", "]", ""},
      {' ', "\n[", "]", ""}};
  for (const auto& [space, begin, end, list] : forms) {
    std::string text = begin;
    const size_t first = space == '\n' ? 0 : text.size() - text.find('\n') - 1;
    for (int i = 0; i < kCount; ++i) text += one + "," + space;
    const InstanceBatch instances = read(text + one + end);
    REQUIRE(instances.size() == kCount + 1);
    CHECK(instances.back().values == std::vector<double>{0, 0, 0.5, 1, 3, 0.25});
    const std::string line = "a.json:" + std::to_string(space == '\n' ? kCount + 2 : 2) + ":";
    const size_t column = first + (space == '\n' ? 0 : kCount * (one.size() + 2)) + 1;
    const std::string index = list + "[" + std::to_string(kCount) + "]";
    CHECK_THROWS_WITH(read(text + "7]}"), line + std::to_string(column) + ": " + index +
                                              ": expected an instance (an object), found 7");
    CHECK_THROWS_WITH(read(text + "{\"problem\":[]}]}"),
                      line + std::to_string(column + 11) + ": " + index +
                          ".problem: expected a string, found an array of 0");
    CHECK_THROWS_WITH(read(text + std::string(1, '\0')), line + std::to_string(column) + ": a NUL byte");
    CHECK_THROWS_AS(read(text + "}"), InputError);
  }
  CHECK_THROWS_WITH(read("[[1],{}]"), "a.json:1:6: [1]: expected a row, found an object");
  CHECK_THROWS_WITH(read("\xEF\xBB\xBF{}"),
                    "a.json:1:1: starts with a byte order mark; save it as plain UTF-8");
}

TEST_CASE("JSON: an array of instances") {
  const std::string one = "{\"problem\":\"tsp\",\"coordinates\":[[1,2]],\"tags\":[[],{\"instances\":[1]}]}";
  const InstanceFile file = parse_instances(" [" + one + ",\r\n" + one + "]\r\n\r\n", "stdin");
  REQUIRE(file.instances.size() == 2);
  CHECK(file.instances[1].values == std::vector<double>{1, 2});
}

TEST_CASE("CSV: with and without names of columns, byte order mark, CRLF, blank lines, spaces") {
  const std::vector<double> values = {1, 2.5, -3e2, 0.25};
  for (const std::string head : {"", "x,y\n", "\xEF\xBB\xBFx , y\r\n", "\"long\",\"up\"\n", "\n\nlong,up\n",
                                 "# x1,y_2 [km]\n", "\xE7\xB5\x8C\xE5\xBA\xA6,Infinite\n"}) {
    INFO(head);
    const InstanceFile file = parse_instances(head + "1, +2.5\r\n\r\n -3e2 ,.25\r\n\r\n", "some/map.csv");
    CHECK(file.warnings.empty());
    CHECK(only(file).values == values);
    CHECK(only(file).id == "map");
    CHECK_FALSE(only(file).has_id);
    CHECK(only(file).metric == Metric::kEuclidean);
  }
  CHECK(only(parse_instances("\xEF\xBB\xBF"
                             "1,2\n3,4\n",
                             "a.csv"))
            .n() == 2);
  CHECK(only(parse_instances("\"0\",\"5\"\n\" 3 \", \"-4.5\" \n1,\"2\"\n", "a.csv")).values ==
        std::vector<double>{0, 5, 3, -4.5, 1, 2});
  ReadOptions csv;
  csv.format = InputFormat::kCsv;
  const InstanceFile cut = parse_instances("1,2\n3,4", "a.txt", csv);
  CHECK(only(cut).n() == 2);
  REQUIRE(cut.warnings.size() == 1);
  CHECK(cut.warnings[0] == "a.txt:2: the last line has no newline; was the file cut short?");
}

TEST_CASE("npy and npz: integers of every width") {
  const std::vector<double> values = {1, 2, 250, 4};
  CHECK(only(parse_instances(npy_of<uint8_t>("|u1", {2, 2}, {1, 2, 250, 4}), "a.npy")).values == values);
  CHECK(only(parse_instances(npy_of<int16_t>("<i2", {1, 2, 2}, {1, 2, 250, 4}), "a.npy")).values == values);
  CHECK(only(parse_instances(npy_of<int32_t>("<i4", {2, 2}, {1, 2, 250, 4}), "a.npy")).values == values);
  CHECK(only(parse_instances(npy_of<int64_t>("<i8", {1, 2}, {-7, 1ll << 40}), "a.npy")).values ==
        std::vector<double>{-7, 0x1p40});
  const std::string zip = zip_stored({{"locs.npy", npy_of<int64_t>("<i8", {2, 2}, {1, 2, 250, 4})}});
  CHECK(only(parse_instances(zip, "a.npz")).values == values);
  ReadOptions options;
  options.problem = ProblemKind::kKnapsack;
  options.capacity = 2.0;
  CHECK(only(parse_instances(npy_of<int32_t>("<i4", {1, 2}, {3, 4}), "a.npy", options)).values ==
        std::vector<double>{3, 4});
}

TEST_CASE("NDJSON: a bad line is told and the next one is read") {
  const TemporaryFile file(".ndjson",
                           "{\"problem\":\"tsp\",\"coordinates\":[[1,2]]}\n\n{\"problem\":\n"
                           "{\"id\":\"k\",\"problem\":\"tsp\",\"coordinates\":[[3,4]]}");
  InstanceInput input(file.path());
  REQUIRE(input.is_stream());
  const auto first = input.next_line();
  REQUIRE(first);
  CHECK(first->line == 1);
  REQUIRE(first->instance);
  const auto second = input.next_line();
  REQUIRE(second);
  CHECK(second->line == 3);
  CHECK_FALSE(second->instance);
  REQUIRE(second->error);
  CHECK(second->error->line() == 3);
  CHECK(contains(second->error->what(), file.path() + ":3:12: "));
  const auto third = input.next_line();
  REQUIRE(third);
  REQUIRE(third->instance);
  CHECK(third->instance->id == "k");
  CHECK_FALSE(input.next_line());
  CHECK_THROWS_AS(read_instances(file.path()), InputError);
}

TEST_CASE("the format is told by first bytes and suffix, or forced") {
  const std::string line = "{\"problem\":\"tsp\",\"coordinates\":[[1,2]]}\n";
  const std::string npy = npy_of<double>("<f8", {1, 2}, {1, 2});
  CHECK(parse_instances(npy, "no_suffix").instances.size() == 1);
  CHECK(parse_instances(zip_stored({{"locs.npy", npy}}), "wrong.tsp").instances.size() == 1);
  CHECK(parse_instances("1 5\n2 3\n", "no_suffix").instances[0].problem == ProblemKind::kKnapsack);
  CHECK(parse_instances("NAME: a\nDIMENSION: 1\nEDGE_WEIGHT_TYPE: ATT\nNODE_COORD_SECTION\n1 1 1\nEOF\n",
                        "stdin")
            .instances[0]
            .metric == Metric::kAtt);
  CHECK(parse_instances(line, "stdin").instances.size() == 1);
  CHECK(parse_instances(line + line, "stdin").instances.size() == 2);
  CHECK(parse_instances("{\"instances\":\n[" + line + "]}", "stdin").instances.size() == 1);
  CHECK_THROWS_AS(parse_instances(line + line, "a.json"), InputError);
  ReadOptions forced;
  CHECK(format_by_suffix(instance_formats(), "a.TXT")->kind == InputFormat::kKnapsackText);
  CHECK_FALSE(format_by_suffix(instance_formats(), "no_suffix"));
  forced.format = format_named(instance_formats(), "ndjson")->kind;
  CHECK(parse_instances(line + line, "a.json", forced).instances.size() == 2);
  CHECK_FALSE(format_named(instance_formats(), "tsp"));
}

TEST_CASE("a file that is not there, and a folder, are input errors") {
  CHECK_THROWS_WITH(read_instances("/tmp/no/such.tsp"),
                    "/tmp/no/such.tsp: cannot be opened: No such file or directory");
  CHECK_THROWS_WITH(read_instances("/tmp"), "/tmp: expected a file, found a directory");
}

TEST_CASE("references: a number, lists, arrays, tours, our own output") {
  const InstanceBatch two = {square(), square()};
  CHECK(read_reference("4.5", two) == std::vector<double>{4.5, 4.5});
  CHECK(read_reference(TemporaryFile(".txt", "4\n4.25\n").path(), two) == std::vector<double>{4, 4.25});
  CHECK(read_reference(TemporaryFile(".npy", npy_of<double>("<f8", {2}, {4, 5})).path(), two) ==
        std::vector<double>{4, 5});
  CHECK(read_reference(TemporaryFile(".npy", npy_of<float>("<f4", {2}, {4, 5.5})).path(), two)[1] == 5.5);
  CHECK(read_reference(TemporaryFile(".json", "{\"costs\":[1,2]}").path(), two) == std::vector<double>{1, 2});
  const TemporaryFile answer(".json",
                             "{\"code\":0,\"solutions\":[{\"index\":0,\"cost\":9,\"tour\":[0,1,2,3]},"
                             "{\"index\":1,\"cost\":9,\"tour\":[0,2,1,3]}]}");
  const std::vector<double> measured = read_reference(answer.path(), two);
  CHECK(measured[0] == 4.0);  // what the file claims does not count
  CHECK(measured[1] == Approx(2 + 2 * std::sqrt(2.0)).epsilon(1e-15));
  CHECK(contains(error_of([&] { read_reference(TemporaryFile(".txt", "4\nx\n").path(), two); }),
                 ":2: expected a number"));
  CHECK(contains(error_of([&] { read_reference(TemporaryFile(".txt", "4\n").path(), two); }),
                 "expected 2 solutions"));
  CHECK(contains(error_of([&] {
                   read_reference(TemporaryFile(".tour", "TYPE : TOUR\nTOUR_SECTION\n1 2 3 3 -1\n").path(),
                                  {square()});
                 }),
                 "expected each city once, found 3 as in line 3"));
}

TEST_CASE("solutions: tours in every form") {
  const InstanceBatch one = {square()};
  const std::vector<int32_t> order = {0, 2, 1, 3};
  const auto read = [&](const std::string& suffix, const std::string& bytes) {
    const SolutionBatch out = read_solutions(TemporaryFile(suffix, bytes).path(), one);
    REQUIRE(out.size() == 1);
    return out[0];
  };
  CHECK(read(".tour", "NAME : a\nTYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n1 3\n2\n4\n-1\nEOF\n").order ==
        order);
  CHECK(read(".npy", npy_of<int16_t>("<i2", {1, 4}, {0, 2, 1, 3})).order == order);
  CHECK(read(".npy", npy_of<int32_t>("<i4", {4}, {0, 2, 1, 3})).order == order);
  CHECK(read(".npy", npy_of<int64_t>("<i8", {1, 4}, {0, 2, 1, 3})).order == order);
  const std::string npy = npy_of<uint8_t>("|u1", {1, 4}, {0, 2, 1, 3});
  const Solution zipped =
      read(".npz", zip_stored({{"tours.npy", npy}, {"costs.npy", npy_of<double>("<f8", {1}, {4.5})}}));
  CHECK(zipped.order == order);
  CHECK(zipped.objective == 4.5);
  const std::string line = "{\"index\":0,\"cost\":4.5,\"tour\":[0,2,1,3]}\n";
  CHECK(read(".ndjson", line).order == order);
  CHECK(read(".json", line).objective == 4.5);
  CHECK(std::isnan(read(".json", "{\"tour\":[0,2,1,3]}").objective));
}

TEST_CASE("solutions: KnapSack selections and items") {
  const auto read = [](const std::string& suffix, const std::string& bytes) {
    return read_solutions(TemporaryFile(suffix, bytes).path(), {sack()})[0].order;
  };
  CHECK(read(".npy", npy_of<uint8_t>("|u1", {1, 3}, {1, 0, 1})) == std::vector<int32_t>{0, 2});
  CHECK(read(".npy", npy_of<uint8_t>("|b1", {1, 3}, {1, 1, 0})) == std::vector<int32_t>{0, 1});
  CHECK(read(".json", "{\"solutions\":[{\"value\":30,\"items\":[1,0]}]}") == std::vector<int32_t>{1, 0});
}

TEST_CASE("solutions that do not belong to the instances are input errors") {
  const InstanceBatch one = {square()};
  const auto message = [&](const std::string& suffix, const std::string& bytes,
                           const InstanceBatch& instances) {
    return error_of([&] { read_solutions(TemporaryFile(suffix, bytes).path(), instances); });
  };
  const std::string tour = "TYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n1\n3\n2\n4\n-1\nEOF\n";
  CHECK(contains(message(".tour", tour, {square(), square()}), "expected 2 solutions"));
  CHECK(contains(message(".tour", tour.substr(0, tour.find("-1")), one), ":7: TOUR_SECTION: expected -1"));
  CHECK(contains(message(".tour", "TYPE : TOUR\nDIMENSION : 4\nTOUR_SECTION\n1 2 3 -1\n", one),
                 "expected n = 4 ids, found 3"));
  CHECK(contains(message(".tour", "TYPE : TOUR\nTOUR_SECTION\n1 0 2 4 -1\n", one), "found \"4\""));
  CHECK(contains(message(".npy", npy_of<int32_t>("<i4", {1, 3}, {0, 1, 2}), one), "expected n = 4"));
  CHECK(contains(message(".npy", npy_of<int32_t>("<i4", {1, 4}, {0, 1, 2, -3}), one), "[0, 3]: expected"));
  CHECK(contains(message(".npy", npy_of<double>("<f8", {1, 4}, {0, 1, 2, 3}), one), "expected integers"));
  CHECK(contains(message(".npy", npy_of<uint8_t>("|u1", {1, 3}, {0, 1, 2}), {sack()}), "expected 0 or 1"));
  CHECK(
      contains(message(".json", "{\"solutions\":[{\"index\":1,\"tour\":[]}]}", one), "expected 0, found 1"));
  CHECK(contains(message(".json", "{\"solutions\":[{\"tour\":[0.5]}]}", one), "an integer of at least 0"));
  CHECK(contains(message(".json", "{\"solutions\":[{\"tour\":[3e9]}]}", one), "an integer of at least 0"));
  CHECK(contains(message(".json", "{\"solutions\":[{\"items\":[0]}]}", one), "the key \"tour\""));
}

TEST_CASE("benchmark data: every TSPLIB file reads, and the stored tours have the stored lengths") {
  const char* const folder = std::getenv("POINTSMAN_BENCHMARK_DATA");
  if (folder == nullptr) {
    WARN("skipped: no benchmark data");
    return;
  }
  const std::string data = std::string(folder) + "/";
  const auto index = nlohmann::json::parse(std::ifstream(data + "tsplib/index.json"));
  for (const auto& entry : index) {
    const std::string name = entry["name"];
    INFO(name);
    const Instance instance = only(read_instances(data + "tsplib/" + name + ".tsp"));
    CHECK(instance.n() == entry["dimension"].get<int>());
    const std::set<std::string> alike = {name, name + ".tsp"};
    CHECK(alike.count(instance.id) == 1);
  }
  const InstanceFile tsp = read_instances(data + "tsp20_test.npy");
  const std::vector<double> optima = read_reference(data + "tsp20_test.opt.npy", tsp.instances);
  SolutionBatch tours = read_solutions(data + "tsp20_test.tours.npy", tsp.instances);
  REQUIRE(tours.size() == 1000);
  double worst = 0.0;
  for (size_t i = 0; i < tours.size(); ++i) {
    REQUIRE(validate_solution(tsp.instances[i], tours[i]).empty());
    worst = worse(worst, std::fabs(tours[i].objective - optima[i]));
  }
  CHECK(worst <= 20 * 2 * 2.22e-16 * 8);  // 20 additions of a length below 8, each way
  ReadOptions options;
  options.problem = ProblemKind::kKnapsack;
  options.capacity = 12.5;
  const InstanceFile knapsack = read_instances(data + "knap50_test.npy", options);
  const std::vector<double> values = read_reference(data + "knap50_test.opt.npy", knapsack.instances);
  SolutionBatch taken = read_solutions(data + "knap50_test.sol.npy", knapsack.instances);
  for (size_t i = 0; i < taken.size(); ++i) {
    REQUIRE(validate_solution(knapsack.instances[i], taken[i]).empty());
    CHECK(taken[i].objective == Approx(values[i]).epsilon(1e-14));
  }
}

TEST_CASE("the end of the run ends the parsing of every kind of document, but of no small one") {
  int looks = 0;
  const auto parse = [&](const std::string& name, const std::string& bytes, InputFormat format) {
    looks = 0;
    ReadOptions options;
    options.format = format;
    parse_instances(bytes, name, options);
  };
  Instance few, many;
  few.values = {0, 0, 1, 0, 1, 1};
  for (int i = 0; i < 40000; ++i) many.values.push_back(i % 211 * 0.25);
  Instance packed = many;
  packed.problem = ProblemKind::kKnapsack;
  packed.capacity = 10;
  const std::string matrix = npy_header("|u1", {200, 200}) + std::string(40000, '\1');
  std::string csv, rows =
                       "DIMENSION: 200\nEDGE_WEIGHT_TYPE: EXPLICIT\nEDGE_WEIGHT_FORMAT: FULL_MATRIX\n"
                       "EDGE_WEIGHT_SECTION\n";
  for (int i = 0; i < 40000; ++i) csv += "0.5,0.25\n", rows += "1\n";
  rows += "EOF\n";
  const std::tuple<const char*, std::string, InputFormat> large[] = {
      {"a.npy", write_npy({many}), InputFormat::kNpy},
      {"a.npz", write_npz({packed}), InputFormat::kNpz},
      {"a.json", write_json({many}), InputFormat::kJson},
      {"a.npy", matrix, InputFormat::kMatrix},
      {"a.csv", csv, InputFormat::kCsv},
      {"a.txt", write_knapsack_text({packed}), InputFormat::kKnapsackText},
      {"a.tsp", write_tsplib({many}), InputFormat::kTsplib},
      {"a.tsp", rows, InputFormat::kTsplib}};
  for (const auto& [name, bytes, format] : large) {
    CAPTURE(name);
    set_run_stop({}, [&] { return ++looks > 0; });
    CHECK_THROWS_AS(parse(name, bytes, format), InputStopped);
    set_run_stop({}, [&] { return ++looks < 0; });
    parse(name, bytes, format);
    CHECK(looks >= 1);
    CHECK(looks < 20);
  }
  set_run_stop({}, [] { return true; });
  CHECK_NOTHROW(parse("a.npy", write_npy({few}), InputFormat::kNpy));
  CHECK_NOTHROW(parse("a.npz", write_npz({few}), InputFormat::kNpz));
  CHECK_NOTHROW(parse("a.json", write_json({few}), InputFormat::kJson));
  CHECK_NOTHROW(parse("a.tsp", write_tsplib({few}), InputFormat::kTsplib));
  set_run_stop({}, {});
}
