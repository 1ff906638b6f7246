// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits (Fowler, Noll, Vo): for names and for damage, not against an adversary.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string_view>

namespace pointsman {

inline constexpr uint64_t kFnvStart = 0xCBF29CE484222325ull, kFnvPrime = 0x100000001B3ull;

// To hash in pieces, give the last piece's result as `hash`.
constexpr uint64_t fnv1a(std::string_view bytes, uint64_t hash = kFnvStart) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * kFnvPrime;
  return hash;
}

// Of large arrays: eight bytes a step, so not FNV-1a's number.
inline uint64_t hash_array(const void* data, size_t bytes, uint64_t hash = kFnvStart) {
  const char* at = static_cast<const char*>(data);
  for (; bytes >= sizeof(uint64_t); at += sizeof(uint64_t), bytes -= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, at, sizeof word);
    hash = (hash ^ word) * kFnvPrime;
    hash ^= hash >> 32;
  }
  return fnv1a({at, bytes}, hash);
}

}  // namespace pointsman
