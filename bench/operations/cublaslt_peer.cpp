// SPDX-License-Identifier: Apache-2.0
#include "bench/operations/cublaslt_peer.h"

#include <cublasLt.h>

#include <memory>
#include <stdexcept>

#include "bench/operations/device.h"
#include "kernels/cuda/cublas_multiply.h"

namespace pointsman::bench {

namespace {

void require_lt(cublasStatus_t status) {
  if (status != CUBLAS_STATUS_SUCCESS) throw std::runtime_error(cublasGetStatusString(status));
}

// cuBLASLt stores by columns, to which each array is its transpose: y' = W' x'.
class LtLinear {
 public:
  LtLinear(const LinearProblem& problem, Precision precision, cudaStream_t stream)
      : problem_(problem), stream_(stream), work_(kWorkBytes) {
    require_lt(cublasLtCreate(&library_.handle));
    require_lt(cublasLtMatmulDescCreate(&product_.handle, cuda::compute_type(precision), CUDA_R_32F));
    const cublasLtEpilogue_t epilogue = CUBLASLT_EPILOGUE_BIAS;
    set(CUBLASLT_MATMUL_DESC_EPILOGUE, &epilogue, sizeof epilogue);
    set(CUBLASLT_MATMUL_DESC_BIAS_POINTER, &problem_.bias, sizeof problem_.bias);
    describe(w_layout_, problem_.columns, problem_.depth);
    describe(x_layout_, problem_.depth, problem_.rows);
    describe(y_layout_, problem_.columns, problem_.rows);
    choose();
  }

  int algorithms() const { return found_; }

  // By the algorithm of that number.
  void run(int algorithm) {
    const float one = 1.0f, zero = 0.0f;
    require_lt(cublasLtMatmul(library_.handle, product_.handle, &one, problem_.w, w_layout_.handle,
                              problem_.x, x_layout_.handle, &zero, problem_.y, y_layout_.handle, problem_.y,
                              y_layout_.handle, &chosen_[algorithm].algo, work_.data(), kWorkBytes, stream_));
  }

 private:
  static constexpr int kAlgorithms = 8;
  static constexpr size_t kWorkBytes = size_t{32} << 20;  // as NVIDIA recommends for this family

  template <typename Handle, cublasStatus_t (*destroy)(Handle)>
  struct Object {
    Object() = default;
    Object(const Object&) = delete;
    Object& operator=(const Object&) = delete;
    ~Object() {
      if (handle != nullptr) destroy(handle);
    }
    Handle handle = nullptr;
  };
  using Layout = Object<cublasLtMatrixLayout_t, cublasLtMatrixLayoutDestroy>;

  static void describe(Layout& layout, int height, int width) {
    require_lt(cublasLtMatrixLayoutCreate(&layout.handle, CUDA_R_32F, static_cast<uint64_t>(height),
                                          static_cast<uint64_t>(width), height));
  }

  void set(cublasLtMatmulDescAttributes_t attribute, const void* value, size_t bytes) {
    require_lt(cublasLtMatmulDescSetAttribute(product_.handle, attribute, value, bytes));
  }

  void choose() {
    Object<cublasLtMatmulPreference_t, cublasLtMatmulPreferenceDestroy> preference;
    require_lt(cublasLtMatmulPreferenceCreate(&preference.handle));
    require_lt(cublasLtMatmulPreferenceSetAttribute(
        preference.handle, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &kWorkBytes, sizeof kWorkBytes));
    require_lt(cublasLtMatmulAlgoGetHeuristic(library_.handle, product_.handle, w_layout_.handle,
                                              x_layout_.handle, y_layout_.handle, y_layout_.handle,
                                              preference.handle, kAlgorithms, chosen_, &found_));
    if (found_ == 0) throw std::runtime_error("cuBLASLt has no algorithm for this");
  }

  const LinearProblem problem_;
  const cudaStream_t stream_;
  DeviceArray<char> work_;
  Object<cublasLtHandle_t, cublasLtDestroy> library_;
  Object<cublasLtMatmulDesc_t, cublasLtMatmulDescDestroy> product_;
  Layout w_layout_, x_layout_, y_layout_;
  cublasLtMatmulHeuristicResult_t chosen_[kAlgorithms];
  int found_ = 0;
};

}  // namespace

std::vector<std::function<void()>> cublaslt_algorithms(const LinearProblem& problem, Precision precision,
                                                       cudaStream_t stream) {
  const auto linear = std::make_shared<LtLinear>(problem, precision, stream);
  std::vector<std::function<void()>> algorithms;
  for (int i = 0; i < linear->algorithms(); ++i) algorithms.emplace_back([linear, i] { linear->run(i); });
  return algorithms;
}

}  // namespace pointsman::bench
