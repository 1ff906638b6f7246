// SPDX-License-Identifier: Apache-2.0
// self_attention() on tensor cores, of heads of kWidth columns: for self_attention.cu alone.
#pragma once

#include "kernels/cuda/cuda_operations.h"

namespace pointsman::cuda {

template <int kWidth>
void self_attention_mma(const SelfAttentionArgs& args, float scale, cudaStream_t stream);

}  // namespace pointsman::cuda
