// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's header of the same name when kernels and their callers are compiled for the emulation
// (docs/emulation.md). What is not here is not used by the kernels, or on purpose not to be: __shared__,
// __activemask, float atomics.
#pragma once

#include <math.h>

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <functional>
#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/cuda_emulation/emulation.h"

#define __global__
#define __device__
#define __host__
#define __constant__
// Only a wish here: inlined into each of its fourteen kernels, decode.cu would compile for a minute instead
// of five seconds, to run no faster.
#define __forceinline__ inline
#define __launch_bounds__(...)
#define __align__(n) alignas(n)

// ------------------------------------------------------------------------------ vector types

struct alignas(8) float2 {
  float x, y;
};
struct float3 {
  float x, y, z;
};
struct alignas(16) float4 {
  float x, y, z, w;
};
struct alignas(16) double2 {
  double x, y;
};
struct alignas(8) int2 {
  int x, y;
};
struct alignas(16) int4 {
  int x, y, z, w;
};
struct alignas(8) uint2 {
  unsigned x, y;
};
struct uint3 {
  unsigned x, y, z;
};
struct alignas(16) uint4 {
  unsigned x, y, z, w;
};

inline float2 make_float2(float x, float y) { return {x, y}; }
inline float3 make_float3(float x, float y, float z) { return {x, y, z}; }
inline float4 make_float4(float x, float y, float z, float w) { return {x, y, z, w}; }
inline double2 make_double2(double x, double y) { return {x, y}; }
inline int2 make_int2(int x, int y) { return {x, y}; }
inline int4 make_int4(int x, int y, int z, int w) { return {x, y, z, w}; }
inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

struct dim3 {
  unsigned x, y, z;
  constexpr dim3(unsigned x_size = 1, unsigned y_size = 1, unsigned z_size = 1)
      : x(x_size), y(y_size), z(z_size) {}
};

// Of the CUDA thread that runs; set at each switch to another.
extern uint3 threadIdx, blockIdx;
extern dim3 blockDim, gridDim;
inline constexpr int warpSize = 32;

// ------------------------------------------------------------------------------ threads that meet

#define POINTSMAN_EMULATION_SITE const char *file = __builtin_FILE(), int line = __builtin_LINE()

inline void __syncthreads(POINTSMAN_EMULATION_SITE) {
  pointsman::emulation::meet_block(pointsman::emulation::BlockOp::kSync, false, file, line);
}
inline int __syncthreads_count(int predicate, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::meet_block(pointsman::emulation::BlockOp::kCount, predicate != 0, file, line);
}
inline int __syncthreads_and(int predicate, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::meet_block(pointsman::emulation::BlockOp::kAnd, predicate != 0, file, line);
}
inline int __syncthreads_or(int predicate, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::meet_block(pointsman::emulation::BlockOp::kOr, predicate != 0, file, line);
}
inline void __syncwarp(unsigned mask = 0xFFFFFFFFu, POINTSMAN_EMULATION_SITE) {
  pointsman::emulation::meet_warp(pointsman::emulation::WarpOp::kSync, mask, 0, 0, 32, file, line);
}

namespace pointsman::emulation {

template <typename T>
inline T shuffle(WarpOp op, unsigned mask, T value, int argument, int width, const char* file, int line) {
  static_assert(std::is_arithmetic_v<T> && (sizeof(T) == 4 || sizeof(T) == 8));
  uint64_t bits = 0;
  std::memcpy(&bits, &value, sizeof(T));
  bits = meet_warp(op, mask, bits, argument, width, file, line);
  std::memcpy(&value, &bits, sizeof(T));
  return value;
}

inline unsigned reduce(WarpOp op, unsigned mask, unsigned value, const char* file, int line) {
  return static_cast<unsigned>(meet_warp(op, mask, value, 0, 32, file, line));
}

}  // namespace pointsman::emulation

