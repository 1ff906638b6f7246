// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma & Ba 2015) on the host.
#pragma once

#include "engine/backend/backend.h"
#include "models/parameter_layout.h"

namespace pointsman {

// Of one parameter set, [layout.size] each.
struct AdamArrays {
  float *parameters, *first_moment, *second_moment, *gradient;
};

// Steps the networks that the request names, and counts their steps. Returns the gradients' norms before
// clipping. The gradient of a network that took a step is zero afterwards.
GradientNorms adam_step(const ParameterLayout& layout, const AdamArrays& arrays, int64_t& actor_steps,
                        int64_t& critic_steps, const UpdateRequest& request);

}  // namespace pointsman
