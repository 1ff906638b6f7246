// SPDX-License-Identifier: Apache-2.0
// Every kind of broken input must be told as an InputError that names the file, the place, what was expected
// and found.
#include <cstring>
#include <fstream>
#include <functional>
#include <iterator>
#include <limits>

#include "host/formats/npy_array.h"
#include "host/formats/read_files.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

const std::string kTsp =
    "NAME : tiny\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EUC_2D\nNODE_COORD_SECTION\n"
    "1 0 0\n2 30 0\n3 30 40\nEOF\n";
const std::string kMatrixTsp =
    "NAME : tiny\nTYPE : TSP\nDIMENSION : 3\nEDGE_WEIGHT_TYPE : EXPLICIT\n"
    "EDGE_WEIGHT_FORMAT : FULL_MATRIX\nEDGE_WEIGHT_SECTION\n0 4 5\n4 0 6\n5 6 0\nEOF\n";
const std::string kTspJson = R"({"id":"a","problem":"tsp","coordinates":[[0,0],[0.5,1]]})";
const std::string kKnapsackJson =
    R"({"id":"k","problem":"knapsack","capacity":2,"weights":[1,2],"values":[3,4]})";
const std::string kKnapsackText = "2 12.5\n3 1.25\n4 2.5\n";

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const size_t at = text.find(what);
  if (at == std::string::npos) throw std::logic_error("the test's own text has no " + what);
  return text.replace(at, what.size(), by);
}

std::string doubles(std::initializer_list<double> values) {
  std::string out;
  for (const double value : values) append_bytes(out, value);
  return out;
}

// A .npy file with any header text.
std::string npy(const std::string& header, const std::string& data, char major = 1) {
  std::string out = std::string("\x93NUMPY") + major + '\0';
  if (major == 1) {
    append_bytes(out, static_cast<uint16_t>(header.size()));
  } else {
    append_bytes(out, static_cast<uint32_t>(header.size()));
  }
  return out + header + data;
}

std::string header(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': " + shape + ", }\n";
}

const std::string kPoints = doubles({0, 0, 0.5, 1});
const std::string kNpy = npy(header("<f8", "(1, 2, 2)"), kPoints);

std::string npz(std::initializer_list<std::pair<std::string, std::string>> arrays) {
  return zip_stored(arrays);
}
const std::string kNpz = npz({{"locs.npy", kNpy}});
const std::string kOneByTwo = npy(header("<f8", "(1, 2)"), doubles({1, 2}));

std::string with_bytes(std::string bytes, size_t at, const std::string& by) {
  return bytes.replace(at, by.size(), by);
}

// Overwrites a field of the only central directory entry.
std::string with_entry_field(size_t offset, const std::string& by) {
  return with_bytes(kNpz, kNpz.find("PK\x01\x02") + offset, by);
}
// Of its local header too, where the field stands two bytes earlier.
std::string with_both_fields(size_t offset, const std::string& by) {
  return with_bytes(with_entry_field(offset, by), offset - 2, by);
}

struct Malformed {
  std::string name;  // of the file
  std::string bytes;
  int64_t line;       // 0 where the format has none
  std::string words;  // in the message
};

void check(const std::vector<Malformed>& table, const ReadOptions& options = {}) {
  for (const Malformed& file : table) {
    INFO(file.name << " of " << file.bytes.size() << " bytes: " << file.bytes.substr(0, 300));
    INFO("wanted: " << file.words);
    try {
      parse_instances(file.bytes, file.name, options);
      FAIL_CHECK("it was read");
    } catch (const InputError& error) {
      INFO("message: " << error.what());
      CHECK(error.file() == file.name);
      CHECK(error.line() == file.line);
      const std::string place =
          file.name + (file.line > 0 ? std::string(":").append(std::to_string(file.line)) : "") + ":";
      CHECK(std::string(error.what()).find(place) == 0);
      CHECK(std::string(error.what()).find(file.words) != std::string::npos);
    }
  }
}

std::string read_bytes(const std::string& name) {
  std::ifstream file(std::string(POINTSMAN_SOURCE_DIR) + "/tests/data/" + name, std::ios::binary);
  REQUIRE(file.good());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

bool same(const InstanceFile& a, const InstanceFile& b) {
  if (a.instances.size() != b.instances.size()) return false;
  for (size_t i = 0; i < a.instances.size(); ++i) {
    if (a.instances[i].values != b.instances[i].values || a.instances[i].id != b.instances[i].id ||
        a.instances[i].capacity != b.instances[i].capacity ||
        a.instances[i].metric != b.instances[i].metric ||
        a.instances[i].has_coordinates() != b.instances[i].has_coordinates() ||
        (!a.instances[i].has_coordinates() && a.instances[i].matrix->above != b.instances[i].matrix->above)) {
      return false;
    }
  }
  return true;
}

}  // namespace

