// SPDX-License-Identifier: Apache-2.0
// Decoding on clusters of four blocks, for batches too small to fill the device with blocks of their own. A
// block has up to four rows. Two things make its steps short: the weights of the products stay in registers,
// and all of its threads share the attention of a row.
//
// Each block owns 32 of the 128 units. It makes their four gates and their queries, 160 columns, for all rows
// of the cluster: warps 0 .. 4 add the lower half of k, a lane a column, and warps 5 .. 9 go on from their
// sums, so that each sum is made over k upward, as everywhere. The sums go to the block whose row it is. It
// has the row's cells and attention, and sends the new h to all blocks. So a step is
//   cells and h, barrier of the cluster; products, barrier of the cluster; scores, readout, choice.
//
// In the attention half-warp w of 20 is one of row w % rows: the row's half-warps take four items each in
// turn, a thread reads out one element of the 128. Half-warp r < rows makes row r's choice, as in decode.cu.
//
// A row and step costs what it costs there. Device memory: the products' weights once, 82 KB a block; the
// cells' and v as there; references where those of the tile's sequences do not fit into shared memory. Shared
// memory: 7.8 KB and 12 B an item a row (a block with one row has the lists of two), and 512 B an item and
// projection of references.
#include <algorithm>
#include <map>
#include <mutex>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/decode_cluster.h"
#include "kernels/cuda/decode_group.cuh"

namespace pointsman::cuda {

inline constexpr int kColumnGroups = 5;  // four gates and the query, a warp each
inline constexpr int kBlockColumns = kColumnGroups * kBlockUnits;
inline constexpr int kHalf = kHidden / 2;  // terms of k that a thread adds
inline constexpr int kThreads = 2 * kBlockColumns;
inline constexpr int kBlockHalfWarps = kThreads / kHalfWarp;
inline constexpr int kMostRows = 4;  // of a block
// A product takes one row of each block at a time: row r of block b is row 4 r + b of the cluster.
inline constexpr int kRowsAtOnce = kClusterBlocks;

// Numbers of rows that keep what follows in shared memory aligned.
constexpr int even(int rows) { return (rows + 1) / 2 * 2; }
static_assert(even(1) * sizeof(DecodeRow) % sizeof(float4) == 0);

// What the cluster's products leave in the block.
struct ClusterMemory {
  float* partial;      // [rows of the cluster][160] sums over the lower half of k
  float* gates;        // [rows][4H] sums of the block's own rows
  float* c;            // [rows][H]
  int32_t* busy;       // [kClusterBlocks] does some row of that block still choose?
  int32_t* saturated;  // [kMostRows] logits of a row's step that the tanh saturates

  __device__ __forceinline__ ClusterMemory(float* shared, int rows)
      : partial(shared),
        gates(partial + kClusterBlocks * rows * kBlockColumns),
        c(gates + rows * kGates),
        busy(reinterpret_cast<int32_t*>(c + rows * kHidden)),
        saturated(busy + kClusterBlocks) {}
};
constexpr int64_t cluster_memory_bytes(int rows) {
  return sizeof(float) *
         (rows * (kClusterBlocks * kBlockColumns + kGates + kHidden) + kClusterBlocks + kMostRows);
}

// What a thread is in the products.
struct ColumnThread {
  bool is_upper;  // half of k
  int group;      // gate, or 4: the query
  int unit;       // of the 128
  float weights[kHalf];

