// SPDX-License-Identifier: Apache-2.0
// What every call of the CUDA backend works with: the device with its parameters, and streams on it, each
// with memory of its own.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/backend/backend.h"
#include "engine/backend/cuda/parameters.h"
#include "engine/backend/requests.h"
#include "kernels/cuda/cublas_multiply.h"
#include "kernels/cuda/device_buffer.h"
#include "models/config.h"
#include "models/parameter_layout.h"

namespace pointsman::cuda {

class CudaMemory;

// The device memory beside the parameters, which the streams share.
class MemoryBudget {
 public:
  void release();  // frees all blocks
  // limit: bytes; 0: nine tenths of what the device has free now. Frees all blocks.
  void configure(size_t limit);
  size_t limit() const { return limit_; }

 private:
  friend class CudaMemory;
  // Frees unused blocks of other streams until `bytes` for this one fit.
  void make_room(const CudaMemory& taker, size_t bytes) const;

  std::mutex mutex_;  // of all blocks
  std::vector<CudaMemory*> memories_;
  size_t limit_ = 0;
};

// A stream's device memory: one block. It begins with the activations of a tape, if there is one; each chunk
// of a call uses the rest anew.
class CudaMemory {
 public:
  // Takes at most 1/part of the budget, which outlives it.
  CudaMemory(MemoryBudget& budget, int part);
  CudaMemory(const CudaMemory&) = delete;
  CudaMemory& operator=(const CudaMemory&) = delete;

  // Its block stays while it is in use.
  void use(bool in_use);

  size_t available() const { return budget_.limit() / part_ - held_bytes_; }
  // The work area of a chunk, of at least `bytes`. If it has to grow, what was held is lost.
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

// Requests that running kernels stop: overwrites a word of device memory that they read (DecodeArgs::stop,
// TwoOptArgs::stop), which is 0 in the chunk's inputs.
class StopSignal {
 public:
  StopSignal();

  // Called right after the word's upload was enqueued on `stream`.
  void begin(const Stream& stream, int32_t* word) {
    is_sent_ = false;
    word_ = word;
    word_is_there_.record(stream);
  }
  void send();
  bool is_sent() const { return is_sent_; }
  // After this the word's memory may have another use.
  void settle() const {
    if (is_sent_) stream_.synchronize();
  }

 private:
  Stream stream_;  // the kernels' own is busy
  Event word_is_there_;
  PinnedBuffer one_;
  int32_t* word_ = nullptr;
  bool is_sent_ = false;
};

// A device and the model on it.
struct CudaDevice {
  // Throws DeviceError when there is no such device.
  CudaDevice(int device_index, Precision precision_);

  // CUDA's current device belongs to the thread, and each call may come from another.
  void make_current() const { require(cudaSetDevice(index), "device"); }

  const int index;
  const Precision precision;  // of the attention encoder; of the rest of rollouts without a tape
  cudaDeviceProp properties{};
  ModelConfig config;
  std::optional<ParameterLayout> layout;
  std::optional<CudaParameters> parameters;
  MemoryBudget memory_budget;
};

// A stream with its device memory and its page-locked memory for copies.
struct DeviceStream : Stream {
  // part: see CudaMemory.
  DeviceStream(CudaDevice& device_, int part) : device(device_), memory(device_.memory_budget, part) {}

  void upload(void* to, const void* from, size_t bytes) const {
    require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyHostToDevice, get()), "upload");
  }
  void download(void* to, const void* from, size_t bytes) const {
    require(cudaMemcpyAsync(to, from, bytes, cudaMemcpyDeviceToHost, get()), "download");
  }
  // Waits until the stream's work is done.
  void synchronize() const {
    Stream::synchronize();
    uploads_are_read = true;
  }
  // The same. If the token stops first, ends the work by stop_signal, which has begun.
  void wait(const StopToken& stop);

  CudaDevice& device;
  StopSignal stop_signal;
  CudaMemory memory;
  PinnedBuffer uploads, downloads;
  mutable bool uploads_are_read = true;  // no copy from `uploads` is under way
};

// The stream of all calls except rollouts without a tape. Its memory may be all of the budget.
struct MainStream : DeviceStream {
  explicit MainStream(CudaDevice& device_) : DeviceStream(device_, 1) {}

  // Called before a gradient is enqueued or captured, as it allocates. A search does without.
  void make_cublas() {
    if (!cublas) cublas.emplace(get());
  }

  std::optional<Cublas> cublas;
  Graph learning;      // a whole step
  TapeHead tape_head;  // of the tape whose activations memory holds
};

// The streams of rollouts without a tape: as many chunks run at once, of one call or of several. While one is
// decoded, the next is uploaded, and the results of the one before are downloaded.
class StreamPool {
 public:
  static constexpr int kStreams = 2;
  static constexpr int kPart = 4;  // of the memory, for each: a tape may have the rest

  explicit StreamPool(CudaDevice& device)
      : streams_{DeviceStream(device, kPart), DeviceStream(device, kPart)},
        free_{&streams_[1], &streams_[0]} {}

  // A stream, or none. Its end waits for the stream's work.
  struct GiveBack {
    StreamPool* pool;
    void operator()(DeviceStream* stream) const { pool->give_back(*stream); }
  };
  using Lease = std::unique_ptr<DeviceStream, GiveBack>;

  std::vector<Lease> take(size_t count);  // waits until as many are free
  Lease try_take();                       // none when none is free

  CudaMemory& memory() { return streams_[0].memory; }  // of any of them: all are as large

 private:
  void give_back(DeviceStream& stream);
  Lease take_free();

  std::array<DeviceStream, kStreams> streams_;
  std::vector<DeviceStream*> free_;
  std::mutex mutex_;
  std::condition_variable given_back_;
};

// "12 MiB", for messages about memory.
std::string mebibytes(size_t bytes);

}  // namespace pointsman::cuda