TEST_CASE("malformed TSPLIB files are told with their line") {
  const auto t = [](const std::string& what, const std::string& by) { return replaced(kTsp, what, by); };
  check({
      {"a.tsp", "", 0, "found the end of the file"},
      {"a.tsp", t("2 30 0", "2 30.0"), 7, "NODE_COORD_SECTION: expected \"id x y\", found \"2 30.0\""},
      {"a.tsp", t("2 30 0", "2 30 0 5"), 7, "expected \"id x y\", found \"2 30 0 5\""},
      {"a.tsp", t("2 30 0", "2 30 abc"), 7, "expected \"id x y\""},
      {"a.tsp", t("2 30 0", "2 30 0x10"), 7, "expected \"id x y\""},
      {"a.tsp", t("2 30 0", "2 nan 0"), 7, "found \"2 nan 0\""},
      {"a.tsp", t("2 30 0", "2 inf 0"), 7, "found \"2 inf 0\""},
      {"a.tsp", t("2 30 0", "2 1e999 0"), 7, "found \"2 1e999 0\""},
      {"a.tsp", t("2 30 0", "2 1e200 0"), 7, "coordinates within +-1e100"},
      {"a.tsp", t("2 30 0", "1 30 0"), 7, "expected a new id, found 1 as in line 6"},
      {"a.tsp", replaced(t("1 0 0", "b 0 0"), "3 30 40", "b 30 40"), 8,
       "expected a new id, found b as in line 6"},
      {"a.tsp", replaced(t("1 0 0", "0 0 0"), "3 30 40", "0 30 40"), 8,
       "expected a new id, found 0 as in line 6"},
      {"a.tsp", t("2 30 0", std::string("2 3\0 0", 6)), 7, "\\x00"},
      {"a.tsp", t("2 30 0\n", ""), 7, "expected DIMENSION = 3 rows, found 2"},
      {"a.tsp", t("EOF", "4 1 1\nEOF"), 9,
       "expected the end of the section after DIMENSION = 3 rows, found \"4 1 1\""},
      {"a.tsp", kTsp + "more\n", 10, "expected nothing after EOF, found \"more\""},
      {"a.tsp", t("DIMENSION : 3\n", ""), 4, "NODE_COORD_SECTION: expected DIMENSION, found none"},
      {"a.tsp", t("DIMENSION : 3", "DIMENSION : 0"), 3, "DIMENSION: expected an integer from 1"},
      {"a.tsp", t("DIMENSION : 3", "DIMENSION : -3"), 3, "found \"-3\""},
      {"a.tsp", t("DIMENSION : 3", "DIMENSION : 3.5"), 3, "found \"3.5\""},
      {"a.tsp", t("DIMENSION : 3", "DIMENSION : 99999999999999999999"), 3, "DIMENSION: expected an integer"},
      {"a.tsp", t("DIMENSION : 3", "DIMENSION : 500000000"), 8,
       "expected DIMENSION = 500000000 rows, found 3"},
      {"a.tsp", t("DIMENSION : 3", "DIMENSION : 3\nDIMENSION : 3"), 4, "DIMENSION: given twice"},
      {"a.tsp", t("EUC_2D", "EXPLICIT"), 9, "expected EDGE_WEIGHT_SECTION, found the end of the file"},
      {"a.tsp", t("EUC_2D", "XRAY1"), 4, "MAX_3D or EXACT_2D, found \"XRAY1\""},
      {"a.tsp", t("EUC_2D", "EUC_3D"), 6, "expected \"id x y z\", found \"1 0 0\""},
      {"a.tsp", t("EDGE_WEIGHT_TYPE : EUC_2D\n", ""), 4, "expected EDGE_WEIGHT_TYPE"},
      {"a.tsp", replaced(t("EUC_2D", "GEO"), "2 30 0", "2 90.5 0"), 7, "a latitude within +-90"},
      {"a.tsp", t("TYPE : TSP", "TYPE : ATSP"), 5, "expected EDGE_WEIGHT_TYPE EXPLICIT of an ATSP"},
      {"a.tsp", t("TYPE : TSP", "TYPE : TOUR"), 2, "TYPE: expected TSP, ATSP, HPP or CVRP, found \"TOUR\""},
      {"a.tsp", t("NODE_COORD_SECTION", "EDGE_WEIGHT_SECTION"), 5, "this section is not supported"},
      {"a.tsp", t("NODE_COORD_SECTION", "NODE_COORD_SECTION 1 0 0"), 5,
       "expected the end of the line, found \"1 0 0\""},
      {"a.tsp", t("NAME : tiny", "tiny"), 1, "expected \"KEY: value\", found \"tiny\""},
      {"a.tsp", t("NAME : tiny", "\x01\xff"), 1, "found \"\\x01\\xff\""},
      {"a.tsp", "NAME : a\nEOF\n", 2, "expected NODE_COORD_SECTION, found the end of the file"},
  });
}

TEST_CASE("malformed matrices of TSPLIB are told with their line, row and column") {
  const auto t = [](const std::string& what, const std::string& by) {
    return replaced(kMatrixTsp, what, by);
  };
  const std::string section = "EDGE_WEIGHT_SECTION: ", formats = "FULL_MATRIX, UPPER_ROW, LOWER_ROW, ";
  check({
      {"a.tsp", t("4 0 6", "7 0 6"), 6,
       section +
           "row 2, column 1: expected 4 as on the other side of the diagonal, found 7; TYPE ATSP takes both"},
      {"a.tsp", t("5 6 0", "5 6.5 0"), 6, section + "row 3, column 2: expected 6 as on the other side"},
      {"a.tsp", t("0 4 5", "0 4 -5"), 7,
       section + "row 1, column 3: expected a number from 0 to 1e100, found -5"},
      {"a.tsp", t("0 4 5", "0 1e101 5"), 7, "row 1, column 2: expected a number from 0 to 1e100"},
      {"a.tsp", t("4 0 6", "4 0 nan"), 8, section + "row 2, column 3: expected a number, found \"nan\""},
      {"a.tsp", t("4 0 6", "4 x 6"), 8, section + "row 2, column 2: expected a number, found \"x\""},
      {"a.tsp", t("5 6 0", "5 6"), 9,
       section + "row 3, column 3: expected a number, found the end of the section"},
      {"a.tsp", t("5 6 0\nEOF\n", "5"), 9,
       section + "row 3, column 2: expected a number, found the end of the section"},
      {"a.tsp", t("5 6 0", "5 6 0 7"), 9,
       section + "expected the end of the line after the numbers of DIMENSION = 3 cities, found \"7\""},
      {"a.tsp", t("EOF", "7\nEOF"), 10,
       section + "expected the end of the section after the numbers of DIMENSION = 3 cities, found \"7\""},
      {"a.tsp", t("DIMENSION : 3", "DIMENSION : 500000000"), 9, "row 1, column 10"},
      {"a.tsp", t("FULL_MATRIX", "FUNCTION"), 5,
       "EDGE_WEIGHT_FORMAT: expected " + formats + "UPPER_DIAG_ROW or LOWER_DIAG_ROW, found \"FUNCTION\""},
      {"a.tsp", t("EDGE_WEIGHT_FORMAT : FULL_MATRIX\n", ""), 5,
       section + "expected EDGE_WEIGHT_FORMAT (" + formats + "UPPER_DIAG_ROW or LOWER_DIAG_ROW), found none"},
      {"a.tsp", t("EXPLICIT", "EUC_2D"), 6,
       "\"EDGE_WEIGHT_SECTION\": this section is not supported; expected NODE_COORD_SECTION"},
      {"a.tsp", t("EOF", "FIXED_EDGES_SECTION\n1 2\n-1\n7\nEOF"), 13,
       "expected the end of the section, found \"7\""},
      {"a.tsp", t("EOF", "FIXED_EDGES_SECTION\n1 4\n-1\nEOF"), 11,
       "FIXED_EDGES_SECTION: expected two ids, each an id from 1 to DIMENSION = 3, or -1, found \"4\""},
      {"a.tsp", t("EOF", "FIXED_EDGES_SECTION\n1 -1\nEOF"), 11,
       "expected two ids, each an id from 1 to DIMENSION = 3"},
      {"a.tsp", t("EOF", "FIXED_EDGES_SECTION\n1 2\n2 1\n-1\nEOF"), 12,
       "FIXED_EDGES_SECTION: expected no cycle of fewer than all cities, found 2 1"},
      {"a.tsp", replaced(t("TYPE : TSP", "TYPE : ATSP"), "EOF", "FIXED_EDGES_SECTION\n1 2\n-1\nEOF"), 10,
       "FIXED_EDGES_SECTION: is not for TYPE ATSP"},
  });
  ReadOptions knapsack;
  knapsack.problem = ProblemKind::kKnapsack;
  check({{"a.tsp", kMatrixTsp, 0, "expected a KnapSack instance, found a TSP one"}}, knapsack);
}

