// SPDX-License-Identifier: Apache-2.0
#include "host/formats/printable.h"

#include <algorithm>

#include "host/formats/text_scan.h"

namespace pointsman {
namespace {

// A whole character of UTF-8. Strings compare as their code points do.
bool is_printable(std::string_view character) {
  struct Range {
    std::string_view first, last;
  };
  static constexpr Range kRefused[] = {
      {"\x7F", "\x7F"},                  // delete
      {"\xC2\x80", "\xC2\x9F"},          // C1
      {"\xD8\x9C", "\xD8\x9C"},          // Arabic letter mark
      {"\xE2\x80\x8E", "\xE2\x80\x8F"},  // marks of direction
      {"\xE2\x80\xA8", "\xE2\x80\xAE"},  // separators of lines and paragraphs, embeddings, overrides
      {"\xE2\x81\xA6", "\xE2\x81\xA9"},  // isolates
  };
  if (static_cast<unsigned char>(character.front()) < 0x20) return false;
  return std::none_of(std::begin(kRefused), std::end(kRefused), [&](const Range& range) {
    return range.first <= character && character <= range.last;
  });
}

std::string escaped(unsigned char byte) {
  if (byte == '\n') return "\\n";
  if (byte == '\r') return "\\r";
  if (byte == '\t') return "\\t";
  return printed("\\x%02x", byte);
}

}  // namespace

std::string printable(std::string_view text) {
  std::string out;
  while (!text.empty()) {
    const size_t length = utf8_length(text);
    const std::string_view character = text.substr(0, std::max<size_t>(length, 1));
    if (length > 0 && is_printable(character)) {
      out += character;
    } else {
      for (const char c : character) out += escaped(static_cast<unsigned char>(c));
    }
    text.remove_prefix(character.size());
  }
  return out;
}

}  // namespace pointsman
