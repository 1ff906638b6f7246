// SPDX-License-Identifier: Apache-2.0
// What every call of the CUDA backend works with: the device with its parameters, and lanes of work on it.
#pragma once

#include <cuda_runtime.h>

#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/parameters.h"
#include "engine/backend/tape_head.h"
#include "kernels/cuda/cublas_multiply.h"
#include "kernels/cuda/device_buffer.h"
#include "models/config.h"
#include "models/parameter_layout.h"

namespace pointsman::cuda {

class CudaMemory;

// The device memory beside the parameters, which the lanes share.
class MemoryBudget {
 public:
  void release();  // frees all blocks
  // limit: bytes; 0: nine tenths of what the device then has free. Frees all blocks.
  void configure(size_t limit);
  size_t limit() const { return limit_; }

 private:
  friend class CudaMemory;
  // Frees the blocks of other memories that nobody uses until `bytes` for this one fit.
  void make_room(const CudaMemory& taker, size_t bytes) const;

  std::mutex mutex_;  // of all blocks
  std::vector<CudaMemory*> memories_;
  size_t limit_ = 0;
};

// A lane's device memory, as one block of a part of the budget. A tape's activations are held at its start;
// each chunk of a call takes the rest anew.
class CudaMemory {
 public:
  // part: one so-manieth of the budget is the most it takes. The budget outlives it.
  CudaMemory(MemoryBudget& budget, int part);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  // Its block stays while it is in use.
  void use(bool in_use);

  size_t available() const { return budget_.limit() / part_ - held_bytes_; }
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
  friend class MemoryBudget;
  void release() {
    block_.release();
    let_go();
  }

  MemoryBudget& budget_;
  const int part_;
  bool in_use_ = false;
  DeviceBuffer block_;
  size_t held_bytes_ = 0;
};

// How the host tells work that is under way on the device to end: a word of device memory that the work reads
// (DecodeArgs::stop, TwoOptArgs::stop), 0 in the chunk's inputs, is overwritten.
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

// A device and the model on it.
struct CudaDevice {
  // Throws DeviceError when there is no such device.
  CudaDevice(int device_index, Precision precision_);

  // CUDA's current device belongs to the thread, and each call may come from another.
  void make_current() const { require(cudaSetDevice(index), "device"); }

  const int index;
  const Precision precision;  // of rollouts without a tape
  cudaDeviceProp properties{};
  ModelConfig config;
  std::optional<ParameterLayout> layout;
  std::optional<CudaParameters> parameters;
  MemoryBudget memory_budget;

 private:
  static int checked(int device_index);
};

// Where a chunk of a call runs: its work is done in order, and beside that of other lanes.
struct CudaLane {
  // part: as CudaMemory's.
  CudaLane(CudaDevice& device_, int part) : device(device_), memory(device_.memory_budget, part) {}

  // Waits until the lane's work is done.
  void synchronize() {
    stream.synchronize();
    uploads_are_read = true;
  }
  // The same; where the token stops first, ends the work by its word (StopSignal).
  void wait(const StopToken& stop, int32_t* word);

  CudaDevice& device;
  Stream stream;
  StopSignal stop_signal;
  CudaMemory memory;
  PinnedBuffer uploads, downloads;
  bool uploads_are_read = true;  // no copy from them is under way
};

// The lane of all calls but rollouts that no gradient follows. Its memory is all there is: others then have
// none.
struct CudaContext : CudaDevice, CudaLane {
  CudaContext(int device_index, Precision precision_)
      : CudaDevice(device_index, precision_), CudaLane(static_cast<CudaDevice&>(*this), 1) {}

  // Called before a gradient is enqueued or captured, as it allocates. A search does without.
  void make_cublas() {
    if (!cublas) cublas.emplace(stream.get());
  }

  std::optional<Cublas> cublas;
  Graph learning;      // a whole step
  TapeHead tape_head;  // of the tape whose activations memory holds
};

// "12 MiB", for messages about memory.
std::string mebibytes(size_t bytes);

}  // namespace pointsman::cuda
