// SPDX-License-Identifier: Apache-2.0
// The resumable state of a training as a file (docs/file-formats.md). Random numbers need no state: every
// draw is a function of the seed and the step.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/training/trainer.h"

namespace pointsman {

// Sums since the last line of the log.
struct IntervalSums {
  int64_t steps = 0;
  int64_t tours = 0;
  double cost = 0.0, cross_entropy = 0.0, baseline_loss = 0.0, grad_norm = 0.0;  // over steps
  PolicyStatistics policy;  // checkpoints leave out `evaluations` and `direct_rows`
  double start_seconds = 0.0;
};

struct TrainState {
  int64_t step = 0;         // steps done
  int64_t tours = 0;        // tours sampled by them
  int64_t prior_tours = 0;  // training_tours of the model that the training started from
  double seconds = 0.0;     // wall-clock time of all runs together
  bool average_started = false;
  double penalty = 0.0;  // TSPTW: Policy's
  double average = 0.0;  // kEma: b, network units
  IntervalSums interval;
  std::vector<float> parameters;  // [layout.size]
  OptimiserState optimiser;
  std::vector<float> baseline_parameters;  // kRollout: [layout.size] of the frozen actor; otherwise empty
};

struct Checkpoint {
  TrainOptions options;  // without the paths; of the model only what shapes the network and the problem
  TrainState state;
};

// The file's bytes: magic, version, size, fields, 64-bit FNV-1a of everything before it. Little-endian.
std::string checkpoint_bytes(const TrainOptions& options, const TrainState& state);
// `name` begins every message. Throws CheckpointError for anything that checkpoint_bytes did not write.
Checkpoint parse_checkpoint(std::string_view bytes, const std::string& name);
Checkpoint read_checkpoint(const std::filesystem::path& path);

// Throws CheckpointError naming the first option that changes the training: not steps, checkpoint_every,
// paths.
void require_same_training(const TrainOptions& saved, const TrainOptions& asked, const std::string& name);

}  // namespace pointsman