template <typename T>
inline T __shfl_sync(unsigned mask, T value, int lane, int width = 32, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::shuffle(pointsman::emulation::WarpOp::kShuffle, mask, value, lane, width, file,
                                       line);
}
template <typename T>
inline T __shfl_up_sync(unsigned mask, T value, unsigned delta, int width = 32, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::shuffle(pointsman::emulation::WarpOp::kShuffleUp, mask, value,
                                       static_cast<int>(delta), width, file, line);
}
template <typename T>
inline T __shfl_down_sync(unsigned mask, T value, unsigned delta, int width = 32, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::shuffle(pointsman::emulation::WarpOp::kShuffleDown, mask, value,
                                       static_cast<int>(delta), width, file, line);
}
template <typename T>
inline T __shfl_xor_sync(unsigned mask, T value, int lane_mask, int width = 32, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::shuffle(pointsman::emulation::WarpOp::kShuffleXor, mask, value, lane_mask,
                                       width, file, line);
}
inline unsigned __ballot_sync(unsigned mask, int predicate, POINTSMAN_EMULATION_SITE) {
  return static_cast<unsigned>(pointsman::emulation::meet_warp(pointsman::emulation::WarpOp::kBallot, mask,
                                                               predicate != 0, 0, 32, file, line));
}
inline int __any_sync(unsigned mask, int predicate, POINTSMAN_EMULATION_SITE) {
  return static_cast<int>(pointsman::emulation::meet_warp(pointsman::emulation::WarpOp::kAny, mask,
                                                          predicate != 0, 0, 32, file, line));
}
inline int __all_sync(unsigned mask, int predicate, POINTSMAN_EMULATION_SITE) {
  return static_cast<int>(pointsman::emulation::meet_warp(pointsman::emulation::WarpOp::kAll, mask,
                                                          predicate != 0, 0, 32, file, line));
}
inline unsigned __reduce_add_sync(unsigned mask, unsigned value, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceAdd, mask, value, file, line);
}
inline int __reduce_add_sync(unsigned mask, int value, POINTSMAN_EMULATION_SITE) {
  return static_cast<int>(pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceAdd, mask,
                                                       static_cast<unsigned>(value), file, line));
}
inline unsigned __reduce_min_sync(unsigned mask, unsigned value, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceMinUnsigned, mask, value, file,
                                      line);
}
inline int __reduce_min_sync(unsigned mask, int value, POINTSMAN_EMULATION_SITE) {
  return static_cast<int>(pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceMinSigned, mask,
                                                       static_cast<unsigned>(value), file, line));
}
inline unsigned __reduce_max_sync(unsigned mask, unsigned value, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceMaxUnsigned, mask, value, file,
                                      line);
}
inline int __reduce_max_sync(unsigned mask, int value, POINTSMAN_EMULATION_SITE) {
  return static_cast<int>(pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceMaxSigned, mask,
                                                       static_cast<unsigned>(value), file, line));
}
inline unsigned __reduce_and_sync(unsigned mask, unsigned value, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceAnd, mask, value, file, line);
}
inline unsigned __reduce_or_sync(unsigned mask, unsigned value, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceOr, mask, value, file, line);
}
inline unsigned __reduce_xor_sync(unsigned mask, unsigned value, POINTSMAN_EMULATION_SITE) {
  return pointsman::emulation::reduce(pointsman::emulation::WarpOp::kReduceXor, mask, value, file, line);
}

// ------------------------------------------------------------------------------ atomics

// Acquire and release, unlike the device's: a race that hides behind an unrelated atomic is missed, but no
// pattern with a fence is falsely accused.
inline int atomicAdd(int* p, int v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
inline unsigned atomicAdd(unsigned* p, unsigned v) { return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL); }
inline unsigned long long atomicAdd(unsigned long long* p, unsigned long long v) {
  return __atomic_fetch_add(p, v, __ATOMIC_ACQ_REL);
}
inline int atomicSub(int* p, int v) { return __atomic_fetch_sub(p, v, __ATOMIC_ACQ_REL); }
inline unsigned atomicSub(unsigned* p, unsigned v) { return __atomic_fetch_sub(p, v, __ATOMIC_ACQ_REL); }
inline int atomicOr(int* p, int v) { return __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL); }
inline unsigned atomicOr(unsigned* p, unsigned v) { return __atomic_fetch_or(p, v, __ATOMIC_ACQ_REL); }
inline unsigned atomicAnd(unsigned* p, unsigned v) { return __atomic_fetch_and(p, v, __ATOMIC_ACQ_REL); }
inline int atomicExch(int* p, int v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }
inline unsigned atomicExch(unsigned* p, unsigned v) { return __atomic_exchange_n(p, v, __ATOMIC_ACQ_REL); }

