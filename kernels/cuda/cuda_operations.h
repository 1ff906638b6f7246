// SPDX-License-Identifier: Apache-2.0
// Every operation of CUDA on one page: what kernels/cpu does for a row, done for a whole batch in one launch.
// Each function enqueues on `stream` and returns; it neither allocates nor synchronises. All pointers are
// device memory, 16-byte aligned at their start. Forward passes in fp32 give the bits of the CPU (built with
// -fmad=false); gradients agree to rounding and are the same from run to run (no floating-point atomics).
//
// Arrays are row-major by sequence or rollout ("row"), so that all rows of a parameter set are one contiguous
// block and a weight gradient is one (strided batched) product. State arrays have n + 1 states a row: number
// 0 is the start, number t + 1 the state after step t.
#pragma once

#include <cuda_runtime.h>

#include <cstddef>
#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/common/network.h"
#include "kernels/common/policy.h"
#include "kernels/common/precision.h"
#include "kernels/common/problem_kind.h"
#include "kernels/common/remaining.h"

namespace pointsman::cuda {

// A matrix or vector of every parameter set.
struct SetArray {
  const float* data = nullptr;
  int64_t stride = 0;

  POINTSMAN_HOST_DEVICE const float* of(int64_t set) const { return data + set * stride; }
};
struct MutableSetArray {
  float* data = nullptr;
  int64_t stride = 0;