TEST_CASE("malformed .npy matrices are told with their element") {
  ReadOptions matrix;
  matrix.format = InputFormat::kMatrix;
  const auto two = [](double above, double below) {
    return npy(header("<f8", "(2, 2)"), doubles({0, above, below, 0}));
  };
  const double inf = std::numeric_limits<double>::infinity();
  check(
      {{"a.npy", two(-1, -1), 0, "[0, 1]: expected a number from 0 to 1e100, found -1"},
       {"a.npy", two(1e101, 0), 0, "[0, 1]: expected a number from 0 to 1e100"},
       {"a.npy", two(-inf, 0), 0, "[0, 1]: expected a number from 0 to 1e100, found -inf"},
       {"a.npy", npy(header("<f8", "(2, 1, 1)"), doubles({0, 0})) + "x", 0, "expected 16 bytes of data"},
       {"a.npy", npy(header("<f8", "(1, 2, 2)"), doubles({0, 1, -3, 0})), 0, "[0, 1, 0]: expected a number"},
       {"a.npy", kOneByTwo, 0, "expected (n, n) or (B, n, n), found (1, 2)"},
       {"a.npy", npy(header("<f8", "(1,)"), doubles({0})), 0, "expected (n, n) or (B, n, n)"},
       {"a.npy", npy(header("<f8", "()"), doubles({0})), 0, "expected (n, n) or (B, n, n)"},
       {"a.npy", npy(header("<f8", "(0, 0)"), ""), 0, "expected (n, n) or (B, n, n), found (0, 0)"},
       {"a.npy", npy(header("|b1", "(1, 1)"), "x"), 0, "expected floats or integers, found |b1"}},
      matrix);
  check({{"a.npy", npy(header("<f8", "(1, 1)"), doubles({0})), 0,
          "expected (B, n, 2) or (n, 2) (--input-format matrix takes distances), found (1, 1)"}});
}

TEST_CASE("malformed KnapSack texts are told with their line") {
  const auto t = [](const std::string& what, const std::string& by) {
    return replaced(kKnapsackText, what, by);
  };
  check({
      {"a.kp", "", 1, "expected \"n capacity\", found an empty file"},
      {"a.kp", t("2 12.5", "2"), 1, "expected \"n capacity\", found \"2\""},
      {"a.kp", t("2 12.5", "two 12.5"), 1, "expected \"n capacity\""},
      {"a.kp", t("2 12.5", "2 -1"), 1, "both from 0 to 1e100"},
      {"a.kp", t("2 12.5", "2 inf"), 1, "expected \"n capacity\""},
      {"a.kp", t("2 12.5", "0 12.5"), 1, "an integer of at least 1"},
      {"a.kp", t("2 12.5", "2.5 12.5"), 1, "an integer of at least 1"},
      {"a.kp", t("2 12.5", "1e15 12.5"), 1, "an integer of at least 1"},
      {"a.kp", t("2 12.5", "3 12.5"), 3, "expected n = 3 items, found 2"},
      {"a.kp", t("2 12.5", "1 12.5"), 3, "expected the end after n = 1 items, found \"4 2.5\""},
      {"a.kp", t("4 2.5", "4 nan"), 3, "expected \"profit weight\", found \"4 nan\""},
      {"a.kp", t("4 2.5", "4 -2.5"), 3, "both from 0 to 1e100"},
      {"a.kp", t("4 2.5", "4 2.5 1"), 3, "expected \"profit weight\""},
      {"a.kp", t("4 2.5", "4,2.5"), 3, "expected \"profit weight\""},
  });
}

