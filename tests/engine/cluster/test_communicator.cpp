// SPDX-License-Identifier: Apache-2.0
// Messages, sums in rank order, and who is taken for a rank.
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "engine/cluster/communicator.h"
#include "engine/cluster/message.h"
#include "tests/catch.h"
#include "tests/engine/cluster/thread_ranks.h"

namespace pointsman {
namespace {

constexpr int kAddends = 7;
constexpr size_t kSize = 3 * 65536 + 5;  // several slices, the last one short

// Numbers of many magnitudes, whose sum depends on its order.
std::vector<std::vector<float>> addends() {
  std::mt19937 random(1);
  std::uniform_real_distribution<float> exponent(-20.0f, 20.0f);
  std::vector<std::vector<float>> all(kAddends, std::vector<float>(kSize));
  for (std::vector<float>& one : all) {
    for (float& value : one) value = std::exp2(exponent(random)) * (random() % 2 == 0 ? 1.0f : -1.0f);
  }
  return all;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

// The environment with these variables and without other launchers', for a moment.
class Environment {
 public:
  explicit Environment(const std::vector<std::pair<const char*, const char*>>& variables) {
    for (const char* name : kNames) unsetenv(name);
    for (const auto& [name, value] : variables) setenv(name, value, 1);
  }
  ~Environment() {
    for (const char* name : kNames) unsetenv(name);
  }

 private:
  static constexpr const char* kNames[] = {"OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "PMIX_RANK", "POINTSMAN_MPI",
                                           "POINTSMAN_MPI_MODULE"};
};

}  // namespace

TEST_CASE("a sum in rank order has the bits of one loop, for any number of ranks", "[cluster]") {
  const std::vector<std::vector<float>> all = addends();
  std::vector<float> expected = all[0];
  for (int a = 1; a < kAddends; ++a) {
    for (size_t i = 0; i < kSize; ++i) expected[i] += all[static_cast<size_t>(a)][i];
  }
  // More ranks than addends: some only pass the sum on.
  for (const int ranks : {1, 2, 3, 4, 9}) {
    std::vector<std::vector<float>> sums(static_cast<size_t>(ranks), std::vector<float>(kSize, -1.0f));
    ThreadRanks::run(ranks, [&](Communicator& communicator) {
      const int rank = communicator.rank();
      std::vector<const float*> own;
      const auto begin = [&](int r) { return (r * kAddends + ranks - 1) / ranks; };
      for (int a = begin(rank); a < begin(rank + 1); ++a) own.push_back(all[static_cast<size_t>(a)].data());
      sum_in_rank_order(communicator, own, sums[static_cast<size_t>(rank)]);
    });
    INFO(ranks << " ranks");
    for (const std::vector<float>& sum : sums) CHECK(same_bits(sum, expected));
  }
}

TEST_CASE("one process is rank 0 of 1 and has nobody to talk to", "[cluster]") {
  Communicator& alone = one_process();
  CHECK(alone.rank() == 0);
  CHECK(alone.size() == 1);
  CHECK_THROWS_AS(alone.receive(Communicator::kAnyRank), std::logic_error);
  std::vector<float> sum(3);
  const std::vector<float> one = {1, 2, 3}, two = {4, 5, 6};
  const std::vector<const float*> both = {one.data(), two.data()};
  sum_in_rank_order(alone, both, sum);
  CHECK(sum == std::vector<float>{5, 7, 9});
}

TEST_CASE("a message is read as it was written, and a cut one is refused", "[cluster]") {
  MessageWriter writer;
  writer.put(7).put(std::string("text")).put(std::vector<double>{1.5, 2.5}).put(std::optional<float>());
  MessageReader reader(writer.bytes());
  CHECK(reader.next<int>() == 7);
  CHECK(reader.next<std::string>() == "text");
  CHECK(reader.next<std::vector<double>>() == std::vector<double>{1.5, 2.5});
  CHECK_FALSE(reader.next<std::optional<float>>());
  CHECK(reader.at_end());
  for (size_t size = 0; size < writer.bytes().size(); ++size) {
    const std::string cut = writer.bytes().substr(0, size);
    MessageReader part(cut);
    const auto read_all = [&] {
      part.next<int>();
      part.next<std::string>();
      part.next<std::vector<double>>();
      part.next<std::optional<float>>();
    };
    CHECK_THROWS_AS(read_all(), std::runtime_error);
  }
}

TEST_CASE("a process is a rank where a launcher of several started it", "[cluster]") {
  using Variables = std::vector<std::pair<const char*, const char*>>;
  const std::vector<Variables> alone = {{},
                                        {{"OMPI_COMM_WORLD_SIZE", "1"}},
                                        {{"PMI_SIZE", "1"}},
                                        {{"PMIX_RANK", "0"}, {"POINTSMAN_MPI", "off"}}};
  for (const Variables& variables : alone) {
    const Environment environment(variables);
    CHECK(join_ranks() == nullptr);
  }
  const std::vector<Variables> launched = {
      {{"OMPI_COMM_WORLD_SIZE", "2"}}, {{"PMI_SIZE", "4"}}, {{"PMIX_RANK", "0"}}};
  for (Variables variables : launched) {
    variables.emplace_back("POINTSMAN_MPI_MODULE", "/no/such/module.so");
    const Environment environment(variables);
    CHECK_THROWS_WITH(join_ranks(), has_text(variables[0].first) && has_text("/no/such/module.so"));
  }
}

}  // namespace pointsman
