// SPDX-License-Identifier: Apache-2.0
#include "host/formats/input_limit.h"

#include <atomic>
#include <charconv>
#include <cstdlib>
#include <limits>
#include <stdexcept>

#include "host/formats/input_error.h"
#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

std::atomic<uint64_t> limit{0};  // 0: not set

uint64_t limit_from_environment() {
  const char* const text = std::getenv("POINTSMAN_MAX_INPUT");
  const std::optional<uint64_t> size = parse_size(text != nullptr && *text != '\0' ? text : kDefaultMaxInput);
  if (!size)
    throw std::invalid_argument("POINTSMAN_MAX_INPUT: expected a size such as 4G, found " + shown(text));
  return *size;
}

}  // namespace

std::optional<uint64_t> parse_size(std::string_view text) {
  constexpr std::string_view kUnits = "KMGT";
  uint64_t size = 0;
  const auto [end, wrong] = std::from_chars(text.data(), text.data() + text.size(), size);
  const std::string_view unit = text.substr(static_cast<size_t>(end - text.data()));
  if (wrong != std::errc() || size == 0 || unit.size() > 1) return std::nullopt;
  if (unit.empty()) return size;
  const size_t power = kUnits.find(unit[0]);
  if (power == std::string_view::npos) return std::nullopt;
  const size_t bits = 10 * (power + 1);
  if (size > std::numeric_limits<uint64_t>::max() >> bits) return std::nullopt;
  return size << bits;
}

void set_input_limit(uint64_t bytes) { limit = bytes; }

uint64_t input_limit() {
  const uint64_t set = limit;
  return set > 0 ? set : limit_from_environment();
}

void check_input_size(uint64_t bytes, const std::string& file, const std::string& what) {
  const uint64_t most = input_limit();
  if (bytes <= most) return;
  throw InputTooLarge(file, what + " " + std::to_string(bytes) + " bytes; expected at most " +
                                std::to_string(most) + ", --max-input SIZE or POINTSMAN_MAX_INPUT raises it");
}

}  // namespace pointsman
