// SPDX-License-Identifier: Apache-2.0
// Floats from a cache line's start on: a 64-byte load that crosses into the next line costs two, and a large
// block of malloc always begins 16 bytes into one.
#pragma once

#include <cstddef>
#include <new>
#include <vector>

namespace pointsman {

inline constexpr std::align_val_t kCacheLine{64};

template <typename T>
struct AlignedAllocator {
  using value_type = T;

  T* allocate(size_t count) { return static_cast<T*>(::operator new(count * sizeof(T), kCacheLine)); }
  void deallocate(T* memory, size_t) { ::operator delete(memory, kCacheLine); }
  bool operator==(const AlignedAllocator&) const = default;
};

using AlignedFloats = std::vector<float, AlignedAllocator<float>>;

}  // namespace pointsman
