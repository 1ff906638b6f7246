// SPDX-License-Identifier: Apache-2.0
// How much memory packed input (gzip, .npz) may take: a small file must not fill it without bounds.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace pointsman {

// The default, as --max-input says it.
inline constexpr const char* kDefaultMaxInput = "1G";
// That a value of a text format takes at most once it is parsed, beside its text.
inline constexpr uint64_t kBytesPerValue = 24;

// "512M": a number of bytes above 0; K, M, G and T are powers of 1024. Nothing for any other text.
std::optional<uint64_t> parse_size(std::string_view text);

// For all input of the process. Before it is set: POINTSMAN_MAX_INPUT in the environment, else the default.
void set_input_limit(uint64_t bytes);
// Throws std::invalid_argument where the environment has no size.
uint64_t input_limit();

// Throws InputTooLarge where the bytes that input will take are more than the limit. what: "locs: (9, 2)
// takes".
void check_input_size(uint64_t bytes, const std::string& file, const std::string& what);

}  // namespace pointsman
