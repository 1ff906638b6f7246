// SPDX-License-Identifier: Apache-2.0
// Memory is estimated before it is taken: a system that promises more than it has ends the program later.
#pragma once

#include <cstddef>
#include <string>

namespace pointsman {

// Bytes that this machine can still give; where it does not say, SIZE_MAX.
size_t available_memory();

// Throws DeviceError with both numbers where `bytes` are not to be had; `what` needs them.
void require_memory(const std::string& what, size_t bytes);

}  // namespace pointsman
