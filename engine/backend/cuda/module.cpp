// SPDX-License-Identifier: Apache-2.0
// What the CUDA module exports (engine/backend/backends.h).

#include <cuda_runtime.h>

#include "engine/backend/backends.h"
#include "engine/backend/cuda/rank_sum.h"

namespace pointsman {
namespace {

std::string version_text(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

void describe(CudaStatus& status) {
  int version = 0;
  if (cudaRuntimeGetVersion(&version) == cudaSuccess) status.runtime = version_text(version);
  if (cudaDriverGetVersion(&version) == cudaSuccess && version > 0) status.driver = version_text(version);
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  if (error != cudaSuccess) {
    status.reason = cudaGetErrorString(error);
    return;
  }
  for (int i = 0; i < count; ++i) {
    cudaDeviceProp p{};
    if (cudaGetDeviceProperties(&p, i) != cudaSuccess) continue;
    status.devices.push_back({p.name, "sm_" + std::to_string(p.major) + std::to_string(p.minor),
                              static_cast<int64_t>(p.totalGlobalMem), cuda::identity_of(p)});
  }
  if (status.devices.empty()) status.reason = "no CUDA device";
}

}  // namespace

}  // namespace pointsman

extern "C" __attribute__((visibility("default"))) const pointsman::BackendModule* pointsman_cuda_module() {
  static constexpr pointsman::BackendModule kModule = {pointsman::kModuleVersion, pointsman::describe,
                                                       pointsman::make_cuda_backend};
  return &kModule;
}