  __device__ __forceinline__ ColumnThread(const DecodeArgs& args, int set) {
    const int warp = threadIdx.x / kWarpLanes, lane = threadIdx.x % kWarpLanes;
    is_upper = warp >= kColumnGroups;
    group = warp % kColumnGroups;
    unit = cluster_rank() * kBlockUnits + lane;
    const bool is_query = group == kColumnGroups - 1;
    const SetArray& matrix = is_query ? args.query : args.recurrent;
    const int ld = is_query ? kHidden : kGates;
    const float* const from = matrix.data + set * matrix.stride + (is_upper ? kHalf : 0) * ld +
                              (is_query ? 0 : group * kHidden) + unit;
#pragma unroll
    for (int k = 0; k < kHalf; ++k) weights[k] = __ldg(from + k * ld);
  }
};

// The thread's half of the terms of four rows. h: at the first row's first term.
__device__ __forceinline__ void multiply_half(const float* h, const ColumnThread& t,
                                              float (&sum)[kRowsAtOnce]) {
#pragma unroll
  for (int k = 0; k < kHalf; k += 4) {
#pragma unroll
    for (int r = 0; r < kRowsAtOnce; ++r) {
      const float4 x = *reinterpret_cast<const float4*>(h + r * kHidden + k);
      sum[r] = fmaf(x.x, t.weights[k], sum[r]);
      sum[r] = fmaf(x.y, t.weights[k + 1], sum[r]);
      sum[r] = fmaf(x.z, t.weights[k + 2], sum[r]);
      sum[r] = fmaf(x.w, t.weights[k + 3], sum[r]);
    }
  }
}

// Gates and queries of all rows of the cluster, from h, to their owners. The upper half of k follows the
// lower one a turn behind.
__device__ __forceinline__ void make_products(const DecodeMemory& memory, const ClusterMemory& cluster,
                                              int rows, const ColumnThread& t) {
#pragma unroll 1
  for (int turn = 0; turn <= rows; ++turn) {
    const int row = turn - t.is_upper;  // of each block
    if (row >= 0 && row < rows) {
      float sum[kRowsAtOnce] = {};
      float* const partial =
          cluster.partial + row * kRowsAtOnce * kBlockColumns + threadIdx.x % kBlockColumns;
      float* const own = t.group < 4 ? cluster.gates + row * kGates + t.group * kHidden + t.unit
                                     : memory.query + row * kHidden + t.unit;
      if (t.is_upper) {
#pragma unroll
        for (int r = 0; r < kRowsAtOnce; ++r) sum[r] = partial[r * kBlockColumns];
      }
      multiply_half(memory.h + row * kRowsAtOnce * kHidden + (t.is_upper ? kHalf : 0), t, sum);
#pragma unroll
      for (int r = 0; r < kRowsAtOnce; ++r) {
        *(t.is_upper ? in_block_of_cluster(own, r) : partial + r * kBlockColumns) = sum[r];
      }
    }
    if (turn < rows) __syncthreads();
  }
}

// Where all blocks have h of a unit of the block's row.
__device__ __forceinline__ float* state_of(const DecodeMemory& memory, int row, int unit) {
  return memory.h + (row * kClusterBlocks + cluster_rank()) * kHidden + unit;
}

__device__ __forceinline__ void load_start(const DecodeArgs& args, const DecodeTile& tile,
                                           const DecodeMemory& memory, const ClusterMemory& cluster,
                                           int rows) {
  for (int i = threadIdx.x; i < rows * kHidden; i += kThreads) {
    const int row = i / kHidden, unit = i % kHidden;
    store_in_cluster(state_of(memory, row, unit), load_start(args, tile, false, row, unit, cluster.c[i]));
  }
}

// State step + 1 of the block's rows, then the first half of the cluster's barrier, which waits for no
// record.
__device__ __forceinline__ void step_cells(const DecodeArgs& args, const DecodeTile& tile,
                                           const DecodeMemory& memory, const ClusterMemory& cluster, int rows,
                                           int step) {
#pragma unroll 1
  for (int first = 0; first < rows * kHidden; first += kThreads) {
    const int i = first + threadIdx.x, row = i / kHidden, unit = i % kHidden;
    const bool exists = row < rows && chooses(memory, row);
    LstmUnit cell = {};
    if (exists) {
      const float* const gates = cluster.gates + row * kGates + unit;
      const float sums[4] = {gates[0], gates[kHidden], gates[2 * kHidden], gates[3 * kHidden]};
      cell = step_unit(DecodeUnitWeights(args, tile, step, unit), step, memory.rows[row], sums, cluster.c[i]);
      store_in_cluster(state_of(memory, row, unit), cell.h);
    }
    if (first + kThreads >= rows * kHidden) cluster_arrive();
    if (exists && args.record.h != nullptr) record_unit(args, tile.result + row, step, unit, cell);
  }
}

// A half-warp's part in the attention: which row, and what of its items.
struct RowShare {
  int row;
  Share items;

