// SPDX-License-Identifier: Apache-2.0
// How the pointer's scores become choices, and what is counted of them.
#pragma once

#include <cstdint>
#include <optional>

#include "kernels/common/host_device.h"

namespace pointsman {

// The penalty of searches: any late tour costs more than any that is not, as no tour is so long in network
// units.
inline constexpr double kLatePenalty = 1e6;

enum class Decode : int32_t { kGreedy, kSample, kForced };

// softmax(C tanh(u) / T) over what may be chosen (equation (16) of Bello et al. 2017 and its section 4). A
// rollout and the gradient of its log p must be given the same policy.
struct Policy {
  float temperature = 1.0f;   // T > 0
  std::optional<float> clip;  // C > 0; none: the model's own
  // Above 0, a sample on the CPU takes the item with the largest logit after adding normal noise of this
  // standard deviation (section 4's perturbed greedy decoding). Log p is that of the unperturbed policy.
  float noise = 0.0f;
  // KnapSack, the paper's literal rule: nothing is masked, and the first item that does not fit ends the
  // packing.
  bool stop_at_first_misfit = false;
  // TSPTW: what comes certainly too late is masked; and what a delay of one network unit, or being late at
  // all, adds to the cost.
  bool masks = true;
  double penalty = kLatePenalty;

  // C / T, what tanh(u) is multiplied with.
  float scale(double model_clip) const { return clip.value_or(static_cast<float>(model_clip)) / temperature; }
};

// Sums over all steps of some rollouts, for the training log.
struct PolicyStatistics {
  double entropy = 0.0;     // nats; only of samples on a tape, for a search has no use for it
  double mean_logit = 0.0;  // of u before centring and clip, mean over the feasible, summed over steps
  double saturated = 0.0;   // share of feasible items with |tanh| > 0.99, summed over steps
  int64_t steps = 0;        // divide the three by this
  int64_t evaluations = 0;  // network evaluations made: fewer than steps where rollouts share a prefix
  int64_t direct_rows = 0;  // attention rows outside the factored tanh's exact range

  POINTSMAN_HOST_DEVICE PolicyStatistics& operator+=(const PolicyStatistics& other) {
    entropy += other.entropy;
    mean_logit += other.mean_logit;
    saturated += other.saturated;
    steps += other.steps;
    evaluations += other.evaluations;
    direct_rows += other.direct_rows;
    return *this;
  }
};

}  // namespace pointsman