TEST_CASE("malformed CSV is told with its line") {
  check({
      {"a.csv", "", 0, "expected at least one line \"x,y\", found none"},
      {"a.csv", "x,y\n\r\n", 0, "found none"},
      {"a.csv", "x,y\nx,y\n", 2, "expected \"x,y\", found \"x,y\""},
      {"a.csv", "1,2\n3;4\n", 2, "found \"3;4\""},
      {"a.csv", "1,2\n3,4,5\n", 2, "found \"3,4,5\""},
      {"a.csv", "1,2\n3,\n", 2, "found \"3,\""},
      {"a.csv", "1,2\n3,nan\n", 2, "found \"3,nan\""},
      {"a.csv", "1,y\n3,4\n", 1, "found \"1,y\""},  // half a header is a bad city
      {"a.csv", ",\n3,4\n", 1, "found \",\""},
      {"a.csv", "id,x,y\n", 0, "found none"},
      // Numbers in a spelling that is not read, where a header may stand: no city is lost.
      {"a.csv", "nan,nan\n3,4\n", 1, "expected \"x,y\" or the columns' names, found \"nan,nan\""},
      {"a.csv", "\"NaN\",\" -nan(0x1)\"\n3,4\n", 1, "expected \"x,y\""},
      {"a.csv", "inf,-Infinity\n3,4\n", 1, "found \"inf,-Infinity\""},
      {"a.csv", "1e400,1e400\n3,4\n", 1, "found \"1e400,1e400\""},
      {"a.csv", "\"1e400\",\"-1e400\"\n3,4\n", 1, "expected \"x,y\""},
      {"a.csv", "0;5,1;5\n3,4\n", 2, "expected 3 columns, found \"3,4\""},
      {"a.csv", "\"0;5\",\"1;5\"\n3,4\n", 1, "expected \"x,y\""},
      {"a.csv", "0x1p3,-0x10\n3,4\n", 1, "found \"0x1p3,-0x10\""},
      {"a.csv", "'5','6'\n3,4\n", 1, "found \"'5','6'\""},
      {"a.csv",
       "$5,\xe2\x88\x92"
       "6\n3,4\n",
       1, "found \"$5,\\xe2\\x88\\x926\""},
      {"a.csv", "\"5,\"6\n3,4\n", 1, "expected \"x,y\""},
      {"a.csv", "\"\",\"\"\n3,4\n", 1, "expected \"x,y\""},
      {"a.csv", "NA,#N/A\n3,4\n", 1, "found \"NA,#N/A\""},
      {"a.csv", "x,y\n1,2\n\"nan\",\"1\"\n", 3, "expected \"x,y\", found"},
      {"a.csv", "1,2\n3,1e101\n", 2, "expected coordinates within +-1e100"},
  });
}

