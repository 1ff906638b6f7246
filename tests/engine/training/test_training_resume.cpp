// SPDX-License-Identifier: Apache-2.0
// Training on the real CPU backend: stopping anywhere and going on is the same as never having stopped,
// whatever the number of threads.
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <filesystem>
#include <limits>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/training/trainer.h"
#include "models/parameter_file.h"
#include "models/parameter_layout.h"
#include "tests/catch.h"
#include "tests/engine/quick_examples.h"
#include "tests/temporary_folder.h"

namespace pointsman {
namespace {

constexpr int kSteps = 40;

TrainOptions small_options(const std::filesystem::path& directory, Baseline baseline,
                           ProblemKind problem = ProblemKind::kTsp) {
  TrainOptions options;
  options.model.problem = problem;
  options.model.n = 6;
  if (problem == ProblemKind::kCvrp) options.model.capacity = 12.0;
  options.infeasible = Infeasible::kPenalty;  // of TSPTW, whose weight changes from step to step
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

// Trains to `steps`, from the checkpoint of `options` when asked to, and returns the model file's sha256. It
// is stopped at question number `last`.
std::string train_to(int64_t steps, TrainOptions options, bool resume, int threads,
                     int64_t last = std::numeric_limits<int64_t>::max(),
                     std::vector<TrainProgress>* lines = nullptr, int64_t* questions = nullptr) {
  BackendOptions cpu;
  cpu.device = "cpu";
  cpu.threads = threads;
  const auto backend = make_backend(cpu);
  options.steps = steps;
  const auto initial = initial_parameters(options.model, options.seed);
  std::atomic<int64_t> asked{0};
  SearchControl control;
  control.interrupted = [&] { return ++asked >= last; };
  const auto keep = [&](const TrainProgress& line) {
    if (lines != nullptr) lines->push_back(line);
  };
  train(*backend, {options, initial, resume ? options.checkpoint : std::filesystem::path(), control, keep});
  if (questions != nullptr) *questions = asked;
  return read_model(options.output).sha256;
}

}  // namespace

TEST_CASE("stopping after a step and resuming gives the same model file", "[training]") {
  const TemporaryFolder folder;
  const auto [problem, baseline, is_supervised, reread] =
      GENERATE(table<ProblemKind, Baseline, bool, int>({{ProblemKind::kTsp, Baseline::kShared, false, 0},
                                                        {ProblemKind::kTsp, Baseline::kCritic, false, 0},
                                                        {ProblemKind::kCvrp, Baseline::kShared, false, 0},
                                                        {ProblemKind::kTsptw, Baseline::kShared, false, 0},
                                                        {ProblemKind::kCvrp, Baseline::kShared, true, 0},
                                                        {ProblemKind::kTsp, Baseline::kShared, true, 2}}));
  TrainOptions options = small_options(folder.path(), baseline, problem);
  options.model.reread = reread;
  if (reread > 0) options.model.encoder = Encoder::kAttention;
  if (is_supervised) options.examples = quick_examples(options.model, 10);
  const std::string expected = train_to(kSteps, options, false, 1);
  REQUIRE(train_to(kSteps - 1, options, false, 1) != expected);
  // Beside a new learning rate (every 10), a validation (every 15) and the ends. Every step, on a backend
  // that takes no time: test_trainer.cpp.
  for (const int stop : {1, 9, 10, 11, 14, 15, 16, kSteps - 1}) {
    train_to(stop, options, false, 1 + stop % 3);
    INFO(name_of(problem) << ", supervised: " << is_supervised << ", reread " << reread
                          << ", stopped after step " << stop);
    CHECK(train_to(kSteps, options, true, 1 + (stop + 1) % 3) == expected);
  }
}

TEST_CASE("a stop within a step or a validation leaves nothing of it", "[training]") {
  constexpr int64_t kLast = 32;
  constexpr int kStops = 9;
  const Baseline baseline =
      GENERATE(Baseline::kShared, Baseline::kCritic, Baseline::kEma, Baseline::kRollout);
  const TemporaryFolder folder;
  const TrainOptions options = small_options(folder.path(), baseline);
  std::vector<TrainProgress> expected_lines;
  int64_t questions = 0;
  const std::string expected = train_to(kLast, options, false, 1, 1 << 30, &expected_lines, &questions);
  expected_lines.pop_back();  // at the end of the steps and of no interval
  const std::string unbegun = train_to(0, options, false, 1);
  CHECK(questions > 8 * kLast);  // within a step too
  for (int k = 0; k <= kStops; ++k) {
    const int64_t last = 2 + (questions - 2) * k / kStops;
    INFO("stopped at question " << last << " of " << questions);
    std::vector<TrainProgress> lines;
    int64_t asked = 0;
    const std::string stopped = train_to(kLast, options, false, 1, last, &lines, &asked);
    CHECK(asked <= last + 4);  // and then not much more
    if (k == 0) CHECK(stopped == unbegun);
    CHECK(train_to(kLast, options, true, 1 + k % 3, 1 << 30, &lines) == expected);
    // A line before a t-test that was cut short is made again, and takes the place of the first in a log.
    lines.erase(std::unique(lines.begin(), lines.end(),
                            [](const auto& one, const auto& next) { return one.step == next.step; }),
                lines.end());
    REQUIRE(lines.size() >= expected_lines.size());
    for (size_t i = 0; i < expected_lines.size(); ++i) {
      CHECK(lines[i].step == expected_lines[i].step);
      CHECK(lines[i].val_cost == expected_lines[i].val_cost);
      CHECK(lines[i].train_cost == expected_lines[i].train_cost);
      CHECK(lines[i].baseline_loss == expected_lines[i].baseline_loss);
    }
  }
}

}  // namespace pointsman
