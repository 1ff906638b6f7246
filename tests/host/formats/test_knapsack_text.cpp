// SPDX-License-Identifier: Apache-2.0
// The layouts of KnapSack text: each is told by counting numbers, by its name, and refused with the place of
// what is wrong.
#include <string>
#include <utility>
#include <vector>

#include "host/formats/formats.h"
#include "tests/catch.h"

using namespace pointsman;

namespace {

using Layout = KnapsackLayout;

// Weights 4, 6, 5, profits 5, 4, 3, capacity 10.
const std::vector<double> kItems = {4, 5, 6, 4, 5, 3};

const std::string kPairs = "3 10\n5 4\n4 6\n3 5\n";
const std::string kTwoLines = "\n3\n10\n\n5 4\n4 6\n3 5\n";
const std::string kSolution = "3 10\n5 4\n4 6\n3 5\n1 1 0\n";
const std::string kCapacityLast = "3\n5 4\n4 6\n3 5\n10\n";
const std::string kLists = "3 10\n4 6 5\n5 4 3\n";
const std::string kPisinger =
    "knapPI_x_3_10_1\nn 3\nc 10\nz 9\ntime 0.00\n1,5,4,1\n2,4,6,1\n3,3,5,0\n-----\n";
const std::string kRows = "9000 3 10 4 5 6 4 5 3\n9001 3 5 4 5 6 4 5 3\n";

const std::pair<Layout, std::string> kExamples[] = {
    {Layout::kPairs, kPairs},
    {Layout::kTwoLines, kTwoLines},
    {Layout::kSolution, kSolution},
    {Layout::kCapacityLast, kCapacityLast},
    {Layout::kLists, kLists},
    {Layout::kPisinger, kPisinger},
    {Layout::kRows, kRows},
    // variants
    {Layout::kTwoLines, "3\r\n10\r\n5\t4\r\n4 6\r\n 3 5 \r\n"},
    {Layout::kSolution, "3 10\n5 4\n4 6\n3 5\n1\n1\n0\n"},
    {Layout::kSolution, "3 10\n5 4\n4 6\n3 5\n1 1\n\n0\n"},
    {Layout::kSolution, "3\n10\n5 4\n4 6\n3 5\n1 1 0\n"},
    {Layout::kLists, "3 10\n\n4 6 5\n\n5 4 3\n"},
    {Layout::kPisinger, "\nany name at all\n n  3\nc 10\nz 9\ntime 1e2\n1, 5, 4, 1\n2,4,6,1\n3,3,5,0\n"},
};

Instance read_one(const std::string& bytes, Layout layout = Layout::kAuto, const std::string& name = "a.kp") {
  ReadOptions options;
  options.layout = layout;
  return parse_instances(bytes, name, options).instances.at(0);
}

std::string refusal(const std::string& bytes, Layout layout = Layout::kAuto,
                    const std::string& name = "a.kp") {
  try {
    read_one(bytes, layout, name);
  } catch (const InputError& error) {
    return error.what();
  }
  return "no error";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  return text.replace(text.find(what), what.size(), by);
}

bool is_item_list(const Instance& instance) {
  return instance.problem == ProblemKind::kKnapsack && instance.capacity == 10 && instance.values == kItems;
}

}  // namespace

TEST_CASE("every layout is told by its numbers, and taken by its name") {
  for (const auto& [layout, bytes] : kExamples) {
    INFO(bytes);
    for (const Layout told : {Layout::kAuto, layout}) {
      CHECK(is_item_list(read_one(bytes, told)));
      CHECK(is_item_list(read_one("\xEF\xBB\xBF" + bytes, told)));
    }
    const InstanceFile cut = parse_instances(bytes.substr(0, bytes.rfind('\n')), "a.txt");
    CHECK(cut.warnings.size() == 1);
  }
}

TEST_CASE("no layout takes the file of another") {
  for (size_t a = 0; a < 7; ++a) {
    for (size_t b = 0; b < 7; ++b) {
      INFO(kExamples[b].second << " as " << knapsack_layouts()[a + 1].name);
      CHECK(knapsack_layouts()[a + 1].layout == kExamples[a].first);
      if (a != b) CHECK_THROWS_AS(read_one(kExamples[b].second, kExamples[a].first), InputError);
    }
  }
}

TEST_CASE("lists may be wrapped, each from a new line on") {
  const std::vector<double> values = {1, 6, 2, 7, 3, 8, 4, 9, 5, 10};
  for (const std::string rows :
       {"1 2 3 4 5\n6 7 8 9 10\n", "1 2 3\n4 5\n6 7 8\n9 10\n", "1 2 3 4\n5\n6\n7 8 9 10\n"})
    CHECK(read_one("5 10\n" + rows).values == values);
  CHECK(read_one("1 10\n4\n5\n").values == std::vector<double>{4, 5});
  for (const Layout told : {Layout::kAuto, Layout::kLists})
    CHECK(refusal("5 10\n1 2 3\n4 5 6\n7 8 9\n10\n", told) ==
          "a.kp:3: expected the end of the line after n = 5 weights, found \"6\"");
  CHECK(refusal("5 10\n1 2 3\n4 5 6\n7 8 9\n") == "a.kp:2: expected \"profit weight\", found \"1 2 3\"");
}