TEST_CASE("malformed JSON instances are told with line and column") {
  const auto matrix = [](const std::string& problem, const std::string& rows) {
    return R"({"problem":")" + problem + R"(","distance_matrix":)" + rows + "}";
  };
  const auto t = [](const std::string& what, const std::string& by) { return replaced(kTspJson, what, by); };
  const auto k = [](const std::string& what, const std::string& by) {
    return replaced(kKnapsackJson, what, by);
  };
  check({
      {"a.json", "", 1, "unexpected end of input"},
      {"a.json", "{", 1, "unexpected end of input"},
      {"a.json", kTspJson + "x", 1, "invalid literal"},
      {"a.json", matrix("tsp", "[[0,1],[2,0]]"), 1,
       "row 1, column 0: expected 1 as on the other side of the diagonal, found 2; \"problem\": \"atsp\" "
       "takes both"},
      {"a.json", matrix("atsp", "[[0,1],[2]]"), 1, "expected a row of 2 distances"},
      {"a.json", matrix("atsp", "[[0,1],[-2,0]]"), 1, "expected a number from 0 to 1e100, found -2"},
      {"a.json", matrix("atsp", "[]"), 1, "expected at least one city, found none"},
      {"a.json", t("]]", "]],\"forced\":[[0,2]]"), 1, "expected a city below 2"},
      {"a.json", t("]]", "]],\"forced\":[[0]]"), 1, "expected a pair of cities"},
      {"a.json", t("]]", "]],\"forced\":[[1,1]]"), 1, "expected two cities"},
      {"a.json", t("]]", "]],\"forbidden\":[[0,2]]"), 1, "expected a city below 2"},
      {"a.json", t("]]", "]],\"forbidden\":[[1,1]]"), 1, "expected two cities"},
      {"a.json", t("]]", "]],\"forbidden\":[[0,1]],\"forced\":[[1,0]]"), 1,
       "expected an edge that is not forbidden"},
      {"a.json", replaced(t("tsp", "path"), "]]", "]],\"start\":2"), 1, "start: expected a city below 2"},
      {"a.json", replaced(t("tsp", "path"), "]]", "]],\"start\":1,\"end\":1"), 1,
       "end: expected another city than \"start\""},
      {"a.json", kTspJson + kTspJson, 1, "expected end of input"},
      {"a.json", "14", 1, "expected an instance, an array of them or {\"instances\":[..]}, found 14"},
      {"a.json", "\"foo\"", 1, "found the string \"foo\""},
      {"a.json", "null", 1, "found null"},
      {"a.json", "[]", 1, "expected at least one instance, found none"},
      {"a.json", "[\n" + kTspJson + ",\n 7]", 3,
       "a.json:3:2: [1]: expected an instance (an object), found 7"},
      {"a.json", "{}", 1,
       "expected the key \"problem\", or coordinates, distance_matrix, weights or edges to tell it"},
      {"a.json", "{\"instances\":[]}", 1, "instances: expected at least one instance"},
      {"a.json", "{\"instances\":{}}", 1, "instances: expected an array, found an object"},
      {"a.json", "{\n\"instances\":[" + kTspJson + ",\n 7]}", 3,
       "a.json:3:2: instances[1]: expected an instance"},
      {"a.json", t("\"tsp\"", "\"vrp\""), 1,
       "problem: expected \"tsp\", \"knapsack\", \"cvrp\", \"atsp\", \"path\", \"tsptw\" or \"colouring\", "
       "found the string "
       "\"vrp\""},
      {"a.json", t("\"tsp\"", "1"), 1, "a.json:1:21: problem: expected a string, found 1"},
      {"a.json", t("\"a\"", "7.5"), 1, "a.json:1:7: id: expected a string or an integer, found 7.5"},
      {"a.json", t("coordinates", "cities"), 1, "expected the key \"coordinates\", found none"},
      {"a.json", t("[0.5,1]", "[0.5]"), 1,
       "coordinates[1]: expected a pair [x, y], or an object with x and y or lat and lon, found an array of "
       "1"},
      {"a.json", t("[0.5,1]", "[0.5,1,2]"), 1,
       "coordinates[1]: expected a pair [x, y], or an object with x and y or lat and lon, found an array of "
       "3"},
      {"a.json", t("[0.5,1]", "0.5"), 1,
       "coordinates[1]: expected a pair [x, y], or an object with x and y or lat and lon, found 0.5"},
      {"a.json", t("0.5", "\"0.5\""), 1, "coordinates[1][0]: expected a number, found the string \"0.5\""},
      {"a.json", t("0.5", "true"), 1, "a.json:1:49: coordinates[1][0]: expected a number, found true"},
      {"a.json", t("0.5", "1e400"), 1, "number overflow"},
      {"a.json", t("0.5", "1e101"), 1, "a number within +-1e100"},
      {"a.json", t("0.5", "NaN"), 1, "invalid literal"},
      {"a.json", t("0.5", "-Infinity"), 1, "invalid number"},
      {"a.json", t("0.5", "01"), 1, "unexpected number literal"},
      {"a.json", t("[[0,0],[0.5,1]]", "[]"), 1, "coordinates: expected at least one city, found none"},
      {"a.json", t("}", ",}"), 1, "expected string literal"},
      {"a.json", t("}", ",\"id\":\"b\"}"), 1, "duplicate key \"id\""},
      {"a.json", t("}", ",\"\\u0069d\":\"b\"}"), 1, "duplicate key \"id\""},
      {"a.json", t("}", ",\"edge_weight_type\":\"EXPLICIT\"}"), 1,
       "EUC_2D, CEIL_2D, GEO, ATT, MAN_2D, MAX_2D, GEOM, HAVERSINE, HAVERSINE_KM or FLOOR_2D"},
      {"a.json", replaced(t("}", ",\"edge_weight_type\":\"GEO\"}"), "[0.5,1]", "[1e99,1]"), 1,
       "a latitude within +-90"},
      {"a.json", t("\"a\"", "\"\xff\""), 1, "ill-formed UTF-8"},
      {"a.json", t("\"a\"", "\"\xed\xa0\x80\""), 1, "ill-formed UTF-8"},
      {"a.json", t("\"a\"", "\"\\ud800\""), 1, "surrogate"},
      {"a.json", t("\"a\"", "\"a\nb\""), 1, "control character"},
      {"a.json", std::string("\0", 1) + kTspJson, 1, "a.json:1:1: a NUL byte"},
      {"a.json", kTspJson + std::string("\0x", 2), 1, "a NUL byte"},
      {"a.json", std::string(512000, '['), 1, "a.json:1:33: nested deeper than 32 levels"},
      {"a.json", std::string(40, '[') + std::string(40, ']'), 1, "nested deeper than 32 levels"},
      {"a.json", k("\"capacity\":2,", ""), 1, "expected the key \"capacity\" or --capacity W, found neither"},
      {"a.json", k("\"capacity\":2", "\"capacity\":-2"), 1,
       "capacity: expected a number of at least 0, found -2"},
      {"a.json", k("\"capacity\":2", "\"capacity\":null"), 1,
       "expected the key \"capacity\" or --capacity W, found neither"},
      {"a.json", k("[1,2]", "[1]"), 1, "values: expected as many as weights (1), found an array of 2"},
      {"a.json", k("[1,2]", "[1,-2]"), 1, "weights[1]: expected a number of at least 0, found -2"},
      {"a.json", k("[3,4]", "[3,-4]"), 1, "values[1]: expected a number of at least 0, found -4"},
      {"a.json", k("[1,2]", "[]"), 1, "weights: expected at least one item, found none"},
      {"a.json", k("[1,2]", "5"), 1, "weights: expected an array, found 5"},
      {"a.ndjson", "\n\n", 0, "expected at least one instance"},
      {"a.ndjson", kTspJson + "\n" + kTspJson.substr(0, 20) + "\n", 2, "syntax error"},
      {"a.ndjson", kTspJson + "\n{\"instances\":[" + kTspJson + "]}\n", 2, "expected the key \"problem\""},
  });
}

