// SPDX-License-Identifier: Apache-2.0
// Kernels with one planted bug each, and their clean twins: what the emulation must find, and must not
// accuse. `mutants <name>` runs the kernel with the bug and prints what came of it; CMakeLists.txt says what
// that must be. `mutants twins` runs all clean ones, of which nothing must come.
#include <cstdio>
#include <cstring>
#include <numeric>
#include <string>
#include <vector>

#include "kernels/cuda/device.cuh"
#include "tests/kernels/cuda/device_test.h"

namespace {

using pointsman::cuda::DeviceArray;
using pointsman::cuda::launch;
using pointsman::cuda::launch_clusters;

constexpr unsigned kThreads = 128;
constexpr unsigned kAllLanes = 0xFFFFFFFFu;

// Block-wide sum of the threads' numbers by way of `partials` [4].
__device__ float sum_of_warps(float value, float* partials) {
  for (int step = 16; step > 0; step /= 2) value += __shfl_xor_sync(kAllLanes, value, step);
  if (threadIdx.x % 32 == 0) partials[threadIdx.x / 32] = value;
  return value;
}

// Reads what other warps wrote without waiting for them.
template <bool bug>
__global__ __launch_bounds__(kThreads) void read_early(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, partials);
  sum_of_warps(in[threadIdx.x], partials);
  if constexpr (!bug) __syncthreads();
  out[threadIdx.x] = partials[0] + partials[1] + partials[2] + partials[3];
}

// Uses a buffer again while other warps still read what was in it.
template <bool bug>
__global__ __launch_bounds__(kThreads) void reuse_early(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, partials);
  float total = 0.0f;
  for (int round = 0; round < 8; ++round) {
    sum_of_warps(in[threadIdx.x] + round, partials);
    __syncthreads();
    total += partials[0] + partials[1] + partials[2] + partials[3];
    if constexpr (!bug) __syncthreads();
  }
  out[threadIdx.x] = total;
}

// Sums of pairs (i, i + 1) cyclic over tiles of 128 numbers; the tile is overwritten while it is read.
template <bool bug>
__global__ __launch_bounds__(kThreads) void tile_loop(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, tile);
  float total = 0.0f;
  for (unsigned first = 0; first < 4 * kThreads; first += kThreads) {
    tile[threadIdx.x] = in[first + threadIdx.x];
    __syncthreads();
    total += tile[threadIdx.x] + tile[(threadIdx.x + 1) % kThreads];
    if constexpr (!bug) __syncthreads();
  }
  out[threadIdx.x] = total;
}

// Two pieces of 16 bytes a thread, the second on its way while the first is read; the bug waits for the
// second behind the barrier.
template <bool bug>
__global__ __launch_bounds__(kThreads) void copy_early(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, pieces);
  using pointsman::cuda::copy_to_shared, pointsman::cuda::end_copy_group, pointsman::cuda::wait_for_copies;
  constexpr unsigned kFloats = 4 * kThreads;
  float total = 0.0f;
  for (unsigned piece = 0; piece < 2; ++piece) {
    const bool exists = piece == 0 || threadIdx.x < kThreads / 2;
    copy_to_shared(pieces + piece * kFloats + 4 * threadIdx.x, in + 4 * threadIdx.x, exists);
    end_copy_group();
  }
  for (unsigned piece = 0; piece < 2; ++piece) {
    if (piece == 0) wait_for_copies<1>();
    if (piece == 1 && !bug) wait_for_copies<0>();
    __syncthreads();
    if (piece == 1 && bug) wait_for_copies<0>();
    total += pieces[piece * kFloats + kFloats - 1 - threadIdx.x] + pieces[piece * kFloats + threadIdx.x];
  }
  out[threadIdx.x] = total;
}

// Pieces of 16 bytes a thread through two buffers; the bug begins to copy to one that others still read.
template <bool bug>
__global__ __launch_bounds__(kThreads) void copy_over(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, buffers);
  using pointsman::cuda::copy_to_shared, pointsman::cuda::end_copy_group, pointsman::cuda::wait_for_copies;
  constexpr unsigned kFloats = 4 * kThreads;
  const auto copy = [&](unsigned piece) {
    copy_to_shared(buffers + piece % 2 * kFloats + 4 * threadIdx.x, in + 4 * threadIdx.x, true);
    end_copy_group();
  };
  float total = 0.0f;
  copy(0);
  for (unsigned piece = 0; piece < 3; ++piece) {
    copy(piece + 1);
    wait_for_copies<1>();
    __syncthreads();
    total += buffers[piece % 2 * kFloats + kFloats - 1 - threadIdx.x];
    if constexpr (!bug) __syncthreads();
  }
  out[threadIdx.x] = total;
}