TEST_CASE("two pairs might be two lists: the flag chooses") {
  const std::string both = "2 10\n4 6\n5 7\n";
  const InstanceFile told = parse_instances(both, "a.kp");
  CHECK(told.instances.at(0).values == std::vector<double>{6, 4, 7, 5});
  REQUIRE(told.warnings.size() == 1);
  CHECK(told.warnings[0] ==
        "a.kp:2: two layouts fit, pairs (\"profit weight\" on each line) and lists (the weights, then the "
        "profits); pairs are read: --layout pairs says so, --layout lists reads the other");
  CHECK(read_one(both, Layout::kPairs).values == std::vector<double>{6, 4, 7, 5});
  CHECK(read_one(both, Layout::kLists).values == std::vector<double>{4, 5, 6, 7});
  CHECK(read_one("2 10\n4 4\n4 4\n").values == std::vector<double>{4, 4, 4, 4});  // the same as either
  // Only there: one number more, one item more or less, and there is no other layout.
  CHECK(read_one("2\n10\n4 6\n5 7\n").values == std::vector<double>{6, 4, 7, 5});
  CHECK(read_one("2 10\n4 6\n5 7\n0 1\n").values == std::vector<double>{6, 4, 7, 5});
  CHECK(read_one("1 10\n4 6\n").values == std::vector<double>{6, 4});
  CHECK(read_one("4 10\n1 2\n3 4\n5 6\n7 8\n").values == std::vector<double>{2, 1, 4, 3, 6, 5, 8, 7});
}

TEST_CASE("what is written is read back, two items too") {
  for (const int n : {1, 2, 3, 4}) {
    Instance sack;
    sack.problem = ProblemKind::kKnapsack;
    sack.capacity = 7.5;
    for (int i = 0; i < 2 * n; ++i) sack.values.push_back(i + 0.25);
    const Instance back = read_one(write_knapsack_text({sack}));
    CHECK(back.values == sack.values);
    CHECK(back.capacity == sack.capacity);
  }
}

TEST_CASE("files of several instances have the ids that stand there") {
  const InstanceBatch rows = parse_instances(kRows, "a.txt").instances;
  REQUIRE(rows.size() == 2);
  CHECK(rows[0].id == "9000");
  CHECK(rows[0].has_id);
  CHECK(rows[1].capacity == 5);
  CHECK(rows[1].values == kItems);
  const std::string second = replaced(replaced(kPisinger, "10_1", "10_2"), "c 10", "c 5");
  for (const char* name : {"a.csv", "a.kp"}) {
    const InstanceBatch blocks = parse_instances(kPisinger + "\n" + second, name).instances;
    REQUIRE(blocks.size() == 2);
    CHECK(blocks[0].id == "knapPI_x_3_10_1");
    CHECK(blocks[1].id == "knapPI_x_3_10_2");
    CHECK(blocks[1].has_id);
    CHECK(blocks[1].capacity == 5);
    CHECK(is_item_list(blocks[0]));
  }
  CHECK(parse_instances("1 1 5 2 3\n2 3 10 4 5 6 4 5 3\n", "a.kp").instances.at(1).values == kItems);
}

TEST_CASE("a capacity that stands first is asked for") {
  CHECK(refusal("10 3\n5 4\n4 6\n3 5\n") ==
        "a.kp:4: expected n = 10 items, found 3; 3 lines follow: is it capacity n?");
  CHECK(refusal("2 3\n5 4\n4 6\n3 5\n") ==
        "a.kp:4: expected the end after n = 2 items, found \"3 5\"; 3 lines follow: is it capacity n?");
  CHECK(refusal("10\n3\n5 4\n4 6\n3 5\n") ==
        "a.kp:5: expected n = 10 items, found 3; 3 lines follow: is it capacity n?");
  CHECK(refusal("10 4\n5 4\n4 6\n3 5\n") == "a.kp:4: expected n = 10 items, found 3");
}