TEST_CASE("malformed npy files are told with the field") {
  const auto h = [](const std::string& type, const std::string& shape) {
    return npy(header(type, shape), kPoints);
  };
  const auto text = [](const std::string& header_text) { return npy(header_text, kPoints); };
  const double nan = std::numeric_limits<double>::quiet_NaN(), inf = std::numeric_limits<double>::infinity();
  std::string oversize("\x93NUMPY\x02\0", 8);
  append_bytes(oversize, uint32_t{70000});
  check({
      {"a.npy", "", 0, "expected an .npy file"},
      {"a.npy", "\x93NUMPX" + kNpy.substr(6), 0, "expected an .npy file"},
      {"a.npy", std::string("\x93NUMPY\x01\0", 8), 0, "the file ends within it"},
      {"a.npy", std::string("\x93NUMPY\x02\0\0\0", 10), 0, "the file ends within it"},
      {"a.npy", with_bytes(kNpy, 6, "\x04"), 0, "expected npy version 1.0, 2.0 or 3.0, found 4.0"},
      {"a.npy", with_bytes(kNpy, 7, "\x01"), 0, "found 1.1"},
      {"a.npy", with_bytes(kNpy, 8, "\xff\xff"), 0, "the file ends within it"},
      {"a.npy", oversize + std::string(70000, ' '), 0, "expected at most 65536 bytes, found 70000"},
      {"a.npy", with_bytes(npy(header("<f8", "(1, 2, 2)"), kPoints, 2), 8, "\xff\xff\xff\xff"), 0,
       "found 4294967295"},
      {"a.npy", h("|O", "(1, 2, 2)"), 0, "Python objects are not read"},
      {"a.npy", h("<f16", "(1, 2, 2)"), 0, "descr: expected floats of 2, 4 or 8 bytes"},
      {"a.npy", h("<c16", "(1, 2, 2)"), 0, "descr: expected numbers or strings"},
      {"a.npy", npy(header("|b1", "(1, 2, 2)"), std::string(4, '\1')), 0,
       "expected floats or integers, found |b1"},
      {"a.npy", npy(header("<u8", "(1, 2)"), std::string(16, '\xff')), 0, "[0, 0]: does not fit"},
      {"a.npy", h("<f99999999999999999999", "(1, 2, 2)"), 0, "descr: expected numbers"},
      {"a.npy", h("<S0", "(1, 2, 2)"), 0, "descr: expected numbers or strings"},
      {"a.npy", text("{'descr': [('x', '<f8')], 'fortran_order': False, 'shape': (4,), }\n"), 0,
       "structured types"},
      {"a.npy", h("<f8", "(-1, 2, 2)"), 0,
       "npy header:1:52: shape[0]: expected an integer from 0 to 2^53, found -1"},
      {"a.npy", h("<f8", "(4294967296, 4294967296, 2)"), 0, "overflows"},
      {"a.npy", h("<f8", "(4503599627370496, 4503599627370496, 2)"), 0, "overflows"},
      {"a.npy", h("<f8", "(9223372036854775808, 2, 2)"), 0, "shape[0]: expected an integer from 0 to 2^53"},
      {"a.npy", h("<f8", "(1000000000000, 2, 2)"), 0, "expected 32000000000000 bytes of data, found 32"},
      {"a.npy", h("<f8", "(1, 2.5, 2)"), 0, "shape[1]: expected an integer from 0 to 2^53, found 2.5"},
      {"a.npy", h("<f8", "(1 2 2)"), 0, "npy header:1:54: syntax error"},
      {"a.npy", h("<f8", "(,1)"), 0, "npy header:1:52: syntax error"},
      {"a.npy", h("<f8", "(1,1,1,1,1,1,1,1,4)"), 0, "more than 8 axes"},
      {"a.npy", h("<f8", "(1, 1, 4)"), 0, "expected (B, n, 2) or (n, 2), found (1, 1, 4)"},
      {"a.npy", h("<f8", "(4,)"), 0, "expected (B, n, 2) or (n, 2), found (4,)"},
      {"a.npy", npy(header("<f8", "()"), doubles({1})), 0, "expected (B, n, 2) or (n, 2), found ()"},
      {"a.npy", npy(header("<f8", "(0, 2, 2)"), ""), 0, "at least one instance"},
      {"a.npy", npy(header("<f8", "(1125899906842624, 0, 2)"), ""), 0, "at least one instance"},
      {"a.npy", kNpy.substr(0, kNpy.size() - 1), 0, "expected 32 bytes of data, found 31"},
      {"a.npy", kNpy + "x", 0, "expected 32 bytes of data, found 33"},
      {"a.npy", npy(header("<f8", "(1, 2, 2)"), doubles({0, 0, nan, 1})), 0,
       "[0, 1, 0]: expected a finite number, found nan"},
      {"a.npy", npy(header("<f8", "(2, 2)"), doubles({0, 0, 1, inf})), 0,
       "[1, 1]: expected a finite number, found inf"},
      {"a.npy", npy(header("<f8", "(2, 2)"), doubles({0, 0, 1, 1e200})), 0,
       "[1, 1]: expected a number within +-1e100"},
      {"a.npy", text("[]\n"), 0, "npy header:1:1: expected an object, found an array of 0"},
      {"a.npy", text(""), 0, "unexpected end of input"},
      {"a.npy", text("{'descr': '<f8', 'shape': (2, 2)}\n"), 0,
       "expected the key \"fortran_order\", found none"},
      {"a.npy", text("{'descr': '<f8', 'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)}\n"), 0,
       "duplicate key \"descr\""},
      {"a.npy", text("{'descr': '<f8' 'fortran_order': False, 'shape': (2, 2)}\n"), 0, "syntax error"},
      {"a.npy", text("{'descr': '<f8', 'fortran_order': 0, 'shape': (2, 2)}\n"), 0,
       "expected true or false, found 0"},
      {"a.npy", text("{'descr': '<f8', 'fortran_order': False, 'shape': (2, 2)} x\n"), 0,
       "expected end of input"},
      {"a.npy", text("{'descr"), 0, "missing closing quote"},
  });
  ReadOptions knapsack;
  knapsack.problem = ProblemKind::kKnapsack;
  check({{"a.npy", kNpy, 0, "needs --capacity W"}}, knapsack);
  knapsack.capacity = 3.0;
  check({{"a.npy", npy(header("<f8", "(1, 2)"), doubles({-1, 2})), 0, "expected a number from 0 to 1e100"}},
        knapsack);
}

