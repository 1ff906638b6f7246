// SPDX-License-Identifier: Apache-2.0
// The rival of the linear layer: cuBLASLt, which adds the bias behind its product.
#pragma once

#include <cuda_runtime.h>

#include <functional>
#include <vector>

#include "kernels/common/precision.h"

namespace pointsman::bench {

// y = x W + b in device memory, factors rounded to a precision.
struct LinearProblem {
  const float* x;     // [rows][depth]
  const float* w;     // W: [depth][columns]
  const float* bias;  // [columns]
  float* y;           // [rows][columns]
  int rows, depth, columns;
};

// One function for each algorithm that cuBLASLt's heuristic names; each enqueues the product on the stream.
// Throws std::runtime_error where there is none.
std::vector<std::function<void()>> cublaslt_algorithms(const LinearProblem& problem, Precision precision,
                                                       cudaStream_t stream);

}  // namespace pointsman::bench
