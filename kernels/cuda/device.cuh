// SPDX-License-Identifier: Apache-2.0
// The few spellings in which the kernels differ from textbook CUDA: what a host compiler cannot read. The
// emulation (tests/cuda_emulation) puts a file of the same name before this one; no kernel knows which it
// got.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "kernels/common/host_device.h"
#include "kernels/cuda/stream.h"

namespace pointsman::cuda {

// The block's dynamic shared memory as an array of `type`, 16-byte aligned; its size is the launch's.
#define POINTSMAN_DYNAMIC_SHARED(type, name)                      \
  extern __shared__ __align__(16) unsigned char name##_storage[]; \
  type* const name = reinterpret_cast<type*>(name##_storage)

// Clusters: neighbouring blocks that run at the same time and reach each other's shared memory. sm_90 has
// them. A kernel that uses them is launched with launch_clusters(), and is empty for what has none.
inline constexpr bool kHasClusters = kCudaArchitecture >= 900;

// The block's number in its cluster.
__device__ __forceinline__ int cluster_rank() {
  int rank = 0;
  if constexpr (kHasClusters) asm("mov.u32 %0, %%cluster_ctarank;" : "=r"(rank));
  return rank;
}

// The barrier of all threads of a cluster, in two halves. What a thread wrote before it arrived, to any
// block's shared memory, is there for those that have waited.
__device__ __forceinline__ void cluster_arrive() {
  if constexpr (kHasClusters) asm volatile("barrier.cluster.arrive.release.aligned;" ::: "memory");
}
__device__ __forceinline__ void cluster_wait() {
  if constexpr (kHasClusters) asm volatile("barrier.cluster.wait.acquire.aligned;" ::: "memory");
}

// Where block `rank` of the cluster has what the calling block has at `own`, in shared memory.
template <typename T>
__device__ __forceinline__ T* in_block_of_cluster(T* own, int rank) {
  uint64_t there = 0;
  if constexpr (kHasClusters) {
    asm("mapa.u64 %0, %1, %2;" : "=l"(there) : "l"(reinterpret_cast<uint64_t>(own)), "r"(rank));
  }
  return reinterpret_cast<T*>(there);
}

// 1 / x to one unit in the last place, subnormal results flushed: one special-function operation.
__device__ __forceinline__ float approximate_reciprocal(float x) {
  float y;
  asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
  return y;
}

// x. Keeps the compiler from computing what depends on x before a loop, in registers that the loop then
// lacks.
__device__ __forceinline__ unsigned made_here(unsigned x) {
  asm volatile("" : "+r"(x));
  return x;
}

// 16 bytes from device to shared memory, or zeros unless `exists`: on their way until the group of copies
// that they belong to is waited for, and then there for this thread.
__device__ __forceinline__ void copy_to_shared(float* to, const float* from, bool exists) {
  asm volatile("cp.async.cg.shared.global [%0], [%1], 16, %2;" ::"r"(
                   static_cast<uint32_t>(__cvta_generic_to_shared(to))),
               "l"(from), "r"(exists ? 16 : 0)
               : "memory");
}
// What the thread has copied since its last group becomes one; it may be empty.
__device__ __forceinline__ void end_copy_group() { asm volatile("cp.async.commit_group;" ::: "memory"); }
// Waits until no more than the newest kPending groups are on their way.
template <int kPending>
__device__ __forceinline__ void wait_for_copies() {
  asm volatile("cp.async.wait_group %0;" ::"n"(kPending) : "memory");
}

// x as the tensor cores read it: 10 bits of mantissa, the nearest, ties to even. sm_80 knows only ties away
// from zero, and makes three instructions of it.
__device__ __forceinline__ uint32_t to_tf32(float x) {
  uint32_t y;
  if constexpr (kCudaArchitecture >= 900) {
    asm("cvt.rn.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  } else {
    asm("cvt.rna.tf32.f32 %0, %1;" : "=r"(y) : "f"(x));
  }
  return y;
}

// d += a b of a whole warp, a 16 x 8, b 8 x 8; group = lane / 4, member = lane % 4 hold
// a[i] = A[group + 8 (i % 2)][member + 4 (i / 2)], b[i] = B[member + 4 i][group],
// d[i] = D[group + 8 (i / 2)][2 member + i % 2].
__device__ __forceinline__ void mma_m16n8k8_tf32(float (&d)[4], const uint32_t (&a)[4],
                                                 const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k8.row.col.f32.tf32.tf32.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

// Two numbers as the tensor cores read them in half a register each, rounded to nearest even: `low` in the
// lower half.
__device__ __forceinline__ uint32_t to_bf16_pair(float low, float high) {
  uint32_t y;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(y) : "f"(high), "f"(low));
  return y;
}

// d += a b of a whole warp, a 16 x 16, b 16 x 8: as above, where a[i] and b[i] hold the pairs of k = 2 member
// + 8 (i / 2) and 2 member + 8 i, and the k that follow.
__device__ __forceinline__ void mma_m16n8k16_bf16(float (&d)[4], const uint32_t (&a)[4],
                                                  const uint32_t (&b)[2]) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 {%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, "
      "{%0, %1, %2, %3};"
      : "+f"(d[0]), "+f"(d[1]), "+f"(d[2]), "+f"(d[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b[0]), "r"(b[1]));
}

}  // namespace pointsman::cuda
