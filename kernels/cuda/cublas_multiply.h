// SPDX-License-Identifier: Apache-2.0
// The tall products of the backward pass by cuBLAS, sums in fp32: strided batched over the parameter sets
// where all of them have as many rows, else set by set. Run-to-run bits only. A precision is that of the
// factors: kTf32 and kBf16 as cuBLAS rounds them, the others in plain fp32.
#pragma once

#include <cublas_v2.h>

#include <span>

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/device_buffer.h"

namespace pointsman::cuda {

inline cublasComputeType_t compute_type(Precision precision) {
  switch (precision) {
    case Precision::kTf32:
      return CUBLAS_COMPUTE_32F_FAST_TF32;
    case Precision::kBf16:
      return CUBLAS_COMPUTE_32F_FAST_16BF;
    default:
      return CUBLAS_COMPUTE_32F_PEDANTIC;
  }
}

// sum of set s += x^T y over the set's rows. `states` rows of x and y belong to one row of the ranges.
struct TallOuterArgs {
  const float* x;  // [rows * states][ldx], m columns used
  int64_t ldx;
  const float* y;  // [rows * states][ldy], n columns used
  int64_t ldy;
  MutableSetArray sum;  // [m][n]
  int m, n;
  int states;
  Precision precision = Precision::kFp32;
};

// y = x W (+ y when accumulate).
struct TallMultiplyArgs {
  const float* x;  // [rows * states][ldx], k columns used
  int64_t ldx;
  SetArray weights;  // W: [k][columns]
  float* y;          // [rows * states][columns]
  int k, columns;
  int states;
  bool accumulate;
  Precision precision = Precision::kFp32;
};

class Cublas {
 public:
  explicit Cublas(cudaStream_t stream);
  ~Cublas();
  Cublas(const Cublas&) = delete;
  Cublas& operator=(const Cublas&) = delete;

  // ranges: host memory.
  void accumulate_outer(const TallOuterArgs& args, std::span<const SetRange> ranges) const;
  void multiply(const TallMultiplyArgs& args, std::span<const SetRange> ranges) const;

 private:
  cublasHandle_t handle_ = nullptr;
  DeviceBuffer workspace_;
};

}  // namespace pointsman::cuda
