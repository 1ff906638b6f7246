// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>

namespace pointsman {

// An allocation failed, and nobody has yet made up for it. Set by the new-handler, because CLI11 and the
// standard streams swallow the exception.
inline std::atomic<bool> memory_failed{false};

}  // namespace pointsman
