// SPDX-License-Identifier: Apache-2.0
// What a block of the decode kernel keeps: in shared memory its rows, and in device memory the tree of the
// prefixes that its samples share.
#pragma once

#include "kernels/cuda/cuda_operations.h"
#include "kernels/cuda/half_warp_attention.cuh"
#include "kernels/cuda/tile_multiply.cuh"

namespace pointsman::cuda {

inline constexpr int kMaxDecodeThreads = 512;
inline constexpr int kMaxDecodeRows = kMaxDecodeThreads / kHidden * kTileRows;
static_assert(kMaxDecodeRows * kHalfWarp == kMaxDecodeThreads);

// One rollout, or several samples whose choices were the same so far.
struct RowPrefix {
  double log_prob;
  double capacity_left;     // of rules with capacities
  uint16_t taken;           // choices that are part of the order
  uint16_t begin, samples;  // of DecodeTree::samples, or of the tile's rows
  bool flipped;             // which of the two lists of samples
};

// A row, written by lane 0 of its half-warp: what it makes now, and sums over all that it made.
struct DecodeRow : RowPrefix {
  double entropy, mean_logit, saturated;  // sums over choices, as often as samples made them
  float2 input;                           // features of the item chosen last
  int32_t steps;                          // sum: choices, as often as samples made them
  int32_t weighed;                        // sum: choices among two items or more
  int32_t direct;                         // sum: steps with a row outside the factored tanh's range
  int32_t remaining;                      // items to choose from; below two the row needs no network
  int32_t last;                           // item chosen last; -1: none
  int32_t slot;                           // that its h and c come from before the next step; -1: it has them
  uint16_t learnt;                        // taken, and made among two items or more
  uint16_t first_pushed, pushed;          // slots that this step's h and c go to
  bool infeasible;                        // a forced order asked for what cannot be chosen
  bool stopped;                           // before its end
};
static_assert(kTileRows * sizeof(DecodeRow) % sizeof(float4) == 0);  // what follows is read four at a time

POINTSMAN_HOST_DEVICE constexpr int padded_items(int n) { return (n + 15) / 16 * 16; }
POINTSMAN_HOST_DEVICE constexpr int64_t decode_reference_bytes(int n, int projections) {
  return int64_t{projections} * n * kHidden * 4;
}
// A row without its h.
POINTSMAN_HOST_DEVICE constexpr int64_t decode_row_bytes(int n) {
  return (kHidden + 3 * int64_t{padded_items(n)}) * 4 + int64_t{sizeof(DecodeRow)};
}
inline constexpr int64_t kStateBytes = kHidden * sizeof(float);

// What the block works at; not in registers, which are scarce.
struct alignas(sizeof(float4)) DecodeBlock {
  DecodeTile tile;
  int32_t index;        // the tile's
  int32_t pending;      // slots of the tree in use
  bool has_references;  // the tile's are in shared memory
};

// The block's shared memory.
struct DecodeMemory {
  int padded;
  float* h;         // [states][H] of the block's rows, or of all rows of its cluster
  float* query;     // [rows][H]
  DecodeRow* rows;  // [rows]
  DecodeBlock* block;
  float* logits;      // [rows][padded]
  float* prefix;      // [rows][padded]
  int32_t* items;     // [rows][padded] the remaining ones first; behind the n-th some item
  float* references;  // [projections][n][H] of the tile's sequence, in a cluster of each row's; or nothing

  __device__ __forceinline__ DecodeMemory(float* shared, int state_count, int row_count, int n)
      : padded(padded_items(n)) {
    h = shared;
    query = h + state_count * kHidden;
    rows = reinterpret_cast<DecodeRow*>(query + row_count * kHidden);
    block = reinterpret_cast<DecodeBlock*>(rows + row_count);
    logits = reinterpret_cast<float*>(block + 1);
    prefix = logits + row_count * padded;
    items = reinterpret_cast<int32_t*>(prefix + row_count * padded);
    references = reinterpret_cast<float*>(items + row_count * padded);
  }
};

__device__ __forceinline__ PolicyStatistics sum_statistics(const DecodeMemory& memory, int rows) {
  PolicyStatistics sum;
  for (int r = 0; r < rows; ++r) {
    const DecodeRow& row = memory.rows[r];
    sum += {row.entropy, row.mean_logit, row.saturated, row.steps, row.weighed, row.direct};
  }
  return sum;
}

// What a row leaves behind where its samples part: the state in which the choice was made, and the choice.
struct PushedRow : RowPrefix {
  double gain;  // log p of the choice
  int32_t remaining, position;
};

POINTSMAN_HOST_DEVICE constexpr int64_t tree_bytes(int n, int slots) {
  const int64_t slot = sizeof(PushedRow) + (2 * kHidden + padded_items(n) + 3) * sizeof(float);
  return (slots * slot + 15) / 16 * 16;
}

// The block's device memory for the tree of its samples' prefixes (algebra identity 8): rows that wait, a
// stack of slots, and the samples of each row side by side. No more rows wait than there are samples.
// Made anew where it is asked.
struct DecodeTree {
  PushedRow* rows;   // [slots]
  float *h, *c;      // [slots][H]
  int32_t* items;    // [slots][padded_items(n)]
  int32_t* lists;    // [2][slots] numbers in the tile
  int32_t* choices;  // [slots] positions that the samples have just chosen

  __device__ __forceinline__ explicit DecodeTree(const DecodeArgs& args) {
    const int slots = args.tree_samples, padded = padded_items(args.n);
    rows = reinterpret_cast<PushedRow*>(args.tree + blockIdx.x * tree_bytes(args.n, slots));
    h = reinterpret_cast<float*>(rows + slots);
    c = h + int64_t{slots} * kHidden;
    items = reinterpret_cast<int32_t*>(c + int64_t{slots} * kHidden);
    lists = items + int64_t{slots} * padded;
    choices = lists + 2 * slots;
  }
  __device__ __forceinline__ int32_t* samples(const DecodeArgs& args, bool flipped) const {
    return lists + (flipped ? args.tree_samples : 0);
  }
};

}  // namespace pointsman::cuda
