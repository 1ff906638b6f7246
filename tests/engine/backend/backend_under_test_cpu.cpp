// SPDX-License-Identifier: Apache-2.0
#include "tests/engine/backend/backend_under_test.h"

namespace pointsman {

std::unique_ptr<Backend> backend_under_test(int threads) { return make_backend({"cpu", threads}); }

const bool kIsCpuBackend = true;
const int kFewer = 1;

}  // namespace pointsman
