// SPDX-License-Identifier: Apache-2.0
// Single functions of device.cuh and half_warp_attention.cuh as kernels of their own.
#pragma once

#include <cstdint>

namespace pointsman::cuda {

// d += a b by one warp: lane l holds a[4 l ..], b[2 l ..] and d[4 l ..], bits as the instruction reads them.
void multiply_fragments_tf32(const uint32_t* a, const uint32_t* b, float* d);
void multiply_fragments_bf16(const uint32_t* a, const uint32_t* b, float* d);

// Thread t of kQuotientThreads tries pairs (n, d) drawn from (seed, t) and counts those whose quick_quotient
// is not n / d: wrong[t]. The last of them, or 0, 0: pairs[2 t ..].
inline constexpr int kQuotientThreads = 1024;
void compare_quotients(uint64_t seed, int64_t pairs_a_thread, int64_t* wrong, float* pairs);

}  // namespace pointsman::cuda
