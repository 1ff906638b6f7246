// SPDX-License-Identifier: Apache-2.0
// Lanes for rollouts that no gradient follows: so many chunks are under way at once, of one call or of
// several. While one is decoded, the next is packed and uploaded, and the answers of the one before are
// downloaded and taken apart.
#pragma once

#include <array>
#include <condition_variable>
#include <mutex>
#include <vector>

#include "engine/backend/cuda/context.h"

namespace pointsman::cuda {

class CudaLanes {
 public:
  static constexpr int kLanes = 2;
  static constexpr int kPart = 4;  // of the memory, for each: a tape may have the rest

  explicit CudaLanes(CudaDevice& device) : lanes_{CudaLane(device, kPart), CudaLane(device, kPart)} {}

  // A lane, or none, for as long as it lives. What is under way on the lane when it ends is waited for.
  class Lease {
   public:
    Lease() = default;
    Lease(CudaLanes& lanes, CudaLane& lane) : lanes_(&lanes), lane_(&lane) {}
    Lease(Lease&& other) noexcept { *this = std::move(other); }
    Lease& operator=(Lease&& other) noexcept {
      std::swap(lanes_, other.lanes_);
      std::swap(lane_, other.lane_);
      return *this;
    }
    ~Lease() {
      if (lane_ != nullptr) lanes_->give_back(*lane_);
    }

    CudaLane* lane() const { return lane_; }

   private:
    CudaLanes* lanes_ = nullptr;
    CudaLane* lane_ = nullptr;
  };

  Lease take();      // waits until one is free
  Lease try_take();  // none when none is free
  // Waits until all are free, and takes them all.
  std::vector<Lease> take_all();

  CudaMemory& memory() { return lanes_[0].memory; }  // of any of them: all are as large

 private:
  void give_back(CudaLane& lane);
  int count_free() const;
  Lease take_free();

  std::array<CudaLane, kLanes> lanes_;
  std::array<bool, kLanes> is_taken_{};
  std::mutex mutex_;
  std::condition_variable given_back_;
};

}  // namespace pointsman::cuda
