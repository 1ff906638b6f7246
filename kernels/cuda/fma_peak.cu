// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/fma_peak.cuh"
#include "kernels/cuda/fma_peak.h"

namespace pointsman::cuda {

double fma_peak(float* sink, int blocks, int iterations, cudaStream_t stream) {
  launch(fma_peak_kernel, dim3(static_cast<unsigned>(blocks)), dim3(kPeakThreads), 0, stream, sink,
         iterations, 0.5f);
  return 2.0 * kPeakChains * kPeakThreads * static_cast<double>(blocks) * iterations;
}

}  // namespace pointsman::cuda
