// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "engine/backend/cuda_context.h"

namespace pointsman::cuda {

// b(s) of every sequence into values; with targets also adds the gradient of weight * sum (b(s) - target)^2.
void run_critic(CudaContext& context, const SequenceBatch& batch, const float* targets, float weight,
                std::span<float> values);

}  // namespace pointsman::cuda
