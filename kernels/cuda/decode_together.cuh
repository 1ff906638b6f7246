// SPDX-License-Identifier: Apache-2.0
// The attention of a block's rows by all of its half-warps together, where the block has more of them than
// rows: half-warp w is one of row w % rows, whose half-warps take four items each in turn, and a thread reads
// out two elements of the 128. With the bits of a half-warp that has a row alone (decode_row.cuh).
#pragma once

#include "kernels/cuda/decode_group.cuh"

namespace pointsman::cuda {

// A half-warp's part in the attention: which row, and what of its items.
template <int kHalfWarps>
struct SharedRow : DecodeThread {
  int rows, row;
  Share items;

  __device__ __forceinline__ SharedRow(const DecodeThread& thread, int row_count)
      : DecodeThread(thread),
        rows(row_count),
        row(own_row() % rows),
        items{own_row() / rows, kHalfWarps / rows} {}

  // Is any of a row's `count` items the half-warp's, where each takes `at_once` in turn?
  __device__ __forceinline__ bool takes(int count, int at_once) const {
    return items.member * at_once < count;
  }
  // That the row chooses from.
  __device__ __forceinline__ int item_count() const { return chooses(row) ? memory.rows[row].remaining : 0; }

  // query = sum over a row's items of e_j values[items[j]] / sum of e_j in list order, two elements a thread.
  // references(row): of the row's sequence.
  template <typename References>
  __device__ __forceinline__ void read_out(int projection, const References& references) const {
    for (int i = threadIdx.x; i < rows * kHidden / 2; i += kHalfWarps * kHalfWarp) {
      const int at = 2 * i / kHidden, place = 2 * i % kHidden, count = memory.rows[at].remaining;
      if (!chooses(at)) continue;
      const float* const values = references(at) + int64_t{projection} * args.n * kHidden + place;
      const float* const e = memory.prefix + at * memory.padded;
      const int32_t* const list = memory.items + at * memory.padded;
      float2 sum = {0.0f, 0.0f};
      float total = 0.0f;
#pragma unroll 8
      for (int j = 0; j < count; ++j) {
        const float2 value = *reinterpret_cast<const float2*>(values + list[j] * kHidden);
        total += e[j];
        sum.x = fmaf(e[j], value.x, sum.x);
        sum.y = fmaf(e[j], value.y, sum.y);
      }
      float* const query = memory.query + at * kHidden;
      query[reference_element(place)] = sum.x / total;
      query[reference_element(place + 1)] = sum.y / total;
    }
  }

  // Scores of the remaining items of the rows that choose, relative to each row's first one's. Returns what
  // they have in common, to half-warps that took some of the row's items.
  template <typename References>
  __device__ __forceinline__ PointerScores score(const References& references) const {
    const int at = row * memory.padded, count = item_count();
    PointerScores scores{0.0f, false};
#pragma unroll 1
    for (int g = 0;; ++g) {
      if (takes(count, 4)) {
        const auto view = attention_view(row, references(row));
        float query[kOwned], v[kOwned];
        load_owned(w, memory.query + row * kHidden, query);
        const Query q = prepare_query(w, query, view.bound(g));
        scores.direct |= q.range == TanhRange::kDirect;
        load_owned(w, view.v(g), v);
        scores.first = attention_scores(w, view.scored(g), q, v, memory.items[at],
                                        {memory.items + at, count, items}, memory.logits + at);
      }
      __syncthreads();
      if (g == args.attention.glimpses) return scores;
      if (takes(count, kHalfWarp)) {
        const float largest = largest_of(w, memory.logits + at, count);
        exponentials(w, memory.logits + at, count, largest, memory.prefix + at, items);
      }
      __syncthreads();
      read_out(g + 1 < args.attention.glimpses ? args.projections.requeries : args.projections.values,
               references);
      __syncthreads();
    }
  }

  __device__ __forceinline__ PointerScores score() const {
    // Twice, so that the compiler knows shared memory.
    if (memory.block->has_references) {
      return score([&](int at) { return memory.references + at * tile.sequence_step * references_size(); });
    }
    return score([&](int at) { return references_of<Precision::kFp32>(sequence_of(at)); });
  }

  // Logits of the rows that choose. Returns, to half-warps that took some of the row's items and to its first
  // one, what they were made by. The first word of a row's query, which nobody needs any more, counts what
  // the tanh saturates.
  template <typename Rules>
  __device__ __forceinline__ ScoreStatistics weigh() const {
    const PointerScores found = score();
    const int count = item_count();
    const bool takes_some = takes(count, kHalfWarp);
    auto& saturated_of_row = reinterpret_cast<int32_t&>(memory.query[row * kHidden]);
    ScoreStatistics scores{0.0f, found.first, 0, found.direct};
    if (takes_some) scores.mean = mean_of(memory.logits + row * memory.padded, count);
    if (items.member == 0 && w.lane == 0) saturated_of_row = 0;
    __syncthreads();  // all have read the scores
    if (takes_some) {
      const int saturated = make_logits<Rules>(row, count, scores.shift(args.attention.centre), items);
      if (w.lane == 0) atomicAdd(&saturated_of_row, saturated);
    }
    __syncthreads();
    scores.saturated = saturated_of_row;
    return scores;
  }
};

}  // namespace pointsman::cuda
