// SPDX-License-Identifier: Apache-2.0
// The backends themselves; others call make_backend() of backend.h. The CUDA backend is in a module, a shared
// library loaded at run time, so that the program itself links no CUDA library.
#pragma once

#include "engine/backend/backend.h"

namespace pointsman {

class RankShare;

// threads >= 0; 0: all cores. Throws DeviceError if POINTSMAN_SIMD names an instruction set that this
// processor lacks, std::invalid_argument if it names none. share: for gradients that are shares of larger
// ones, of parameter set 0, else null; it must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(int threads, RankShare* share = nullptr);

// memory_limit: bytes of device memory besides the parameters; 0: nine tenths of what is free when
// configured. Throws DeviceError if there is no device of that index.
std::unique_ptr<Backend> make_cuda_backend(int index, int64_t memory_limit = 0,
                                           Precision precision = Precision::kFp32);

// What the module exports under the name kModuleEntry, as a function without parameters that returns a
// pointer to this. Both sides pass C++ objects, so they must come from one version of this program and of the
// compiler.
struct BackendModule {
  const char* version;  // kModuleVersion of the module; the rest is read only if it is the program's own
  void (*describe)(CudaStatus& status);  // everything but the path
  decltype(make_cuda_backend)* make;
};
inline constexpr char kModuleVersion[] = POINTSMAN_VERSION ", compiler " __VERSION__ ", interface 12";
inline constexpr char kModuleEntry[] = "pointsman_cuda_module";

// Makes every call on both backends, compares the results and returns the first one's. Throws
// std::runtime_error that names the first difference. Orders must be equal. Log p may differ by 1e-5 of
// itself, a gradient by 2e-4 of its tensor's largest element (each backend's may be off by 1e-4). An update
// copies the first one's parameters to the second, because Adam divides by gradients and so amplifies a last
// bit.
std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> first, std::unique_ptr<Backend> second);

}  // namespace pointsman
