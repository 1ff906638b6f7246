// SPDX-License-Identifier: Apache-2.0
// Errors of the CUDA runtime as exceptions, launches, and streams, events and graphs that are destroyed with
// their owner.
#pragma once

#include <cuda_runtime.h>
#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <utility>

namespace pointsman::cuda {

inline void require(cudaError_t error, const char* what) {
  if (error != cudaSuccess) {
    throw std::runtime_error(std::string("CUDA: ") + what + ": " + cudaGetErrorString(error));
  }
}

// Of the current device.
inline int device_attribute(cudaDeviceAttr attribute) {
  int device = 0, value = 0;
  require(cudaGetDevice(&device), "current device");
  require(cudaDeviceGetAttribute(&value, attribute, device), "attribute of the device");
  return value;
}

// Lets the kernel have more than 48 KiB of shared memory: all there is, as another thread may launch it with
// more.
inline void allow_shared_memory(const void* kernel, size_t bytes) {
  if (bytes <= 48 * 1024) return;
  require(cudaFuncSetAttribute(kernel, cudaFuncAttributeMaxDynamicSharedMemorySize,
                               device_attribute(cudaDevAttrMaxSharedMemoryPerBlockOptin)),
          "shared memory of a kernel");
}

// How many blocks of a launch fit on a multiprocessor at once.
inline int blocks_at_once(const void* kernel, int threads, size_t shared_bytes) {
  allow_shared_memory(kernel, shared_bytes);
  int blocks = 0;
  require(cudaOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, kernel, threads, shared_bytes), "occupancy");
  return std::max(blocks, 1);  // one that cannot be launched says so there
}

// As it is written, with its parameters.
inline std::string kernel_name(const void* kernel) {
  const char* symbol = nullptr;
  if (cudaFuncGetName(&symbol, kernel) != cudaSuccess) return "a kernel";
  char* const readable = abi::__cxa_demangle(symbol, nullptr, nullptr, nullptr);
  const std::string name = readable == nullptr ? symbol : readable;
  std::free(readable);
  return name;
}

// kernel<<<grid, block, shared_bytes, stream>>>(arguments...) in clusters of `cluster` neighbouring blocks (a
// divisor of grid.x, at most 8), with more than 48 KiB of shared memory allowed for. Nothing where grid.x is
// 0.
template <typename... Parameters, typename... Arguments>
void launch_clusters(void (*kernel)(Parameters...), unsigned cluster, dim3 grid, dim3 block,
                     size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
  if (grid.x == 0) return;
  allow_shared_memory(reinterpret_cast<const void*>(kernel), shared_bytes);
  cudaLaunchConfig_t config{};
  config.gridDim = grid;
  config.blockDim = block;
  config.dynamicSmemBytes = shared_bytes;
  config.stream = stream;
  cudaLaunchAttribute attribute{};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {cluster, 1, 1};
  config.attrs = &attribute;
  config.numAttrs = cluster > 1;
  const cudaError_t error = cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...);
  if (error != cudaSuccess)
    require(error, ("launch of " + kernel_name(reinterpret_cast<const void*>(kernel))).c_str());
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  launch_clusters(kernel, 1, grid, block, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

// In no order with copies and kernels without a stream. While a stream that waits for those is recorded, they
// are forbidden to the whole process, to libraries that know nothing of it, too.
class Stream {
 public:
  Stream() { require(cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking), "stream"); }
  ~Stream() { cudaStreamDestroy(stream_); }
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  cudaStream_t get() const { return stream_; }
  void synchronize() const { require(cudaStreamSynchronize(stream_), "kernels"); }
  // Is all its work done?
  bool is_done() const {
    const cudaError_t error = cudaStreamQuery(stream_);
    if (error != cudaErrorNotReady) require(error, "kernels");
    return error == cudaSuccess;
  }

 private:
  cudaStream_t stream_ = nullptr;
};

class Event {
 public:
  Event() { require(cudaEventCreateWithFlags(&event_, cudaEventDisableTiming), "event"); }
  ~Event() { cudaEventDestroy(event_); }
  Event(const Event&) = delete;
  Event& operator=(const Event&) = delete;

  // It happens when what `stream` has to do so far is done.
  void record(const Stream& stream) { require(cudaEventRecord(event_, stream.get()), "event"); }
  // What `stream` gets to do from now on is done after the event.
  void hold_back(const Stream& stream) const {
    require(cudaStreamWaitEvent(stream.get(), event_, 0), "event");
  }

 private:
  cudaEvent_t event_ = nullptr;
};

// Work that is launched as one CUDA graph.
class Graph {
 public:
  Graph() = default;
  ~Graph() { release(); }
  Graph(const Graph&) = delete;
  Graph& operator=(const Graph&) = delete;

  // Launches on `stream` what record() gives to it. Of the same kernels, copies and host calls in the same
  // order as last time the graph is kept, with the new arguments. record() neither waits for a stream nor
  // allocates.
  template <typename Record>
  void launch(const Stream& stream, const Record& record) {
    cudaGraph_t recorded = nullptr;
    require(cudaStreamBeginCapture(stream.get(), cudaStreamCaptureModeThreadLocal), "recording a graph");
    try {
      record();
    } catch (...) {
      cudaStreamEndCapture(stream.get(), &recorded);
      if (recorded != nullptr) cudaGraphDestroy(recorded);
      cudaGetLastError();  // so that the next call does not find it
      throw;
    }
    require(cudaStreamEndCapture(stream.get(), &recorded), "recording a graph");
    const cudaError_t error = renew(recorded);
    cudaGraphDestroy(recorded);
    require(error, "graph");
    require(cudaGraphLaunch(executable_, stream.get()), "launch of a graph");
  }

 private:
  cudaError_t renew(cudaGraph_t recorded) {
    cudaGraphExecUpdateResultInfo info{};
    if (executable_ != nullptr && cudaGraphExecUpdate(executable_, recorded, &info) == cudaSuccess)
      return cudaSuccess;
    cudaGetLastError();  // so that the next call does not find it
    release();
    return cudaGraphInstantiate(&executable_, recorded, 0);
  }
  void release() {
    if (executable_ != nullptr) cudaGraphExecDestroy(executable_);
    executable_ = nullptr;
  }

  cudaGraphExec_t executable_ = nullptr;
};

// A call of the host among the work of a stream. It outlives that work, and calls nothing of CUDA.
class HostCall {
 public:
  explicit HostCall(std::function<void()> work) : work_(std::move(work)) {}
  HostCall(const HostCall&) = delete;
  HostCall& operator=(const HostCall&) = delete;

  void enqueue(const Stream& stream) {
    require(cudaLaunchHostFunc(stream.get(), &HostCall::run, this), "host call");
  }
  // Once the stream's work is done: throws what the call threw.
  void rethrow() const {
    if (failure_) std::rethrow_exception(failure_);
  }

 private:
  static void run(void* self) {
    auto& call = *static_cast<HostCall*>(self);
    try {
      call.work_();
    } catch (...) {
      call.failure_ = std::current_exception();
    }
  }

  std::function<void()> work_;
  std::exception_ptr failure_;
};

}  // namespace pointsman::cuda
