// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace pointsman::bench {

// Features [count][n][2] of the first instances of `seed`: made on `device` where it is a CUDA one and this
// program was built with the kernels, else by the host. The same bits.
std::vector<float> make_instances(const std::string& device, int n, uint64_t seed, int count);

}  // namespace pointsman::bench