TEST_CASE("malformed npz files are told with the array") {
  const std::string deflated = read_bytes("numpy_knapsack.npz");
  const size_t data = deflated.find("weights.npy") + 11 + 20;  // behind the name and its ZIP64 field
  const std::string weights = kOneByTwo;
  const std::string capacity = npy(header("<f8", "(3,)"), doubles({1, 2, 3}));
  std::string end_only = kNpz.substr(kNpz.size() - 22);
  const auto end_field = [](size_t offset, const std::string& by) {
    return with_bytes(kNpz, kNpz.size() - 22 + offset, by);
  };
  const std::string four_bytes = "\xff\xff\xff\xff";
  check({
      {"a.npz", "", 0, "found no arrays"},
      {"a.npz", std::string(100, 'x'), 0, "zip: Not a zip archive"},
      {"a.npz", kNpz.substr(0, kNpz.size() - 1), 0, "was the file cut short?"},
      {"a.npz", kNpz + "x", 0, "zip: Zip archive inconsistent"},
      {"a.npz", end_only, 0, "zip: Zip archive inconsistent"},
      {"a.npz", end_field(16, std::string("\xff\xff\0\0", 4)), 0, "zip: Zip archive inconsistent"},
      {"a.npz", end_field(16, four_bytes), 0, "zip: Zip archive inconsistent"},
      {"a.npz", end_field(10, std::string("\2\0", 2)), 0, "zip: Not a zip archive"},
      {"a.npz", end_field(10, std::string("\0\x7f", 2)), 0, "zip: Not a zip archive"},
      {"a.npz", end_field(10, std::string("\0\0", 2)), 0, "zip: Not a zip archive"},
      {"a.npz", with_entry_field(0, "XX"), 0, "zip: Not a zip archive"},
      {"a.npz", with_entry_field(8, "\1"), 0, "\"locs.npy\": No password provided"},
      {"a.npz", with_entry_field(10, "\x0c"), 0, "zip: Zip archive inconsistent"},
      {"a.npz", with_both_fields(10, "\x0c"), 0, "stored or deflated, found method 12"},
      {"a.npz", with_both_fields(10, "\x08"), 0, "\"locs.npy\": is damaged ("},
      {"a.npz", with_entry_field(16, "\1\2\3\4"), 0, "zip: Zip archive inconsistent"},
      {"a.npz", with_both_fields(16, "\1\2\3\4"), 0, "\"locs.npy\": is damaged (CRC error)"},
      {"a.npz", with_entry_field(20, std::string("\0\0\1\0", 4)), 0, "zip: Not a zip archive"},
      {"a.npz", with_entry_field(20, std::string("\1\0\0\0", 4)), 0, "zip: Zip archive inconsistent"},
      {"a.npz", with_entry_field(24, four_bytes), 0, "zip: "},
      {"a.npz", with_entry_field(28, "\xff\xff"), 0, "zip: Zip archive inconsistent"},
      {"a.npz", with_entry_field(42, std::string("\xf0\0\0\0", 4)), 0, "zip: Not a zip archive"},
      {"a.npz", with_entry_field(46, "Locs"), 0, "zip: Zip archive inconsistent"},
      {"a.npz", npz({{"locs.npy", kNpy}, {"locs.npy", kNpy}}), 0, "zip: File already exists"},
      {"a.npz", npz({{"points.npy", kOneByTwo}, {"more.npy", kOneByTwo}}), 0,
       "expected `locs`, or `weights` and `values`; found \"points.npy\", \"more.npy\""},
      {"a.npz", npz({}), 0, "found no arrays"},
      {"a.npz", npz({{"locs.npy", kNpy}, {"weights.npy", kNpy}}), 0, "expected `locs`, or `weights`"},
      {"a.npz", npz({{"locs.npy", "not npy"}}), 0, "locs: expected an .npy file"},
      {"a.npz", npz({{"locs.npy", kNpy + "x"}}), 0,
       "locs: shape (1, 2, 2) of <f8: expected 32 bytes of data, found 33"},
      {"a.npz", npz({{"locs.npy", weights.substr(0, 40)}}), 0, "locs: npy header"},
      {"a.npz", npz({{"locs.npy", npy(header("<f8", "(2, 2, 1)"), kPoints)}}), 0,
       "expected (B, n, 2) or (n, 2)"},
      {"a.npz", npz({{"locs.npy", npy(header("<S8", "(1, 2, 2)"), kPoints)}}), 0,
       "expected floats or integers"},
      {"a.npz", npz({{"locs.npy", npy(header("<f8", "(0, 5, 2)"), "")}}), 0,
       "expected at least one instance"},
      {"a.npz", npz({{"locs.npy", kNpy}, {"ids.npy", weights}}), 0,
       "ids: npy header: expected 1 strings or integers"},
      {"a.npz", npz({{"locs.npy", kNpy}, {"ids.npy", npy(header("|S1", "(1,)"), "\xff")}}), 0,
       "ids: [0]: expected UTF-8"},
      {"a.npz",
       npz({{"locs.npy", kNpy}, {"ids.npy", npy(header("<U1", "(1,)"), std::string("\0\xd8\0\0", 4))}}), 0,
       "ids: [0]: expected Unicode, found code 55296"},
      {"a.npz", npz({{"weights.npy", weights}}), 0, "expected an array `values`"},
      {"a.npz", npz({{"weights.npy", weights}, {"values.npy", weights}}), 0,
       "expected `capacity` or --capacity W"},
      {"a.npz", npz({{"weights.npy", weights}, {"values.npy", npy(header("<f8", "(2,)"), doubles({1, 2}))}}),
       0, "values: npy header: shape: expected that of weights"},
      {"a.npz", npz({{"weights.npy", weights}, {"values.npy", weights}, {"capacity.npy", capacity}}), 0,
       "capacity: npy header: expected a number or 1 of them, found <f8 (3,)"},
      {"a.npz",
       npz({{"weights.npy", weights}, {"values.npy", npy(header("<f8", "(1, 2)"), doubles({1, -2}))}}), 0,
       "values: [0, 1]: expected a number from 0 to 1e100"},
      {"a.npz", with_bytes(deflated, data, "\xff"), 0,
       "zip: \"weights.npy\": is damaged (Zlib error: data error)"},
  });
}

