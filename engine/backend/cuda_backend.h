// SPDX-License-Identifier: Apache-2.0
// The Backend on one CUDA device. Only the CUDA module and the tests link it; the program gets it from the
// registry.
#pragma once

#include <memory>

#include "engine/backend/backend.h"

namespace pointsman {

// memory_limit: most bytes of device memory beside the parameters; 0: nine tenths of what is free when
// configured. precision: as BackendOptions. Throws DeviceError when there is no device of that index.
std::unique_ptr<Backend> make_cuda_backend(int index, int64_t memory_limit = 0,
                                           Precision precision = Precision::kFp32);

}  // namespace pointsman
