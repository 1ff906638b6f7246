// SPDX-License-Identifier: Apache-2.0
// Two backends side by side: every call is made on both and the answers are compared. What the first says is
// returned.
#pragma once

#include <memory>

#include "engine/backend/backend.h"

namespace pointsman {

// A call throws std::runtime_error that names the first difference: another order, a log p off by more than
// 1e-5 of itself, a gradient by more than 2e-4 of its tensor's largest element (either may be 1e-4 off the
// truth). After an update the second backend goes on from the first's parameters, for Adam divides by
// gradients and makes much of a last bit.
std::unique_ptr<Backend> make_check_backend(std::unique_ptr<Backend> first, std::unique_ptr<Backend> second);

}  // namespace pointsman
