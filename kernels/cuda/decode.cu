// SPDX-License-Identifier: Apache-2.0
// The persistent decode kernel. A block takes a tile of rollouts ("rows") through all steps. It has 128
// threads for every 8 rows: in the cells thread t makes unit t % 128 of the 8 rows of group t / 128, whose
// c it keeps in registers (decode_group.cuh); in the attention half-warp w owns row w (decode_row.cuh). A
// step is
//   h, c = cell(h, c, chosen item);  query = W_q h;  logits, choice, list of remaining items,
// with block barriers between. The last item of a list needs no network; groups of 8 rows that have finished
// make no products. Rows that have finished wait for the others, unless the tile's samples share prefixes:
// then a row is all samples that chose the same so far, where they part all but one choice's wait on a stack
// (DecodeTree), and a row that has finished takes what waits. Between two steps a half-warp asks whether
// the host wants an end: a read from the L2, some 500 clocks beside the 20,500 of its products.
//
// With fewer tiles than multiprocessors a block of 8 or 16 rows has 512 threads all the same, in fp32: the
// others take part in the attention (decode_together.cuh), which waits more than it computes. Batches smaller
// still go to decode_cluster.cu where blocks form clusters, in fp32 and where samples share no prefixes.
// Problems that are not plain go to decode_general.cu.
//
// With a precision other than fp32 the products are tile_multiply_mma.cuh's, whose header says which units of
// which rows a thread then has; h is swizzled, quotients of scores are approximate (3.9 operations an
// element), activations are not recorded. With bf16 references in device memory are packed: half as many
// bytes.
#include <type_traits>

#include "kernels/cuda/cluster.cuh"
#include "kernels/cuda/decode_general.h"
#include "kernels/cuda/decode_group.cuh"
#include "kernels/cuda/decode_together.cuh"

