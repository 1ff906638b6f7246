// SPDX-License-Identifier: Apache-2.0
// What every call of the CUDA backend works with: the device, one stream, the parameters and the memory.
#pragma once

#include <cuda_runtime.h>

#include <optional>
#include <string>

#include "engine/backend/backend.h"
#include "engine/backend/cuda_parameters.h"
#include "engine/backend/tape_head.h"
#include "kernels/cuda/cublas_multiply.h"
#include "kernels/cuda/device_buffer.h"
#include "models/config.h"
#include "models/parameter_layout.h"

namespace pointsman::cuda {

// The device memory beside the parameters, as one block. A tape's activations are held at its start; each
// chunk of a call takes the rest anew.
class CudaMemory {
 public:
  // limit: bytes; 0: nine tenths of what the device has free.
  void configure(size_t limit);

  void release() {
    block_.release();
    let_go();
  }

  size_t available() const { return limit_ - held_bytes_; }
  // The work area of a chunk, of at least `bytes`. It may have to grow: then what was held is lost.
  std::byte* work(size_t bytes);
  // Arrays(placement, arguments...) in a work area of their size.
  template <typename Arrays, typename... Arguments>
  Arrays place(const Arguments&... arguments) {
    Placement counted;
    Arrays(counted, arguments...);
    Placement placed(work(counted.bytes()));
    return Arrays(placed, arguments...);
  }

  // Holds the first `bytes` of the last work area until let_go(). Nothing may be held at the time.
  void hold(size_t bytes) { held_bytes_ = bytes; }
  void let_go() { held_bytes_ = 0; }
  bool holds() const { return held_bytes_ > 0; }
  std::byte* held() const { return block_.data(); }

 private:
  DeviceBuffer block_;
  size_t limit_ = 0, held_bytes_ = 0;
};

// How the host tells work that is under way on the device to end: a word of device memory that the work reads
// (DecodeArgs::stop), 0 in the chunk's inputs, is overwritten.
class StopSignal {
 public:
  StopSignal();

  // The upload of the word is the last thing that `stream` has got to do.
  void begin(const Stream& stream) {
    is_sent_ = false;
    word_is_there_.record(stream);
  }
  void send(int32_t* word);
  bool is_sent() const { return is_sent_; }
  // After this the word's memory may have another use.
  void settle() const {
    if (is_sent_) stream_.synchronize();
  }

 private:
  Stream stream_;  // the work's own is busy
  Event word_is_there_;
  PinnedBuffer one_;
  bool is_sent_ = false;
};

struct CudaContext {
  // Throws DeviceError when there is no such device.
  CudaContext(int device_index, Precision precision_);

  // CUDA's current device belongs to the thread, and each call may come from another.
  void make_current() const { require(cudaSetDevice(index), "device"); }

  const int index;
  const Precision precision;  // of rollouts without a tape
  cudaDeviceProp properties{};
  Stream stream;
  StopSignal stop_signal;
  Cublas cublas;
  CudaMemory memory;
  TapeHead tape_head;  // of the tape whose activations memory holds
  PinnedBuffer uploads, downloads;
  ModelConfig config;
  std::optional<ParameterLayout> layout;
  std::optional<CudaParameters> parameters;

 private:
  static int checked(int device_index);
};

// "12 MiB", for messages about memory.
std::string mebibytes(size_t bytes);

}  // namespace pointsman::cuda