  POINTSMAN_HOST_DEVICE float* of(int64_t set) const { return data + set * stride; }
  operator SetArray() const { return {data, stride}; }
};

// Rows first_row .. first_row + rows - 1 read parameter set `set`.
struct SetRange {
  int32_t set, first_row, rows;
};
// In order, and together all rows.
struct SetRanges {
  SetRange* data;  // [count] device memory
  int count, rows;
};

// ------------------------------------------------------------------------------ prepare_parameters.cu

// Where element [k][j] of a transposed matrix in fours lies: [depth / 4][columns][4], so that neighbouring
// threads read four terms of neighbouring columns in one load. The depth is a multiple of 4.
POINTSMAN_HOST_DEVICE constexpr int64_t index_in_fours(int k, int j, int columns) {
  return (int64_t{k / 4} * columns + j) * 4 + k % 4;
}

// What the kernels of one LSTM read: input half folded (algebra identity 1), recurrent half transposed.
struct PreparedLstm {
  MutableSetArray recurrent;   // [H][4H] W_hh transposed, in fours
  MutableSetArray fold;        // [F + C][4H] W_ih E, then W_ih W_c of the decoder's context
  MutableSetArray bias;        // [4H]
  MutableSetArray start_bias;  // [4H] bias + W_ih start; data null without a start
};

// The CPU's bits: sums over k upward with fma from 0, start_bias = sum + bias.
void prepare_lstm(SetArray parameters, LstmOffsets offsets, PreparedLstm prepared, int sets,
                  cudaStream_t stream);

// An [H][H] matrix transposed into columns column_offset .. of one of `width` columns, in fours: its element
// [k][column_offset + j] = parameters[offset + j * H + k].
void prepare_square(SetArray parameters, int64_t offset, MutableSetArray prepared, int column_offset,
                    int width, int sets, cudaStream_t stream);

// A [columns][depth] matrix transposed, in fours.
void prepare_matrix(SetArray parameters, int64_t offset, int columns, int depth, MutableSetArray prepared,
                    int sets, cudaStream_t stream);

// ------------------------------------------------------------------------------ encoder_layer.cu

// The attention encoder's arrays are [sequences][n][width], an item a row: `items` (n) of them belong to a
// row of the ranges. States arrays, [sequences][n + 1][width], have item i at number i + 1.

// out = E features: E[0] x_0, then fma(E[f], x_f, sum) upward.
struct EmbedArgs {
  SetArray embedding;     // [H][width] as stored
  const float* features;  // [rows][width]
  int width;              // F
  float* out;             // [rows][H]
  SetRanges ranges;
  int items;
};
void embed(const EmbedArgs& args, cudaStream_t stream);

// y = (x - mean) s weight + bias of each row, s = 1 / sqrt(variance + kNormEpsilon).
struct LayerNormArgs {
  const float* x;         // [rows][H]
  SetArray weight, bias;  // [H]
  float* y;               // [rows][H]
  SetRanges ranges;
  int items;
};
void layer_norm(const LayerNormArgs& args, cudaStream_t stream);

// dx += its gradient. The sums over the rows of dweight and of dy are the gradients of weight and bias.
struct LayerNormBackwardArgs {
  const float* x;   // [rows][H]
  SetArray weight;  // [H]
  const float* dy;  // [rows][H]
  float* dx;        // [rows][H]
  float* dweight;   // [rows][H] out
  SetRanges ranges;
  int items;
};
void layer_norm_backward(const LayerNormBackwardArgs& args, cudaStream_t stream);

// dy = 0 where y = relu(x) is 0.
void relu_backward(const float* y, float* dy, int64_t count, cudaStream_t stream);

void fill(float* x, float value, int64_t count, cudaStream_t stream);

// mean[s] = mean of the sequence's items, upward. The state number 0 becomes zero.
struct MeanItemsArgs {
  float* h;     // [sequences][n + 1][H]
  float* mean;  // [sequences][H] out
  int sequences, n;
};
void mean_items(const MeanItemsArgs& args, cudaStream_t stream);

// dh = (1 - h^2) dh, h = tanh(x).
void tanh_backward(const float* h, float* dh, int64_t count, cudaStream_t stream);

// out[s][i] = dh[s][i + 1] + dmean[s] / n: what reaches item i from its references and from the mean.
struct MeanBackwardArgs {
  const float* dh;     // [sequences][n + 1][H]
  const float* dmean;  // [sequences][H]
  float* out;          // [sequences][n][H]
  int sequences, n;
};
void mean_backward(const MeanBackwardArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ linear.cu

// y = f((base + bias) + W x), the product in fp32 over k upward with fma from 0.
struct LinearArgs {
  enum class Function { kNone, kRelu, kTanh };
  SetArray weight;    // [depth][columns], transposed, in fours; depth a multiple of 16
  SetArray bias;      // [columns]
  const float* x;     // [rows][depth]
  const float* base;  // [rows][columns]; null: none
  float* y;           // [rows][columns] out, or with to_states a states array
  int depth, columns;
  Function function;
  bool to_states;
  SetRanges ranges;
  int items;
  Precision precision = Precision::kFp32;
  int tile_rows = 0;  // of a block, 32 or 128; 0: as many as keep the device busy
};
void linear(const LinearArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ self_attention.cu, _mma.cu

// Self-attention of the n items of each sequence (Vaswani et al. 2017, section 3.2): per head of
// d = H / heads out_i = sum_j e_ij v_j / sum_j e_ij, e_ij = exp((q_i k_j - max_j q_i k_j) / sqrt(d)). On
// tensor cores the factors q, k, e and v are rounded, and sums are of the unrounded e.
struct SelfAttentionArgs {
  const float* qkv;  // [sequences][n][3H] queries, keys, values; heads side by side
  float* out;        // [sequences][n][H]
  float* softmax;    // [sequences][n][heads][2] out: max_j q_i k_j, sum_j e_ij; null: not wanted
  int sequences, n;
  int heads;  // 1, 2, 4 or 8
  Precision precision = Precision::kFp32;
};
void self_attention(const SelfAttentionArgs& args, cudaStream_t stream);

struct SelfAttentionBackwardArgs {
  SelfAttentionArgs forward;  // with what it wrote
  const float* dout;          // [sequences][n][H]
  float* means;               // [sequences][n][heads] scratch
  float* dqkv;                // [sequences][n][3H] out
};
void self_attention_backward(const SelfAttentionBackwardArgs& args, cudaStream_t stream);

// Blocks of a cluster, where kernels use them.
inline constexpr int kClusterBlocks = 4;

// ------------------------------------------------------------------------------ lstm.cu, lstm_cluster.cu

// A whole sequence in one launch: a block or a cluster takes a tile of rows through all steps, state in
// shared memory and registers. It starts from zeros, which it writes as state 0.
struct LstmForwardArgs {
  SetArray recurrent, fold, bias;  // as PreparedLstm
  const float* inputs;             // [rows][steps][width]
  float* h;                        // [rows][steps + 1][H]
  float* c_last;                   // [rows][H] out; null: not wanted (c gives all of them)
  float* c;                        // [rows][steps + 1][H] and
  float* cells;  // [rows][steps][5H] i, f, g, o, tanh(c'), for the backward pass; both or neither
  SetRanges ranges;
  int steps;
  // Tensor cores read the weights as stored; c and cells are written in kFp32 only.
  Precision precision = Precision::kFp32;
  SetArray weight_hh = {};  // [4H][H]; not for kFp32
  int width = 2;            // F; of others in kFp32 only, and without cells
};
void lstm_forward(const LstmForwardArgs& args, cudaStream_t stream);

// Back through all steps of every row. Steps from row_steps[row] on were never made: their dgates are zero.
struct LstmBackwardArgs {
  SetArray weight_hh;        // [4H][H] as stored
  const float* cells;        // [rows][steps][5H]
  const float* c;            // [rows][steps + 1][H]
  const float* dh;           // [rows][steps + 1][H] gradient that reaches state t's h from outside (0 unused)
  const float* dc_last;      // [rows][H] gradient of the last c from outside; null: zero
  const int32_t* row_steps;  // [rows]; null: all steps
  float* dgates;             // [rows][steps + 1][4H] out; number t: step t's; number `steps` is zero
  float* dh_start;           // [rows][H] out, gradient of state 0's h; null: not wanted
  float* dc_start;           // [rows][H] out; null: not wanted
  SetRanges ranges;
  int steps;
};
void lstm_backward(const LstmBackwardArgs& args, cudaStream_t stream);

// Sums over the rows of each set, in a fixed order:
//   bias[j]    += sum over t of dgates[row][t][j]
//   fold[c][j] += sum over t >= first_step of dgates[row][t][j] * x[row][t][c]
//   start[j]   += sum of dgates[row][0][j]                         (only when start.data is not null)
// x[row][t] is inputs[row][t] (encoder: orders null, first_step 0) or features[sequence of row][orders[row][t
// - 1]] (decoder, first_step 1); an order's -1 reads as (0, 0).
struct InputGradientArgs {
  const float* dgates;         // [rows][steps + 1][4H]
  const float* features;       // encoder: [rows][steps][2]; decoder: [sequences][n][2], n = steps
  const int32_t* orders;       // decoder: [rows][steps]; null: encoder
  const int32_t* sequence_of;  // decoder: [rows]; null: row = sequence
  MutableSetArray bias, fold, start;
  float* scratch;  // input_gradient_scratch(ranges) floats
  SetRanges ranges;
  int steps;
};
int64_t input_gradient_scratch(int rows, int range_count);
void input_gradient(const InputGradientArgs& args, cudaStream_t stream);

// Unfolds the input half: dW_ih += dM E^T (+ d1 s^T), dE += W_ih^T dM, ds += W_ih^T d1 (algebra identity 1).
struct UnfoldArgs {
  SetArray parameters;
  MutableSetArray gradient;  // same layout as the parameters
  LstmOffsets offsets;
  SetArray fold;   // [2][4H] dM
  SetArray start;  // [4H] d1; data null: none
  int first_set, sets;
};
void unfold_input(const UnfoldArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ pointer_attention.cu

// Where element d of a hidden vector lies in a reference row: lane l = d % 16 of a half-warp owns the
// elements l + 16 i and reads them as two float4, i = 0..3 and i = 4..7, without bank conflicts.
POINTSMAN_HOST_DEVICE constexpr int reference_index(int d) {
  return (d / 64) * 64 + (d % 16) * 4 + (d / 16) % 4;
}

// The element of a hidden vector at a place of a reference row.
POINTSMAN_HOST_DEVICE constexpr int reference_element(int place) {
  return (place / 64) * 64 + (place % 4) * 16 + place % 64 / 4;
}
static_assert([] {
  for (int d = 0; d < kHidden; ++d) {
    if (reference_element(reference_index(d)) != d) return false;
  }
  return true;
}());

// Two numbers of a packed reference row: word 4 l + i holds elements l + 32 i and l + 32 i + 16, l = 0 .. 15,
// i = 0 .. 3. The lower half of the word is the first one rounded to bf16. The word as a float is the second
// one; its upper half is chosen so that it is nearest in spite of the lower, so reading it costs no
// instruction. Each is at most 2^-8 of itself away, or 2^-133 where that is more.
struct PackedPair {
  uint32_t bits;
};

// A precision's reference rows: kHidden words each, of which packed rows use the first half. So a step that
// reads them from device memory reads half as much.
inline constexpr bool packs_references(Precision precision) { return precision == Precision::kBf16; }

// The projections of every item of every sequence; glimpse and pointer as exp(2a) unless the sequence's
// largest |a| is beyond kFactoredLimit (then raw a), as exp_references() on the CPU.
struct ProjectReferencesArgs {
  SetArray weights;  // [H][count * H], transposed, in fours
  Projections projections;
  const float* h;     // [sequences][n + 1][H] states of the encoder
  float* references;  // [sequences][count][n][H], rows in reference_index order
  float* bounds;      // [sequences][2] largest |a| of glimpse (0 without), pointer
  SetRanges ranges;   // rows are sequences
  int n;
  bool packed = false;  // rows of PackedPair
};
void project_references(const ProjectReferencesArgs& args, cudaStream_t stream);

using AttentionWeights = Attention<SetArray>;

// What the rules of every sequence are made from.
struct RuleArrays {
  const double* weights;     // [sequences][Rules::number_rows(n)][n]; null where there are none
  const double* capacities;  // [sequences]; likewise
  bool stop_at_first_misfit;
  bool is_open = false;
  bool masks = true;     // as RuleInputs'
  double penalty = 0.0;  // likewise

  // Of a sequence, when `left` of its capacity is left.
  POINTSMAN_HOST_DEVICE RuleInputs inputs(int64_t sequence, int n, double left) const {
    return {weights + sequence * n, left, stop_at_first_misfit, n, is_open};
  }
  // Of any rules, at the start.
  template <typename Rules>
  POINTSMAN_HOST_DEVICE RuleInputs inputs_of(int64_t sequence, int n) const {
    RuleInputs inputs;
    inputs.n = n;
    inputs.is_open = is_open;
    if (Rules::number_rows(n) == 0) return inputs;
    inputs.weights = weights + sequence * Rules::number_rows(n) * n;
    inputs.capacity = capacities[sequence];
    inputs.masks = masks;
    inputs.penalty = penalty;
    return inputs;
  }
};

// The weights of what the rules know of a candidate (Rules::priors); it is added to the candidate's logit.
struct PriorWeights {
  SetArray weights;           // [Rules::kPriors]; data null: the model has none
  float inverse_temperature;  // 1 / T, their factor
};

// Backward of sum over rows of weight * log p(order): everything of all (row, step) at once; the forward is
// computed again. First kernel: per (row, step) the gradients of scores and queries. Second: per (sequence,
// item) the sums over rows and steps, which need the first's arrays. A step with one item left, or from
// row_steps[row] on, has no gradient. Orders must be feasible up to row_steps (the decode kernel in forced
// mode has checked them).
struct PointerGradientArgs {
  ProblemKind problem;
  AttentionWeights attention;
  Projections projections;
  const float* references;   // [sequences][count][n][H]
  const float* bounds;       // [sequences][2]
  const float* queries;      // [rows][n][H] as DecodeRecord's
  const int32_t* orders;     // [rows][n]
  const int32_t* row_steps;  // [rows] likewise
  const float* weights;      // [rows] weight of the row's log p
  const float* features;     // [sequences][n][2]; with a prior
  PriorWeights prior;
  RuleArrays rules;
  const int32_t* first_row;    // [sequences + 1]: rows first_row[s] .. first_row[s + 1] - 1 read sequence s
  const int32_t* sequence_of;  // [rows]
  SetRanges ranges;
  int sequences, n;
  void* scratch;       // pointer_gradient_scratch(..) bytes
  float* dqueries;     // [rows][n + 1][H] out; number t + 1: gradient of step t's query; number 0 zero
  float* dreferences;  // [sequences][n + 1][count * H] out, natural order of H; number i + 1: item i;
                       // number 0 zero; glimpse and pointer include the factor v
  float* dv;           // [sequences][2][H] out: gradients of glimpse_v and pointer_v, summed over items
  float* dprior;       // [sequences][Rules::kPriors] out: of the prior's weights; without a prior not written
};
int64_t pointer_gradient_scratch(int rows, int sequences, int n, int glimpses);  // bytes
void pointer_gradient(const PointerGradientArgs& args, cudaStream_t stream);

// ------------------------------------------------ decode.cu, decode_cluster.cu, decode_general.cu

// Consecutive rollouts that one block makes. Number r of the tile is rollout number first + r of sequence
// `sequence` when sequence_step is 0, and rollout number first of sequence `sequence + r` when it is 1; its
// results go to index result + r.
struct DecodeTile {
  int32_t set;
  int32_t sequence, sequence_step;
  int32_t first;
  int32_t rows;
  int64_t result;
};

struct DecodeResults {
  int32_t* orders;               // [rollouts][Rules::max_steps(n)]; -1 after the end
  double* costs;                 // [rollouts]
  double* log_probs;             // [rollouts]
  PolicyStatistics* statistics;  // [tile_count] sums over a tile's rows
};

// Activations for a gradient. States and steps that were not computed are zero.
struct DecodeRecord {
  float* h;            // [rollouts][n + 1][H]
  float* c;            // [rollouts][n + 1][H]
  float* cells;        // [rollouts][n][5H]
  float* queries;      // [rollouts][n][H] W_q h
  int32_t* row_steps;  // [rollouts] steps whose choice was made among two items or more and taken: exactly
                       // the steps that have a gradient; they are steps 0 .. row_steps - 1
};

// Who takes a tile: a block, or one of the kClusterBlocks blocks of a cluster, which share their products. Of
// problems that are not plain a block, of 8 rows, whatever the load.
struct DecodeTiling {
  int rows = 0;  // most of a tile
  bool in_clusters = false;
  bool keeps_references = true;  // shared memory for those of a tile of one sequence, where they fit
  bool together = false;         // 512 threads whatever the rows, 8 or 16; kFp32 only
};

// The persistent kernels: a block takes a tile of rollouts through all steps; device memory is touched only
// for weights, references, choices and, when they are recorded, activations. Of problems that are not plain
// neither clusters, trees, records nor a precision but kFp32: std::invalid_argument.
struct DecodeArgs {
  ProblemKind problem;
  Decode mode;
  SetArray recurrent, fold, bias, start_bias;  // decoder, as PreparedLstm
  SetArray query;                              // [H][H] the step's query projection, transposed, in fours
  AttentionWeights attention;
  PriorWeights prior;
  Projections projections;
  const float* references;  // [sequences][count][n][H], packed if packs_references(precision)
  const float* bounds;      // [sequences][2]
  const float* start_h;     // [sequences][H] the decoder's start, rows start_stride apart
  int64_t start_stride;     // floats
  const float* start_c;     // [sequences][H]
  const float* features;    // [sequences][n][F]
  RuleArrays rules;
  const uint64_t* instance_keys;  // [sequences]; sampling
  const uint32_t* first_samples;  // [sequences]; null: 0
  uint32_t sample_stride;
  uint64_t seed;
  const int32_t* forced;  // [rollouts][Rules::max_steps(n)]
  bool want_entropy;
  const DecodeTile* tiles;  // [tile_count], at most tiling.rows rows each; see tree
  int tile_count;
  // Of decode_tiling(). In clusters tiles 4 i .. 4 i + 3 are of one parameter set; some may have no rows.
  DecodeTiling tiling;
  // Samples of one sequence (kSample, sequence_step 0) share prefixes: each is evaluated once a tile, and a
  // row that ends takes one that waits. Such a tile has up to tree_samples <= kMostTreeSamples rows. tree:
  // decode_tree_bytes(n, tree_samples) for each of decode_blocks(tiling.rows) blocks, or as many as there are
  // tiles; null: nothing is shared. Neither with a record nor in clusters.
  std::byte* tree = nullptr;
  int tree_samples = 0;
  int n;
  DecodeResults results;  // out
  DecodeRecord record;    // out; null: not wanted
  // Device memory that the host sets to another value than 0 when rollouts shall end; null: never. One that
  // was not finished has no items, log p NaN and an infinite cost.
  const int32_t* stop;
  // Tensor cores read the weights as stored; activations are recorded in kFp32 only.
  Precision precision = Precision::kFp32;
  SetArray weight_hh;     // [4H][H]; not for kFp32
  SetArray query_weight;  // [H][H]; not for kFp32
};
// Rollouts to be cut into tiles. They are of `parts` that share no tile, and of `sets` parameter sets that
// share no cluster.
struct DecodeLoad {
  int64_t rollouts = 0;
  int parts = 0, sets = 0;
  bool one_each = false;  // no sequence has several rollouts
};
struct DecodeKind {
  ProblemKind problem;
  Precision precision;
  int projections;  // Projections::count
};
// Tiles for instances of n items; of no rows when n is too large for the device's shared memory. may_cluster:
// kFp32, no tree, and a plain problem.
DecodeTiling decode_tiling(int n, const DecodeLoad& load, const DecodeKind& kind, bool may_cluster);
// Most blocks with tiles of so many rows, and no cluster, that the device runs at once.
int decode_blocks(int tile_rows);
inline constexpr int kMostTreeSamples = 512;
int64_t decode_tree_bytes(int n, int samples);
void decode(const DecodeArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ best_of.cu

// Which rollout of every sequence costs least, for a search that wants only the best: CUB's segmented
// reduction finds them, a kernel of ours gathers them.
struct BestOfArgs {
  const int32_t* first_row;  // [sequences + 1]: rows first_row[s] .. first_row[s + 1] - 1 are sequence s's
  const int32_t* orders;     // [rows][steps]
  const double* costs;       // [rows]; no NaN, finite ones below DBL_MAX
  const double* log_probs;   // [rows]
  int sequences, steps;
  void* scratch;     // best_of_scratch(sequences) bytes
  int32_t* winners;  // [sequences] out: row inside the sequence, the lowest of equal ones
  // Out, [sequences][steps], [sequences] and [sequences]: of a sequence without a row of finite cost -1 (the
  // winner too), infinity and -infinity.
  int32_t* best_orders;
  double *best_costs, *best_log_probs;
};
int64_t best_of_scratch(int sequences);
void best_of(const BestOfArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ two_opt.cu

// Iterated local search for a tour of each instance (kernels/common/two_opt.h), a warp each.
struct TwoOptArgs {
  const float* xy;       // [tours][n][2], in the unit square
  uint16_t* neighbours;  // [tours][n][kTourNeighbours] out: candidate lists
  const uint64_t* keys;  // [tours] of the kicks' draws
  int tours, n, kicks;
  uint64_t seed;
  const int32_t* stop;  // 0 until the launch is to end; null: it ends by itself
  int32_t* orders;      // [tours][n] out: the best found, by the rounding of single precision; or -1
  int32_t* kicks_made;  // [tours] out; after a stop fewer, kDescentStopped, or kNotBegun, where orders are -1
};
// Throws std::invalid_argument for n outside kFewestTourCities .. kMostTourCities.
void two_opt(const TwoOptArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ adam_update.cu

// Double sums of squares in a fixed order: norms[s] = sum over [offset, offset + count) of gradient of set s,
// squared.
struct AdamUpdateArgs {
  MutableSetArray parameters, first_moment, second_moment, gradient;
  int64_t offset, count;
  int first_set, sets;
  float max_norm;
  float learning_rate, beta1, beta2, epsilon;
  const int64_t* steps;  // [all sets] Adam steps made, this one included; 0: the set takes no step
  double* norms;         // [sets] out: L2 norms before clipping
  double* scratch;       // adam_update_scratch(count, sets) doubles
};
int64_t adam_update_scratch(int64_t count, int sets);
// L2 clip, Adam and zeroing of the gradient, fused; all sets in one launch (after one for the norms).
void adam_update(const AdamUpdateArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ critic.cu

// Everything of the critic but its encoder: P = 3 glimpses over all items, two layers. One block a sequence.
struct CriticArgs {
  SetArray reference;   // [H][H] process W_ref, transposed, in fours
  SetArray query;       // [H][H] process W_q, transposed, in fours
  SetArray v;           // [H]
  SetArray fc1_weight;  // [H][H] transposed, in fours
  SetArray fc1_bias, fc2_weight, fc2_bias;
  const float* h;     // [sequences][n + 1][H] states of the critic's encoder
  float* states;      // [sequences][4][H] out: start, and after each process step
  float* queries;     // [sequences][3][H] out
  float* references;  // [sequences][n][H] out, a single projection as project_references() writes it
  float* bounds;      // [sequences][2] out, likewise
  float* hidden;      // [sequences][H] out: first layer after ReLU
  float* values;      // [sequences] out: b(s)
  SetRanges ranges;   // rows are sequences
  int n;
};
void critic_forward(const CriticArgs& args, cudaStream_t stream);

// Gradient of weight * sum (values - targets)^2. Sums over sequences are left to products and sum_rows.
struct CriticGradientArgs {
  CriticArgs forward;
  SetArray query_weight, fc1_stored;  // [H][H] as stored (W_q, fc1)
  const float* targets;               // [sequences]
  float weight;
  float* dvalues;      // [sequences] out: gradient of fc2_bias, a sequence
  float* dfc2;         // [sequences][H] out: gradient of fc2_weight
  float* dhidden;      // [sequences][H] out: gradient before the ReLU (fc1_bias; with states[3]: fc1_weight)
  float* dqueries;     // [sequences][3][H] out (with states[0..2]: W_q)
  float* dv;           // [sequences][H] out
  float* dreferences;  // [sequences][n + 1][H] out, number i + 1: gradient of W_ref r_i; number 0 zero
  float* dh;  // [sequences][n + 1][H] out: gradient of the encoder's h, W_ref's share NOT included; number 0
              // zero
};
void critic_gradient(const CriticGradientArgs& args, cudaStream_t stream);

// ------------------------------------------------------------------------------ sum_rows.cu

// out of set s, [width] += sum over the set's rows of in[row][0 .. width - 1], upward in blocks of 128 rows.
struct SumRowsArgs {
  const float* in;  // [rows][ld]
  int64_t ld;
  int width;
  MutableSetArray out;
  SetRanges ranges;
};
void sum_rows(const SumRowsArgs& args, cudaStream_t stream);

// out[i] = ((in[0][i] + in[1][i]) + in[2][i]) + ..
struct AddRowsArgs {
  const float* in;  // [rows][width]
  int rows;         // >= 1
  int64_t width;    // >= 1
  float* out;       // [width]
};
void add_rows(const AddRowsArgs& args, cudaStream_t stream);

// h[s] += sum over the rows of sequence s of dh_start, c[s] = likewise of dc_start: what the decoders of one
// encoded sequence send back to their start state.
struct StartGradientArgs {
  const float* dh_start;     // [rows][H]
  const float* dc_start;     // [rows][H]
  const int32_t* first_row;  // [sequences + 1]
  float* h;                  // [sequences][H], rows h_stride apart
  int64_t h_stride;          // floats
  float* c;                  // [sequences][H] out
  int sequences;
};
void start_gradient(const StartGradientArgs& args, cudaStream_t stream);

}  // namespace pointsman::cuda
