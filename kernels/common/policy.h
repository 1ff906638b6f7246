// SPDX-License-Identifier: Apache-2.0
// How the pointer's scores become choices: softmax(C tanh(u) / T) over what may be chosen (equation (16) of
// Bello et al. 2017 and its section 4). A rollout and the gradient of its log p must be given the same
// policy.
#pragma once

#include <optional>

namespace pointsman {

struct Policy {
  float temperature = 1.0f;   // T > 0
  std::optional<float> clip;  // C > 0; none: the model's own
  // KnapSack, the paper's literal rule: nothing is masked, and the first item that does not fit ends the
  // packing.
  bool stop_at_first_misfit = false;

  // C / T, what tanh(u) is multiplied with.
  float scale(double model_clip) const { return clip.value_or(static_cast<float>(model_clip)) / temperature; }
};

}  // namespace pointsman
