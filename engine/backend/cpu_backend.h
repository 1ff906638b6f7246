// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>

#include "engine/backend/backend.h"

namespace pointsman {

// threads >= 0; 0: all cores. Throws DeviceError when POINTSMAN_SIMD forces an instruction set that this
// processor lacks, std::invalid_argument when it names none.
std::unique_ptr<Backend> make_cpu_backend(int threads);

}  // namespace pointsman
