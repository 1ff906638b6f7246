// SPDX-License-Identifier: Apache-2.0
// Adam (Kingma & Ba 2015) on the host.
#pragma once

#include "engine/backend/backend.h"
#include "kernels/tools/worker_threads.h"
#include "models/parameter_layout.h"

namespace pointsman {

// Of one parameter set, [layout.size] each.
struct AdamArrays {
  float *parameters, *first_moment, *second_moment, *gradient;
};

// Steps the networks that the request names, and counts their steps. Returns the gradients' norms before
// clipping. All of the gradient is zero afterwards. helpers: null, or threads that are free.
GradientNorms adam_step(const ParameterLayout& layout, const AdamArrays& arrays, int64_t& actor_steps,
                        int64_t& critic_steps, const UpdateRequest& request, WorkerThreads* helpers);

}  // namespace pointsman
