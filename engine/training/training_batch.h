// SPDX-License-Identifier: Apache-2.0
// The input sequences of a training step or of a validation: a pure function of (options, step), so a resumed
// training reads the same. A stop ends any of them with CallStopped.
#pragma once

#include <cstdint>
#include <vector>

#include "engine/search/sequence_packer.h"
#include "engine/training/trainer.h"

namespace pointsman {

// Seeds of the three endless instance sequences of a training. None is the seed itself, which may have
// generated data for evaluation.
inline uint64_t training_seed(uint64_t seed) { return seed ^ 0x747261696E696E67ull; }
inline uint64_t validation_seed(uint64_t seed) { return seed ^ 0x76616C6964617465ull; }
// kRollout: instances of the t-test, fresh ones each time.
inline uint64_t challenge_seed(uint64_t seed) { return seed ^ 0x6368616C6C656E67ull; }

// Its weights are exactly those in the features, its keys the instances' places in their endless sequence.
struct TrainingBatch : Sequences {
  int rollouts() const { return counts.empty() ? count : count * counts[0]; }

  int count = 0;                     // sequences
  std::vector<int32_t> orders = {};  // supervised learning: [count][steps] the answers; else empty
};

// Instances first .. first + count - 1 of the sequence of `seed`, one sequence each, as they are.
TrainingBatch plain_batch(const TrainOptions& options, uint64_t seed, uint64_t first, int count,
                          const StopToken& stop = {});

// options.validation as it is, else options.validation_instances fresh ones.
TrainingBatch validation_batch(const TrainOptions& options);

// kRollout: what the t-test number `round` compares on, other instances each time.
TrainingBatch challenge_batch(const TrainOptions& options, int64_t round, const StopToken& stop = {});

// The order of the examples in an epoch, kept from step to step, as drawing it takes a pass over all of them.
struct EpochOrder {
  uint64_t epoch = 0;
  std::vector<int32_t> rows;  // [examples], empty before the first use
};

// Training step `step` (0-based): options.batch new instances, or the next of options.examples. Every epoch
// runs through all examples in a new order, TSP in dihedral copy epoch mod 8, with their answers in canonical
// order (make_example). kShared with Encoder::kAttention has options.symmetries sequences of each instance:
// rollout r reads dihedral copy r mod symmetries. Otherwise kShared and supervised have options.rollouts
// sequences of each, in random input orders; for TSP rollout r reads dihedral copy r mod 8. `order` is a
// cache for these options.
TrainingBatch training_batch(const TrainOptions& options, int64_t step, EpochOrder& order,
                             const StopToken& stop = {});

}  // namespace pointsman
