// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "engine/backend/cuda_forward.h"

namespace pointsman::cuda {

// A tape's activations are the start of the context's memory. It stays empty where they and their gradient do
// not fit.
void roll_out(CudaContext& context, const RolloutRequest& request, RolloutResult& result);

}  // namespace pointsman::cuda