namespace pointsman::cuda {

// States go to the slots that the rows have just filled, and come from those that they have emptied.
template <typename Group>
__device__ __forceinline__ void save_pushed(const DecodeThread& t, Group& group) {
  const DecodeTree tree(t.args);
  group.for_each_unit([&](int, int row, int unit, int place, const float& c) {
    const DecodeRow& from = t.memory.rows[row];
    for (int i = 0; i < from.pushed; ++i) {
      const int64_t to = int64_t{from.first_pushed + i} * kHidden + unit;
      tree.h[to] = t.memory.h[place];
      tree.c[to] = c;
    }
  });
}

template <typename Group>
__device__ __forceinline__ void load_popped(const DecodeThread& t, Group& group) {
  const DecodeTree tree(t.args);
  group.for_each_unit([&](int, int row, int unit, int place, float& c) {
    const int slot = t.memory.rows[row].slot;
    if (slot < 0) return;
    const int64_t from = int64_t{slot} * kHidden + unit;
    t.memory.h[place] = tree.h[from];
    c = tree.c[from];
  });
}

// The tile's samples begin in one row.
__device__ __forceinline__ void plant_tree(const DecodeThread& t) {
  const DecodeTree tree(t.args);
  for (int i = threadIdx.x; i < t.tile.rows; i += blockDim.x) tree.samples(t.args, false)[i] = i;
  __syncthreads();
}

// Who has a tile.
enum class TileBlock {
  kOwn,       // 128 threads for every 8 rows
  kWhole,     // the same for 32 rows, which makes a difference on tensor cores only
  kTogether,  // 512 threads for 8 or 16 rows; fp32 only
};

// State step + 1 and its query, of groups with a row that chooses.
template <typename Group>
__device__ __forceinline__ void make_products(const DecodeThread& t, int step, bool busy, Group& group) {
  float new_h[kTileRows];
  if (busy) group.step_network(t, step, new_h);
  __syncthreads();
  if (busy) {
    group.for_each_unit([&](int i, int, int, int place, const float&) { t.memory.h[place] = new_h[i]; });
  }
  __syncthreads();
  if (busy) group.make_queries(t, step);
  __syncthreads();
}

template <typename Rules, Precision kPrecision, TileBlock kBlock>
__device__ __forceinline__ void decode_tile(const DecodeArgs& args, const DecodeTile& tile,
                                            const DecodeMemory& memory, int rows) {
  constexpr bool kTogether = kBlock == TileBlock::kTogether, kFp32 = kPrecision == Precision::kFp32;
  // Samples on a tree share prefixes.
  const DecodeThread t{this_half_warp(), args, tile, memory, args.tree != nullptr && tile.sequence_step == 0};
  const bool has_row = !kTogether || own_row() < rows;
  if (t.shares) plant_tree(t);
  int remaining = kIdle;
  if (has_row) remaining = t.start_rollout<Rules>();
  if (memory.block->has_references) t.copy_references<kPrecision>(tile.sequence, memory.references);
  std::conditional_t<kFp32, DecodeGroup, MmaGroup<kPrecision, kBlock == TileBlock::kWhole>> group;
  if (has_row) {
    group.for_each_unit([&](int, int row, int unit, int place, float& c) {
      memory.h[place] = group.load_start(t, row, unit, c);
    });
  }
  Choice choice = kNoChoice;
  for (int step = 0;; step = kFp32 ? step + 1 : 1) {
    if (has_row) t.settle<Rules>(choice, remaining);
    if (__syncthreads_or(remaining > 1) == 0) break;
    if (t.shares) {
      if (has_row) load_popped(t, group);
      __syncthreads();
    }
    if (has_row && t.w.lane == 0) {
      t.own().slot = -1;
      t.own().pushed = 0;
    }
    const bool busy = has_row && group.chooses(t);
    make_products(t, step, busy, group);
    ScoreStatistics together;
    if constexpr (kTogether) together = SharedRow<kMaxDecodeThreads / kHalfWarp>(t, rows).weigh<Rules>();
    choice = kNoChoice;
    if (remaining > 1) {
      if (t.is_stopped()) {
        t.give_up(remaining);
      } else {
        const Softmax softmax =
            kTogether ? t.sum_up(remaining, together) : t.weigh_items<Rules, kPrecision>(remaining);
        choice = t.choose(softmax, remaining);
      }
    }
    if (!t.shares) continue;
    __syncthreads();
    if (has_row) save_pushed(t, group);
  }
}

// Where tensor cores do not have 32 rows, blocks are smaller and their threads may take more than 128
// registers.
constexpr int decode_threads(Precision precision, TileBlock block) {
  return precision == Precision::kFp32 || block == TileBlock::kWhole ? kMaxDecodeThreads
                                                                     : kMaxDecodeThreads - kHidden;
}

// references_fit: the launch has shared memory for the references of one sequence.
template <typename Rules, Precision kPrecision, TileBlock kBlock>
__global__ void __launch_bounds__(decode_threads(kPrecision, kBlock),
                                  1)  // 1: else nvcc spills to fit two blocks
    decode_kernel(DecodeArgs args, bool references_fit) {
  POINTSMAN_DYNAMIC_SHARED(float, shared);
  const int rows = kBlock == TileBlock::kWhole ? kMaxDecodeRows : args.tiling.rows;
  const DecodeMemory memory(shared, rows, rows, args.n);
  if (threadIdx.x == 0) memory.block->index = static_cast<int32_t>(blockIdx.x);
  __syncthreads();
  while (memory.block->index < args.tile_count) {
    if (threadIdx.x == 0) {
      const DecodeTile tile = args.tiles[memory.block->index];
      memory.block->tile = tile;
      memory.block->pending = 0;
      memory.block->has_references = references_fit && tile.sequence_step == 0;
    }
    __syncthreads();
    decode_tile<Rules, kPrecision, kBlock>(args, memory.block->tile, memory, rows);
    if (threadIdx.x == 0) {
      args.results.statistics[memory.block->index] = sum_statistics(memory, rows);
      memory.block->index += static_cast<int32_t>(gridDim.x);
    }
    __syncthreads();  // the next tile's rows go over these
  }
}

namespace {

using Kernel = void (*)(DecodeArgs, bool);

Kernel kernel_of(ProblemKind problem, Precision precision, int rows, bool together) {
  return with_plain_rules(problem, [&]<typename Rules>() {
    return with_precision(precision, [&]<Precision kPrecision>() -> Kernel {
      if constexpr (kPrecision == Precision::kFp32) {
        return together ? decode_kernel<Rules, kPrecision, TileBlock::kTogether>
                        : decode_kernel<Rules, kPrecision, TileBlock::kOwn>;
      } else {
        return rows == kMaxDecodeRows ? decode_kernel<Rules, kPrecision, TileBlock::kWhole>
                                      : decode_kernel<Rules, kPrecision, TileBlock::kOwn>;
      }
    });
  });
}

int64_t shared_limit() { return device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin); }

int64_t block_bytes(int n, int rows) {
  return rows * (kStateBytes + decode_row_bytes(n)) + sizeof(DecodeBlock);
}

// Of a launch; with the references of a sequence where they are wanted and fit.
int64_t launch_bytes(int n, int rows, int projections, bool keeps_references) {
  const int64_t own = block_bytes(n, rows), all = own + decode_reference_bytes(n, projections);
  return keeps_references && all <= shared_limit() ? all : own;
}

// Tiles of so many rows, of parts of equal size.
int64_t tiles_of(const DecodeLoad& load, int rows) {
  const int64_t parts = std::max(load.parts, 1), of_part = (load.rollouts + parts - 1) / parts;
  return parts * ((of_part + rows - 1) / rows);
}

// A step's time besides that of its rows, in rows: on an H100 42 at n = 20 and 50, and 19 at n = 100.
constexpr int64_t kStepRows = 32;

// What a step of all tiles takes, in rows, by how many of them run at once.
int64_t step_time(int64_t tiles, int rows, int blocks) {
  const int64_t multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount),
                all = multiprocessors * blocks;
  const int64_t waves = (tiles + all - 1) / all;
  return waves *
         (kStepRows + rows * std::min<int64_t>(blocks, (tiles + multiprocessors - 1) / multiprocessors));
}

