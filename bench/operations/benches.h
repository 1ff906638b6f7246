// SPDX-License-Identifier: Apache-2.0
// The benches of this program; each prints its rows.
#pragma once

#include <cuda_runtime.h>

#include "bench/floors.h"

namespace pointsman::bench {

struct Context {
  cudaStream_t stream;
  Peaks peaks;
};

void bench_lstm(const Context& context);      // forward and backward, beside cuDNN
void bench_decode(const Context& context);    // encoder, references, decode: one instance and 10,000
void bench_training(const Context& context);  // attention's backward pass, critic, Adam

}  // namespace pointsman::bench