// One word past the shared memory.
template <bool bug>
__global__ __launch_bounds__(kThreads) void shared_past_end(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);  // kThreads floats
  row[threadIdx.x + (bug ? 1 : 0)] = in[threadIdx.x];
  __syncthreads();
  out[threadIdx.x] = row[kThreads - 1 - threadIdx.x];
}

template <bool bug>
__global__ __launch_bounds__(kThreads) void global_past_end(const float* in, float* out) {
  out[threadIdx.x + (bug ? 1 : 0)] = in[threadIdx.x];
}

// The last tile has 44 rows, not 128.
template <bool bug>
__global__ __launch_bounds__(kThreads) void last_tile(const float* in, float* out, unsigned rows) {
  const unsigned row = blockIdx.x * kThreads + threadIdx.x;
  if (bug || row < rows) out[row] = 2.0f * in[row];
}

// Starts with what shared memory happens to hold.
template <bool bug>
__global__ __launch_bounds__(kThreads) void uninitialised(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, sums);
  if constexpr (!bug) sums[threadIdx.x] = 0.0f;
  for (int i = 0; i < 4; ++i) sums[threadIdx.x] += in[threadIdx.x];
  out[threadIdx.x] = sums[threadIdx.x];
}

// The end of a list, -1, is not written: 0xFF in every byte would stand in for it.
template <bool bug>
__global__ __launch_bounds__(kThreads) void sentinel_unwritten(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(int, list);
  if (threadIdx.x == 0 || !bug) list[threadIdx.x] = threadIdx.x == 0 ? 0 : -1;
  __syncthreads();
  unsigned length = 0;
  while (length < kThreads && list[length] >= 0) ++length;
  out[threadIdx.x] = in[threadIdx.x] * static_cast<float>(length);
}

// A half-warp names itself only but reads from the other half.
template <bool bug>
__global__ __launch_bounds__(kThreads) void shuffle_mask(const float* in, float* out) {
  const unsigned lane = threadIdx.x % 32;
  const unsigned half = 0xFFFFu << (lane & 16);
  const float value = in[threadIdx.x];
  out[threadIdx.x] = __shfl_xor_sync(half, value, bug ? 16 : 8);
}

// Many threads add to one word.
template <bool bug>
__global__ __launch_bounds__(kThreads) void shared_counter(const float*, float* out) {
  POINTSMAN_DYNAMIC_SHARED(int, counter);
  if (threadIdx.x == 0) *counter = 0;
  __syncthreads();
  if constexpr (bug) {
    *counter = *counter + 1;
  } else {
    atomicAdd(counter, 1);
  }
  __syncthreads();
  out[threadIdx.x] = static_cast<float>(*counter);
}

// Lanes exchange through shared memory as if a warp ran in step.
template <bool bug>
__global__ __launch_bounds__(kThreads) void lanes_in_step(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);
  row[threadIdx.x] = in[threadIdx.x];
  if constexpr (!bug) __syncwarp();
  out[threadIdx.x] = row[threadIdx.x ^ 1];
}

// Both halves of a warp exchange within the half; the other half's barrier does not help.
template <bool bug>
__global__ __launch_bounds__(kThreads) void wrong_half(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);
  row[threadIdx.x] = in[threadIdx.x];
  __syncwarp(bug ? 0xFFFFu << (threadIdx.x & 16) : kAllLanes);
  out[threadIdx.x] = row[threadIdx.x ^ 16];
}

// The two halves of an `if` have a barrier each.
template <bool bug>
__global__ __launch_bounds__(kThreads) void two_sites(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);
  row[threadIdx.x] = in[threadIdx.x];
  if (bug && threadIdx.x < 32) {
    __syncthreads();
  } else {
    __syncthreads();
  }
  out[threadIdx.x] = row[(threadIdx.x + 1) % kThreads];
}