  __device__ __forceinline__ explicit RowShare(int rows)
      : row(own_row() % rows), items{own_row() / rows, kBlockHalfWarps / rows} {}
  // Is any of a row's `count` items the half-warp's, where each takes `at_once` in turn?
  __device__ __forceinline__ bool takes(int count, int at_once) const {
    return items.member * at_once < count;
  }
};

// query = sum over a row's items of e_j values[items[j]] / sum of e_j in list order, an element a thread.
// references(row): of the row's sequence.
template <typename References>
__device__ __forceinline__ void read_out(const DecodeArgs& args, const DecodeMemory& memory, int rows,
                                         int projection, const References& references) {
  for (int i = threadIdx.x; i < rows * kHidden; i += kThreads) {
    const int row = i / kHidden, place = i % kHidden, count = memory.rows[row].remaining;
    if (!chooses(memory, row)) continue;
    const float* const values = references(row) + static_cast<int64_t>(projection) * args.n * kHidden + place;
    const float* const e = memory.prefix + row * memory.padded;
    const int32_t* const items = memory.items + row * memory.padded;
    float sum = 0.0f, total = 0.0f;
#pragma unroll 8
    for (int j = 0; j < count; ++j) {
      total += e[j];
      sum = fmaf(e[j], values[items[j] * kHidden], sum);
    }
    memory.query[row * kHidden + reference_element(place)] = sum / total;
  }
}

// Scores of the remaining items of the rows that choose, relative to each row's first one's. Returns what
// they have in common, to half-warps that took some of the row's items.
template <typename References>
__device__ __forceinline__ PointerScores score_rows(HalfWarp w, const DecodeArgs& args,
                                                    const DecodeTile& tile, const DecodeMemory& memory,
                                                    int rows, const RowShare& share, int step,
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
      if (g == 0 && share.items.member == 0 && args.record.queries != nullptr) {
        store_owned(w, query, args.record.queries + ((tile.result + share.row) * args.n + step) * kHidden);
      }
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
    read_out(args, memory, rows,
             g + 1 < args.attention.glimpses ? args.projections.requeries : args.projections.values,
             references);
    __syncthreads();
  }
}

__device__ __forceinline__ PointerScores score_rows(HalfWarp w, const DecodeArgs& args,
                                                    const DecodeTile& tile, const DecodeMemory& memory,
                                                    int rows, const RowShare& share, int step) {
  // Twice, so that the compiler knows shared memory.
  if (memory.block->has_references) {
    return score_rows(w, args, tile, memory, rows, share, step, [&](int row) {
      return memory.references + row * tile.sequence_step * references_size(args);
    });
  }
  return score_rows(w, args, tile, memory, rows, share, step,
                    [&](int row) { return references_of<Precision::kFp32>(args, sequence_of(tile, row)); });
}

// Scores -> logits of the rows that choose. Returns to the same half-warps.
template <typename Rules>
__device__ __forceinline__ ScoreStatistics weigh_rows(HalfWarp w, const DecodeArgs& args,
                                                      const DecodeTile& tile, const DecodeMemory& memory,
                                                      const ClusterMemory& cluster, const RowShare& share,
                                                      const PointerScores& found) {
  const int row = share.row, count = chooses(memory, row) ? memory.rows[row].remaining : 0;
  const bool takes = share.takes(count, kHalfWarp);
  ScoreStatistics scores{0.0f, found.first, 0, found.direct};
  if (takes) scores.mean = mean_of(memory.logits + row * memory.padded, count);
  __syncthreads();  // all have read the scores
  if (takes) {
    const int saturated = make_logits<Rules>(w, args, tile, memory, row, count,
                                             scores.shift(args.attention.centre), share.items);
    if (w.lane == 0) atomicAdd(&cluster.saturated[row], saturated);
  }
  __syncthreads();
  scores.saturated = cluster.saturated[row];
  return scores;
}

// Does some row of the cluster still choose?
__device__ __forceinline__ bool any_busy(const ClusterMemory& cluster) {
  bool any = false;
#pragma unroll
  for (int block = 0; block < kClusterBlocks; ++block) any |= cluster.busy[block] != 0;
  return any;
}

__device__ __forceinline__ int sequences_of(const DecodeTile& tile) {
  return tile.sequence_step == 0 ? min(tile.rows, 1) : tile.rows;
}

