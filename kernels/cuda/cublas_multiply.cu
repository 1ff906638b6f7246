// SPDX-License-Identifier: Apache-2.0
#include <stdexcept>
#include <string>

#include "kernels/cuda/cublas_multiply.h"

namespace pointsman::cuda {

namespace {

void require_cublas(cublasStatus_t status, const char* what) {
  if (status != CUBLAS_STATUS_SUCCESS) {
    throw std::runtime_error(std::string("cuBLAS: ") + what + ": status " + std::to_string(status));
  }
}

// A column-major product c = a op(b) + beta c; of set s the pointers advance by s strides.
struct Gemm {
  cublasOperation_t op_b;
  int m, n, k;
  const float* a;
  int64_t lda, stride_a;
  const float* b;
  int64_t ldb, stride_b;
  float beta;
  float* c;
  int64_t ldc, stride_c;
  Precision precision;
};

void run(cublasHandle_t handle, const Gemm& g, int sets) {
  const float one = 1.0f;
  const int lda = static_cast<int>(g.lda), ldb = static_cast<int>(g.ldb), ldc = static_cast<int>(g.ldc);
  const cublasComputeType_t type = compute_type(g.precision);
  const auto status =
      sets == 1
          ? cublasGemmEx(handle, CUBLAS_OP_N, g.op_b, g.m, g.n, g.k, &one, g.a, CUDA_R_32F, lda, g.b,
                         CUDA_R_32F, ldb, &g.beta, g.c, CUDA_R_32F, ldc, type, CUBLAS_GEMM_DEFAULT)
          : cublasGemmStridedBatchedEx(handle, CUBLAS_OP_N, g.op_b, g.m, g.n, g.k, &one, g.a, CUDA_R_32F, lda,
                                       g.stride_a, g.b, CUDA_R_32F, ldb, g.stride_b, &g.beta, g.c, CUDA_R_32F,
                                       ldc, g.stride_c, sets, type, CUBLAS_GEMM_DEFAULT);
  require_cublas(status, "product");
}

// Consecutive sets with as many rows each: one strided batched product.
bool is_even(std::span<const SetRange> ranges) {
  for (size_t i = 1; i < ranges.size(); ++i) {
    if (ranges[i].rows != ranges[0].rows || ranges[i].set != ranges[i - 1].set + 1) return false;
  }
  return true;
}

template <typename Run>
void for_each_range(std::span<const SetRange> ranges, const Run& run_range) {
  if (ranges.empty()) return;
  if (is_even(ranges)) return run_range(ranges[0], static_cast<int>(ranges.size()));
  for (const SetRange& range : ranges) run_range(range, 1);
}

}  // namespace

Cublas::Cublas(cudaStream_t stream) {
  require_cublas(cublasCreate(&handle_), "handle");
  require_cublas(cublasSetStream(handle_, stream), "stream");
  // A workspace of its own, so that a graph of the products allocates nothing; as large as NVIDIA recommends.
  const int family = device_attribute(cudaDevAttrComputeCapabilityMajor);
  const size_t bytes = size_t{family >= 9 ? 32u : 4u} << 20;
  require_cublas(cublasSetWorkspace(handle_, workspace_.reserve(bytes), bytes), "workspace");
}

Cublas::~Cublas() { cublasDestroy(handle_); }

// cuBLAS reads a row-major matrix as its transpose: what is computed is sum^T = y^T x.
void Cublas::accumulate_outer(const TallOuterArgs& args, std::span<const SetRange> ranges) const {
  for_each_range(ranges, [&](const SetRange& range, int sets) {
    const int64_t first = int64_t{range.first_row} * args.states;
    const int64_t rows = int64_t{range.rows} * args.states;
    run(handle_,
        {CUBLAS_OP_T, args.n, args.m, static_cast<int>(rows), args.y + first * args.ldy, args.ldy,
         rows * args.ldy, args.x + first * args.ldx, args.ldx, rows * args.ldx, 1.0f, args.sum.of(range.set),
         args.n, args.sum.stride, args.precision},
        sets);
  });
}

void Cublas::multiply(const TallMultiplyArgs& args, std::span<const SetRange> ranges) const {
  for_each_range(ranges, [&](const SetRange& range, int sets) {
    const int64_t first = int64_t{range.first_row} * args.states;
    const int64_t rows = int64_t{range.rows} * args.states;
    run(handle_,
        {CUBLAS_OP_N, args.columns, static_cast<int>(rows), args.k, args.weights.of(range.set), args.columns,
         args.weights.stride, args.x + first * args.ldx, args.ldx, rows * args.ldx,
         args.accumulate ? 1.0f : 0.0f, args.y + first * args.columns, args.columns, rows * args.columns,
         args.precision},
        sets);
  });
}

}  // namespace pointsman::cuda
