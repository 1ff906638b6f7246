// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>

namespace pointsman {

// Hands out consecutive pieces of a block, each aligned to 256 bytes. Without a block it only counts: a
// struct whose constructor takes its arrays from a Placement also tells how much memory they need.
class Placement {
 public:
  explicit Placement(void* block = nullptr) : block_(static_cast<std::byte*>(block)) {}

  template <typename T>
  T* take(size_t count) {
    T* const piece = reinterpret_cast<T*>(next());
    bytes_ += (count * sizeof(T) + 255) / 256 * 256;
    return piece;
  }

  size_t bytes() const { return bytes_; }  // of all pieces so far

  // Where the next piece begins; null without a block.
  std::byte* next() const { return block_ == nullptr ? nullptr : block_ + bytes_; }

 private:
  std::byte* block_;
  size_t bytes_ = 0;
};

}  // namespace pointsman
