// SPDX-License-Identifier: Apache-2.0
// The backends themselves; everyone else asks make_backend() of backend.h. The program links no CUDA backend:
// it gets one from the module.
#pragma once

#include "engine/backend/backend.h"

namespace pointsman {

class CpuPart;

// threads >= 0; 0: all cores. Throws DeviceError when POINTSMAN_SIMD forces an instruction set that this
// processor lacks, std::invalid_argument when it names none. part: not null where its gradients are parts of
// larger ones, all of parameter set 0; it must outlive the backend.
std::unique_ptr<Backend> make_cpu_backend(int threads, CpuPart* part = nullptr);

// memory_limit: most bytes of device memory beside the parameters; 0: nine tenths of what is free when
// configured. precision: as BackendOptions. Throws DeviceError when there is no device of that index.
std::unique_ptr<Backend> make_cuda_backend(int index, int64_t memory_limit = 0,
                                           Precision precision = Precision::kFp32);

// Two backends side by side: every call is made on both, their answers are compared, and the first one's are
// returned. A call throws std::runtime_error that names the first difference. Orders must be equal. Log p may
// differ by 1e-5 of itself. A gradient may differ by 2e-4 of its tensor's largest element: each backend's may
// be 1e-4 off the truth. An update leaves the second backend with the first one's parameters, because Adam
// divides by gradients and so makes much of a last bit.
std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> first, std::unique_ptr<Backend> second);

}  // namespace pointsman
