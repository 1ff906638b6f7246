// SPDX-License-Identifier: Apache-2.0
// decode() and decode_tiling() of problems that are not plain.
#pragma once

#include "kernels/cuda/cuda_operations.h"

namespace pointsman::cuda {

DecodeTiling general_decode_tiling(ProblemKind problem, int n);
void decode_general(const DecodeArgs& args, cudaStream_t stream);

}  // namespace pointsman::cuda
