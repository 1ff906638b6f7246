// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/device.h"

#include <algorithm>
#include <chrono>
#include <thread>

namespace pointsman::cuda {
namespace {

// A wait first spins, as the runtime's does, and then sleeps between two looks.
constexpr std::chrono::microseconds kAwake(2000), kPause(100);

// The device becomes the thread's current one.
int checked(int device_index) {
  int count = 0;
  const cudaError_t error = cudaGetDeviceCount(&count);
  const std::string name = "device cuda:" + std::to_string(device_index);
  if (error != cudaSuccess) throw DeviceError(name + ": " + cudaGetErrorString(error));
  if (device_index >= count) {
    throw DeviceError(name + ": this machine has " + std::to_string(count) + " CUDA device" +
                      (count == 1 ? "" : "s"));
  }
  require(cudaSetDevice(device_index), "device");
  return device_index;
}

}  // namespace

void MemoryBudget::release() {
  for (CudaMemory* memory : memories_) memory->release();
}

void MemoryBudget::configure(size_t limit) {
  release();
  limit_ = limit;
  if (limit > 0) return;
  size_t free = 0, total = 0;
  require(cudaMemGetInfo(&free, &total), "free memory");
  limit_ = free / 10 * 9;
}

void MemoryBudget::make_room(const CudaMemory& taker, size_t bytes) const {
  size_t taken = bytes;
  for (const CudaMemory* memory : memories_) {
    if (memory != &taker) taken += memory->block_.bytes();
  }
  for (CudaMemory* memory : memories_) {
    if (memory == &taker || memory->in_use_ || taken <= limit_) continue;
    taken -= memory->block_.bytes();
    memory->release();
  }
}

CudaMemory::CudaMemory(MemoryBudget& budget, int part) : budget_(budget), part_(part) {
  budget_.memories_.push_back(this);
}

void CudaMemory::use(bool in_use) {
  const std::lock_guard lock(budget_.mutex_);
  in_use_ = in_use;
}

std::byte* CudaMemory::work(size_t bytes) {
  if (held_bytes_ + bytes > block_.bytes()) {
    let_go();
    // Some more, so that a run of slowly growing calls does not allocate for each.
    const size_t wanted = std::min(bytes + bytes / 4, std::max(available(), bytes));
    const std::lock_guard lock(budget_.mutex_);
    budget_.make_room(*this, wanted);
    try {
      block_.reserve(wanted);
    } catch (const std::bad_alloc&) {
      throw DeviceError("CUDA: no " + mebibytes(wanted) +
                        " of device memory left: another program has taken them");
    }
  }
  return block_.data() + held_bytes_;
}

StopSignal::StopSignal() { *reinterpret_cast<int32_t*>(one_.reserve(sizeof(int32_t))) = 1; }

void StopSignal::send() {
  word_is_there_.hold_back(stream_);
  require(cudaMemcpyAsync(word_, one_.data(), sizeof *word_, cudaMemcpyHostToDevice, stream_.get()),
          "signal to stop");
  is_sent_ = true;
}

void DeviceStream::wait(const StopToken& stop) {
  const auto start = std::chrono::steady_clock::now();
  while (stop.can_stop()) {
    if (!stop_signal.is_sent() && stop.stops()) stop_signal.send();
    if (is_done()) break;
    if (std::chrono::steady_clock::now() - start > kAwake) std::this_thread::sleep_for(kPause);
  }
  synchronize();
  stop_signal.settle();
}

CudaDevice::CudaDevice(int device_index, Precision precision_)
    : index(checked(device_index)), precision(precision_) {
  require(cudaGetDeviceProperties(&properties, index), "device properties");
  if (precision != Precision::kFp32 && properties.major < 8) {
    throw DeviceError(std::string("precision ") + name_of(precision) + ": " + properties.name +
                      " has no tensor cores for it");
  }
}

std::vector<StreamPool::Lease> StreamPool::take(size_t count) {
  std::unique_lock lock(mutex_);
  given_back_.wait(lock, [&] { return free_.size() >= count; });
  std::vector<Lease> taken;
  while (taken.size() < count) taken.push_back(take_free());
  return taken;
}

StreamPool::Lease StreamPool::try_take() {
  const std::lock_guard lock(mutex_);
  return free_.empty() ? Lease() : take_free();
}

StreamPool::Lease StreamPool::take_free() {
  DeviceStream* const stream = free_.back();
  free_.pop_back();
  stream->memory.use(true);
  return Lease(stream, {this});
}

void StreamPool::give_back(DeviceStream& stream) {
  cudaStreamSynchronize(stream.get());  // after an error, which the caller reports, work may be left
  stream.memory.use(false);
  {
    const std::lock_guard lock(mutex_);
    free_.push_back(&stream);
  }
  given_back_.notify_all();
}

std::string mebibytes(size_t bytes) { return std::to_string((bytes + (1 << 20) - 1) >> 20) + " MiB"; }

}  // namespace pointsman::cuda
