// SPDX-License-Identifier: Apache-2.0
// CRC32C (Castagnoli; RFC 3720, appendix B.4). Detects accidental damage, including any three flipped bits.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>

namespace pointsman {

// Row k: the effect of a byte on the sum when k more bytes follow.
constexpr std::array<std::array<uint32_t, 256>, 8> crc32c_rows() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // bits reversed
  std::array<std::array<uint32_t, 256>, 8> rows{};
  for (uint32_t byte = 0; byte < 256; ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ (sum & 1 ? kPolynomial : 0);
    rows[0][byte] = sum;
  }
  for (size_t k = 1; k < 8; ++k) {
    for (size_t byte = 0; byte < 256; ++byte) {
      const uint32_t before = rows[k - 1][byte];
      rows[k][byte] = (before >> 8) ^ rows[0][before & 255];
    }
  }
  return rows;
}

// To sum in pieces, pass the result of the last piece as `sum`.
inline uint32_t crc32c(const void* data, size_t bytes, uint32_t sum = 0) {
  static constexpr auto rows = crc32c_rows();
  const auto* at = static_cast<const unsigned char*>(data);
  sum = ~sum;
  for (; bytes >= 8; at += 8, bytes -= 8) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);  // little-endian, as parameter_file.cpp asserts
    word ^= sum;
    sum = 0;
    for (size_t k = 0; k < 8; ++k) sum ^= rows[7 - k][word >> (8 * k) & 255];
  }
  for (; bytes > 0; ++at, --bytes) sum = (sum >> 8) ^ rows[0][(sum ^ *at) & 255];
  return ~sum;
}

}  // namespace pointsman