// Half of a warp votes while the other half is at the barrier.
template <bool bug>
__global__ __launch_bounds__(kThreads) void half_at_barrier(const float* in, float* out) {
  if (!bug || threadIdx.x % 32 < 16) {
    out[threadIdx.x] = static_cast<float>(__popc(__ballot_sync(kAllLanes, in[threadIdx.x] > 0.0f)));
  }
  __syncthreads();
}

template <bool bug>
__global__ __launch_bounds__(kThreads) void early_return(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);
  row[threadIdx.x] = in[threadIdx.x];
  if (bug && threadIdx.x >= 100) return;
  __syncthreads();
  if (threadIdx.x < 100) out[threadIdx.x] = row[threadIdx.x + 1];
}

// All blocks write the same word.
template <bool bug>
__global__ __launch_bounds__(kThreads) void blocks_collide(const float* in, float* out) {
  if (blockIdx.x == 1) __syncthreads();
  if (threadIdx.x == 0) out[bug ? 0 : blockIdx.x] = in[0];
  if (blockIdx.x == 0) __syncthreads();
}

// Two blocks of a cluster: each reads what the other wrote, without waiting for it.
template <bool bug>
__global__ __launch_bounds__(kThreads) void neighbour_early(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);
  const int rank = pointsman::cuda::cluster_rank();
  row[threadIdx.x] = in[threadIdx.x] + static_cast<float>(rank);
  if constexpr (!bug) pointsman::cuda::cluster_arrive();
  if constexpr (!bug) pointsman::cuda::cluster_wait();
  const float* const there = pointsman::cuda::in_block_of_cluster(row, 1 - rank);
  if (rank == 0) out[threadIdx.x] = there[kThreads - 1 - threadIdx.x];
  pointsman::cuda::cluster_arrive();
  pointsman::cuda::cluster_wait();
}

// Sends to the other block while it may still read what came before.
template <bool bug>
__global__ __launch_bounds__(kThreads) void neighbour_overwrites(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);  // two of kThreads
  const int rank = pointsman::cuda::cluster_rank();
  float total = 0.0f;
  pointsman::cuda::cluster_arrive();
  pointsman::cuda::cluster_wait();
  for (unsigned round = 0; round < 8; ++round) {
    float* const now = row + (bug ? 0 : round % 2 * kThreads);
    pointsman::cuda::in_block_of_cluster(now, 1 - rank)[threadIdx.x] =
        in[threadIdx.x] + static_cast<float>(round);
    pointsman::cuda::cluster_arrive();
    pointsman::cuda::cluster_wait();
    total += now[kThreads - 1 - threadIdx.x];
  }
  if (rank == 0) out[threadIdx.x] = total;
}

// Writes to a block that may not have begun.
template <bool bug>
__global__ __launch_bounds__(kThreads) void neighbour_not_begun(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);
  const int rank = pointsman::cuda::cluster_rank();
  if constexpr (!bug) pointsman::cuda::cluster_arrive();
  if constexpr (!bug) pointsman::cuda::cluster_wait();
  if (rank == 0) pointsman::cuda::in_block_of_cluster(row, 1)[threadIdx.x] = in[threadIdx.x];
  pointsman::cuda::cluster_arrive();
  pointsman::cuda::cluster_wait();
  if (rank == 1) out[threadIdx.x] = row[threadIdx.x];
}

// Half of a warp is at another barrier of the cluster than the rest.
template <bool bug>
__global__ __launch_bounds__(kThreads) void parted_warp(const float* in, float* out) {
  out[threadIdx.x] = in[threadIdx.x];
  if (bug && threadIdx.x % 32 < 16) {
    pointsman::cuda::cluster_arrive();
  } else {
    pointsman::cuda::cluster_arrive();
  }
  pointsman::cuda::cluster_wait();
}

// Writes to a block that may have ended.
template <bool bug>
__global__ __launch_bounds__(kThreads) void neighbour_ended(const float* in, float* out) {
  POINTSMAN_DYNAMIC_SHARED(float, row);
  const int rank = pointsman::cuda::cluster_rank();
  if (rank == 0) out[threadIdx.x] = in[threadIdx.x];
  if constexpr (!bug) pointsman::cuda::cluster_arrive();
  if (rank == 1) pointsman::cuda::in_block_of_cluster(row, 0)[threadIdx.x] = in[threadIdx.x];
  if constexpr (!bug) pointsman::cuda::cluster_wait();
}

