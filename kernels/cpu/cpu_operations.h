// SPDX-License-Identifier: Apache-2.0
// Every operation of the CPU on one page: plain argument structs, and functions that run on the best
// instruction set this processor has. An operation takes a row or a tile of rows; each is tested alone
// against plain double loops (tests/kernels/cpu). H = 128 is the hidden size, 4H the gates i, f, g, o.
//
// Written orders (docs/numbers.md): products walk k upward with fma from 0; sums over H are 16 strided
// partial sums and the tree (l, l+8), (l, l+4), (l, l+2), (l, l+1); sums over cities run in the order of the
// list of remaining items.
#pragma once

#include <cstdint>

#include "kernels/common/network.h"
#include "kernels/tools/stop_token.h"

namespace pointsman::cpu {

// ------------------------------------------------------------------------------ matrix_multiply

// A weight matrix W [columns, k] packed for multiply(): panels of 16 columns, [columns / 16][k][16].
struct PackArgs {
  const float* weights;  // [columns][ld], or [k][ld] when transposed
  int ld;
  int columns, k;   // columns a multiple of 16
  bool transposed;  // pack W^T of the stored matrix instead
  float* packed;    // [columns / 16][k][16]
};
void pack(const PackArgs& args);

// y = x W^T (+ y when accumulate); with a bias y = ((residual +) bias) + x W^T, and with relu what is below 0
// becomes 0.
struct MultiplyArgs {
  const float* x;  // [rows][ldx]
  int ldx;
  const float* packed;  // [columns / 16][k][16]
  float* y;             // [rows][ldy]; must not overlap x
  int ldy;
  int rows, k, columns;
  bool accumulate;                  // not with a bias
  const float* bias = nullptr;      // [columns]; null: none
  const float* residual = nullptr;  // [rows][ldy], may be y; null: none. Only with a bias
  bool relu = false;                // only with a bias
};
void multiply(const MultiplyArgs& args);

// sum += x^T y: blocks of 128 rows, each summed upward from 0, added in block order.
struct OuterArgs {
  const float* x;  // [rows][ldx], m columns used
  int ldx;
  const float* y;  // [rows][ldy], n columns used
  int ldy;
  float* sum;  // [m][ldsum]
  int ldsum;
  int rows, m, n;  // n a multiple of 16
};
void accumulate_outer(const OuterArgs& args);

// ------------------------------------------------------------------------------ lstm

// One step of `rows` cells. gate = .. fma(fold1, y, fma(fold0, x, product + bias)) with the input's half
// folded to [4H, width] (docs/algebra.md, identity 1); c' = f c + i g; h' = o tanh(c').
struct LstmCellArgs {
  int rows;
  const float* products;  // [rows][ld]: W_hh h in the first 4H columns
  int ld;
  const float* fold;    // [width][4H]: W_ih E, one row per feature; unused without inputs
  const float* bias;    // [4H]; for the decoder's first step it includes W_ih start
  const float* inputs;  // [rows][width], or null
  int width;
  const float* c_in;  // [rows][H]
  float* h_out;       // [rows][H]
  float* c_out;       // [rows][H]; may be c_in
  float* cells;       // [rows][5H]: i, f, g, o, tanh(c') for the backward pass; null: not kept
};
void lstm_cell(const LstmCellArgs& args);

// Back through one step: the gradients of the gates (before the nonlinearities) from dh and dc; dc becomes
// the earlier step's. cells: [rows][5H] of the forward pass; out: the gates' gradients in the first 4H. The
// others: [rows][H].
void lstm_cell_backward(int rows, float* cells, const float* c_prev, const float* dh, float* dc);

// Sums of gate gradients over rows of (step, sequence), blocks of 128 rows in order:
//   bias[j] += sum dgates, fold[c][j] += sum dgates x input[c], start[j] += sum over the first start_rows.
// The first start_rows are the decoder's first step, which reads no item: of two inputs they are left out of
// fold; of more they read those behind the features, with zeros before.
struct ColumnSumsArgs {
  const float* dgates;  // [rows][ld], the first 4H columns
  int ld;
  const float* inputs;  // [rows][width]
  int width;
  int start_rows, rows;
  float* start;  // [4H]; null with start_rows 0
  float* bias;   // [4H]
  float* fold;   // [width][4H]
};
void accumulate_columns(const ColumnSumsArgs& args);

// ------------------------------------------------------------------------------ pointer_attention

// In place a -> exp(2a), unless some |a| is beyond kFactoredLimit: then the values stay as they are.
// Returns the largest |a|, which tells the reader which of the two it holds. count: a multiple of 16.
float exp_references(float* values, int count);

// What attention reads of one encoded sequence: its projections.
struct References {
  const float* glimpse;                // [n][H] exp(2 W_ref^g r_i), or W_ref^g r_i beyond kFactoredLimit
  const float* pointer;                // [n][H] the same of the pointer
  const float* values;                 // [n][H]
  const float* requeries;              // [n][H]
  float glimpse_bound, pointer_bound;  // largest |W_ref r|
};

using AttentionWeights = Attention<const float*>;

struct StepStatistics {
  float mean_u;     // mean of u over the items
  float saturated;  // share of items with |tanh| > 0.99
  bool direct;      // some row took the direct tanh
};

// logits[j] = C tanh(u_j - mean u) / T + prior[j] of items[j].
struct PointerLogitsArgs {
  const References* references;
  const AttentionWeights* weights;
  const float* query;    // [H] W_q h
  const int32_t* items;  // [count] rows of the references, count >= 1
  int count;
  const float* prior;  // [count rounded up to 16], the padding as the first; null: none
  float* logits;       // [count rounded up to 16]
  float* activations;  // attention_activations(count, glimpses) floats out, what the backward pass needs
  StepStatistics* statistics;
};
void pointer_logits(const PointerLogitsArgs& args);

// Softmax readout without a policy: the critic's process step. out = sum_j softmax(u)_j values[items[j]].
struct GlimpseArgs {
  const float* references;  // [n][H] as in References
  float bound;
  const float* values;  // [n][H]
  const float* v;       // [H]
  const float* query;   // [H]
  const int32_t* items;
  int count;
  float* out;      // [H]
  float* scratch;  // [count rounded up to 16]
};
void glimpse(const GlimpseArgs& args);

// Gradient sums of the references of one sequence over many steps, without the factor v that is the same in
// all of them (identity 9).
struct ReferenceGradients {
  float* glimpse;    // [n][H] sum of du tanh'; times v: d W_ref^g r
  float* pointer;    // [n][H]
  float* values;     // [n][H] d of References::values
  float* requeries;  // [n][H] d of References::requeries, or null
  float* glimpse_v;  // [H] sum of du tanh
  float* pointer_v;  // [H]
};

// Backward of weight * log p(items[chosen]) for one step.
struct PointerGradientArgs {
  const References* references;
  const AttentionWeights* weights;
  const float* query;  // [H]
  const int32_t* items;
  int count;
  const float* prior;        // of PointerLogitsArgs
  const float* activations;  // likewise
  int chosen;                // position in items
  float weight;              // of this rollout
  ReferenceGradients* sums;
  float* dquery;   // [H] out
  float* dprior;   // [count] out: gradient of the prior; null: not wanted
  float* scratch;  // gradient_scratch(count, glimpses) floats
};
void pointer_gradient(const PointerGradientArgs& args);

// Backward of GlimpseArgs: dout [H] -> dquery [H], sums of the references (without the factor v), of the
// values and of v.
struct GlimpseGradientArgs {
  GlimpseArgs forward;
  const float* dout;      // [H]
  float* reference_sums;  // [n][H]
  float* value_sums;      // [n][H]
  float* v_sums;          // [H]
  float* dquery;          // [H] out
  float* scratch;         // [count rounded up to 16], apart from forward.scratch
};
void glimpse_gradient(const GlimpseGradientArgs& args);

constexpr int padded(int count) { return (count + 15) / 16 * 16; }

// Floats that a step over `count` items leaves for its backward pass, and of scratch that this needs.
constexpr int attention_activations(int count, int glimpses) {
  return (1 + glimpses) * padded(count) + glimpses * kHidden + padded(glimpses);
}
constexpr int gradient_scratch(int count) { return 2 * padded(count) + kHidden; }

// ------------------------------------------------------------------------------ encoder_layer

// out[r] = E features[r]: .. fma(E[1], y, E[0] x). features: [rows][width]; embedding: [width][H], E
// transposed.
void embed(const float* features, int width, const float* embedding, int rows, float* out);
// sum [width][H] += sum over rows, upward, of features[r][i] dout[r].
void embed_backward(const float* features, int width, const float* dout, int rows, float* sum);

// y = (x - mean) s weight + bias of each row, s = 1 / sqrt(variance + kNormEpsilon).
struct LayerNormArgs {
  const float* x;       // [rows][H]
  const float* weight;  // [H]
  const float* bias;    // [H]
  float* y;             // [rows][H]; may be x
  float* statistics;    // [rows][2] out: mean, s
  int rows;
};
void layer_norm(const LayerNormArgs& args);

// dx += its gradient; dweight and dbias += theirs, rows upward.
struct LayerNormBackwardArgs {
  const float* x;           // [rows][H]
  const float* statistics;  // [rows][2] of the forward pass
  const float* weight;      // [H]
  const float* dy;          // [rows][H]
  float* dx;                // [rows][H]
  float* dweight;           // [H]
  float* dbias;             // [H]
  int rows;
};
void layer_norm_backward(const LayerNormBackwardArgs& args);

// x [rows][width] += bias [width] in each row. width: a multiple of 16.
void add_bias(float* x, const float* bias, int rows, int width);
// sum [width] += sum of the rows of x [rows][width], upward.
void sum_columns(const float* x, int rows, int width, float* sum);

// dy = 0 where y, what a ReLU left, is 0. count: a multiple of 16.
void relu_backward(const float* y, float* dy, int64_t count);

// Self-attention of the n items of one sequence (Vaswani et al. 2017, section 3.2): per head of d = H / heads
//   out_i = sum_j e_ij v_j / sum_j e_ij, e_ij = exp((q_i k_j - max_j q_i k_j) / sqrt(d)).
// Scores exist for kAttentionBlock items i at a time. Sums over d and over j in out run upward with fma; the
// sum of e is 16 strided partial sums and the tree.
inline constexpr int kAttentionBlock = 32;
struct SelfAttentionArgs {
  const float* qkv;                 // [n][3H] queries, keys, values; heads side by side
  float* out;                       // [n][H]
  int n, heads;                     // heads 1, 2, 4 or 8
  float* scratch;                   // self_attention_scratch(n) floats
  const StopToken* stop = nullptr;  // ends the call with CallStopped
};
void self_attention(const SelfAttentionArgs& args);

// dqkv = its gradient. Sums over i are in blocks of kAttentionBlock items.
struct SelfAttentionBackwardArgs {
  SelfAttentionArgs forward;  // out is not read
  const float* dout;          // [n][H]
  float* dqkv;                // [n][3H] out
};
void self_attention_backward(const SelfAttentionBackwardArgs& args);

constexpr int64_t self_attention_scratch(int n) {
  return int64_t{padded(n)} * (2 * kAttentionBlock + 4 * kHidden);
}

// ------------------------------------------------------------------------------ sample_next

// Softmax weights of logits in list order: prefix[j] = sum over 0..j of exp(logit - max). Returns the max.
// logits, prefix: [count rounded up to 16]; entropy: out, nats; null: not wanted.
float softmax_prefix(const float* logits, int count, float* prefix, double* entropy);

// sampling_uniform() (kernels/common/philox.h) of many samples in one step.
struct UniformsArgs {
  uint64_t seed;
  uint32_t step;
  int count;
  const uint32_t* instances;  // [count rounded up to 16] the instances' ids; only their lower halves count
  const uint32_t* samples;    // [count rounded up to 16]
  float* uniforms;            // [count rounded up to 16] out, (0, 1]
};
void sampling_uniforms(const UniformsArgs& args);

// The position of each of `count` draws among the items: the first whose running sum is not below u times the
// last sum. prefix: [items rounded up to 16] of softmax_prefix(); uniforms, positions: [count].
void draw_positions(const float* prefix, int items, const float* uniforms, int count, int32_t* positions);

// ------------------------------------------------------------------------------ adam_update

struct AdamArgs {
  float* parameters;     // [count]
  float* first_moment;   // [count]
  float* second_moment;  // [count]
  float* gradient;       // [count]
  int64_t count;
  float gradient_scale;  // of the L2 clip
  float learning_rate;
  float beta1, beta2, epsilon;
  float correction1, correction2;  // 1 - beta^t
};
void adam_update(const AdamArgs& args);
// Sum of squares in double: 8 strided partial sums and the tree (l, l+4), (l, l+2), (l, l+1).
double squared_norm(const float* x, int64_t count);

// ------------------------------------------------------------------------------ the processor

// Single-precision fma rate of this thread now, GFLOP/s: independent chains in registers, best of some tries.
double fma_peak_gflops();

// The instruction set in use: "AVX-512", "AVX2" or "SSE4". POINTSMAN_SIMD=avx512|avx2|sse4 forces one; throws
// std::invalid_argument for another word and std::runtime_error when this processor lacks it.
const char* instruction_set();

}  // namespace pointsman::cpu
