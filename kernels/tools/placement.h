// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace pointsman {

// Hands out consecutive pieces of a block, each aligned to `alignment` bytes; with 1 they follow each other
// without gaps. Without a block it only counts: a struct whose constructor takes its arrays from a Placement
// also tells how much memory they need.
class Placement {
 public:
  explicit Placement(void* block = nullptr, size_t alignment = 256)
      : block_(static_cast<std::byte*>(block)), alignment_(alignment) {}

  template <typename T>
  T* take(size_t count) {
    T* const piece = reinterpret_cast<T*>(next());
    bytes_ += (count * sizeof(T) + alignment_ - 1) / alignment_ * alignment_;
    return piece;
  }

  size_t bytes() const { return bytes_; }  // of all pieces so far

  // Where the next piece begins; null without a block.
  std::byte* next() const { return block_ == nullptr ? nullptr : block_ + bytes_; }

 private:
  std::byte* block_;
  size_t alignment_;
  size_t bytes_ = 0;
};

}  // namespace pointsman