template <typename Rules>
__device__ __forceinline__ void decode_rows(const DecodeArgs& args, const DecodeTile& tile,
                                            const DecodeMemory& memory, const ClusterMemory& cluster,
                                            int rows) {
  const HalfWarp w = this_half_warp();
  const bool has_row = own_row() < rows;
  int remaining = kIdle;
  if (has_row) remaining = start_rollout<Rules>(w, args, tile, false, memory);
  if (memory.block->has_references) {
    for (int row = 0; row < sequences_of(tile); ++row) {
      copy_references<Precision::kFp32>(w, args, sequence_of(tile, row),
                                        memory.references + row * references_size(args));
    }
  }
  const ColumnThread column(args, tile.set);
  const RowShare share(rows);
  __syncthreads();  // half-warps parted, and the cluster's barrier is of whole warps
  sync_cluster();   // nobody writes to a block that has not begun
  load_start(args, tile, memory, cluster, rows);
  sync_cluster();
  make_products(memory, cluster, rows, column);
  sync_cluster();
  Choice choice = kNoChoice;
  for (int step = 0;; ++step) {
    if (has_row) settle<Rules>(w, args, tile, false, memory, choice, remaining);
    const int busy = __syncthreads_or(remaining > 1);
    if (has_row && w.lane == 0) cluster.saturated[own_row()] = 0;
    if (threadIdx.x == 0) store_in_cluster(cluster.busy + cluster_rank(), busy);
    step_cells(args, tile, memory, cluster, rows, step);
    cluster_wait();
    if (!any_busy(cluster)) return;
    make_products(memory, cluster, rows, column);
    sync_cluster();
    const int32_t stop = has_row ? stop_word(w, args) : 0;  // asked for early: it comes from the L2
    const PointerScores found = score_rows(w, args, tile, memory, rows, share, step);
    const ScoreStatistics scores = weigh_rows<Rules>(w, args, tile, memory, cluster, share, found);
    choice = kNoChoice;
    if (remaining <= 1) continue;
    if (is_stop(w, stop)) {
      give_up(w, memory, remaining);
    } else {
      const Softmax softmax = sum_up(w, args, memory, remaining, scores);
      choice = choose(w, args, tile, false, memory, softmax, remaining);
    }
  }
}

// fitting: the launch has shared memory for the references of so many sequences.
template <typename Rules>
__global__ void __launch_bounds__(kThreads, 1) decode_cluster_kernel(DecodeArgs args, int rows, int fitting) {
  if constexpr (kHasClusters) {
    POINTSMAN_DYNAMIC_SHARED(float, shared);
    const ClusterMemory cluster(shared, rows);
    const DecodeMemory memory(shared + cluster_memory_bytes(rows) / sizeof(float), kClusterBlocks * rows,
                              even(rows), args.n);
    if (threadIdx.x == 0) {
      const DecodeTile tile = args.tiles[blockIdx.x];
      // Of the copy: of block->tile's fields nvcc 13.0 takes sequence for sequence_step and sequence_step for
      // rows.
      memory.block->has_references = sequences_of(tile) <= fitting;
      memory.block->tile = tile;
    }
    __syncthreads();
    decode_rows<Rules>(args, memory.block->tile, memory, cluster, rows);
    if (threadIdx.x == 0) args.results.statistics[blockIdx.x] = sum_statistics(memory, rows);
  }
}

int64_t decode_cluster_bytes(int n, int tile_rows) {
  return cluster_memory_bytes(tile_rows) + kClusterBlocks * tile_rows * kStateBytes +
         even(tile_rows) * decode_row_bytes(n) + kDecodeBlockBytes;
}

int clusters_at_once() {
  if (device_attribute(cudaDevAttrComputeCapabilityMajor) < 9) return 0;
  static std::mutex mutex;
  static std::map<int, int> known;  // by device: every call of a kernel asks
  int device = 0;
  require(cudaGetDevice(&device), "current device");
  const std::lock_guard lock(mutex);
  if (const auto entry = known.find(device); entry != known.end()) return entry->second;
  const auto kernel = reinterpret_cast<const void*>(&decode_cluster_kernel<TspRules>);
  const int shared = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin);  // two blocks do not fit
  allow_shared_memory(kernel, shared);
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {kClusterBlocks, 1, 1};
  cudaLaunchConfig_t config{};
  config.gridDim = dim3(kClusterBlocks);
  config.blockDim = dim3(kThreads);
  config.dynamicSmemBytes = shared;
  config.attrs = &attribute;
  config.numAttrs = 1;
  int clusters = 0;
  require(cudaOccupancyMaxActiveClusters(&clusters, kernel, &config), "clusters at once");
  return known[device] = clusters;
}

void decode_in_clusters(const DecodeArgs& args, cudaStream_t stream) {
  const int rows = args.tiling.rows;
  const int64_t own = decode_cluster_bytes(args.n, rows);
  const int64_t of_sequence = decode_reference_bytes(args.n, args.projections.count);
  const int64_t left = device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin) - own;
  const int fitting = static_cast<int>(std::min<int64_t>(rows, left / of_sequence));
  with_rules(args.problem, [&]<typename Rules>() {
    launch_clusters(decode_cluster_kernel<Rules>, kClusterBlocks, dim3(args.tile_count), dim3(kThreads),
                    own + fitting * of_sequence, stream, args, rows, fitting);
  });
}

}  // namespace pointsman::cuda