template <typename T>
inline T atomicCAS(T* p, T expected, T desired) {
  static_assert(std::is_integral_v<T>);
  __atomic_compare_exchange_n(p, &expected, desired, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE);
  return expected;
}
template <typename T>
inline T atomicMax(T* p, std::type_identity_t<T> v) {
  static_assert(std::is_integral_v<T>);
  T old = __atomic_load_n(p, __ATOMIC_ACQUIRE);
  while (old < v && !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return old;
}
template <typename T>
inline T atomicMin(T* p, std::type_identity_t<T> v) {
  static_assert(std::is_integral_v<T>);
  T old = __atomic_load_n(p, __ATOMIC_ACQUIRE);
  while (v < old && !__atomic_compare_exchange_n(p, &old, v, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) {
  }
  return old;
}
inline void __threadfence() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }
inline void __threadfence_block() { __atomic_signal_fence(__ATOMIC_SEQ_CST); }

// ------------------------------------------------------------------------------ arithmetic

template <typename A, typename B>
constexpr std::common_type_t<A, B> min(A a, B b) {
  static_assert(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>);
  return b < a ? b : a;
}
template <typename A, typename B>
constexpr std::common_type_t<A, B> max(A a, B b) {
  static_assert(std::is_arithmetic_v<A> && std::is_arithmetic_v<B>);
  return a < b ? b : a;
}
inline int __popc(unsigned x) { return std::popcount(x); }
inline int __ffs(int x) { return __builtin_ffs(x); }
inline int __clz(int x) { return std::countl_zero(static_cast<unsigned>(x)); }
inline unsigned __umulhi(unsigned a, unsigned b) { return static_cast<unsigned>((uint64_t{a} * b) >> 32); }
inline float __uint_as_float(unsigned x) { return std::bit_cast<float>(x); }
inline unsigned __float_as_uint(float x) { return std::bit_cast<unsigned>(x); }
inline float __int_as_float(int x) { return std::bit_cast<float>(x); }
inline int __float_as_int(float x) { return std::bit_cast<int>(x); }
inline float __fadd_rn(float a, float b) { return a + b; }
inline float __fmul_rn(float a, float b) { return a * b; }
inline float __fdiv_rn(float a, float b) { return a / b; }
inline float __fmaf_rn(float a, float b, float c) { return fmaf(a, b, c); }
template <typename T>
inline T __ldg(const T* p) {
  return *p;
}

// ------------------------------------------------------------------------------ the runtime's interface

enum cudaError_t {
  cudaSuccess = 0,
  cudaErrorInvalidValue = 1,
  cudaErrorMemoryAllocation = 2,
  cudaErrorInvalidConfiguration = 9,
  cudaErrorInvalidDevice = 101,
  cudaErrorInvalidResourceHandle = 400,
  cudaErrorNotReady = 600,
  cudaErrorGraphExecUpdateFailure = 910,
};
const char* cudaGetErrorString(cudaError_t error);
const char* cudaGetErrorName(cudaError_t error);
cudaError_t cudaGetLastError();
cudaError_t cudaPeekAtLastError();

struct cudaDeviceProp {
  char name[256];
  int pciDomainID, pciBusID, pciDeviceID;
  size_t totalGlobalMem, sharedMemPerBlock, sharedMemPerBlockOptin, sharedMemPerMultiprocessor;
  size_t reservedSharedMemPerBlock;
  int major, minor, multiProcessorCount, warpSize, maxThreadsPerBlock, maxThreadsPerMultiProcessor;
  int regsPerBlock, regsPerMultiprocessor, l2CacheSize, memoryBusWidth;
  int maxGridSize[3];
};
enum cudaDeviceAttr {
  cudaDevAttrMultiProcessorCount = 16,
  cudaDevAttrComputeCapabilityMajor = 75,
  cudaDevAttrComputeCapabilityMinor = 76,
  cudaDevAttrMaxSharedMemoryPerMultiprocessor = 81,
  cudaDevAttrMaxSharedMemoryPerBlockOptin = 97,
};
cudaError_t cudaGetDeviceCount(int* count);
cudaError_t cudaGetDeviceProperties(cudaDeviceProp* properties, int device);
cudaError_t cudaDeviceGetAttribute(int* value, cudaDeviceAttr attribute, int device);
cudaError_t cudaGetDevice(int* device);
cudaError_t cudaSetDevice(int device);
cudaError_t cudaDeviceSynchronize();
cudaError_t cudaMemGetInfo(size_t* free_bytes, size_t* total_bytes);
cudaError_t cudaDriverGetVersion(int* version);
cudaError_t cudaRuntimeGetVersion(int* version);

enum cudaMemcpyKind {
  cudaMemcpyHostToHost = 0,
  cudaMemcpyHostToDevice = 1,
  cudaMemcpyDeviceToHost = 2,
  cudaMemcpyDeviceToDevice = 3,
};
using cudaStream_t = struct CUstream_st*;
using cudaEvent_t = struct CUevent_st*;

cudaError_t cudaMalloc(void** pointer, size_t bytes);
cudaError_t cudaMallocHost(void** pointer, size_t bytes);
template <typename T>
cudaError_t cudaMalloc(T** pointer, size_t bytes) {
  return cudaMalloc(reinterpret_cast<void**>(pointer), bytes);
}
template <typename T>
cudaError_t cudaMallocHost(T** pointer, size_t bytes) {
  return cudaMallocHost(reinterpret_cast<void**>(pointer), bytes);
}
cudaError_t cudaFree(void* pointer);
cudaError_t cudaFreeHost(void* pointer);
cudaError_t cudaMemcpy(void* to, const void* from, size_t bytes, cudaMemcpyKind kind);
cudaError_t cudaMemcpyAsync(void* to, const void* from, size_t bytes, cudaMemcpyKind kind,
                            cudaStream_t stream = nullptr);
cudaError_t cudaMemset(void* pointer, int value, size_t bytes);
cudaError_t cudaMemsetAsync(void* pointer, int value, size_t bytes, cudaStream_t stream = nullptr);

enum { cudaStreamDefault = 0, cudaStreamNonBlocking = 1 };
cudaError_t cudaStreamCreate(cudaStream_t* stream);
cudaError_t cudaStreamCreateWithFlags(cudaStream_t* stream, unsigned flags);
cudaError_t cudaStreamDestroy(cudaStream_t stream);
cudaError_t cudaStreamSynchronize(cudaStream_t stream);
cudaError_t cudaStreamQuery(cudaStream_t stream);

enum { cudaEventDefault = 0, cudaEventDisableTiming = 2 };
cudaError_t cudaEventCreate(cudaEvent_t* event);
cudaError_t cudaEventCreateWithFlags(cudaEvent_t* event, unsigned flags);
cudaError_t cudaEventDestroy(cudaEvent_t event);
cudaError_t cudaEventRecord(cudaEvent_t event, cudaStream_t stream = nullptr);
cudaError_t cudaEventSynchronize(cudaEvent_t event);
cudaError_t cudaEventElapsedTime(float* milliseconds, cudaEvent_t start, cudaEvent_t end);
cudaError_t cudaStreamWaitEvent(cudaStream_t stream, cudaEvent_t event, unsigned flags = 0);

// Graphs are what a stream was given while it was captured.
using cudaGraph_t = struct CUgraph_st*;
using cudaGraphExec_t = struct CUgraphExec_st*;
enum cudaStreamCaptureMode { cudaStreamCaptureModeGlobal = 0, cudaStreamCaptureModeThreadLocal = 1 };
struct cudaGraphExecUpdateResultInfo {
  int result = 0;
};
cudaError_t cudaStreamBeginCapture(cudaStream_t stream, cudaStreamCaptureMode mode);
cudaError_t cudaStreamEndCapture(cudaStream_t stream, cudaGraph_t* graph);
cudaError_t cudaGraphInstantiate(cudaGraphExec_t* executable, cudaGraph_t graph, unsigned long long flags);
cudaError_t cudaGraphExecUpdate(cudaGraphExec_t executable, cudaGraph_t graph,
                                cudaGraphExecUpdateResultInfo* info);
cudaError_t cudaGraphLaunch(cudaGraphExec_t executable, cudaStream_t stream);
cudaError_t cudaGraphDestroy(cudaGraph_t graph);
cudaError_t cudaGraphExecDestroy(cudaGraphExec_t executable);

using cudaHostFn_t = void (*)(void*);
cudaError_t cudaLaunchHostFunc(cudaStream_t stream, cudaHostFn_t call, void* argument);

enum cudaFuncAttribute { cudaFuncAttributeMaxDynamicSharedMemorySize = 8 };
cudaError_t cudaFuncSetAttribute(const void* kernel, cudaFuncAttribute attribute, int value);
cudaError_t cudaFuncGetName(const char** name, const void* kernel);

enum cudaLaunchAttributeID { cudaLaunchAttributeClusterDimension = 4 };
union cudaLaunchAttributeValue {
  struct {
    unsigned x, y, z;
  } clusterDim;
};
struct cudaLaunchAttribute {
  cudaLaunchAttributeID id;
  cudaLaunchAttributeValue val;
};
struct cudaLaunchConfig_t {
  dim3 gridDim, blockDim;
  size_t dynamicSmemBytes = 0;
  cudaStream_t stream = nullptr;
  cudaLaunchAttribute* attrs = nullptr;
  unsigned numAttrs = 0;
};
// By threads, shared memory and 128 registers a thread, which no emulated kernel has a number of.
cudaError_t cudaOccupancyMaxActiveBlocksPerMultiprocessor(int* blocks, const void* kernel, int threads,
                                                          size_t shared_bytes);
cudaError_t cudaOccupancyMaxActiveClusters(int* clusters, const void* kernel,
                                           const cudaLaunchConfig_t* config);

namespace pointsman::emulation {
// body: one thread of the kernel.
cudaError_t launch_kernel(const cudaLaunchConfig_t& config, const void* kernel, size_t parameter_bytes,
                          std::function<void()> body);
}  // namespace pointsman::emulation

template <typename... Parameters, typename... Arguments>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(Parameters...),
                               Arguments&&... arguments) {
  static_assert((std::is_trivially_copyable_v<Parameters> && ...), "kernels take plain values");
  std::tuple<Parameters...> values(std::forward<Arguments>(arguments)...);
  return pointsman::emulation::launch_kernel(*config, reinterpret_cast<const void*>(kernel),
                                             (size_t{0} + ... + sizeof(Parameters)),
                                             [kernel, values] { std::apply(kernel, values); });
}
