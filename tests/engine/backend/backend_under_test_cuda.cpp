// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/backends.h"
#include "tests/engine/backend/backend_under_test.h"

namespace pointsman {

std::unique_ptr<Backend> backend_under_test(int) { return make_cuda_backend(0); }

const bool kIsCpuBackend = false;
const int kFewer = POINTSMAN_FEWER_TESTS;

}  // namespace pointsman
