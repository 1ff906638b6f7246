// SPDX-License-Identifier: Apache-2.0
// Errors of the CUDA runtime as exceptions, launches, and streams and events that are destroyed with their
// owner.
#pragma once

#include <cuda_runtime.h>

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

// kernel<<<grid, block, shared_bytes, stream>>>(arguments...) in clusters of `cluster` neighbouring blocks (a
// divisor of grid.x, at most 8), with more than 48 KiB of shared memory allowed for.
template <typename... Parameters, typename... Arguments>
void launch_clusters(void (*kernel)(Parameters...), unsigned cluster, dim3 grid, dim3 block,
                     size_t shared_bytes, cudaStream_t stream, Arguments&&... arguments) {
  if (shared_bytes > 48 * 1024) {
    require(cudaFuncSetAttribute(reinterpret_cast<const void*>(kernel),
                                 cudaFuncAttributeMaxDynamicSharedMemorySize, static_cast<int>(shared_bytes)),
            "shared memory of a kernel");
  }
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
  require(cudaLaunchKernelEx(&config, kernel, std::forward<Arguments>(arguments)...), "launch");
}

template <typename... Parameters, typename... Arguments>
void launch(void (*kernel)(Parameters...), dim3 grid, dim3 block, size_t shared_bytes, cudaStream_t stream,
            Arguments&&... arguments) {
  launch_clusters(kernel, 1, grid, block, shared_bytes, stream, std::forward<Arguments>(arguments)...);
}

class Stream {
 public:
  Stream() { require(cudaStreamCreate(&stream_), "stream"); }
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

}  // namespace pointsman::cuda
