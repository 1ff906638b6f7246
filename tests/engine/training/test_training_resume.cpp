// SPDX-License-Identifier: Apache-2.0
// Training on the real CPU backend: stopping anywhere and going on is the same as never having stopped,
// whatever the number of threads.
#include <unistd.h>

#include <filesystem>
#include <string>

#include "engine/backend/backend.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"
#include "tests/temporary_folder.h"

namespace pointsman {
namespace {

constexpr int kSteps = 40;

TrainOptions small_options(const std::filesystem::path& directory, Baseline baseline) {
  TrainOptions options;
  options.model.n = 6;
  options.model.has_critic = baseline == Baseline::kCritic;
  options.baseline = baseline;
  options.batch = baseline == Baseline::kShared ? 4 : 8;
  options.rollouts = 2;
  options.validation_every = 15;
  options.validation_instances = 16;
  options.decay_steps = 10;
  options.checkpoint = directory / "train.ckpt";
  options.output = directory / "model.safetensors";
  return options;
}

// Trains to `steps`, from the checkpoint of `options` when asked to, and returns the model file's sha256.
std::string train_to(int64_t steps, TrainOptions options, bool resume, int threads) {
  BackendOptions cpu;
  cpu.device = "cpu";
  cpu.threads = threads;
  const auto backend = make_backend(cpu);
  options.steps = steps;
  const auto initial = initial_parameters(options.model, options.seed);
  train(*backend, options, initial, resume ? options.checkpoint : std::filesystem::path(), {}, {});
  return read_model(options.output).sha256;
}

}  // namespace

TEST_CASE("stopping at any step and resuming gives the same model file", "[training]") {
  const TemporaryFolder folder;
  const Baseline baseline = GENERATE(Baseline::kShared, Baseline::kCritic);
  const TrainOptions options = small_options(folder.path(), baseline);
  const std::string expected = train_to(kSteps, options, false, 1);
  REQUIRE(train_to(kSteps - 1, options, false, 1) != expected);
  for (int stop = 1; stop < kSteps; ++stop) {
    train_to(stop, options, false, 1 + stop % 3);
    INFO("stopped after step " << stop);
    CHECK(train_to(kSteps, options, true, 1 + (stop + 1) % 3) == expected);
  }
}

}  // namespace pointsman
