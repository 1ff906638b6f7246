// SPDX-License-Identifier: Apache-2.0
// Floats from a cache line's start on: a 64-byte load that crosses into the next line costs two, and a large
// block of malloc always begins 16 bytes into one.
#pragma once

#include <cstddef>
#include <cstdint>
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

// Asks for floats that will soon be read.
inline void prefetch(const float* from, int64_t count) {
  constexpr int64_t kLine = 16;
  for (int64_t i = 0; i < count; i += kLine) __builtin_prefetch(from + i);
}

}  // namespace pointsman
