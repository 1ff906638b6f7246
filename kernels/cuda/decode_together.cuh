// SPDX-License-Identifier: Apache-2.0
// The attention of a block's rows by all of its half-warps together, where the block has more of them than
// rows: half-warp w is one of row w % rows, whose half-warps take four items each in turn, and a thread reads
// out two elements of the 128. With the bits of a half-warp that has a row alone (decode_row.cuh).
#pragma once

#include "kernels/cuda/decode_group.cuh"

namespace pointsman::cuda {

// A half-warp's part in the attention: which row, and what of its items.
template <int kHalfWarps>
struct RowShare {
  int row;
  Share items;

  __device__ __forceinline__ explicit RowShare(int rows)
      : row(own_row() % rows), items{own_row() / rows, kHalfWarps / rows} {}
  // Is any of a row's `count` items the half-warp's, where each takes `at_once` in turn?
  __device__ __forceinline__ bool takes(int count, int at_once) const {
    return items.member * at_once < count;
  }
};

// query = sum over a row's items of e_j values[items[j]] / sum of e_j in list order, two elements a thread.
// references(row): of the row's sequence.
template <int kHalfWarps, typename References>
__device__ __forceinline__ void read_out(const DecodeArgs& args, const DecodeMemory& memory, int rows,
                                         int projection, const References& references) {
  for (int i = threadIdx.x; i < rows * kHidden / 2; i += kHalfWarps * kHalfWarp) {
    const int row = 2 * i / kHidden, place = 2 * i % kHidden, count = memory.rows[row].remaining;
    if (!chooses(memory, row)) continue;
    const float* const values = references(row) + static_cast<int64_t>(projection) * args.n * kHidden + place;
    const float* const e = memory.prefix + row * memory.padded;
    const int32_t* const items = memory.items + row * memory.padded;
    float2 sum = {0.0f, 0.0f};
    float total = 0.0f;
#pragma unroll 8
    for (int j = 0; j < count; ++j) {
      const float2 value = *reinterpret_cast<const float2*>(values + items[j] * kHidden);
      total += e[j];
      sum.x = fmaf(e[j], value.x, sum.x);
      sum.y = fmaf(e[j], value.y, sum.y);
    }
    float* const query = memory.query + row * kHidden;
    query[reference_element(place)] = sum.x / total;
    query[reference_element(place + 1)] = sum.y / total;
  }
}

// Scores of the remaining items of the rows that choose, relative to each row's first one's. Returns what
// they have in common, to half-warps that took some of the row's items.
template <int kHalfWarps, typename References>
__device__ __forceinline__ PointerScores score_rows(HalfWarp w, const DecodeArgs& args,
                                                    const DecodeTile& tile, const DecodeMemory& memory,
                                                    int rows, const RowShare<kHalfWarps>& share,
                                                    const References& references) {
  const int at = share.row * memory.padded;
  const int count = chooses(memory, share.row) ? memory.rows[share.row].remaining : 0;
  float* const query_of_row = memory.query + share.row * kHidden;
  PointerScores scores{0.0f, false};
#pragma unroll 1
  for (int g = 0;; ++g) {
    const bool last = g == args.attention.glimpses;
    if (share.takes(count, 4)) {
      const auto view = attention_view(args, tile, share.row, references(share.row));
      float query[kOwned], v[kOwned];
      load_owned(w, query_of_row, query);
      const Query q = prepare_query(w, query, last ? view.pointer_bound : view.glimpse_bound);
      scores.direct |= q.range == TanhRange::kDirect;
      load_owned(w, last ? view.pointer_v : view.glimpse_v, v);
      scores.first =
          attention_scores(w, view.slice(last ? args.projections.pointer : args.projections.glimpse), q, v,
                           memory.items[at], {memory.items + at, count, share.items}, memory.logits + at);
    }
    __syncthreads();
    if (last) return scores;
    if (share.takes(count, kHalfWarp)) {
      const float largest = largest_of(w, memory.logits + at, count);
      exponentials(w, memory.logits + at, count, largest, memory.prefix + at, share.items);
    }
    __syncthreads();
    read_out<kHalfWarps>(
        args, memory, rows,
        g + 1 < args.attention.glimpses ? args.projections.requeries : args.projections.values, references);
    __syncthreads();
  }
}

template <int kHalfWarps>
__device__ __forceinline__ PointerScores score_rows(HalfWarp w, const DecodeArgs& args,
                                                    const DecodeTile& tile, const DecodeMemory& memory,
                                                    int rows, const RowShare<kHalfWarps>& share) {
  // Twice, so that the compiler knows shared memory.
  if (memory.block->has_references) {
    return score_rows(w, args, tile, memory, rows, share, [&](int row) {
      return memory.references + row * tile.sequence_step * references_size(args);
    });
  }
  return score_rows(w, args, tile, memory, rows, share,
                    [&](int row) { return references_of<Precision::kFp32>(args, sequence_of(tile, row)); });
}

// Logits of the rows that choose. Returns, to half-warps that took some of the row's items and to its first
// one, what they were made by. The first word of a row's query, which nobody needs any more, counts what the
// tanh saturates.
template <typename Rules, int kHalfWarps>
__device__ __forceinline__ ScoreStatistics weigh_rows(HalfWarp w, const DecodeArgs& args,
                                                      const DecodeTile& tile, const DecodeMemory& memory,
                                                      int rows, const RowShare<kHalfWarps>& share) {
  const PointerScores found = score_rows(w, args, tile, memory, rows, share);
  const int row = share.row, count = chooses(memory, row) ? memory.rows[row].remaining : 0;
  const bool takes = share.takes(count, kHalfWarp);
  auto& saturated_of_row = reinterpret_cast<int32_t&>(memory.query[row * kHidden]);
  ScoreStatistics scores{0.0f, found.first, 0, found.direct};
  if (takes) scores.mean = mean_of(memory.logits + row * memory.padded, count);
  if (share.items.member == 0 && w.lane == 0) saturated_of_row = 0;
  __syncthreads();  // all have read the scores
  if (takes) {
    const int saturated = make_logits<Rules>(w, args, tile, memory, row, count,
                                             scores.shift(args.attention.centre), share.items);
    if (w.lane == 0) atomicAdd(&saturated_of_row, saturated);
  }
  __syncthreads();
  scores.saturated = saturated_of_row;
  return scores;
}

}  // namespace pointsman::cuda
