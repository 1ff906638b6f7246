// SPDX-License-Identifier: Apache-2.0
// The CUDA module: a shared library loaded at run time, so that the program itself links no CUDA library.
#pragma once

#include <memory>

#include "engine/backend/backend.h"

namespace pointsman {

// Both sides pass C++ objects, so they must come from one version of this program and of the compiler.
inline constexpr char kModuleVersion[] = POINTSMAN_VERSION ", compiler " __VERSION__ ", interface 9";

// What the module exports under the name kModuleEntry, as a function without parameters that returns a
// pointer to this.
struct BackendModule {
  const char* version;  // kModuleVersion of the module; the rest is read only when it is one's own
  void (*describe)(CudaStatus& status);  // everything but the path
  // throws DeviceError; limit as make_cuda_backend's
  std::unique_ptr<Backend> (*make)(int index, int64_t limit, Precision precision);
};
inline constexpr char kModuleEntry[] = "pointsman_cuda_module";

}  // namespace pointsman
