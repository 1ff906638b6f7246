// SPDX-License-Identifier: Apache-2.0
// Stands in for CUB's header of the same name in the emulation: the one call that is used, as a plain loop.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>
#include <limits>

#include "tests/cuda_emulation/emulation.h"

namespace cub {

template <typename K, typename V>
struct KeyValuePair {
  K key;
  V value;
};

struct DeviceSegmentedReduce {
  // Without scratch it only tells how much it wants. CUB starts from {1, the largest value}: that is the
  // answer of a segment that is empty or has nothing below, such as infinities alone.
  template <typename T>
  static cudaError_t ArgMin(void* scratch, size_t& scratch_bytes, const T* values,
                            KeyValuePair<int, T>* answers, int64_t segments, const int32_t* begins,
                            const int32_t* ends, cudaStream_t stream = nullptr) {
    namespace emulation = pointsman::emulation;
    constexpr size_t kScratch = 1;
    if (scratch == nullptr) {
      scratch_bytes = kScratch;
      return cudaSuccess;
    }
    if (scratch_bytes < kScratch || !emulation::is_device_range(scratch, scratch_bytes)) {
      emulation::complain("cub::DeviceSegmentedReduce: scratch is too small or not device memory");
      return cudaErrorInvalidValue;
    }
    emulation::enqueue(stream, [=] {
      for (int64_t s = 0; s < segments; ++s) {
        KeyValuePair<int, T> least{1, std::numeric_limits<T>::max()};
        for (int32_t i = begins[s]; i < ends[s]; ++i) {
          if (values[i] < least.value) least = {i - begins[s], values[i]};
        }
        answers[s] = least;
      }
    });
    return cudaSuccess;
  }
};

}  // namespace cub
