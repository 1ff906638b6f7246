// SPDX-License-Identifier: Apache-2.0
// Training on several ranks has the bits of one process: model, checkpoint and log.
#include <filesystem>
#include <fstream>
#include <iterator>
#include <regex>
#include <string>

#include "engine/backend/ranks/cluster_backend.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"
#include "tests/engine/cluster/thread_ranks.h"
#include "tests/engine/quick_examples.h"
#include "tests/temporary_folder.h"

namespace pointsman {
namespace {

constexpr int64_t kSteps = 6;

// What a training leaves behind.
struct Left {
  std::string model, log;
  bool operator==(const Left&) const = default;
};

// Its lines without times, which no two runs share.
std::string log_of(const std::filesystem::path& path) {
  std::ifstream file(path);
  const std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  return std::regex_replace(text, std::regex("\"(seconds|tours_per_second|eta_seconds)\":[^,}]*"), "");
}

TrainOptions options_of(ProblemKind problem, Baseline baseline, Encoder encoder) {
  TrainOptions options;
  options.model.problem = problem;
  options.model.n = 6;
  options.model.encoder = encoder;
  options.model.layers = 1;
  options.model.has_critic = baseline == Baseline::kCritic;
  options.baseline = baseline;
  options.batch = 45;  // tiles that no number of ranks divides
  options.rollouts = baseline == Baseline::kShared ? 6 : 1;
  options.symmetries = encoder == Encoder::kAttention ? 2 : 1;
  options.entropy = 0.1f;
  options.validation_every = 2;
  options.validation_instances = 37;
  return options;
}

Left finish(Backend& backend, TrainOptions options, const std::filesystem::path& folder, bool resume) {
  options.output = folder / "model.safetensors";
  options.checkpoint = folder / "checkpoint";
  options.log = folder / "log.jsonl";
  train(backend, {options, initial_parameters(options.model, options.seed),
                  resume ? options.checkpoint : std::filesystem::path()});
  return {read_model(options.output).sha256, log_of(options.log)};
}

Left train_on(int ranks, const TrainOptions& options, const std::filesystem::path& folder,
              bool resume = false) {
  if (ranks == 0) return finish(*make_backend({"cpu", 2}), options, folder, resume);
  Left left;
  ThreadRanks::run(ranks, [&](Communicator& communicator) {
    const int threads = 1 + communicator.rank() % 2;
    if (communicator.rank() > 0) return serve_cluster_backend(communicator, nullptr, threads);
    left = finish(*make_cluster_backend(communicator, nullptr, threads), options, folder, resume);
  });
  return left;
}

}  // namespace

TEST_CASE("N ranks train the bits of one process", "[cluster]") {
  const auto [problem, baseline, encoder] = GENERATE(
      table<ProblemKind, Baseline, Encoder>({{ProblemKind::kTsp, Baseline::kShared, Encoder::kAttention},
                                             {ProblemKind::kTsp, Baseline::kCritic, Encoder::kLstm},
                                             {ProblemKind::kTsp, Baseline::kRollout, Encoder::kLstm},
                                             {ProblemKind::kKnapsack, Baseline::kShared, Encoder::kLstm},
                                             {ProblemKind::kCvrp, Baseline::kShared, Encoder::kAttention},
                                             {ProblemKind::kCvrp, Baseline::kCritic, Encoder::kLstm}}));
  TrainOptions options = options_of(problem, baseline, encoder);
  options.steps = kSteps;
  const TemporaryFolder folder;
  const Left expected = train_on(0, options, folder.path());
  REQUIRE(std::count(expected.log.begin(), expected.log.end(), '\n') == kSteps / 2);
  for (const int ranks : {1, 2, 3, 4}) {
    INFO(ranks << " ranks, " << name_of(problem) << ", baseline " << static_cast<int>(baseline));
    CHECK(train_on(ranks, options, folder.path()) == expected);
  }
}

TEST_CASE("N ranks train a network that re-reads to the bits of one process", "[cluster]") {
  TrainOptions options = options_of(ProblemKind::kTsp, Baseline::kShared, Encoder::kAttention);
  options.steps = kSteps;
  options.entropy = 0.0f;
  options.rollouts = options.symmetries = 1;
  options.model.reread = 3;
  options.examples = quick_examples(options.model, 12);
  const TemporaryFolder folder;
  const Left expected = train_on(0, options, folder.path());
  for (const int ranks : {2, 3}) CHECK(train_on(ranks, options, folder.path()) == expected);
}

TEST_CASE("a checkpoint of N ranks goes on with any other number", "[cluster]") {
  TrainOptions options = options_of(ProblemKind::kTsp, Baseline::kShared, Encoder::kAttention);
  options.steps = kSteps;
  const TemporaryFolder folder;
  const Left expected = train_on(0, options, folder.path());
  const int numbers[] = {3, 1, 4, 0, 2, 3};
  for (int64_t step = 1; step <= kSteps; ++step) {
    options.steps = step;
    const Left left = train_on(numbers[step - 1], options, folder.path(), step > 1);
    if (step == kSteps) CHECK(left.model == expected.model);
  }
}

TEST_CASE("a sequence whose rollouts several ranks share keeps its samples", "[cluster]") {
  TrainOptions options = options_of(ProblemKind::kTsp, Baseline::kShared, Encoder::kAttention);
  options.steps = 2;
  options.batch = 3;
  options.rollouts = 80;  // 40 a sequence: three tiles
  const TemporaryFolder folder;
  CHECK(train_on(4, options, folder.path()) == train_on(0, options, folder.path()));
}

TEST_CASE("ranks without a share of a small batch still keep up", "[cluster]") {
  TrainOptions options = options_of(ProblemKind::kTsp, Baseline::kShared, Encoder::kLstm);
  options.steps = 3;
  options.batch = 4;  // 24 rollouts: two tiles
  const TemporaryFolder folder;
  CHECK(train_on(5, options, folder.path()) == train_on(0, options, folder.path()));
}

}  // namespace pointsman