TEST_CASE("malformed tables name the line") {
  const std::pair<std::string, std::string> cases[] = {
      {"3\n10\n5 4\n4 6\n", "4: expected n = 3 items, found 2"},
      {"3\n10\n5 4\n4 6\n3\n", "5: expected \"profit weight\", found \"3\""},
      {"3\n10\n5 4\n4 6\n3 5\n7 7\n", "6: expected the end after n = 3 items, found \"7 7\""},
      {"3\n-1\n5 4\n", "2: expected the capacity, a number from 0 to 1e100, found \"-1\""},
      {"3.5\n10\n5 4\n", "1: expected n, an integer of at least 1, found 3.5"},
      {"3\n", "1: expected \"n capacity\", found \"3\""},
      {"3\n5 4\n4 6\n3 5\n", "1: expected \"n capacity\", found \"3\", and no capacity in the last line"},
      {"3\n5 4\n4 6\n10\n", "4: expected n = 3 items before the capacity, found 2"},
      {"3\n5 4\n4 6\n3 5\n7 7\n10\n", "5: expected the capacity alone, found \"7 7\""},
      {"3\n5 4\n4 6\n3 5\n10\n11\n", "6: expected the end after the capacity, found \"11\""},
      {"3 10\n5 4\n4 6\n3 5\n1 1\n", "5: expected n = 3 zeros and ones, found 2"},
      {"3 10\n5 4\n4 6\n3 5\n1 1 0 1\n", "5: expected the end after n = 3 zeros and ones, found \"1 1 0 1\""},
      {"3 10\n5 4\n4 6\n3 5\n1\n1 2\n", "6: expected zeros and ones, found \"1 2\""},
      {"3 10\n5 4\n4 6\n3 5\n1 2 0\n", "5: expected the end after n = 3 items, found \"1 2 0\""},
      {"3 10 7\n5 4\n", "1: expected \"n capacity\", found \"3 10 7\""},
      {"{\n\"problem\": 3\n", "1: expected \"n capacity\", found \"{\""},
      {"a text of five words\n", "1: expected \"n capacity\", found \"a text of five words\""}};
  for (const auto& [bytes, message] : cases) {
    INFO(bytes);
    CHECK(refusal(bytes) == "a.kp:" + message);
  }
  CHECK(refusal(kSolution, Layout::kPairs) == "a.kp:5: expected the end after n = 3 items, found \"1 1 0\"");
  CHECK(refusal(kPairs, Layout::kSolution) == "a.kp:4: expected n = 3 zeros and ones, found 0");
}

TEST_CASE("malformed lists, rows and blocks name the line") {
  const std::pair<std::string, std::string> cases[] = {
      {"3 10\n4 6 5\n5 4\n", "3: expected n = 3 profits, found 2"},
      {"3 10\n4 6 5\n", "2: expected n = 3 profits, found 0"},
      {"3 10\n4 6 5\n5 4 3 2\n", "3: expected the end of the line after n = 3 profits, found \"2\""},
      {"3 10\n4 6 5\n5 4 3\n2\n", "4: expected the end after n = 3 profits, found \"2\""},
      {"3 10\n4 6 x\n5 4 3\n", "2: expected a weight, a number from 0 to 1e100, found \"x\""},
      {"3 10\n4 6 5\n5 -4 3\n", "3: expected a profit, a number from 0 to 1e100, found \"-4\""},
      {"9 3 10 4 5 6 4 5\n", "1: expected n = 3 times \"weight profit\", found 5 numbers"},
      {"9 3 10 4 5 6 4 5 3\n9 3 10 4 5 6 4 5 3 1\n",
       "2: expected n = 3 times \"weight profit\", found 7 numbers"},
      {"9 3 10 4 5 6 4 5 3\n9 3\n",
       "2: expected \"id n capacity\", then n times \"weight profit\", found \"9 3\""},
      {"9 3 10 4 5 6 4 5 y\n", "1: expected a profit, a number from 0 to 1e100, found \"y\""},
      {"9 0 10 4 5 6 4 5 3\n", "1: expected n, an integer of at least 1, found 0"},
      {"9 1 10 9007199254740993 1\n",
       "1: expected an integer that a double holds exactly, found 9007199254740993"},
      {replaced(kPisinger, "c 10\n", ""), "3: expected \"c\" and a number, found \"z 9\""},
      {replaced(kPisinger, "2,4", "3,4"),
       "7: expected \"2,profit,weight,taken\", taken 0 or 1, found \"3,4,6,1\""},
      {replaced(kPisinger, "6,1", "6,2"),
       "7: expected \"2,profit,weight,taken\", taken 0 or 1, found \"2,4,6,2\""},
      {replaced(kPisinger, "6,1", "6"),
       "7: expected \"2,profit,weight,taken\", taken 0 or 1, found \"2,4,6\""},
      {replaced(kPisinger, "6,1", "6,1,"),
       "7: expected \"2,profit,weight,taken\", taken 0 or 1, found \"2,4,6,1,\""},
      {replaced(kPisinger, "2,4", "2,-4"), "7: expected a profit, a number from 0 to 1e100, found \"-4\""},
      {replaced(kPisinger, "n 3", "n 4"),
       "9: expected \"4,profit,weight,taken\", taken 0 or 1, found \"-----\""},
      {replaced(kPisinger, "n 3", "n 2"), "8: expected \"-----\" after n = 2 items, found \"3,3,5,0\""},
      {kPisinger + "name\n", "10: expected \"n\" and a number, found the end of the file"}};
  for (const auto& [bytes, message] : cases) {
    INFO(bytes);
    CHECK(refusal(bytes) == "a.kp:" + message);
  }
  CHECK(refusal("x;y\nn 3\n", Layout::kAuto, "a.csv").find("a.csv:2: expected \"c\"") == 0);
}

TEST_CASE("a size that the numbers do not bear takes no memory") {
  const std::string huge = "536870912 10\n";
  for (const std::string rows : {"5 4\n", "1 2 3\n", "4\n"}) CHECK(refusal(huge + rows) != "no error");
  CHECK(refusal("9 536870912 10 4 5\n") != "no error");
  CHECK(refusal(replaced(kPisinger, "n 3", "n 536870912")) != "no error");
}
