// SPDX-License-Identifier: Apache-2.0
// What a network that re-reads learns from: stretches of given tours.
#pragma once

#include <cstdint>

#include "engine/training/training_batch.h"

namespace pointsman {

// Of training step `step` (0-based), options.batch times options.rollouts stretches, a function of (options,
// step): each of a random tour of options.examples, from a random city of it, in a random direction and
// dihedral copy, with a random number of cities left. All of a step read equally many cities. The answer is
// as much of the stretch as lies among the cities that are read.
TrainingBatch stretch_batch(const TrainOptions& options, int64_t step, const StopToken& stop = {});

}  // namespace pointsman