// The tile of at most `most` rows with which a step takes least; of equal ones the largest, which reads
// weights least often.
int best_rows(int n, const DecodeLoad& load, const DecodeKind& kind, int most) {
  int best = 0;
  int64_t least = 0;
  for (int rows = kTileRows; rows <= most; rows += kTileRows) {
    const auto kernel = reinterpret_cast<const void*>(kernel_of(kind.problem, kind.precision, rows, false));
    const int blocks =
        blocks_at_once(kernel, rows * kHalfWarp, launch_bytes(n, rows, kind.projections, !load.one_each));
    const int64_t time = step_time(tiles_of(load, rows), rows, blocks);
    if (best == 0 || time <= least) best = rows, least = time;
  }
  return best;
}

}  // namespace

// In clusters where all tiles run at once, with at most 4 rows a block. Else with more threads than rows need
// where every tile has a multiprocessor. Else with as many rows a block as there is room for, or with
// best_rows() where that would leave multiprocessors without work. n is too large where 8 rows are: how many
// rollouts a call has makes no difference.
DecodeTiling decode_tiling(int n, const DecodeLoad& load, const DecodeKind& kind, bool may_cluster) {
  if (!is_plain(kind.problem)) return general_decode_tiling(kind.problem, n);
  const int64_t limit = shared_limit(), multiprocessors = device_attribute(cudaDevAttrMultiProcessorCount);
  int most = kMaxDecodeRows;
  while (most > 0 && block_bytes(n, most) > limit) most -= kTileRows;
  if (most == 0) return {};
  const int64_t blocks = may_cluster ? clusters_at_once() * kClusterBlocks : 0;
  for (const int rows : {1, 2, 4}) {
    const int64_t tiles = tiles_of(load, rows) + (kClusterBlocks - 1) * (load.sets - 1);
    if (tiles <= blocks && decode_cluster_bytes(n, rows) <= limit) return {rows, true};
  }
  for (const int rows : {kTileRows, 2 * kTileRows}) {
    if (kind.precision != Precision::kFp32 || rows > most) break;
    if (tiles_of(load, rows) <= multiprocessors) return {rows, false, !load.one_each, true};
  }
  const bool few = load.rollouts < most * multiprocessors;
  return {few ? best_rows(n, load, kind, most) : most, false, !load.one_each};
}

int decode_blocks(int tile_rows) {
  return device_attribute(cudaDevAttrMultiProcessorCount) * (kMaxDecodeRows / tile_rows);
}

int64_t decode_tree_bytes(int n, int samples) { return tree_bytes(n, samples); }

void decode(const DecodeArgs& args, cudaStream_t stream) {
  if (args.tile_count == 0) return;
  if (!is_plain(args.problem)) return decode_general(args, stream);
  if (args.precision != Precision::kFp32 && args.record.h != nullptr) {
    throw std::invalid_argument("decode: activations are recorded in fp32 only");
  }
  if (args.tiling.in_clusters) {
    if (args.precision != Precision::kFp32 || args.tree != nullptr) {
      throw std::invalid_argument("decode: clusters take fp32 only, and no tree");
    }
    return decode_in_clusters(args, stream);
  }
  const auto [rows, in_clusters, keeps_references, together] = args.tiling;
  const int64_t bytes = launch_bytes(args.n, rows, args.projections.count, keeps_references);
  const dim3 blocks(args.tree == nullptr ? args.tile_count : std::min(args.tile_count, decode_blocks(rows)));
  launch(kernel_of(args.problem, args.precision, rows, together), blocks,
         together ? kMaxDecodeThreads : rows * kHalfWarp, bytes, stream, args,
         bytes > block_bytes(args.n, rows));
}

}  // namespace pointsman::cuda