// Four floats from an address that is not a multiple of 16.
template <bool bug>
__global__ __launch_bounds__(kThreads) void misaligned(const float* in, float* out) {
  const float4 four = *reinterpret_cast<const float4*>(in + 4 * threadIdx.x + (bug ? 2 : 0));
  out[threadIdx.x] = four.x + four.y + four.z + four.w;
}

// ------------------------------------------------------------------------------ the program

struct Mutant {
  const char* name;
  void (*bug)(const float*, float*);
  void (*clean)(const float*, float*);
  unsigned blocks;
  size_t shared_bytes;
  unsigned cluster = 1;
};
#define MUTANT(name, blocks, floats, ...) \
  { #name, name < true>, name < false>, blocks, (floats) * sizeof(float), ##__VA_ARGS__ }
const Mutant kMutants[] = {
    MUTANT(read_early, 1, 4),
    MUTANT(reuse_early, 1, 4),
    MUTANT(tile_loop, 1, kThreads),
    MUTANT(shared_past_end, 1, kThreads),
    MUTANT(global_past_end, 1, 0),
    MUTANT(uninitialised, 1, kThreads),
    MUTANT(shuffle_mask, 1, 0),
    MUTANT(shared_counter, 1, 1),
    MUTANT(lanes_in_step, 1, kThreads),
    MUTANT(wrong_half, 1, kThreads),
    MUTANT(two_sites, 1, kThreads),
    MUTANT(half_at_barrier, 1, 0),
    MUTANT(early_return, 1, kThreads),
    MUTANT(blocks_collide, 2, 0),
    MUTANT(neighbour_early, 2, kThreads, 2),
    MUTANT(neighbour_overwrites, 2, 2 * kThreads, 2),
    MUTANT(neighbour_not_begun, 2, kThreads, 2),
    MUTANT(parted_warp, 1, 0),
    MUTANT(neighbour_ended, 2, kThreads, 2),
    MUTANT(misaligned, 1, 0),
    MUTANT(copy_early, 1, 8 * kThreads),
    MUTANT(copy_over, 1, 8 * kThreads),
    MUTANT(sentinel_unwritten, 1, kThreads),
    {"last_tile", nullptr, nullptr, 2, 0},
};

using Result = std::vector<float>;

Result run_tiles(bool bug) {
  constexpr unsigned kRows = kThreads + 44;
  const DeviceArray<float> in(std::vector<float>(kRows, 1.0f));
  DeviceArray<float> out(kRows);
  launch(bug ? last_tile<true> : last_tile<false>, dim3(2), dim3(kThreads), 0, nullptr, in.data(), out.data(),
         kRows);
  return out.download();
}

Result run(const Mutant& mutant, bool bug) {
  if (mutant.bug == nullptr) return run_tiles(bug);
  Result values(4 * kThreads + 4);
  std::iota(values.begin(), values.end(), 1.0f);
  const DeviceArray<float> in(values);
  DeviceArray<float> out(kThreads);
  launch_clusters(bug ? mutant.bug : mutant.clean, mutant.cluster, dim3(mutant.blocks), dim3(kThreads),
                  mutant.shared_bytes, nullptr, in.data(), out.data());
  return out.download();
}

// What the clean twin gives under the forward schedule is what it must give under all, and the bug too if it
// is missed.
bool is_right(const Mutant& mutant, const Result& result) {
  const pointsman::emulation::Schedule schedule = pointsman::emulation::current_schedule();
  pointsman::emulation::set_schedule({});
  const Result expected = run(mutant, false);
  pointsman::emulation::set_schedule(schedule);
  return std::memcmp(result.data(), expected.data(), expected.size() * sizeof(float)) == 0;
}

}  // namespace

int main(int count, char** arguments) {
  const std::string name = count == 2 ? arguments[1] : "";
  bool right = true;
  try {
    for (const Mutant& mutant : kMutants) {
      if (name != "twins" && name != mutant.name) continue;
      if (is_right(mutant, run(mutant, name != "twins"))) continue;
      std::printf("%s: wrong result\n", mutant.name);
      right = false;
    }
  } catch (const std::exception& error) {
    std::printf("%s\n", error.what());
    right = false;
  }
  if (right) std::printf("nothing found\n");
  return right ? 0 : 1;
}
