// SPDX-License-Identifier: Apache-2.0
// Marks at the start of a text file: that of UTF-8 is read over, that of UTF-16 refused.
#include <string>
#include <utility>
#include <vector>

#include "host/formats/read_files.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

std::string refusal(const std::string& bytes, const std::string& name) {
  try {
    parse_instances(bytes, name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("UTF-16 is named, whatever the format") {
  for (const std::string mark : {"\xFF\xFE", "\xFE\xFF"}) {
    for (const char* name : {"a.tsp", "a.json", "a.jsonl", "a.kp", "a.csv", "a"})
      CHECK(refusal(mark + std::string("3\0 \0", 4), name) ==
            std::string(name) + ":1: expected UTF-8, found UTF-16; save it as UTF-8");
  }
}

TEST_CASE("a byte order mark is read over, whatever the format") {
  const std::string mark = "\xEF\xBB\xBF", json = R"({"problem":"tsp","coordinates":[[1,2],[3,4]]})";
  const std::vector<double> values = {1, 2, 3, 4};
  const std::pair<const char*, std::string> files[] = {
      {"a.json", json},
      {"a", json},
      {"a.jsonl", json + "\n"},
      {"a", json + "\n" + json + "\n"},
      {"a.csv", "1,2\n3,4\n"},
      {"a.tsp", "DIMENSION: 2\nEDGE_WEIGHT_TYPE: EUC_2D\nNODE_COORD_SECTION\n1 1 2\n2 3 4\nEOF\n"}};
  for (const auto& [name, bytes] : files) {
    INFO(name << ": " << bytes);
    CHECK(parse_instances(mark + bytes, name).instances.at(0).values == values);
  }
  ReadOptions options;
  options.format = InputFormat::kJson;  // which nothing has to be read for
  CHECK(parse_instances(mark + json, "a", options).instances.at(0).values == values);
  CHECK(refusal(json + "\n" + mark + json + "\n", "a.jsonl").find("a.jsonl:2:1: starts with") == 0);
  const InstanceBatch one = parse_instances(json, "a.json").instances;
  CHECK(parse_solutions(mark + R"({"tour":[1,0]})", "a.json", one).at(0).order == std::vector<int32_t>{1, 0});
  CHECK(parse_solutions(mark + "TYPE : TOUR\nDIMENSION : 2\nTOUR_SECTION\n2\n1\n-1\nEOF\n", "a.tour", one)
            .at(0)
            .order == std::vector<int32_t>{1, 0});
}
