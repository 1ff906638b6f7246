// SPDX-License-Identifier: Apache-2.0
// Two backends side by side: every call is made on both, their answers are compared, and the first one's are
// returned.
#pragma once

#include <memory>

#include "engine/backend/backend.h"

namespace pointsman {

// A call throws std::runtime_error that names the first difference. Orders must be equal. Log p may differ by
// 1e-5 of itself. A gradient may differ by 2e-4 of its tensor's largest element: each backend's may be 1e-4
// off the truth. An update leaves the second backend with the first one's parameters, because Adam divides by
// gradients and so makes much of a last bit.
std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> first, std::unique_ptr<Backend> second);

}  // namespace pointsman
