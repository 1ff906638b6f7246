// SPDX-License-Identifier: Apache-2.0
// FNV-1a, 64 bits (Fowler, Noll, Vo): for names and for damage, not against an adversary.
#pragma once

#include <cstdint>
#include <string_view>

namespace pointsman {

// To hash in pieces, give the last piece's result as `hash`.
constexpr uint64_t fnv1a(std::string_view bytes, uint64_t hash = 0xCBF29CE484222325ull) {
  for (const char byte : bytes) hash = (hash ^ static_cast<uint8_t>(byte)) * 0x100000001B3ull;
  return hash;
}

}  // namespace pointsman