TEST_CASE("ids of an npz are UTF-8, whatever their length") {
  const auto ids = [](const std::string& type, const std::string& data) {
    return npz({{"locs.npy", kNpy}, {"ids.npy", npy(header(type, "(1,)"), data)}});
  };
  // Too long, cut short, half of a surrogate pair, past the last character, no first byte.
  for (const std::string bad :
       {"\xc0\xaf", "\xc1\xbf", "\xe0\x9f\xbf", "\xf0\x8f\xbf\xbf", "\xe2\x82", "\xf0\x9f\x98",
        "\xed\xa0\x80", "\xf4\x90\x80\x80", "\xf5\x80\x80\x80", "\x80"}) {
    check({{"a.npz", ids("|S" + std::to_string(bad.size()), bad), 0, "ids: [0]: expected UTF-8"}});
  }
  const std::pair<uint32_t, const char*> characters[] = {{0x7f, "\x7f"},
                                                         {0x80, "\xc2\x80"},
                                                         {0x7ff, "\xdf\xbf"},
                                                         {0x800, "\xe0\xa0\x80"},
                                                         {0xd7ff, "\xed\x9f\xbf"},
                                                         {0xffff, "\xef\xbf\xbf"},
                                                         {0x10000, "\xf0\x90\x80\x80"},
                                                         {0x10ffff, "\xf4\x8f\xbf\xbf"}};
  for (const auto& [code, bytes] : characters) {
    INFO(code);
    std::string utf32;
    append_bytes(utf32, code);
    CHECK(parse_instances(ids("<U1", utf32), "a.npz").instances[0].id == bytes);
    CHECK(parse_instances(ids("|S" + std::to_string(std::strlen(bytes)), bytes), "a.npz").instances[0].id ==
          bytes);
  }
}

TEST_CASE("a deflated entry cannot claim more than it unpacks to") {
  const std::string good = read_bytes("numpy_knapsack.npz");
  const size_t entry = good.find("PK\x01\x02");
  const size_t local = good.find("weights.npy") + 11 + 4;  // its size in the ZIP64 field
  for (const std::string& claim : {std::string("\xf0\xff\xff\x7f", 4), std::string("\x01\x01\0\0", 4)}) {
    const std::string central = with_bytes(good, entry + 24, claim);
    check({{"a.npz", central, 0, "zip: Zip archive inconsistent"},
           {"a.npz", with_bytes(central, local, claim), 0, "bytes of data, found"}});
  }
}

TEST_CASE("an archive has at most 256 entries") {
  std::vector<std::pair<std::string, std::string>> arrays;
  for (int i = 0; i < 257; ++i) arrays.emplace_back(std::to_string(i), "");
  check({{"a.npz", zip_stored(arrays), 0, "zip: expected at most 256 entries, found 257"}});
}

TEST_CASE("a problem that was not asked for is refused") {
  ReadOptions options;
  options.problem = ProblemKind::kKnapsack;
  ReadOptions ends;
  ends.start = 2;
  check({{"a.tsp", kTsp, 0, "expected a path to start and end, found a TSP"}}, ends);
  ends.problem = ProblemKind::kPath;
  check({{"a.json", replaced(kTspJson, "tsp", "path"), 0,
          "expected a city below 2 to start or end at, found 2"}},
        ends);
  check({{"a.tsp", kTsp, 0, "expected a KnapSack instance, found a TSP one"},
         {"a.json", kTspJson, 0, "expected a KnapSack instance, found a TSP one"}},
        options);
}

TEST_CASE("a file whose kind cannot be told is refused") {
  check({{"a.dat", "", 1, "found an empty file"}, {"a.dat", "\x01\x02", 1, "found \"\\x01\\x02\""}});
}

namespace {

struct ValidFile {
  std::string name, bytes;
};

std::vector<ValidFile> valid_files() {
  return {{"a.tsp", kTsp},
          {"b.tsp", kMatrixTsp},
          {"a.csv", "x,y\n1,2\n3.5,-4\n"},
          {"a.kp", "3 12.5\n3 1.25\n4 2.5\n5 1\n"},
          {"a.json", kTspJson},
          {"b.json", kKnapsackJson},
          {"a.ndjson", kTspJson + "\n" + kTspJson + "\n"},
          {"a.npy", kNpy},
          {"a.npz", kNpz},
          {"b.npz", read_bytes("numpy_knapsack.npz")},
          {"c.npz", read_bytes("numpy_tsp.npz")}};
}

}  // namespace

// Harmless: nothing but whole lines of a stream is gone, or the rest is whole, or the user is warned.
TEST_CASE("every truncation is rejected or harmless") {
  for (const ValidFile& file : valid_files()) {
    const InstanceFile whole = parse_instances(file.bytes, file.name);
    CHECK(whole.warnings.empty());
    for (size_t size = 0; size < file.bytes.size(); ++size) {
      INFO(file.name << " cut to " << size << " of " << file.bytes.size());
      try {
        const InstanceFile cut = parse_instances(file.bytes.substr(0, size), file.name);
        const bool whole_lines = (file.name == "a.ndjson" && size >= kTspJson.size()) ||
                                 (file.name == "a.csv" && file.bytes[size - 1] == '\n');
        CHECK((same(cut, whole) || !cut.warnings.empty() || whole_lines));
      } catch (const InputError&) {
        SUCCEED();
      }
    }
  }
}

TEST_CASE("no changed byte does worse than an InputError") {
  size_t rejected = 0, tried = 0;
  for (const ValidFile& file : valid_files()) {
    for (size_t at = 0; at < file.bytes.size(); ++at) {
      for (const unsigned char change : {0x01, 0x02, 0x10, 0x20, 0x7F, 0x80, 0xFF}) {
        std::string bytes = file.bytes;
        bytes[at] = static_cast<char>(static_cast<unsigned char>(bytes[at]) ^ change);
        ++tried;
        try {
          const InstanceFile read = parse_instances(bytes, file.name);
          for (const Instance& instance : read.instances) {
            const bool is_matrix = instance.metric == Metric::kExplicit && !instance.has_coordinates();
            if (instance.n() < 1 || (!is_matrix && instance.values.size() != 2u * instance.n()))
              FAIL("an impossible instance was read");
          }
        } catch (const InputError&) {
          ++rejected;
        }
      }
    }
  }
  CHECK(rejected > tried / 2);
}
