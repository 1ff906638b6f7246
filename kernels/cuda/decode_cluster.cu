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
// All 20 half-warps share the attention of the block's rows (decode_together.cuh). Half-warp r < rows makes
// row r's choice, as in decode.cu.
#include <algorithm>
#include <map>
#include <mutex>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/decode_group.cuh"
#include "kernels/cuda/decode_together.cuh"

namespace pointsman::cuda {

inline constexpr int kColumnGroups = 5;  // four gates and the query, a warp each
inline constexpr int kBlockColumns = kColumnGroups * kBlockUnits;
inline constexpr int kHalf = kHidden / 2;  // terms of k that a thread adds
inline constexpr int kThreads = 2 * kBlockColumns;
inline constexpr int kBlockHalfWarps = kThreads / kHalfWarp;
// A product takes one row of each block at a time: row r of block b is row 4 r + b of the cluster.
inline constexpr int kRowsAtOnce = kClusterBlocks;

// Numbers of rows that keep what follows in shared memory aligned.
constexpr int even(int rows) { return (rows + 1) / 2 * 2; }
static_assert(even(1) * sizeof(DecodeRow) % sizeof(float4) == 0);

// What the cluster's products leave in the block.
struct ClusterMemory {
  float* partial;  // [rows of the cluster][160] sums over the lower half of k
  float* gates;    // [rows][4H] sums of the block's own rows
  float* c;        // [rows][H]
  int32_t* busy;   // [kClusterBlocks] does some row of that block still choose?

  __device__ __forceinline__ ClusterMemory(float* shared, int rows)
      : partial(shared),
        gates(partial + kClusterBlocks * rows * kBlockColumns),
        c(gates + rows * kGates),
        busy(reinterpret_cast<int32_t*>(c + rows * kHidden)) {}
};
constexpr int64_t cluster_memory_bytes(int rows) {
  return sizeof(float) * (rows * (kClusterBlocks * kBlockColumns + kGates + kHidden) + kClusterBlocks);
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
    const WeightsInFours from(matrix.of(set) + (is_upper ? kHalf : 0) * ld, ld,
                              (is_query ? 0 : group * kHidden) + unit);
#pragma unroll
    for (int k = 0; k < kHalf; k += 4) {
      const float4 four = from.four(k, 0);
      weights[k] = four.x, weights[k + 1] = four.y, weights[k + 2] = four.z, weights[k + 3] = four.w;
    }
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

// State step + 1 of the block's rows, then the first half of the cluster's barrier, which waits for no
// record.
__device__ __forceinline__ void step_cells(const DecodeThread& t, const ClusterMemory& cluster, int rows,
                                           int step) {
#pragma unroll 1
  for (int first = 0; first < rows * kHidden; first += kThreads) {
    const int i = first + threadIdx.x, row = i / kHidden, unit = i % kHidden;
    const bool exists = row < rows && t.chooses(row);
    LstmUnit cell = {};
    if (exists) {
      const float* const gates = cluster.gates + row * kGates + unit;
      const float sums[4] = {gates[0], gates[kHidden], gates[2 * kHidden], gates[3 * kHidden]};
      cell = step_unit(DecodeUnitWeights(t, step, unit), step, t.memory.rows[row], sums, cluster.c[i]);
      store_in_cluster(state_of(t.memory, row, unit), cell.h);
    }
    if (first + kThreads >= rows * kHidden) cluster_arrive();
    if (exists && t.args.record.h != nullptr) record_unit(t.args, t.tile.result + row, step, unit, cell);
  }
}

// The query of the half-warp's row, before the attention goes over it.
__device__ __forceinline__ void record_query(const DecodeThread& t, int step) {
  float query[kOwned];
  load_owned(t.w, t.memory.query + own_row() * kHidden, query);
  store_owned(t.w, query, t.args.record.queries + ((t.tile.result + own_row()) * t.args.n + step) * kHidden);
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
__device__ __forceinline__ void decode_rows(const DecodeThread& t, const ClusterMemory& cluster, int rows) {
  const DecodeMemory& memory = t.memory;
  const bool has_row = own_row() < rows;
  int remaining = kIdle;
  if (has_row) remaining = t.start_rollout<Rules>();
  if (memory.block->has_references) {
    for (int row = 0; row < sequences_of(t.tile); ++row) {
      t.copy_references<Precision::kFp32>(t.sequence_of(row), memory.references + row * t.references_size());
    }
  }
  const ColumnThread column(t.args, t.tile.set);
  const SharedRow<kBlockHalfWarps> shared_row(t, rows);
  __syncthreads();  // half-warps parted, and the cluster's barrier is of whole warps
  sync_cluster();   // nobody writes to a block that has not begun
  for (int i = threadIdx.x; i < rows * kHidden; i += kThreads) {
    const int row = i / kHidden, unit = i % kHidden;
    store_in_cluster(state_of(memory, row, unit), load_start(t, row, unit, cluster.c[i]));
  }
  sync_cluster();
  make_products(memory, cluster, rows, column);
  sync_cluster();
  Choice choice = kNoChoice;
  for (int step = 0;; ++step) {
    if (has_row) t.settle<Rules>(choice, remaining);
    const int busy = __syncthreads_or(remaining > 1);
    if (threadIdx.x == 0) store_in_cluster(cluster.busy + cluster_rank(), busy);
    step_cells(t, cluster, rows, step);
    cluster_wait();
    if (!any_busy(cluster)) return;
    make_products(memory, cluster, rows, column);
    sync_cluster();
    const int32_t stop = has_row ? t.stop_word() : 0;  // asked for early: it comes from the L2
    if (remaining > 1 && t.args.record.queries != nullptr) record_query(t, step);
    const ScoreStatistics scores = shared_row.weigh<Rules>();
    choice = kNoChoice;
    if (remaining <= 1) continue;
    if (t.is_stop(stop)) {
      t.give_up(remaining);
    } else {
      choice = t.choose(t.sum_up(remaining, scores), remaining);
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
    decode_rows<Rules>({this_half_warp(), args, memory.block->tile, memory, false}, cluster, rows);
    if (threadIdx.x == 0) args.results.statistics[blockIdx.x] = sum_statistics(memory, rows);
  }
}

int64_t decode_cluster_bytes(int n, int tile_rows) {
  return cluster_memory_bytes(tile_rows) + kClusterBlocks * tile_rows * kStateBytes +
         even(tile_rows) * decode_row_bytes(n) + sizeof(DecodeBlock);
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
  with_plain_rules(args.problem, [&]<typename Rules>() {
    launch_clusters(decode_cluster_kernel<Rules>, kClusterBlocks, args.tile_count, kThreads,
                    own + fitting * of_sequence, stream, args, rows, fitting);
  });
}

}  // namespace pointsman::cuda
