// SPDX-License-Identifier: Apache-2.0
// SHA-256 (FIPS 180-4), for naming model files by their contents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

namespace pointsman {

class Sha256 {
 public:
  void update(const void* data, size_t bytes);
  std::string hex() const;  // of all bytes so far, lower case, 64 characters

 private:
  void absorb(const uint8_t* block);  // [64]

  std::array<uint32_t, 8> state_{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
  std::array<uint8_t, 64> pending_{};
  uint64_t total_bytes_ = 0;
};

}  // namespace pointsman
