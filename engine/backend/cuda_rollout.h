// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/backend/cuda_forward.h"

namespace pointsman::cuda {

// The activations of a whole call, at the start of the context's memory.
struct KeptRollouts {
  int n = 0, sequences = 0, rows = 0;
};

// Returns what was kept: no rows without request.keep, or where the activations and their gradient do not
// fit.
KeptRollouts roll_out(CudaContext& context, const RolloutRequest& request, RolloutResult& result);

}  // namespace pointsman::cuda
