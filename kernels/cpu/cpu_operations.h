// SPDX-License-Identifier: Apache-2.0
// The operations of kernels/operations.h on the CPU, each for the best instruction set this processor has.
#pragma once

#include "kernels/operations.h"

namespace pointsman::cpu {

void pack(const PackArgs& args);
void multiply(const MultiplyArgs& args);
void accumulate_outer(const OuterArgs& args);

void lstm_cell(const LstmCellArgs& args);
void lstm_cell_backward(const LstmCellBackwardArgs& args);
void accumulate_columns(const ColumnSumsArgs& args);

void exp_references(const ReferencesArgs& args);
void pointer_logits(const PointerLogitsArgs& args);
void pointer_gradient(const PointerGradientArgs& args);
void glimpse(const GlimpseArgs& args);
void glimpse_gradient(const GlimpseGradientArgs& args);

constexpr int padded(int count) { return (count + 15) / 16 * 16; }

// Floats that a step over `count` items leaves for its backward pass, and of scratch that this needs.
constexpr int attention_activations(int count, int glimpses) {
  return (1 + glimpses) * padded(count) + glimpses * kHidden + padded(glimpses);
}
constexpr int gradient_scratch(int count) { return 2 * padded(count) + kHidden; }

void softmax_prefix(const SoftmaxPrefixArgs& args);

void adam_update(const AdamArgs& args);
// Sum of squares in double: 8 strided partial sums and the tree (l, l+4), (l, l+2), (l, l+1).
double squared_norm(const float* x, int64_t count);

// Single-precision fma rate of this thread now, GFLOP/s: independent chains in registers, best of some tries.
double fma_peak_gflops();

// The instruction set in use: "AVX-512", "AVX2" or "SSE4". POINTSMAN_SIMD=avx512|avx2|sse4 forces one; throws
// std::invalid_argument for another word and std::runtime_error when this processor lacks it.
const char* instruction_set();

}  // namespace pointsman::cpu
