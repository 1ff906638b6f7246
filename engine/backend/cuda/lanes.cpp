// SPDX-License-Identifier: Apache-2.0
#include "engine/backend/cuda/lanes.h"

#include <algorithm>

namespace pointsman::cuda {

CudaLanes::Lease CudaLanes::take() {
  std::unique_lock lock(mutex_);
  given_back_.wait(lock, [&] { return count_free() > 0; });
  return take_free();
}

CudaLanes::Lease CudaLanes::try_take() {
  const std::lock_guard lock(mutex_);
  return count_free() > 0 ? take_free() : Lease();
}

std::vector<CudaLanes::Lease> CudaLanes::take_all() {
  std::unique_lock lock(mutex_);
  given_back_.wait(lock, [&] { return count_free() == kLanes; });
  std::vector<Lease> all;
  while (count_free() > 0) all.push_back(take_free());
  return all;
}

int CudaLanes::count_free() const {
  return static_cast<int>(std::count(is_taken_.begin(), is_taken_.end(), false));
}

CudaLanes::Lease CudaLanes::take_free() {
  const auto free = std::find(is_taken_.begin(), is_taken_.end(), false) - is_taken_.begin();
  is_taken_[free] = true;
  lanes_[free].memory.use(true);
  return {*this, lanes_[free]};
}

void CudaLanes::give_back(CudaLane& lane) {
  cudaStreamSynchronize(lane.stream.get());  // after an error, which the caller tells, work may be left
  lane.memory.use(false);
  {
    const std::lock_guard lock(mutex_);
    is_taken_[&lane - lanes_.data()] = false;
  }
  given_back_.notify_all();
}

}  // namespace pointsman::cuda
